"""Every sentence that the checks say, apart from those of single exercises."""

# The verdict

NOT_ATTEMPTED = "not attempted yet: replace the `...`."
RIGHT = "right! Your answer passed all {count} tests{drawn}."
DRAWN = ", {count} of them drawn at random"
NOT_YET = "not yet. {says}"
TELL = "To see the correction, run {call}."

# Why an answer can't be compared

SYNTAX = (
    "Python can't read your cell, so it defined nothing (SyntaxError: {error}).\n"
    "    line {line}:  {text}\n"
    "  Fix that line, run the cell again, and then run the check."
)
NO_FUNCTION = (
    "This should be a function, but it is {what}.\n"
    "  Hand the function itself to the check, without calling it."
)
NOT_COMPARED = (
    "The check can't work with this answer ({error}).\n"
    "  It expects {wanted}. If that's what you have, run the cells above again: a "
    "name may have changed its meaning."
)
NOTHING_RETURNED = (
    "Your function returns nothing (None). Is the `return` missing, or is it never "
    "reached? print(...) shows a value but doesn't return it."
)
ENDLESS = (
    "It was still running after {seconds:g} seconds, so the check stopped it. Is there "
    "a loop that never ends?"
)
RAISED = "It raised {error}"

# What can be seen without knowing the cause

MISSING_PART = "`{part}` is still missing."
SEVERAL = "{part}: {says}"
UNREAD = "Your code never uses its argument `{name}`."
CHANGED = (
    "Your function changes its input `{name}`. Whoever called it will find other "
    "numbers there afterwards. {how}"
)
HOW_TO_COPY = {
    "module": "copy.deepcopy(...) gives you a module of your own to work on.",
    "several": "copy.deepcopy(...) gives you a copy to work on.",
    "tensor": (
        "`x = x * 2` makes a new tensor; `x *= 2` and `x[0] = ...` don't. x.clone() "
        "gives you a copy to work on."
    ),
}
KEPT = (
    "If it is called again with the same inputs, the result is different. Does it "
    "keep something between calls, or draw random numbers of its own?"
)
LENGTH = "It returns {got} values, but there should be {expected}."
TYPE = "It returns {got}, but it should return {expected}."
COMPLEX = "Its numbers are complex, but they should be real."
DTYPE = "The values are right, but their type is {got}, and it should be {expected}."
SHAPE = "The shape is {got}, but it should be {expected}."
SHAPE_ALONE = "The numbers are right, but the shape is {got} instead of {expected}."
NAN = "{count} of the {of} numbers are nan (not a number)."
INFINITE = "Some of the numbers are infinite."
MINUS = "The numbers are right except for their sign."
INVERTED = "True and False (or 1 and 0) are the wrong way round."
BITS = "The result is in bits. In nats it would be right: use the natural logarithm."
FACTOR = "The numbers are right except for a factor. Here it's {factor}, like {size}."
FACTOR_ALONE = "The numbers are right except for a factor. Here it's {factor}."
TRANSPOSED = "The numbers are right, but dimensions {i} and {j} are swapped."
ORDER = "These are the right numbers in the wrong order."
ROWS_SUM = "Each row should sum to 1, but one of yours sums to {got}."
SOME_RIGHT = "It's right for {right} of {of} inputs. Here's the smallest that isn't:"
RESULT = "The result isn't right yet."

# One slip. {what} comes from DIFFERENCES

SLIP = "Your answer is one change away from being right: {what}."
SLIP_LINE = "\n    line {line}:  {text}"
CORRECTED = "\n    corrected:  {text}"
CORRECTED_ALL = "\n  Corrected:\n{text}"
LIKE = "You get the same results as with the line `{line}`: {what}."
LIKE_TOLD = "\n  It should be `{line}`."
WITHOUT = "You get the same results as if you'd left out a line: {what}."
WITHOUT_TOLD = "\n  The line is `{line}`."

# What is missing: a pattern of what should be there, "… / n", and what to say

