"""Checks for notebook 02: means of the past, fading memories and two bugs."""

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

from minigpt.course.checks.core import Explained, call, compare, exercise
from minigpt.course.checks.solutions import Mistake, Solution
from minigpt.course.checks.values import as_tensor, randn, same
from minigpt.data import CharTokenizer

TOY = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])  # the notebook's, (1, T, C)


MEAN_SO_FAR = Solution(
    """
def mean_so_far(x, t):
    return x[:, : t + 1].mean(dim=1)  # (B, t + 1, C) -> (B, C)
""",
    Mistake(
        "You divide by T, but there are fewer positions so far.",
        [(".mean(dim=1)", ".sum(dim=1) / x.shape[1]")],
    ),
    Mistake(
        "You halve at every step, so late positions count more: add all, then "
        "divide once.",
        [
            (
                "x[:, : t + 1].mean(dim=1)",
                "sum(x[:, i] / 2 ** (t + (i > 0) - i) for i in range(t + 1))",
            )
        ],
    ),
    Mistake(
        "Your mean runs over the batch, too: each row is to have its own.",
        [(".mean(dim=1)", ".mean(dim=(0, 1)).expand(len(x), -1)")],
    ),
    Mistake(
        "You take the mean of running means: the first positions count again in"
        " each of them.",
        [
            (
                "x[:, : t + 1].mean(dim=1)",
                "torch.stack([x[:, : s + 1].mean(1) for s in range(t + 1)]).mean(0)",
            )
        ],
    ),
    Mistake(
        "You cut and average along the batch; time is dimension 1.",
        [("x[:, : t + 1].mean(dim=1)", "x[: t + 1].mean(dim=0)")],
    ),
    Mistake(
        "You average position t and all that come after it; wanted are those up to t.",
        [
            ("x[:, : t + 1]", "x[:, t:]"),
        ],
    ),
    Mistake(
        "You give position t alone; wanted is the mean of all positions up to it.",
        [
            ("x[:, : t + 1].mean(dim=1)", "x[:, t]"),
        ],
    ),
    Mistake(
        "That is the median; wanted is the mean.",
        [
            (".mean(dim=1)", ".median(dim=1).values"),
        ],
    ),
    Mistake(
        "You divide by t, but the positions 0, ..., t are t + 1.",
        [
            (".mean(dim=1)", ".sum(dim=1) / t"),
        ],
        hint="Divide by the number of what you have added up.",
    ),
)


@exercise("02.1 The present included", MEAN_SO_FAR)
def check_mean_so_far(mean_so_far: Any) -> str:
    """mean_so_far(x, t): (B, T, C) -> (B, C)."""
    small = randn(2, 5, 3)
    cases = [(TOY, 1), (small, 2), (small, 0), (small, 4), (randn(3, 4, 6), 1)]
    hint = "A slice a:b ends with b - 1. Which dimension of x (B, T, C) is time?"
    compare(mean_so_far, MEAN_SO_FAR, cases, hint=hint)
    return "3 shapes and 4 positions; the present is in, the future is out."


