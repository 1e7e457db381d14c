"""Checks for lesson 01: surprise, windows, counts, losses, text, and two bugs."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.bigram import BigramLanguageModel
from minigpt.course.checks.core import Explained, call, compare, exercise
from minigpt.course.checks.reading import source
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import as_tensor, randint, randn, same, tensor_of
from minigpt.data import CharTokenizer, get_batch

SURPRISE = Solution(
    """
def surprise(p):
    return -p.log().mean()
""",
    Mistake(
        "You weigh each surprise by its own p, but the text does the weighing.",
        [("-p.log().mean()", "-(p * p.log()).sum()")],
        hint="Drop the factor p and take the plain mean.",
    ),
    Mistake(
        "You take the mean first: the logarithm of the mean forgives a bad surprise.",
        [("p.log().mean()", "p.mean().log()")],
    ),
    Mistake(
        "1 - p says how much was left for others; the surprise is -ln p.",
        [("-p.log().mean()", "(1 - p).mean()")],
    ),
    Mistake(
        "That is the surprise of the whole text: divide it by the number of "
        "characters.",
        [("-p.log().mean()", "-p.prod().log()")],
    ),
    Mistake(
        "You take the mean of 1/p and then its logarithm: one bad "
        "surprise outweighs all others. The logarithm comes first, of "
        "each p.",
        [
            ("-p.log().mean()", "(1 / p).mean().log()"),
        ],
    ),
    Mistake(
        "That is e to the power of the loss, a number of equally "
        "likely choices: the logarithm is missing. (And a product of "
        "many probabilities is soon 0.)",
        [
            ("-p.log().mean()", "1 / p.prod() ** (1 / len(p))"),
        ],
    ),
    Mistake(
        "That is the surprise of the whole text: divide it by the number "
        "of characters.",
        [
            ("-p.log().mean()", "-p.log().sum()"),
        ],
    ),
)


@exercise("01.1 How surprised was it?", SURPRISE)
def check_surprise(surprise: Any) -> str:
    """surprise(p): p (N,) probabilities of what came -> mean surprise in nats."""
    cases = [torch.tensor(p) for p in ([0.5, 0.125], [0.2] * 5, [1.0], [1e-4, 0.5])]
    cases += [0.1 + 0.9 * randn(n).sigmoid() for n in (7, 650)]
    hint = "A surprise is -ln p, and the loss is the mean of the surprises."
    compare(surprise, SURPRISE, [(p,) for p in cases], hint=hint)
    return "6 texts, in nats, and a longer text costs no more than a short one."


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _tiles(tile: Callable, data: torch.Tensor, T: int) -> Any:
    """What tile returns, or Explained where it wants a target that there is not."""
    result, fails, n = None, "", len(data) // T
    try:
        result = tile(data, T)
    except Exception as error:
        if len(data) % T:
            raise
        fails = f". It raised {type(error).__name__}: {error}"
    pair = isinstance(result, (tuple, list)) and len(result) == 2
    x = as_tensor(result[0]) if pair else None
    if fails or (len(data) % T == 0 and x is not None and x.shape == (n, T)):
        raise Explained(
            f"{len(data)} characters and block_size {T} make {n - 1} full windows, not "
            f"{n}: there are only {len(data) - 1} targets{fails}",
            "(N - 1) // block_size windows.",
        )
    return result


TILE = Solution(
    """
def tile(data, block_size):
    n = (len(data) - 1) // block_size
    x = data[: n * block_size].view(n, block_size)
    y = data[1 : n * block_size + 1].view(n, block_size)
    return x, y
