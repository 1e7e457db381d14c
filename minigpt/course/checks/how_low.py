"""Checks for notebook 07: entropy, perplexity, smoothing."""

import math
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course.checks.core import compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import randint, randn, same

DIE = torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 8])
SURE = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])


def _beliefs(*shape: int) -> torch.Tensor:
    return F.softmax(2 * randn(*shape), dim=-1)


ENTROPY = Solution(
    """
def entropy(p):
    surprise = -p.clamp(min=1e-12).log()  # (..., V)
    return (p * surprise).sum(dim=-1)
""",
    Mistake(
        "One number for all rows: a sum without dim adds them up, and p[p > 0] "
        "makes one list of them.",
        [("(dim=-1)", "()")],
    ),
    Mistake(
        "p holds probabilities already: a softmax makes others of them.",
        [("-p.clamp", "-(p := p.softmax(-1)).clamp")],
    ),
    Mistake(
        "The logarithm of 1 + p is no surprise: ln 1 = 0 is that of a "
        "certain outcome, and it stands at p = 1.",
        [
            ("p.clamp(min=1e-12).log()", "p.log1p()"),
        ],
    ),
    Mistake(
        "You take the mean first and the logarithm afterwards; entropy "
        "is the mean of the surprises -ln p.",
        [
            ("(p * surprise).sum(dim=-1)", "-(p * p).sum(dim=-1).log()"),
        ],
    ),
    Mistake(
        "You add the uncertainty of yes or no for each outcome, p and "
        "1 - p; the entropy of a row is the sum of -p ln p alone.",
        [
            (
                "(p * surprise).sum(dim=-1)",
                "(p * surprise - (1 - p) * (1 - p).clamp(min=1e-12).log()).sum(dim=-1)",
            ),
        ],
    ),
    Mistake(
        "That is the surprise of the likeliest outcome alone; entropy "
        "is the mean over all of them, each weighed by its p.",
        [
            ("(p * surprise).sum(dim=-1)", "surprise.min(dim=-1).values"),
        ],
    ),
    Mistake(
        "ln V is the entropy of a fair die with V sides; wanted is "
        "that of p, which need not be fair.",
        [
            (
                "(p * surprise).sum(dim=-1)",
                "torch.full(p.shape[:-1], math.log(p.shape[-1]))",
            ),
        ],
    ),
    Mistake(
        "That is the probability that two draws differ; entropy is the "
        "mean of the surprises -ln p.",
        [
            ("(p * surprise).sum(dim=-1)", "1 - (p * p).sum(dim=-1)"),
        ],
    ),
    Mistake(
        "That is how much less a row surprises than a fair die does, "
        "ln V minus its entropy; wanted is the entropy.",
        [
            (
                "(p * surprise).sum(dim=-1)",
                "math.log(p.shape[-1]) - (p * surprise).sum(dim=-1)",
            ),
        ],
    ),
    Mistake(
        "The logarithm is taken of p times p: the factor p belongs outside of it.",
        [
            (
                "(p * surprise).sum(dim=-1)",
                "-(p * p).log().nan_to_num(neginf=0.0).sum(dim=-1)",
            ),
        ],
    ),
    Mistake(
        "Surprises are added up without being weighed: an outcome "
        "counts as often as it comes, with its p.",
        [
            ("(p * surprise).sum(dim=-1)", "surprise.sum(dim=-1)"),
        ],
    ),
    Mistake(
        "Each surprise counts the same here; it should count p times.",
        [
            ("(p * surprise).sum(dim=-1)", "(surprise * (p > 0)).mean(dim=-1)"),
        ],
    ),
    Mistake(
        "Each surprise counts the same here; it should count p times.",
        [
            ("(p * surprise).sum(dim=-1)", "(surprise * (p > 0)).sum(dim=-1)"),
        ],
    ),
    Mistake(
        "Each surprise counts the same here; it should count p times.",
        [
            (
                "(p * surprise).sum(dim=-1)",
                "(surprise * (p > 0)).sum(dim=-1) / (p > 0).sum(dim=-1)",
            ),
        ],
    ),
    Mistake(
        "You go through the first dimension alone, which is right for "
        "(R, V) only: a row lies in the last dimension, whatever stands "
        "before it.",
        [
            (
                "(p * surprise).sum(dim=-1)",
                (
                    "(p * surprise).flatten(1).sum(dim=-1) if p.dim() > 1 else p * "
                    "surprise"
                ),
            ),
        ],
    ),
    Mistake(
        "These are bits, with the logarithm to base 2; wanted are nats, with ln.",
        [(".log()", ".log2()")],
        vague=True,
    ),
    Mistake(
        "The weights p sum to one already: a mean divides by V once more.",
        [("(p * surprise).sum(dim=-1)", "(p * surprise).mean(dim=-1)")],
    ),
    Mistake(
        "That is the variance of the surprises; entropy is their mean.",
        [
            (
                "return (p * surprise).sum(dim=-1)",
                (
                    "mean = (p * surprise).sum(dim=-1, keepdim=True)\n"
                    "    return (p * (surprise - mean) ** 2).sum(dim=-1)"
                ),
            ),
        ],
    ),
)