FADING_AVERAGE = Solution(
    """
def fading_average(x, rate):
    T = x.shape[1]
    time = torch.arange(T)
    scores = -rate * (time[:, None] - time).float()  # (T, T)
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    return F.softmax(scores, dim=-1) @ x  # (T, T) @ (B, T, C)
""",
    Mistake(
        "The weights fall with the square of the distance: one step back should cost "
        "the same factor everywhere.",
        [("(time[:, None] - time).float()", "(time[:, None] - time).float() ** 2")],
    ),
    Mistake(
        "Your rows do not sum to one: exp is there, the division is not.",
        [("F.softmax(scores, dim=-1)", "scores.exp()")],
    ),
    Mistake(
        "The mask comes only after the softmax: the rows no longer sum to one.",
        [
            ('scores = scores.masked_fill(~past, float("-inf"))', "pass"),
            ("dim=-1) @ x", "dim=-1).masked_fill(~past, 0.0) @ x"),
        ],
    ),
    Mistake(
        "Your weights fall like 1 / (1 + rate · distance); a softmax of scores "
        "falls by the same factor with every step back.",
        [
            (
                "-rate * (time[:, None] - time).float()",
                "-(1 + rate * (time[:, None] - time).clamp(min=0)).log()",
            )
        ],
    ),
    Mistake(
        "The future is not hidden: the scores fall with the distance on both sides.",
        [
            ("time).float()", "time).abs().float()"),
            ('scores = scores.masked_fill(~past, float("-inf"))', "pass"),
        ],
    ),
    Mistake(
        "Your softmax comes before the mask, and the future has taken its share"
        " by then.",
        [
            ("time).float()", "time).abs().float()"),
            ('scores = scores.masked_fill(~past, float("-inf"))', "pass"),
            ("F.softmax(scores, dim=-1)", "F.softmax(scores, dim=-1).tril()"),
        ],
    ),
    Mistake(
        "That is smoothing, where a step back costs the factor 1 - rate, and the first "
        "place keeps all that is left. Here it costs exp(-rate), and all weights are "
        "divided by their sum.",
        [
            (
                "F.softmax(scores, dim=-1)",
                "((1 - rate) ** (time[:, None] - time).clamp(min=0) * "
                "torch.where(time > 0, rate, 1.0)).tril()",
            )
        ],
    ),
    Mistake(
        "A running mean gives its first place too much: here all weights are "
        "divided by their sum.",
        [
            (
                "F.softmax(scores, dim=-1)",
                "(scores.exp() * torch.cat([torch.ones(1), torch.full((T - 1,), 1 - "
                "2.718281828459045**-rate)]))",
            )
        ],
    ),
    Mistake(
        "A step back multiplies the weight by rate itself; a score of "
        "-rate multiplies it by e to the power of -rate.",
        [
            (
                "F.softmax(scores, dim=-1)",
                "F.normalize((float(rate) ** (time[:, None] - "
                "time).clamp(min=0)).tril(), p=1, dim=-1)",
            ),
        ],
    ),
    Mistake(
        "rate multiplies the finished weights, so that they no longer "
        "sum to one; it belongs to the scores, before the softmax.",
        [
            ("-rate * (", "-(1.0) * ("),
            ("return F.softmax", "return rate * F.softmax"),
        ],
    ),
    Mistake(
        "Your mask is read off the scores: the score of the present is "
        "0, too, so it is hidden with the future.",
        [
            ("masked_fill(~past", "masked_fill(scores.tril() == 0"),
        ],
        hint="Make the mask of ones (T, T), not of the scores.",
    ),
    Mistake(
        "Your weights are divided by their sum without a softmax: "
        "scores below 0 make them grow with the distance, and the "
        "present gets 0.",
        [
            (
                "F.softmax(scores, dim=-1)",
                "(scores.nan_to_num(neginf=0.0) / "
                "scores.nan_to_num(neginf=0.0).sum(dim=-1, keepdim=True))",
            ),
        ],
    ),
)


@exercise("02.2 A memory that fades", FADING_AVERAGE)
def check_fading_average(fading_average: Any) -> str:
    """fading_average(x, rate): (B, T, C) -> (B, T, C)."""
    cases = [(TOY, math.log(2)), (TOY, 0.0), (randn(2, 5, 3), 0.5)]
    cases += [(randn(3, 4, 1), 2.0), (randn(2, 1, 4), 1.0)]
    cases += [(TOY, 0), (randn(1, 4, 2), 50.0)]  # a whole number; e^150 is infinite
    hint = "masked_fill before the softmax; a step back must lower the score."

    def work(fading_average: Callable, x: torch.Tensor, rate: float) -> Any:
        try:
            return fading_average(x, rate)
        except RuntimeError as error:
            if not isinstance(rate, int) or "int64" not in str(error):
                raise
            raise Explained(
                f"With rate = {rate}, a whole number, your scores are whole numbers, "
                "too, and among these there is no -inf.",
                "torch.arange(T).float(), or .float() behind the scores.",
            ) from None

    known = [
        Mistake(
            "Where rate is large there is a nan. A score of the future is large then, "
            "and e to the power of it more than a float holds: is the future hidden "
            "before?",
            sign=lambda got, _, x, rate: rate >= 50 and got.isnan().any(),
        )
    ]
    compare(fading_average, FADING_AVERAGE, cases, known, work=work, hint=hint)
    return "5 shapes and 6 rates; the future is hidden, and rate 0 is the plain mean."