""",
    Mistake(
        "view(block_size, n) and then a transpose: your windows run down the columns, "
        "and neighbours in a row are no neighbours in the text.",
        [(".view(n, block_size)", ".view(block_size, n).T")],
    ),
    Mistake(
        "You cut windows of block_size + 1, so each last character is never an input.",
        [
            (
                "x = data[",
                "w = data[: len(data) // (block_size + 1) * (block_size + 1)]; x = "
                "data[",
            ),
            (
                "return x, y",
                "return (w := w.view(-1, block_size + 1))[:, :-1], w[:, 1:]",
            ),
        ],
    ),
    Mistake(
        "Your windows overlap: one begins at every character.",
        [
            (
                "return x, y",
                "return [d.unfold(0, block_size, 1) for d in (data[:-1], data[1:])]",
            )
        ],
    ),
    Mistake(
        "You always leave the last window out; its targets are there unless "
        "block_size divides N.",
        [("(len(data) - 1) // block_size", "len(data) // block_size - 1")],
    ),
    Mistake(
        "Your targets are the whole next window: each should be shifted by one,"
        " not by block_size.",
        [
            ("(len(data) - 1) // block_size", "len(data) // block_size - 1"),
            ("data[1 : n * block_size + 1]", "data[block_size : (n + 1) * block_size]"),
        ],
    ),
    Mistake(
        "The last target of each window is its own first character: "
        "rolled row by row. It should be the character that follows in "
        "the text.",
        [
            ("data[1 : n * block_size + 1].view(n, block_size)", "x.roll(-1, dims=1)"),
        ],
    ),
    Mistake(
        "The very last target is the first character of the text: the "
        "shift goes round in a circle. It should be the character "
        "behind the last window.",
        [
            ("data[1 : n * block_size + 1]", "data[: n * block_size].roll(-1)"),
        ],
    ),
    Mistake(
        "Your windows are cut from the end of the text, so its first "
        "characters are left over. They begin at place 0; what does "
        "not fill a window stands at the end.",
        [
            ("data[: n * block_size]", "data[len(data) - n * block_size - 1 : -1]"),
            ("data[1 : n * block_size + 1]", "data[len(data) - n * block_size :]"),
        ],
    ),
    Mistake(
        "Your targets are the inputs themselves: y should begin one "
        "place later than x.",
        [
            ("data[1 : n * block_size + 1]", "data[: n * block_size]"),
        ],
    ),
    Mistake(
        "You draw where the windows begin, as for a random batch: some "
        "characters come twice and some never. Here the windows stand "
        "side by side.",
        [
            (
                "x = data[: n * block_size].view(n, block_size)",
                "at = torch.randint(len(data) - block_size, (n, 1)) + "
                "torch.arange(block_size); x = data[at]",
            ),
            ("data[1 : n * block_size + 1].view(n, block_size)", "data[at + 1]"),
        ],
    ),
    Mistake(
        "You give each window one target, the character behind it. "
        "Every place of a window has a target: the character after "
        "that place.",
        [
            (
                "data[1 : n * block_size + 1].view(n, block_size)",
                "data[block_size::block_size][:n]",
            ),
        ],
    ),
    Mistake(
        "You fill the last window up with zeros that do not stand in "
        "the text. What has not all of its targets is left out.",
        [
            (
                "n = (len(data) - 1) // block_size",
                "n = -(-(len(data) - 1) // block_size); data = F.pad(data, (0, "
                "n * block_size + 1 - len(data)))",
            ),
        ],
    ),
    Mistake(
        "Your targets are cut from place 0, as the inputs are: y "
        "should begin one place later.",
        [
            (
                "data[1 : n * block_size + 1].view(n, block_size)",
                "torch.stack([w for w in data.split(block_size) if len(w) == "
                "block_size])",
            ),
        ],
    ),
    Mistake(
        "You fill the last window up with zeros that do not stand in the "
        "text. What has not all of its targets is left out.",
        [
            (
                "n = (len(data) - 1) // block_size",
                (
                    "n = -(-(len(data) - 1) // block_size)\n"
                    "    rest = 0, n * block_size + 1 - len(data)"
                ),
            ),
            ("data[: n * block_size]", "F.pad(data[:-1], rest)"),
            ("data[1 : n * block_size + 1]", "F.pad(data[1:], rest)"),
        ],
    ),
)


@exercise("01.2 Every character once", TILE)
def check_tile(tile: Any) -> str:
    """tile(data, block_size): data (N,) -> x, y (n, T), all full windows in order."""
    data, long = torch.tensor([3, 1, 4, 0, 5, 9, 2, 6]), randint(65, 47)
    cases = [(data, 3), (data[:5], 4), (long, 4), (data[:7], 3), (long[:41], 8)]
    cases += [(data[:6], 3), (data[:2], 1), (long[:40], 8)]
    hint = "N characters have N - 1 targets: (N - 1) // block_size windows."
    how: dict[str, Any] = {"work": _tiles, "value_names": ("x", "y"), "hint": hint}
    compare(tile, TILE, cases, **how)
    if any(getattr(w, "dtype", None) in FLOATS for w in call(tile, data, 3)):
        raise Explained(
            "The windows are right, but they hold floats: ids are looked up in a "
            "table, so they must stay whole numbers.",
            "torch.zeros makes floats; dtype=data.dtype keeps the kind of data.",
            share=0.9,
        )
    return "8 lengths, every target used once, nothing wasted, nothing invented."


BEFORE_TABLE = Solution(
    """