@exercise("07.1 The entropy of anything", ENTROPY)
def check_entropy(entropy: Any) -> str:
    """entropy(p): (..., V) -> (...), in nats; 0 * ln 0 counts as 0."""
    cases = [(DIE,), (_beliefs(2, 3),), (_beliefs(2, 4, 5),), (SURE,)]
    cases.append((torch.tensor([0.99994] + [1e-5] * 6),))  # unlikely, not impossible
    known = [
        Mistake(
            "There is a nan: where p is 0, so is 0 * ln 0, which should count as 0.",
            sign=lambda got, right, p: got.isnan().any(),
            hint="p.clamp(min=1e-12) lets ln see another number than 0.",
        ),
        Mistake(
            "An outcome with a p of 0.00001 surprises by 11.5 nats; in yours it does "
            "not. What keeps ln finite where p is 0 must be much tinier than that.",
            sign=lambda got, right, p: p.max() > 0.99 and p.min() > 0,
            hint="p.clamp(min=1e-12) lets ln see another number than 0.",
        ),
        Mistake(
            "Each surprise counts the same here; it should count p times.",
            sign=lambda got, expected, p: (
                (got > 1).all() if 0 in p else same(got, -p.log().mean(-1))
            ),
        ),
    ]
    hint = "-ln p, weighted by p, and summed. Which number should ln see where p is 0?"
    compare(entropy, ENTROPY, cases, known, hint=hint)
    return "5 shapes, impossible outcomes included; nobody gets below 0 or above ln V."


