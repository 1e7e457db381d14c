"""A model's losses on a text, beside what counting reaches on the same text."""

import math
import time
from collections import Counter, defaultdict
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.clinic.patient import Patient
from minigpt.clinic.report import Report

BARS = "▁▂▃▄▅▆▇█"
SHAKESPEARE = 65  # characters of Tiny Shakespeare


class Counts:
    """What followed the last `order` ids in a text, and how often; shorter contexts
    fill in what was never seen (interpolated, as in the evidence of lesson 07)."""

    def __init__(self, ids: list[int], V: int, order: int) -> None:
        self.shorter = Counts(ids, V, order - 1) if order else None
        self.V, self.order = V, order
        self.counts: dict[tuple, Counter] = defaultdict(Counter)
        for t in range(order, len(ids)):
            self.counts[tuple(ids[t - order : t])][ids[t]] += 1
        self.totals = {key: sum(c.values()) for key, c in self.counts.items()}

    def probability(self, context: tuple, answer: int) -> float:
        """Of an id after this context, of at least `order` ids."""
        less = self.shorter.probability(context, answer) if self.shorter else 1 / self.V
        key = context[len(context) - self.order :]
        if key not in self.counts:
            return less
        weight = 3.0 if self.order else 1.0
        return (self.counts[key][answer] + weight * less) / (self.totals[key] + weight)

    def loss(self, ids: list[int]) -> float:
        """Nats per id of another text."""
        n, order = 0.0, self.order
        for t in range(order, len(ids)):
            n -= math.log(self.probability(tuple(ids[t - order : t]), ids[t]))
        return n / max(1, len(ids) - order)


def judge(
    patient: Patient, report: Report, text: torch.Tensor, trained: Any, seconds: float
) -> None:
    """The exact loss on a text, by position, and the rungs that it has passed."""
    T, V, half = patient.T, patient.V, len(text) // 2
    if half < 2 * T + 2:
        says = f"""The text has {len(text)} ids, too few for two halves of windows of
        {T}."""
        return report.add("wanted?", "text", says)
    losses, whole = windows(patient, text[half:], seconds / 2)
    mine, seen = losses["right"].mean().item(), losses["right"].numel()
    first, second = text[:half].tolist(), text[half:][:20_000].tolist()
    rungs = {"knowing nothing": math.log(V)}
    for order, name in ((0, "the letter frequencies"), (1, "the last letter")):
        rungs[name] = Counts(first, V, order).loss(second)
    if half > 2000:
        rungs["the last four"] = Counts(first, V, 4).loss(second)
    told = ", ".join(f"{name} {value:.2f}" for name, value in rungs.items())
    part = "the second half of the text"
    says = f"""On {part if whole else f"{seen:,} ids of its second half"} its loss is
    {mine:.3f} nats per id. Counted on the first half, for comparison: {told}. """
    if trained is None:
        trained = mine < math.log(V) - 0.3
    if not trained:
        return report.add("fine", "text", says + "It isn't trained yet.")
    report.picture = picture(losses["right"].mean(0))
    shift(losses, report)
    passed = [name for name, value in rungs.items() if mine < value - 0.01]
    if not passed:
        says += "It knows less than nothing: it is sure, and wrong. Are these its ids?"
        return report.add("wrong", "text", says)
    says += f"So it's better than {passed[-1]}."
    if V == SHAKESPEARE and "the last letter" in passed:
        says += ladder(mine)
    report.add("fine", "text", says)


def windows(patient: Patient, text: torch.Tensor, seconds: float) -> tuple[dict, bool]:
    """The losses (windows, T) with the next id, the one just read, the next but one."""
    T = patient.T
    n = (len(text) - 2) // T
    found: dict[str, list] = {"right": [], "read": [], "twice": []}
    end, step = time.monotonic() + seconds, max(1, 20_000_000 // (T * patient.V))
    for at in range(0, n, step):
        if time.monotonic() > end and found["right"]:
            break
        starts = torch.arange(at, min(n, at + step)) * T
        index = starts[:, None] + torch.arange(T + 2)
        rows = text[index].to(patient.device)
        logits = patient.hear(rows[:, :T].contiguous())
        for shift, name in enumerate(("read", "right", "twice")):
            y = rows[:, shift : shift + T]
            loss = F.cross_entropy(logits.transpose(1, 2).float(), y, reduction="none")
            found[name].append(loss.cpu())
    done = {name: torch.cat(each) for name, each in found.items()}
    return done, len(done["right"]) == n


def shift(losses: dict, report: Report) -> None:
    """Was it trained on targets that aren't the next id?"""
    right, read, twice = (losses[k].mean().item() for k in ("right", "read", "twice"))
    if min(read, twice) > right - 0.1:
        return
    says = f"""It repeats the id that it has just read (loss {read:.2f}; of the next one
    {right:.2f}). In training the targets weren't shifted: y = data[i + 1 : …]."""
    if twice < read:
        says = f"""It predicts the next id but one (loss {twice:.2f}; of the next one
        {right:.2f}). In training the targets were shifted twice, perhaps once by you
        and once by the model."""
    report.add("wrong", "shift", says)


def ladder(mine: float) -> str:
    """The course's rung just above and just below, for Tiny Shakespeare."""
    from minigpt.course.ladder import recorded

    rungs = sorted((r.loss, r.name) for r in recorded())
    worse = next(((x, n) for x, n in rungs if x > mine), None)
    better = next(((x, n) for x, n in reversed(rungs) if x <= mine), None)
    if worse and better:
        return (
            f" If these are Tiny Shakespeare's characters, it is between the course's "
            f"{worse[1]} ({worse[0]:.2f}) and its {better[1]} ({better[0]:.2f})."
        )
    return f" The course's ladder ends at {rungs[0][1]}, {rungs[0][0]:.2f}."


def picture(by_position: torch.Tensor) -> str:
    """The loss by position in the window as a row of bars."""
    T = len(by_position)
    parts = [p.mean().item() for p in by_position.tensor_split(min(T, 32))]
    low, high = min(parts), max(parts)
    bars = "".join(BARS[int(7.99 * (p - low) / (high - low + 1e-9))] for p in parts)
    return (
        f"Loss by position, from 0 to {T - 1}:\n  {bars}\n  {parts[0]:.2f} at the left,"
        f" {parts[-1]:.2f} at the right. Where context helps, it falls."
    )