def before_table(ids, vocab_size):
    table = torch.ones(vocab_size, vocab_size)
    for a, b in zip(ids[:-1].tolist(), ids[1:].tolist()):
        table[b, a] += 1
    return table / table.sum(dim=1, keepdim=True)
""",
    Mistake(
        "Repeated pairs count once. Is it += 1 with a list of rows and one of columns? "
        "That writes each place once.",
        [("+= 1", "= 2")],
    ),
    Mistake(
        "That is the lesson's table, forwards: your row i tells what comes after i.",
        [("table[b, a]", "table[a, b]")],
    ),
    Mistake(
        "You count one pair too many: the last character before the first one.",
        [("ids[1:]", "ids.roll(-1)"), ("ids[:-1]", "ids")],
    ),
    Mistake(
        "Your columns sum to one, not your rows: first count with the second "
        "character as the row, then divide each row by its sum.",
        [("dim=1", "dim=0")],
    ),
    Mistake(
        "Every count is one too high: is the 1 added twice? A table that begins with "
        "ones has it already.",
        [("torch.ones(vocab_size, vocab_size)", "torch.full((vocab_size,) * 2, 2.0)")],
    ),
    Mistake(
        "You add one only where nothing was counted; every count gets one more.",
        [
            ("torch.ones", "torch.zeros"),
            ("return table /", "return (table := table.clamp(min=1)) /"),
        ],
    ),
    Mistake(
        "The 1 for each pair is missing: what was never seen gets 0.",
        [
            ("torch.ones", "torch.zeros"),
            (
                "table.sum(dim=1, keepdim=True)",
                "table.sum(dim=1, keepdim=True).clamp(min=1)",
            ),
        ],
    ),
    Mistake(
        "You take the softmax of the counts, which raises e to the "
        "power of each. Counts become probabilities when each row is "
        "divided by its sum.",
        [
            ("table / table.sum(dim=1, keepdim=True)", "table.softmax(dim=1)"),
        ],
    ),
    Mistake(
        "The 1 is added to the probabilities; it belongs to the "
        "counts, before they are divided by their sum.",
        [
            ("torch.ones", "torch.zeros"),
            (
                "return table / table.sum(dim=1, keepdim=True)",
                "return table / table.sum(dim=1, keepdim=True) + 1",
            ),
        ],
    ),
    Mistake(
        "You divide by the sum from before the ones were added: the "
        "sum of a row now has vocab_size more.",
        [
            (
                "table.sum(dim=1, keepdim=True)",
                "(table.sum(dim=1, keepdim=True) - vocab_size)",
            ),
        ],
    ),
    Mistake(
        "You count all characters that stand anywhere before; only the "
        "one right before counts.",
        [
            (
                "zip(ids[:-1].tolist(), ids[1:].tolist())",
                "((ids[j].item(), ids[i].item()) for i in range(len(ids)) for "
                "j in range(i))",
            ),
        ],
    ),
    Mistake(
        "You count the character two places before; the one right before is wanted.",
        [
            ("ids[:-1]", "ids[:-2]"),
            ("ids[1:]", "ids[2:]"),
        ],
    ),
    Mistake(
        "The 1 is added to the probabilities; it belongs to the counts, "
        "before they are divided by their sum.",
        [
            ("torch.ones", "torch.zeros"),
            (
                "return table / table.sum(dim=1, keepdim=True)",
                (
                    "table = table / table.sum(dim=1, keepdim=True).clamp(min=1) + 1\n"
                    "    return table / table.sum(dim=1, keepdim=True)"
                ),
            ),
        ],
    ),
)


@exercise("01.3 Read it backwards", BEFORE_TABLE)
def check_before_table(
    before_table: Any, data: torch.Tensor, tokenizer: CharTokenizer
) -> str:
    """before_table(ids, vocab_size): ids (N,) -> (V, V), row i: what stood before i."""
    V, solution, random = tokenizer.vocab_size, BEFORE_TABLE, randint(5, 60)
    cases = [(torch.tensor([0, 1, 0, 1, 1, 2]), 3), (random, 5), (random, 9)]
    cases.append((data[:300], V))
    hint = "The second character of a pair chooses the row; divide rows by their sums."
    compare(before_table, solution, cases, hint=hint)
    table, text = solution(data[:50_000], V), data[:50_000]
    often = torch.bincount(text, minlength=V) >= 100
    seen, before = divmod((table * often[:, None]).argmax().item(), V)
    return (
        "4 texts, all rows sum to one. Your text is most predictable before "
        f"{tokenizer.chars[seen]!r}: {tokenizer.chars[before]!r} stands there with "
        f"probability {table[seen, before]:.2f}."
    )


def _not_flattened(
    got: Any, expected: torch.Tensor, logits: torch.Tensor, y: torch.Tensor
) -> bool:
    each = F.cross_entropy(logits, y, reduction="none")
    return same(got, each.mean(dim=0)) or same(got, each.mean())


SHIFTED_TWICE = [
    Mistake(
        "`y` holds the character behind each position already. You shift "
        "logits and targets against each other once more, as is done "
        "where both are of one text.",
        [
            (
                "return each.view(B, T).mean(dim=0)",
                "each = F.cross_entropy(logits[:, :-1].transpose(1, 2), "
                "y[:, 1:], reduction='none').mean(dim=0)\n"
                f"    return {given}",
            ),
        ],
    )
    for given in (
        "torch.cat([each, torch.zeros(1)])",
        "torch.cat([torch.zeros(1), each])",
        "each",
    )
]

LOSS_BY_POSITION = Solution(
    """