PERPLEXITY = Solution(
    """
def perplexity(nats, sizes):
    total = sum(loss * size for loss, size in zip(nats, sizes))
    return math.exp(total / sum(sizes))
""",
    Mistake(
        "The sum is divided by the number of texts (or a root of that number is "
        "taken); it should be the number of all characters.",
        [("total / sum(sizes)", "total / len(sizes)")],
    ),
    Mistake(
        "You average the perplexities. Surprises add up, perplexities do not.",
        [
            ("loss * size", "math.exp(loss) * size"),
            ("math.exp(total / sum(sizes))", "total / sum(sizes)"),
        ],
    ),
    Mistake(
        "You weigh and average the perplexities: surprises add up, perplexities do "
        "not. And the sum is divided by the number of texts, not of characters.",
        [
            ("loss * size", "math.exp(loss) * size"),
            ("math.exp(total / sum(sizes))", "total / len(sizes)"),
        ],
    ),
    Mistake(
        "The nats of all texts are divided by the size of the last one alone. Is the "
        "number of characters set anew for each text? Add the sizes up.",
        [("total / sum(sizes)", "total / sizes[-1]")],
    ),
    Mistake(
        "The nats of all texts are divided by the size of the first one alone: add "
        "the sizes up.",
        [("total / sum(sizes)", "total / sizes[0]")],
    ),
    Mistake(
        "Of the nats, only the last text's are divided by all characters. Is the sum "
        "set anew for each text? Add the nats up.",
        [("total / sum(sizes)", "nats[-1] * sizes[-1] / sum(sizes)")],
    ),
    Mistake(
        "That is the perplexity of the last text alone; the others are characters, "
        "too.",
        [("total / sum(sizes)", "nats[-1]")],
    ),
    Mistake(
        "You average the perplexities, and a short text counts like a long one.",
        [
            ("loss * size", "math.exp(loss)"),
            ("math.exp(total / sum(sizes))", "total / len(sizes)"),
        ],
    ),
    Mistake(
        "A short text counts as much as a long one: weigh by the characters.",
        [("loss * size", "loss"), ("sum(sizes)", "len(sizes)")],
    ),
    Mistake(
        "You raise 2 to a number of nats: 2 belongs to bits, e to nats.",
        [("math.exp(", "2 ** (")],
    ),
    Mistake(
        "nats are means already, per character: multiplied by the "
        "size, not divided, they give what a text cost in all.",
        [
            ("loss * size", "loss / size"),
            ("sum(sizes)", "len(sizes)"),
        ],
    ),
    Mistake(
        "nats are means already, per character: multiplied by the "
        "size, not divided, they give what a text cost in all.",
        [
            ("loss * size", "loss / size"),
            ("total / sum(sizes)", "total"),
        ],
    ),
    Mistake(
        "You average one over the perplexities, and turn the mean "
        "upside down: surprises add up, probabilities do not.",
        [
            ("loss * size", "size / math.exp(loss)"),
            ("math.exp(total / sum(sizes))", "sum(sizes) / total"),
        ],
    ),
    Mistake(
        "That is the perplexity of the longest text alone; the others "
        "are characters, too.",
        [
            ("math.exp(total / sum(sizes))", "math.exp(nats[sizes.index(max(sizes))])"),
        ],
    ),
    Mistake(
        "A softmax of the sizes gives the longest text nearly all the "
        "weight; weigh each by its share of the characters.",
        [
            (
                "math.exp(total / sum(sizes))",
                "math.exp(sum(torch.tensor(sizes).float().softmax(0) * "
                "torch.tensor(nats)))",
            ),
        ],
    ),
    Mistake(
        "e is raised to the surprise of all texts together, and only "
        "then divided: divide first.",
        [
            ("math.exp(total / sum(sizes))", "math.exp(total) / sum(sizes)"),
        ],
    ),
    Mistake(
        "You raise 10 to a number of nats: nats belong to e.",
        [
            ("math.exp(", "10 ** ("),
        ],
    ),
    Mistake(
        "You add up powers of e. A sum belongs into the exponent: "
        "first the mean of all nats, then e to the power of it, once.",
        [
            ("loss * size", "math.exp(loss * size / sum(sizes))"),
            ("math.exp(total / sum(sizes))", "total"),
        ],
    ),
    Mistake(
        "The sizes are sorted, and no longer stand beside the losses "
        "of their own texts.",
        [
            ("zip(nats, sizes)", "zip(nats, sorted(sizes))"),
        ],
    ),
    Mistake(
        "It is rounded to a whole number; a perplexity need not be one.",
        [
            ("math.exp(total / sum(sizes))", "round(math.exp(total / sum(sizes)))"),
        ],
    ),
    Mistake(
        "A short text counts more than a long one here: weigh by the "
        "size, not by one over it.",
        [
            ("loss * size", "loss / size"),
            ("sum(sizes)", "sum(1 / size for size in sizes)"),
        ],
    ),
    Mistake(
        "You weigh by the roots of the sizes; each character counts "
        "the same, so weigh by the sizes.",
        [
            ("loss * size", "loss * size**0.5"),
            ("sum(sizes)", "sum(size**0.5 for size in sizes)"),
        ],
    ),
    Mistake(
        "You halve at every step, so the last text counts most: weigh by the sizes.",
        [
            (
                "return math.exp(total / sum(sizes))",
                "mean = nats[0]\n"
                "    for loss in nats[1:]:\n"
                "        mean = (mean + loss) / 2\n"
                "    return math.exp(mean)",
            ),
        ],
    ),
    Mistake(
        "The losses of all texts are added up in the exponent (or their perplexities "
        "multiplied), and nothing is divided: with every text the number grows.",
        [
            ("math.exp(total / sum(sizes))", "math.exp(sum(nats))"),
        ],
    ),
    Mistake(
        "You add up the perplexities; the texts are to be one long text with one mean.",
        [
            ("loss * size", "math.exp(loss)"),
            ("math.exp(total / sum(sizes))", "total"),
        ],
    ),
)