NATS_PER_CHARACTER = Solution(
    """
def nats_per_character(text):
    tokenizer = CharTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))  # (T,)
    one_hot = F.one_hot(ids, tokenizer.vocab_size).float()  # (T, V)
    past = torch.ones(len(ids), len(ids)).tril(diagonal=-1)
    counts = past @ one_hot + 1  # (T, V)
    probs = counts / counts.sum(dim=1, keepdim=True)
    return F.nll_loss(probs.log(), ids).item()
""",
    Mistake(
        "The probabilities of a row sum to less than one: what the counts are "
        "divided by must be their own sum, with the 1 of each character in it once.",
        [("counts.sum(dim=1, keepdim=True)", "(counts.sum(dim=1, keepdim=True) + 1)")],
    ),
    Mistake(
        "The bug is still there: on letters drawn blindly, which nobody can "
        "predict, the program claims to do better than guessing.",
        [
            (
                "torch.ones(len(ids), len(ids)).tril(diagonal=-1)",
                "torch.tril(torch.ones(len(ids), len(ids)))",
            )
        ],
        hint="Take the text 'ab' on paper. What may be known when 'a' is guessed? "
        "When 'b'?",
        untouched=True,
    ),
    Mistake(
        "The targets are shifted the wrong way: row t + 1 guesses character t.",
        [
            ("diagonal=-1", "diagonal=0"),
            ("(probs.log(), ids)", "(probs[1:].log(), ids[:-1])"),
        ],
    ),
    Mistake(
        "The + 1 was no cheat: each character still counts itself before it is "
        "guessed.",
        [
            (
                "torch.ones(len(ids), len(ids)).tril(diagonal=-1)",
                "torch.tril(torch.ones(len(ids), len(ids)))",
            ),
            ("past @ one_hot + 1", "past @ one_hot"),
        ],
    ),
    Mistake(
        "You only keep the loss from falling below ln V; each character still counts "
        "itself before it is guessed, and an honest guesser may fall below ln V.",
        [
            (
                "torch.ones(len(ids), len(ids)).tril(diagonal=-1)",
                "torch.tril(torch.ones(len(ids), len(ids)))",
            ),
            (
                "return F.nll_loss(probs.log(), ids).item()",
                "loss = F.nll_loss(probs.log(), ids).item()\n"
                "    return max(loss, math.log(tokenizer.vocab_size))",
            ),
        ],
    ),
    Mistake(
        "You leave out the character itself, but count all that come after it.",
        [("past @ one_hot + 1", "one_hot.sum(dim=0) - one_hot + 1")],
    ),
    Mistake(
        "cross_entropy takes a softmax of what it gets, but these are "
        "counts, not logits; and each character still counts itself "
        "before it is guessed.",
        [
            ("diagonal=-1", "diagonal=0"),
            ("F.nll_loss(probs.log(), ids)", "F.cross_entropy(counts, ids)"),
        ],
    ),
    Mistake(
        "cross_entropy takes a softmax of what it gets, but these are "
        "counts, not logits.",
        [
            ("F.nll_loss(probs.log(), ids)", "F.cross_entropy(counts, ids)"),
        ],
        hint="Give it probs.log(), or leave nll_loss.",
    ),
    Mistake(
        "The last row is asked for the first character of the text: "
        "the shift goes round in a circle. Behind the last character "
        "there is nothing to guess.",
        [
            ("diagonal=-1", "diagonal=0"),
            ("(probs.log(), ids)", "(probs.log(), ids.roll(-1))"),
        ],
    ),
    Mistake(
        "You count only the character right before; wanted are all before it.",
        [
            ("tril(diagonal=-1)", "tril(diagonal=-1).triu(-1)"),
        ],
    ),
    Mistake(
        "You count only the character right before (and the last one "
        "before the first); wanted are all before it.",
        [
            (
                "torch.ones(len(ids), len(ids)).tril(diagonal=-1)",
                "torch.eye(len(ids)).roll(1, 0)",
            ),
        ],
    ),
    Mistake(
        "Without the + 1 a character that comes for the first time has "
        "the probability 0, and its surprise is infinite.",
        [
            ("past @ one_hot + 1", "past @ one_hot"),
        ],
    ),
    Mistake(
        "All rows know the whole text, each character itself included: "
        "only what stands before it may be counted.",
        [
            ("past @ one_hot + 1", "one_hot.sum(dim=0).expand(len(ids), -1) + 1"),
        ],
    ),
    Mistake(
        "Only characters that came already have their 1, so the "
        "probabilities do not sum to one: all characters of the text "
        "have it from the beginning.",
        [
            (
                "counts / counts.sum(dim=1, keepdim=True)",
                (
                    "counts / (counts.sum(dim=1, keepdim=True) - "
                    "tokenizer.vocab_size + (counts > 1).sum(dim=1, keepdim=True) "
                    "+ 1)"
                ),
            ),
        ],
    ),
    Mistake(
        "The counts are made a mean before the 1 is added, so that this "
        "1 weighs as much as all that came before. And each character "
        "still counts itself before it is guessed.",
        [
            (
                "torch.ones(len(ids), len(ids)).tril(diagonal=-1)",
                "torch.tril(torch.ones(len(ids), len(ids)))",
            ),
            (
                "past @ one_hot + 1",
                "past / past.sum(dim=1, keepdim=True) @ one_hot + 1",
            ),
        ],
        hint=(
            "Counts are whole numbers. Take the text 'ab' on paper: what is "
            "counted when 'a' is guessed?"
        ),
    ),
    Mistake(
        "The counts are made a mean before the 1 is added, so that this "
        "1 weighs as much as all that came before.",
        [
            (
                "past @ one_hot + 1",
                "past / past.sum(dim=1, keepdim=True).clamp(min=1) @ one_hot + 1",
            ),
        ],
        hint=(
            "Counts are whole numbers: add 1 to each of them, and then "
            "divide by their sum."
        ),
    ),
    Mistake(
        "That is the loss of the whole text; the mean over its characters is asked.",
        [
            ("(probs.log(), ids)", "(probs.log(), ids, reduction='sum')"),
        ],
    ),
    Mistake(
        "The bug is still there, and the sum over the text stands where its mean was.",
        [
            (
                "torch.ones(len(ids), len(ids)).tril(diagonal=-1)",
                "torch.tril(torch.ones(len(ids), len(ids)))",
            ),
            ("(probs.log(), ids)", "(probs.log(), ids, reduction='sum')"),
        ],
    ),
    CharTokenizer=CharTokenizer,
)