def loss_by_position(logits, y):
    B, T, C = logits.shape
    rows = logits.reshape(B * T, C)
    each = F.cross_entropy(rows, y.reshape(B * T), reduction="none")
    return each.view(B, T).mean(dim=0)
""",
    Mistake(
        "These logits are no logarithms of probabilities yet: the softmax is missing.",
        [("F.cross_entropy(rows", "F.nll_loss(rows")],
    ),
    Mistake(
        "cross_entropy has a softmax inside: give it the logits, not their softmax.",
        [("F.cross_entropy(rows", "F.cross_entropy(rows.softmax(-1)")],
    ),
    Mistake(
        "Only as many positions come back as there are texts: T belongs where B is "
        "counted.",
        [("mean(dim=0)", "mean(dim=0)[:B]")],
    ),
    Mistake(
        "Two things at once. A loss has a minus in front of the logarithm. And the "
        "losses of the texts are added up, where their mean is wanted.",
        [("each.view(B, T).mean(dim=0)", "-each.view(B, T).sum(dim=0)")],
    ),
    Mistake(
        "The losses lie text by text, so view(T, B) mixes positions: it is view(B, T).",
        [("each.view(B, T).mean(dim=0)", "each.view(T, B).mean(dim=1)")],
    ),
    Mistake(
        "You take the mean of the probabilities first: the losses, -ln p, are "
        "to be averaged.",
        [
            (
                "each.view(B, T).mean(dim=0)",
                "-(-each).exp().view(B, T).mean(dim=0).log()",
            )
        ],
    ),
    Mistake(
        "reshape to (B, C, T) mixes the logits of different positions: "
        "transpose exchanges dimensions.",
        [
            ("logits.reshape(B * T, C)", "logits.reshape(B, C, T)"),
            ("y.reshape(B * T)", "y"),
        ],
    ),
    Mistake(
        "That is the mean of 1 - p: how much was left for others. A "
        "loss in nats is -ln p.",
        [
            ("each.view(B, T)", "(1 - (-each).exp()).view(B, T)"),
        ],
    ),
    Mistake(
        "That is the mean probability of what came; the loss in nats "
        "is its logarithm with a minus, taken before the mean.",
        [
            ("each.view(B, T)", "(-each).exp().view(B, T)"),
        ],
    ),
    Mistake(
        "You count wrong guesses. The loss also asks how much "
        "probability the right one had: -ln p.",
        [
            (
                "return each.view(B, T)",
                "return (logits.argmax(-1) != y).float().view(B, T)",
            ),
        ],
    ),
    Mistake(
        "Each text's logits are read at the targets of all texts of "
        "the batch, B times B numbers. Wanted is each text's own "
        "target.",
        [
            (
                "return each.view(B, T).mean(dim=0)",
                "every = logits.log_softmax(-1)\n"
                "    return -torch.stack([every[:, t][:, y[:, t]].mean() for t "
                "in range(T)])",
            ),
        ],
        hint=(
            "gather picks one from each row, and so do two indices: "
            "[torch.arange(B), y[:, t]]."
        ),
    ),
    Mistake(
        "Only the last position's loss comes back. Is the list made "
        "anew in each round of the loop?",
        [
            (".mean(dim=0)", ".mean(dim=0)[-1:]"),
        ],
    ),
    Mistake(
        "That is the entropy of what the model expects; the loss is "
        "the surprise at what came: -ln p of the target.",
        [
            (
                "return each.view(B, T)",
                ("p = logits.softmax(-1)\n    return -(p * p.log()).sum(-1)"),
            ),
        ],
    ),
    *SHIFTED_TWICE,
    Mistake(
        "Your targets are shifted by one once more, in a circle; `y` "
        "holds the character behind each position already.",
        [
            ("y.reshape(B * T)", "y.roll(-1, dims=1).reshape(B * T)"),
        ],
    ),
    Mistake(
        "Each of your numbers is the mean of all positions up to it; "
        "wanted is each position's own.",
        [
            (".mean(dim=0)", ".mean(dim=0).cumsum(0) / torch.arange(1, T + 1)"),
        ],
    ),
    Mistake(
        "The losses of the B texts are added up; wanted is their mean.",
        [
            (".mean(dim=0)", ".sum(dim=0)"),
        ],
    ),
)


@exercise("01.4 Does it get wiser along the line?", LOSS_BY_POSITION)
def check_loss_by_position(
    loss_by_position: Any, model: nn.Module, data: torch.Tensor
) -> str:
    """loss_by_position(logits, y): (B, T, C), (B, T) -> mean loss (T,), in nats."""
    sizes = [(2, 3, 3), (4, 5, 5), (2, 3, 4), (4, 6, 5), (5, 1, 3)]
    cases = [(2 * randn(B, T, C), randint(C, B, T)) for B, T, C in sizes]
    x, y = get_batch(data, 4096, 8, generator=torch.Generator().manual_seed(1))
    logits = call(model, x)[0].detach()
    hint = (
        "F.cross_entropy takes (B * T, C) and (B * T,); then view (B, T), mean over B."
    )
    known = [
        Mistake(
            "cross_entropy took your T time steps for classes: nothing is flattened. "
            "Here "
            "T = C, so it did not complain.",
            sign=_not_flattened,
        ),
    ]
    solution = LOSS_BY_POSITION
    compare(loss_by_position, solution, [*cases, (logits, y)], known, hint=hint)
    losses = solution(logits, y)
    return f"6 shapes. Yours pays {losses[0]:.2f} nats first, {losses[-1]:.2f} last."


class _SumModel(nn.Module):
    """Certain that the next id is the sum of all so far plus one, modulo 7."""

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, None]:
        nexts = (idx.cumsum(dim=1) + 1) % 7  # (B, T)
        return F.one_hot(nexts, 7) * 50.0, None  # e^50 is a number yet


class _OneToFour(nn.Module):
    """Gives id 1 four times the probability of id 0, whatever came before."""

    def forward(
        self, idx: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, None]:
        logits = torch.tensor([0.2, 0.8]).log()
        return logits.expand(*idx.shape, 2), None


def _written(write_on: Callable, model: nn.Module, idx: torch.Tensor, n: int) -> Any:
    """What is written after idx; how often another model draws what it should."""
    torch.manual_seed(0)
    text = write_on(model, idx, n)
    if text is None or text is ...:
        return text
    drawn = write_on(_OneToFour(), torch.zeros(1000, 1000, dtype=torch.long), 1)
    return text, f"{tensor_of(drawn)[:, -1].mean():.1f}"


WRITE_ON = Solution(
    """