@exercise("07.2 How many sides has the die?", PERPLEXITY)
def check_perplexity(perplexity: Any) -> str:
    """perplexity(nats, sizes): two lists of equal length -> float."""
    cases = [([math.log(2), math.log(8)], [3, 1]), ([1.5], [10])]
    cases.append(([0.5, 1.0, 2.0], [10, 1, 2]))
    cases.append(([2.5, 3.0], [1000, 4000]))  # e to the power of all is too much
    hint = "Total surprise divided by total characters; exp comes last."
    compare(perplexity, PERPLEXITY, cases, hint=hint)
    return "4 collections of texts; cutting a text in two changes nothing."


def _fixed_weight(
    got: torch.Tensor,
    right: torch.Tensor,
    counts: torch.Tensor,
    lower: torch.Tensor,
    strength: float,
) -> bool | torch.Tensor:
    """Whether all rows that were seen are wrong, and mix shares and lower alike."""
    seen = counts.sum(dim=-1, keepdim=True)
    shares = counts / seen.clamp(min=1)
    apart = (seen > 0) & ((lower - shares).abs() > 1e-3)
    if same(got[seen[:, 0] > 0], right[seen[:, 0] > 0]):
        return False
    weight = ((got - shares) / (lower - shares))[apart]
    return weight.std() < 1e-4 and 1e-3 < weight.mean() < 1 - 1e-3


SMOOTH = Solution(
    """
def smooth(counts, lower, strength):
    seen = counts.sum(dim=-1, keepdim=True)  # (R, 1)
    return (counts + strength * lower) / (seen + strength)
""",
    Mistake(
        "A row that was never seen gets even shares; there `lower` alone should speak.",
        [
            (
                "return (counts",
                "return torch.where(seen == 0, 1 / counts.shape[-1], (counts",
            ),
            ("(seen + strength)", "(seen + strength))"),
        ],
    ),
    Mistake(
        "`strength` is not used: it says how many observations are pretended.",
        [("strength * lower", "lower"), ("seen + strength", "seen + 1")],
    ),
    Mistake(
        "You add the strength once for each character; it is the total.",
        [("(seen + strength)", "(seen + strength * counts.shape[-1])")],
    ),
    Mistake(
        "Shares, not counts, meet the strength: evidence has lost its weight.",
        [
            (
                "(counts + strength",
                "(torch.where(seen > 0, counts / seen, lower) + strength",
            ),
            ("(seen + strength)", "(1 + strength)"),
        ],
    ),
    Mistake(
        "The shorter context is asked only where a row is empty; it should "
        "always have a say.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "torch.where(seen > 0, counts / seen.clamp(min=1), lower)",
            )
        ],
    ),
    Mistake(
        "Only what was never seen gets a share of lower; all characters should.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "(f := torch.where(counts > 0, counts, strength * lower)) / f.sum(-1, "
                "keepdim=True)",
            )
        ],
    ),
    Mistake(
        "You share the pretended observations out evenly; `lower` says who gets them.",
        [("strength * lower", "strength / counts.shape[-1]")],
    ),
    Mistake(
        "The shares are exchanged: the more often a row was seen, the "
        "more its own counts should weigh, and the less `lower`.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "(strength * torch.where(seen > 0, counts / "
                "seen.clamp(min=1e-9), 0.0) + seen * lower) / (seen + strength)",
            ),
        ],
    ),
    Mistake(
        "You take `strength` away from every count. Nothing is taken "
        "away here: pretended observations are added.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "((counts - strength).clamp(min=0) + strength * lower) / seen",
            ),
        ],
    ),
    Mistake(
        "A softmax of counts raises e to the power of each. Counts "
        "become probabilities when they are divided by their sum.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "torch.softmax(counts + strength * lower, dim=-1)",
            ),
        ],
    ),
    Mistake(
        "`strength` is an exponent here; it says how many observations "
        "are pretended, so it multiplies `lower`.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "(f := counts + lower**strength) / f.sum(-1, keepdim=True)",
            ),
        ],
    ),
    Mistake(
        "The pretended observations are as many as there are different "
        "characters in the row, not `strength`: that is another "
        "smoothing.",
        [
            ("strength", "(counts > 0).sum(dim=-1, keepdim=True)"),
            ("lower, (counts > 0).sum(dim=-1, keepdim=True))", "lower, strength)"),
        ],
    ),
    Mistake(
        "Shares and `lower` get half each, whatever the counts: the "
        "more a row was seen, the more its own counts should weigh.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "(counts / seen.clamp(min=1e-9) + lower) / 2",
            ),
        ],
    ),
    Mistake(
        "The shorter context is made of the counts of this table here; "
        "it is given, as `lower`.",
        [
            ("strength * lower", "strength * counts.sum(dim=0) / counts.sum()"),
        ],
    ),
    Mistake(
        "`lower` multiplies the counts. Pretended observations are "
        "added to them: strength * lower.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                ("(f := (counts + strength) * lower) / f.sum(dim=-1, keepdim=True)"),
            ),
        ],
    ),
    Mistake(
        "The counts are multiplied with the pretended observations, so "
        "what was never seen stays impossible; they are added.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "(f := counts * lower) / f.sum(dim=-1, keepdim=True)",
            ),
        ],
    ),
    Mistake(
        "Your columns sum to one, not your rows: divide by what each row holds.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                ("(f := counts + strength * lower) / f.sum(dim=0, keepdim=True)"),
            ),
        ],
    ),
    Mistake(
        "One is added to every count besides; `lower` already says who gets what.",
        [
            ("(counts + strength", "(counts + 1 + strength"),
            ("(seen + strength)", "(seen + counts.shape[-1] + strength)"),
        ],
    ),
    Mistake(
        "You divide by the mean of a row; its sum is what the counts are shares of.",
        [
            ("counts.sum(dim=-1", "counts.mean(dim=-1"),
        ],
    ),
    Mistake(
        "Each row gets the larger of the two opinions, made to sum to "
        "one; here counts and pretended observations are added.",
        [
            (
                "(counts + strength * lower) / (seen + strength)",
                "(f := torch.maximum(counts / seen.clamp(min=1), strength * "
                "lower)) / f.sum(dim=-1, keepdim=True)",
            ),
        ],
    ),
)