def _guesses_from_behind(nats_per_character: Any) -> bool:
    """Whether the first guess of "aaab" knows more than nothing; False if unknown."""
    seen, nll_loss = [], F.nll_loss

    def noted(log_probs: Any, *others: Any, **named: Any) -> torch.Tensor:
        seen.append(as_tensor(log_probs))
        return nll_loss(log_probs, *others, **named)

    with mock.patch.object(F, "nll_loss", noted):
        call(nats_per_character, "aaab")
    whole = [rows for rows in seen if rows is not None and rows.shape == (4, 2)]
    return any(not same(rows[0].exp(), torch.full((2,), 0.5)) for rows in whole)


@exercise("02.3 Better than luck", NATS_PER_CHARACTER)
def check_nats_per_character(nats_per_character: Any) -> str:
    """nats_per_character(text) -> float; the first character may be left out."""
    solution, texts = NATS_PER_CHARACTER, ["ab", "aab", "noon"]
    texts += ["aaaaaaab", "to be or not to be"]
    shorter = solution.but(("(probs.log(), ids)", "(probs[1:].log(), ids[1:])"))

    def without_first(nats_per_character: Callable, text: str) -> Any:
        """The loss; where it is right but for the first character, the one with it."""
        loss = nats_per_character(text)
        return solution(text) if same(loss, shorter(text)) else loss

    hint = "The probabilities for character t may count characters 0 to t - 1."
    cases = [(text,) for text in texts]
    compare(nats_per_character, solution, cases, work=without_first, hint=hint)
    if _guesses_from_behind(nats_per_character):
        raise Explained(
            "The loss is right, but each character is guessed from those behind it: "
            "read from either end, a text costs the same. To write on, only those "
            "before it are there.",
            "Row t of the triangle should hold ones in the columns 0 to t - 1.",
            share=0.9,
        )
    return "5 texts; no character is counted before it has been guessed."