@torch.no_grad()
def write_on(model, idx, max_new_tokens):
    for _ in range(max_new_tokens):
        logits, _ = model(idx)  # (B, T, C)
        now = logits[:, -1]  # (B, C): the last position
        probs = F.softmax(now, dim=-1)
        drawn = torch.multinomial(probs, num_samples=1)  # (B, 1)
        idx = torch.cat([idx, drawn], dim=1)  # (B, T + 1)
    return idx
""",
    Mistake(
        "The bug is still there: after the `u` comes another `u`, and another.",
        [("[:, -1]", "[:, 0]")],
        hint="Print idx and the shape of `now` in each step.",
        untouched=True,
    ),
    Mistake(
        "You give the model the last character only. The bigram does not mind, "
        "but every later model needs the whole text so far.",
        [("model(idx)", "model(idx[:, -1:])")],
    ),
    Mistake(
        "Your program always writes the likeliest character: nothing is drawn.",
        [
            (
                "torch.multinomial(probs, num_samples=1)",
                "probs.argmax(dim=-1, keepdim=True)",
            )
        ],
    ),
    Mistake(
        "You take max_new_tokens for the length of the whole text; so many are "
        "to be added.",
        [("range(max_new_tokens)", "range(max_new_tokens - idx.shape[1])")],
    ),
    Mistake(
        "You mix what all positions say; only the last one speaks of "
        "the next character.",
        [
            ("logits[:, -1]", "logits.mean(dim=1)"),
        ],
    ),
    Mistake(
        "You return the new characters alone; wanted is the whole "
        "text, idx and what was written.",
        [
            ("return idx", "return idx[:, -max_new_tokens:]"),
        ],
    ),
    Mistake(
        "The new characters stand in front of the text; they belong behind it.",
        [
            ("logits[:, -1]", "logits[:, 0]"),
            ("[idx, drawn]", "[drawn, idx]"),
        ],
    ),
    Mistake(
        "From the second step on the model hears only what was drawn "
        "last. The bigram does not mind, but every later model needs "
        "the whole text so far.",
        [
            ("    for _ in", ("    out = idx\n    for _ in")),
            (
                "idx = torch.cat([idx, drawn], dim=1)",
                "idx, out = drawn, torch.cat([out, drawn], dim=1)",
            ),
            ("return idx", "return out"),
        ],
    ),
    Mistake(
        "All new characters are drawn as the first one was: the model "
        "must be asked again whenever the text has grown.",
        [
            (
                ("    for _ in range(max_new_tokens):\n        logits, _ = model(idx)"),
                "    logits, _ = model(idx)\n"
                "    for _ in range(max_new_tokens):\n"
                "        pass",
            ),
        ],
    ),
    Mistake(
        "All texts get the character that belongs to the last of them. "
        "Is it `logits[-1]`? The first dimension holds the texts, the "
        "second the positions.",
        [
            ("logits[:, -1]", "logits[-1]"),
            ("num_samples=1)", "num_samples=1)[-1].expand(len(idx), 1)"),
        ],
    ),
    Mistake(
        "All texts get the character that belongs to the first of them; "
        "each text has a last position and a draw of its own.",
        [
            ("logits[:, -1]", "logits[:1, -1]"),
            ("[idx, drawn]", "[idx, drawn.expand(len(idx), 1)]"),
        ],
    ),
    Mistake(
        "The softmax is taken twice: one of probabilities makes them nearly even.",
        [
            ("F.softmax(now, dim=-1)", "F.softmax(now, dim=-1).softmax(dim=-1)"),
        ],
    ),
)


@exercise("01.5 Quuuuuuuuuuuu", WRITE_ON)
def check_write_on(write_on: Any) -> str:
    """write_on(model, idx, max_new_tokens): (B, T) -> (B, T + max_new_tokens)."""
    small, model = torch.tensor([[2, 3], [1, 5]]), _SumModel()
    cases = [(model, small, 1), (model, small[:1, :1], 4), (model, randint(7, 2, 3), 5)]
    parts = (
        "With a model that always writes the sum of all so far plus 1, mod 7",
        "With a model that gives a character 0.8, its share of 1000 draws",
    )
    hint = "Which position tells what comes next? Softmax over C, a draw for each row."
    how: dict[str, Any] = {"work": _written, "value_names": parts, "hint": hint}
    compare(write_on, WRITE_ON, cases, **how)
    return "every position counts, each row by itself, and characters are drawn."


FIT = Solution(
    """