LACKS = [
    (r"^… / .*(sqrt|\*\* 0\.5)", "`{mine}` isn't divided by a root"),
    (r"softmax", "the softmax is missing"),
    (r"mask|tril|triu|causal", "the mask is missing"),
    (r"zero_grad|grad = None", "the old gradients are never set to zero"),
    (r"sqrt|\*\* 0\.5", "a square root is missing"),
    (r"square|\*\* 2|pow", "a square is missing"),
    (r"abs", "an absolute value is missing"),
    (r"log\(2\)", "the unit is wrong: a factor of ln 2 is missing"),
    (r"log", "a logarithm is missing"),
    (r"exp\b|exp\(", "an exponential is missing"),
    (r"transpose|\.m?T\b|permute", "`{mine}` has to be transposed"),
    (r"clamp|min\(|max\(", "a limit is missing that keeps a number in its range"),
    (r"mean\(", "a mean is missing"),
    (r"sum\(", "a sum is missing"),
    (r"no_grad|detach", "torch still records what it shouldn't"),
    (r"clone|copy", "a copy is missing"),
    (r"…\)? / |/ \(?…", "`{mine}` still has to be divided"),
    (r"…\)? \* |\* \(?…", "`{mine}` still has to be multiplied"),
    (r"…\)? @ |@ \(?…", "`{mine}` still has to meet a matrix"),
    (r"^… \+ 1$", "`{mine}` is one too small"),
    (r"^… - 1$", "`{mine}` is one too large"),
    (r"…\)? \+ |\+ \(?…", "something has to be added to `{mine}`"),
    (r"^… - ", "something has to be subtracted from `{mine}`"),
    (r"append", "something is never put into the list"),
    (r"\+= 1", "nothing counts on by one"),
    (r"break|return", "it goes on when it should stop"),
]

# One slip: {mine} => {right}, {inside} an expression, {more} what is there too much