# A right mask does not look at the scores; these betray one that still does.
# They grow from left to right, so that each counts in the row that it ends.
OFFSETS = [5000.0, 1000, 100, 10, 2, 1, 0.5] + [10.0**-n for n in range(1, 13)]
UNLUCKY = (
    torch.arange(19.0).reshape(1, 19, 1),
    torch.ones(1, 19, 1),
    -torch.tensor(OFFSETS).reshape(1, 19, 1),
)


ATTEND = Solution(
    """
def attend(x, q, k):
    T = x.shape[1]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    past = torch.tril(torch.ones(T, T, dtype=torch.bool))
    scores = scores.masked_fill(~past, float("-inf"))
    weights = F.softmax(scores, dim=-1)  # (B, T, T)
    return weights @ x  # (B, T, C)
""",
    Mistake(
        "Your mask is read off the scores: where a score happens to have that value, "
        "a position is taken for the future, or the future for a position.",
        [
            ("T = x.shape[1]", "pass"),
            (
                "past = torch.tril(torch.ones(T, T, dtype=torch.bool))",
                "future = torch.tril(scores + 1) == 0",
            ),
            ("~past", "future"),
        ],
        hint="Make the mask of ones (T, T), not of the scores.",
    ),
    Mistake(
        "The bug is still there: a query of zeros should give the plain mean, "
        "but gives nan.",
        [
            ("T = x.shape[1]", "pass"),
            (
                "past = torch.tril(torch.ones(T, T, dtype=torch.bool))",
                "future = torch.tril(scores) == 0",
            ),
            ("~past", "future"),
        ],
        hint="Print what each line makes of one silent query: where is the nan born?",
        untouched=True,
    ),
    Mistake(
        "You have swept the nan away, not its cause: the silent position gets zeros.",
        [
            ("masked_fill(~past,", "masked_fill(scores.tril() == 0,"),
            ("weights @ x", "weights.nan_to_num() @ x"),
        ],
    ),
    Mistake(
        "The query of zeros is a case of its own now, but your mask is still made from "
        "the scores: a single score of 0 is hidden as before.",
        [
            ("masked_fill(~past,", "masked_fill(scores.tril() == 0,"),
            (
                "weights @ x",
                "torch.where((q == 0).all(-1, keepdim=True), x.cumsum(1) / "
                "torch.arange(1, T + 1)[:, None], weights @ x)",
            ),
        ],
    ),
    Mistake(
        "The silent query hears the whole text evenly now, the future, too: your "
        "mask is still made from the scores.",
        [
            (
                'masked_fill(~past, float("-inf"))',
                "masked_fill(scores.tril() == 0, -1e9)",
            )
        ],
    ),
    Mistake(
        "The mask comes only after the softmax: the rows no longer sum to one.",
        [
            ('scores = scores.masked_fill(~past, float("-inf"))', "pass"),
            ("weights @ x", "weights.tril() @ x"),
        ],
    ),
    Mistake(
        "A future score that is 0 stays: your mask is made from the scores.",
        [("~past,", "scores.triu(1) != 0,")],
    ),
    Mistake(
        "The mask is the wrong way round: the past is hidden, and the future is heard.",
        [("torch.tril", "torch.triu")],
    ),
    Mistake(
        "Each position may hear itself now, but your mask is still "
        "made from the scores: other scores of 0 are hidden as before.",
        [
            (
                "masked_fill(~past,",
                "masked_fill((scores.tril() == 0) & (torch.eye(T) == 0),",
            ),
        ],
    ),
    Mistake(
        "The scores are divided by their sum, without a softmax: some "
        "are negative, and those of the silent query sum to 0.",
        [
            (
                "weights = F.softmax(scores, dim=-1)",
                (
                    "scores = (q @ k.mT / q.shape[-1] ** 0.5).tril()\n"
                    "    weights = scores / scores.sum(dim=-1, keepdim=True)"
                ),
            ),
        ],
    ),
    Mistake(
        "Your mask is still made from the scores, it seems: a silent "
        "query is heard now, but a key of zeros has the score 0 with "
        "every query, and is hidden.",
        [
            ("T = x.shape[1]", "q = torch.where(q == 0, torch.full_like(q, 1e-6), q)"),
            (
                "past = torch.tril(torch.ones(T, T, dtype=torch.bool))",
                "future = torch.tril(scores) == 0",
            ),
            ("~past", "future"),
        ],
    ),
    Mistake(
        "Your mask is still made from the scores: on paper e to the "
        "power of a score is never 0, but far below 0 float32 makes it "
        "0, and a position is taken for the future.",
        [
            ("~past", "scores.exp().tril() == 0"),
        ],
    ),
    Mistake(
        "Your mask is still made from the scores: on paper e to the "
        "power of a score is never 0, but far below 0 float32 makes it "
        "0, and a position is taken for the future.",
        [
            ("~past", "scores.softmax(dim=-1).tril() == 0"),
        ],
    ),
    Mistake(
        "Your mask is still made from the scores: on paper a sigmoid is "
        "never 0, but far below 0 float32 makes it 0, and a position is "
        "taken for the future.",
        [
            ("~past", "scores.sigmoid().tril() == 0"),
        ],
    ),
    Mistake(
        "Your mask is read off the scores: where a score happens to have "
        "that value, a position is taken for the future, or the future "
        "for a position.",
        [
            (
                "past = torch.tril(torch.ones(T, T, dtype=torch.bool))",
                ("scores = scores + 1e-9\n    future = torch.tril(scores) == 0"),
            ),
            ("~past", "future"),
        ],
    ),
    Mistake(
        "Your mask is read off the scores: where a score happens to have "
        "that value, a position is taken for the future, or the future "
        "for a position.",
        [
            (
                "past = torch.tril(torch.ones(T, T, dtype=torch.bool))",
                ("scores = scores + 1e-6\n    future = torch.tril(scores) == 0"),
            ),
            ("~past", "future"),
        ],
    ),
)


@exercise("02.4 The silent query", ATTEND)
def check_attend(attend: Any) -> str:
    """attend(x, q, k): (B, T, C) -> (B, T, C), equal to averaging.average_attention."""
    q = torch.tensor([[[1.0, 0], [0, 0], [1, 0]]])
    silent = (TOY, q, torch.tensor([[[1.0, 0], [2, 1], [3, 0]]]))
    one_hot = torch.eye(4)[[1, 0, 1, 2, 0]].expand(2, 5, 4)
    orthogonal = (randn(2, 5, 3), one_hot, one_hot * torch.arange(5.0)[:, None])
    usual = (randn(3, 6, 2), randn(3, 6, 4), randn(3, 6, 5)[..., :4])
    hint = "The mask says which positions are the future: make it from ones (T, T)."
    cases = [silent, orthogonal, usual, UNLUCKY]
    compare(attend, ATTEND, cases, hint=hint)
    return "4 inputs, among them silent queries, scores of zero and tiny ones."