def fit(model, batches, learning_rate):
    losses = []
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate
    )
    for x, y in batches:
        _, loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
""",
    Mistake(
        "The bug is still there: the first steps help, but then the loss climbs"
        " back up.",
        [("optimizer.zero_grad()", "pass")],
        hint="Print the norm of the gradient in each step.",
        untouched=True,
    ),
    Mistake(
        "You made the gradient shorter, but it is still the sum over all steps so far.",
        [
            ("optimizer.zero_grad()", "pass"),
            (
                "backward()",
                "backward(); torch.nn.utils.clip_grad_norm_(model.parameters(), 1)",
            ),
        ],
    ),
    Mistake(
        "You divide the gradient, but it is still the sum over all steps so far.",
        [
            ("optimizer.zero_grad()", "pass"),
            (
                "backward()",
                "backward(); [p.grad.div_(len(losses) + 1) for p in "
                "model.parameters()]",
            ),
        ],
    ),
)


@exercise("01.6 The loss that comes back up", FIT)
def check_fit(fit: Any) -> str:
    """fit(model, batches, learning_rate) -> list of losses, one for each batch."""
    model, solution = BigramLanguageModel(5), FIT
    model.token_embedding.weight.data = randn(5, 5)
    x = torch.tensor([[0, 1, 2], [2, 2, 1], [3, 0, 0], [1, 2, 4]])
    batches = list(zip(x.split(1), x.roll(-1, dims=1).split(1)))
    shorter = [(x[:, :2], x[:, 1:]) for x, _ in batches[::-1]]
    cases = [(model, batches, 0.2), (model, shorter, 0.1)]
    frozen = solution.but(("loss.backward()", "pass; optimizer.zero_grad()"))
    forgets = solution.but(("optimizer.zero_grad()", "pass"))

    def another_step(got: Any, e: Any, *inputs: Any) -> bool:
        first_only = same(got[0], e[0]) and not same(got[1], e[1])
        gone = same(got, frozen(*inputs)) or same(got, forgets(*deepcopy(inputs)))
        return first_only and not gone and "clip" not in source(fit)

    def once(got: Any, _: Any, *inputs: Any) -> bool:
        return "zero_grad" in source(fit) and same(got, forgets(*deepcopy(inputs)))

    known = [
        Mistake(
            "retain_graph keeps the way back through earlier batches. Where a loss is "
            "the sum of this batch's and theirs, their gradients are in every step "
            "again.",
            sign=lambda *_: "retain_graph" in source(fit),
            hint="Send back the loss of this batch alone.",
        ),
        Mistake(
            "A schedule makes the steps smaller; the size of a step is not what is "
            "wrong.",
            sign=lambda *_: "lr_scheduler" in source(fit),
            hint="Leave learning_rate as it was. What does backward() do with a "
            "gradient that is already there?",
        ),
        Mistake(
            "The parameters themselves are set to zero, not their gradients: what was "
            "learned is gone after every step.",
            sign=lambda *_: ".data.zero_()" in source(fit).replace("grad.data", "grad"),
        ),
        Mistake(
            "You empty the gradient, but not in every step: each backward() adds to "
            "what "
            "the one before has left.",
            sign=once,
            hint="zero_grad() belongs inside the loop, before backward().",
        ),
        Mistake(
            "The first loss is right, the second is not: your first step is another "
            "one than AdamW's with this learning rate.",
            sign=another_step,
            hint="Leave AdamW and learning_rate as they were.",
        ),
    ]
    hint = "What does backward() do with a gradient that is already there?"
    compare(fit, solution, cases, known, changes=True, hint=hint)
    return "every step uses the gradient of its own batch, and of no other."