DIFFERENCES = {
    "dimension": [("", "dimension {mine} is the wrong one in `{inside}`")],
    "missing dimension": [
        (r"keepdim=.* => ", "`{mine}` needs no keepdim"),
        (r"dim=.* => .*\(\)$", "`{mine}` needs no dim"),
        (r"dim=.* => ", "`{mine}` loses a dimension, so it needs keepdim=True"),
        (r"", "`{mine}` takes all numbers together, so it needs a dim"),
    ],
    "end": [
        (r"^(.*):(.*) => \1:\2 \+ 1$", "`{mine}` in `{inside}` stops one too early"),
        (r"^(.*):(.*) \+ 1 => \1:\2$", "`{mine}` in `{inside}` stops one too late"),
        (r"^(.*):(.*) => \1:\2 - 1$", "`{mine}` in `{inside}` stops one too late"),
        (r"^(.*):(.*) - 1 => \1:\2$", "`{mine}` in `{inside}` stops one too early"),
        (r"^(.*):(.*) => \1 \+ 1:\2$", "`{mine}` in `{inside}` starts one too early"),
        (r"^(.*) \+ 1:(.*) => \1:\2$", "`{mine}` in `{inside}` starts one too late"),
        (r"^:.+ => :$", "`{mine}` in `{inside}` stops too early"),
        (r"^.+:.* => :", "`{mine}` in `{inside}` starts too late"),
        (r"range\((.*)\) => range\(\1 \+ 1\)", "`{mine}` stops one too early"),
        (r"range\((.*)\) => range\(\1 - 1\)", "`{mine}` stops one too late"),
        (r"range\((.*)\) => range\(1, \1\)", "`{mine}` starts too early"),
        (r"", "`{mine}` starts or stops in the wrong place in `{inside}`"),
    ],
    "index": [
        (r"\[(.*)\] => .*\[:, \1\]", "`{mine}` picks along the wrong dimension"),
        (r"\[(.*)\] => .*\[\1 \+ 1\]", "the index in `{mine}` is one too small"),
        (r"\[(.*)\] => .*\[\1 - 1\]", "the index in `{mine}` is one too large"),
        (r"\[(.*), (.*)\] => .*\[\2, \1\]", "the two indices in `{mine}` are swapped"),
        (r"", "an index is wrong in `{mine}`"),
    ],
    "comparison": [
        (r"tril.*=-1|triu.*=1", "`{mine}` keeps a diagonal too many"),
        (r"tril|triu", "`{mine}` lacks a diagonal"),
        (r" [<>] .* => .* [<>]= ", "`{mine}` leaves out the case that both are equal"),
        (r" [<>]= .* => .* [<>] ", "`{mine}` is true also when both are equal"),
        (r"", "`{mine}` compares the wrong way round"),
    ],
    "sign": [
        (r"^-(.*) => \1$", "there's a minus too many in `{mine}`"),
        (r" => -", "a minus is missing before `{mine}`"),
        (r"^~| => ~| => not |^not ", "`{mine}` swaps True and False"),
        (r" \+ (.*) => .* - \1$", "`{mine}` adds where it should subtract"),
        (r" - (.*) => .* \+ \1$", "`{mine}` subtracts where it should add"),
        (r"", "a sign is wrong in `{inside}`"),
    ],
    "operation": [
        (r" \* (.*) => .* / \1$", "`{mine}` multiplies where it should divide"),
        (r" \* (.*) => .* @ \1$", "`{mine}` should be a matrix product"),
        (r" \* (.*) => .* \+ \1$", "`{mine}` multiplies where it should add"),
        (r" / (.*) => .* \* \1$", "`{mine}` divides where it should multiply"),
        (r" / (.*) => .* // \1$", "`{mine}` should be a whole number, rounded down"),
        (r" // (.*) => .* / \1$", "`{mine}` rounds down, and it shouldn't"),
        (r" @ (.*) => .* \* \1$", "`{mine}` shouldn't be a matrix product"),
        (r"", "`{mine}` uses the wrong operation"),
    ],
    "function": [
        (r"sum\(.* => .*mean\(", "`{mine}` is a sum, but it should be a mean"),
        (r"mean\(.* => .*sum\(", "`{mine}` is a mean, but it should be a sum"),
        (r"log(2|10)\(.* => .*log\(", "`{mine}` isn't the natural logarithm"),
        (r"tril.* => .*triu|triu.* => .*tril", "`{mine}` keeps the wrong triangle"),
        (r"any\(.* => .*all\(", "`{mine}` is true for one, not only for all"),
        (r"all\(.* => .*any\(", "`{mine}` asks for all: one is enough"),
        (r"cat\(|stack\(", "`{mine}` puts its parts together the wrong way"),
        (r"zeros.* => .*ones", "`{mine}` should start with ones"),
        (r"ones.* => .*zeros", "`{mine}` should start with zeros"),
        (r"repeat", "`{mine}` repeats in the wrong order"),
        (r"", "`{mine}` calls the wrong function"),
    ],
    "number": [("", "{mine} is the wrong number in `{inside}`")],
    "order": [("", "two things are in the wrong order in `{mine}`")],
    "brackets": [("", "the steps of `{mine}` are in the wrong order")],
    "too much": [("", "there is too much in `{mine}`: {more}")],
    "name": [
        (r"^\w+\.", "`{mine}` is the wrong one in `{inside}`"),
        (r"", "`{mine}` is the wrong variable in `{inside}`"),
    ],
    "missing": [("", "something is missing around `{mine}`")],
    "line too many": [("", "the line `{mine}` is superfluous")],
    "line missing": [("", "a line is missing")],
    "moved": [("", "the line `{inside}` is in the wrong place")],
    "not kept": [("", "nothing keeps what `{mine}` computes")],
}

# What an exception means: a pattern of its text, and a sentence. The first that fits.

