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
    "reached? (print(...) shows a value but doesn't return it. And a function that "
    "only changes its argument, like list.sort or np.add.at, returns None, too.)"
)
ENDLESS = (
    "It was still running after {seconds:g} seconds, so the check stopped it. Is there "
    "a loop that never ends?"
)
RAISED = "It raised {error}"

# What can be seen without knowing the cause

MISSING_PART = "`{part}` is still missing."
SEVERAL = "{part}: {says}"
IDLE = "The line `{line}` does nothing: the parentheses of the call are missing."
UNREAD = "Your code never uses its argument `{name}`."
CHANGED = (
    "Your function changes its input `{name}`. The code that called it will find "
    "different numbers there afterward. {how}"
)
COPY = "copy.deepcopy(...) gives you a copy to work on."
COPY_TENSOR = (
    "`x = x * 2` makes a new tensor; `x *= 2` and `x[0] = ...` don't. x.clone() gives "
    "you a copy to work on."
)
LENGTH = "It returns {got} values, but there should be {expected}."
TYPE = "It returns {got}, but it should return {expected}."
DTYPE = "The values are right, but their type is {got}, and it should be {expected}."
SHAPE = "The shape is {got}, but it should be {expected}."
SHAPE_ALONE = "The numbers are right, but the shape is {got} instead of {expected}."
NAN = "{count} of the {of} numbers are nan (not a number)."
ORDER = "These are the right numbers in the wrong order."
SOME_RIGHT = "It's right for {right} of {of} inputs. Here's the smallest that isn't:"
RESULT = "The result isn't right yet."

# One slip; {what} is from the table in slips.py

SLIP = (
    "Your answer is one change away from being right: {what}.\n    line {line}:  {text}"
)
CORRECTED = "\n    corrected:  {text}"
CORRECTED_ALL = "\n  Corrected:"
LIKE = "You get the same results as with the line `{line}`: {what}."
LIKE_TOLD = "\n  It should be `{line}`."

# What an exception means: a pattern for its text, and a sentence. The first that fits
# is used.

MEANINGS = {
    r"builtin_function_or_method|'method'|'function'": (
        "A function is named here, but not called: its parentheses are missing."
    ),
    r"'(float|int)' object has no attribute": (
        "That's a plain Python number, and it has no tensor methods."
    ),
    r"'(list|tuple)' object has no attribute|(list|tuple) indices must be": (
        "That's a Python list or tuple. It has no tensor methods and can't be indexed "
        "like a tensor."
    ),
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
    r"OverflowError": "The number is too large for a float, like e ** 710.",
    r"Circular reference": "A list in this result contains itself.",
    r"unhashable": "A list can't be a key of a dictionary, but a tuple can.",
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
}