def _one_lower(
    counts: torch.Tensor, lower: torch.Tensor, strength: float
) -> torch.Tensor:
    """Gives all rows the first row of lower."""
    return SMOOTH(counts, lower[:1] if lower.dim() > 1 else lower, strength)


def _one_row(
    counts: torch.Tensor, lower: torch.Tensor, strength: float
) -> torch.Tensor:
    """Divides all rows by what the first one holds."""
    seen = counts.sum(dim=-1, keepdim=True)[:1]
    return (counts + strength * lower) / (seen + strength)


@exercise("07.3 Pretended observations", SMOOTH)
def check_smooth(smooth: Any) -> str:
    """smooth(counts, lower, strength): (R, V), (V,) or (R, V) -> (R, V)."""
    counts, even = randint(5, 4, 5).float(), torch.full((4,), 0.25)
    few = torch.tensor([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    cases = [(few, torch.tensor([0.5, 0.25, 0.25]), 4.0)]
    cases += [(counts, _beliefs(4, 5), 2.0), (counts, _beliefs(4, 5), 20.0)]
    cases.append((counts[:, :4] + 1, even, 4.0))
    known = [
        Mistake(
            "You mix two shares with the same weight in every row; a row with many "
            "observations should listen less to `lower`.",
            sign=_fixed_weight,
            vague=True,
        ),
        Mistake(
            "Every row gets row 0 of `lower`. Where `lower` is (R, V), each row has "
            "one of its own: row r belongs to row r.",
            program=_one_lower,
        ),
        Mistake(
            "Every row is divided by what row 0 holds; each has a sum of its own.",
            program=_one_row,
        ),
        Mistake(
            "A row that was never seen is nan. Its counts are 0, and so is their sum; "
            "0 by 0 is nan. There `lower` alone should speak.",
            sign=lambda got, _, counts, *rest: (
                got.isnan().any()
                and torch.equal(got.isnan().any(-1), counts.sum(-1) == 0)
            ),
            vague=True,
            hint="Add what is pretended before you divide.",
        ),
    ]
    hint = "How many observations has a row now, real and pretended? Who gets them?"
    compare(smooth, SMOOTH, cases, known, hint=hint)
    return "4 tables, one with a row never seen; all rows sum to one."