MEANINGS = {
    r"builtin_function_or_method|'method'|'function'": (
        "A function is named here, but not called: its brackets are missing."
    ),
    r"'(float|int)' object has no attribute": (
        "That's a plain Python number, and it has no tensor methods."
    ),
    r"'(list|tuple)' object has no attribute|(list|tuple) indices must be": (
        "That's a Python list or tuple. It has no tensor methods and can't be indexed "
        "like a tensor."
    ),
    r"'\w+' object is not callable": "Something that is no function is called here.",
    r"only one element tensors|to Scalar|Boolean value of Tensor|ambiguous": (
        "There's a whole tensor where a single number is needed."
    ),
    r"does not require grad|does not have a grad_fn": (
        "Torch didn't record how this number was computed. no_grad, .detach(), .item() "
        "and comparisons end the record."
    ),
    r"leaf Variable that requires": (
        "A parameter is changed in place while torch is recording. That's only allowed "
        "under torch.no_grad()."
    ),
    r"modified by an inplace operation": (
        "Something that backward() still needs was changed in place: by +=, by "
        "x[...] = ..., or by a method whose name ends with _."
    ),
    r"not contiguous|view size is not compatible": (
        "After a transpose the numbers are in a different order in memory, and view "
        "can't handle that. reshape can: it makes a copy."
    ),
    r"selected index k out of range": "topk can't give more values than there are.",
    r"Dimension out of range": "The tensor doesn't have that many dimensions.",
    r"expected a non-empty list of Tensors": "The list of tensors is empty.",
    r"(size|length) 0$|non-empty|empty (tensor|sequence|list)|is empty|iterable argu": (
        "Something is empty for these inputs, so it doesn't even have a first element."
    ),
    r"values to unpack": (
        "There are more or fewer names on the left than values on the right. A .shape "
        "has one value per dimension."
    ),
    r"torch\.return_types\.": (
        "With a dim, max, min, sort and topk return two things: .values and .indices."
    ),
    r"einstein sum.*ellipsis": (
        "NumPy's einsum can't sum over an ellipsis. reshape(-1, C) first turns all "
        "dimensions before the last into one."
    ),
    r"too many indices": "There are more indices than this tensor has dimensions.",
    r"out of range|out of bounds": "An index runs past the end.",
    r"OverflowError": "A number gets too large for a float, like e to the power of "
    "710.",
    r"unhashable": "A list can't be a key of a dictionary, but a tuple can.",
    r"KeyError": "The dictionary has no such key.",
    r"batch2 tensor": (
        "In a matrix product the inner sizes must be equal, in each text of the batch. "
        ".mT or transpose(-2, -1) swaps the last two dimensions; .T turns all of them."
    ),
    r"shapes cannot be multiplied|to be: .* but got|is different from": (
        "In a matrix product (a, b) @ (b, c), the two inner sizes must be equal."
    ),
    r"size of tensor a .* must match|broadcast together": (
        "For elementwise operations, sizes are compared from the last dimension "
        "backward. Each pair must be equal, or one of them must be 1."
    ),
    r"mask .* at index": "A mask needs one entry for each entry that it selects from.",
    r"is invalid for input of size": (
        "The sizes in view or reshape must multiply to the number of elements."
    ),
    r"Expected size|of shape \[.*of shape \[": "All sizes but one must be equal.",
    r"number of sizes provided|expanded size|setting an array element": (
        "What you put there doesn't have the shape of the place it goes to."
    ),
    r"UnicodeDecodeError": (
        "These bytes are not valid text. One character may take several bytes."
    ),
    r"subtract, with a bool": "To invert a mask of True and False, write ~mask.",
    r"'Long'|integral": "These are whole numbers, but floats are needed here.",
    r"dtype|scalar type|not implemented for 'Bool'": (
        "These types of numbers don't go together, or this function can't take one of "
        "them."
    ),
    r"AssertionError": "Your own assert failed: what it claims isn't true here.",
    r"takes \d+ positional|missing \d+ required|unexpected keyword": (
        "The check calls your function with the arguments that the exercise gives it."
    ),
}
