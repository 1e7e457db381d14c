"""A model's losses on a text, beside what counting reaches on the same text."""

import math
import time

import torch
import torch.nn.functional as F

from minigpt.clinic.patient import Patient
from minigpt.clinic.report import Report
from minigpt.clinic.sentences import say

BARS = "▁▂▃▄▅▆▇█"
SHAKESPEARE = 65  # characters of Tiny Shakespeare
RUNGS = "knowing nothing", "the letter frequencies", "the last letter", "the last four"


def counted(ids: torch.Tensor, V: int, n: int) -> list[float]:
    """Count in ids[:n], as lesson 07 does: nats per id of ids[n:], for contexts of 0 to
    4 ids (1 if V is large). What was never seen is filled in by shorter contexts."""
    p = torch.full((len(ids) - n,), 1 / V, dtype=torch.float64)
    context, losses = torch.zeros_like(ids), []
    for _ in range(5 if V < 5000 else 2):
        longer = context * V + ids  # with the id itself
        seen = times_seen(context[:n], context[n:])
        p = (times_seen(longer[:n], longer[n:]) + 20 * p) / (seen + 20)
        losses.append(-p.log().mean().item())
        context = F.pad(longer[:-1], (1, 0))  # one place further on
    return losses


def times_seen(table: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """How often each of keys (N,) occurs in table (M,)."""
    values, counts = table.unique(return_counts=True)  # sorted
    place = torch.searchsorted(values, keys).clamp(max=len(values) - 1)
    return torch.where(values[place] == keys, counts[place], 0)


def judge(patient: Patient, report: Report) -> None:
    """The exact loss on a text, by position, and the rungs that it has passed."""
    text, T, V = patient.text, patient.T, patient.V
    if text is None:
        return
    half = len(text) // 2
    if half < 2 * T + 2:
        return report.add("? text.short", n=len(text), T=T)
    losses, whole = windows(patient, text[half:], max(2.0, patient.seconds / 2))
    right = losses["right"]
    mine, part = right.mean().item(), "the second half of the text"
    counts = counted(text, V, half)
    rungs = dict(zip(RUNGS, (math.log(V), *counts[:2], *counts[4:])))
    told = say(
        "text",
        part=part if whole else f"{right.numel():,} ids of its second half",
        loss=mine,
        ladder=", ".join(f"{name} {value:.2f}" for name, value in rungs.items()),
    )
    trained = patient.trained
    if not (mine < math.log(V) - 0.3 if trained is None else trained):
        return report.add("✓ text.untrained", text=told)
    report.picture = picture(right.mean(0))
    shift(losses, report)
    passed = [name for name, value in rungs.items() if mine < value - 0.01]
    if not passed:
        return report.add("✗ text.worse", text=told)
    course = ladder(mine) if V == SHAKESPEARE and "the last letter" in passed else ""
    report.add("✓ text.rung", text=told, rung=passed[-1], course=course)


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
        logits = patient.hear(rows[:, :T])
        for shift, name in enumerate(("read", "right", "twice")):
            y = rows[:, shift : shift + T]
            loss = F.cross_entropy(logits.transpose(1, 2).float(), y, reduction="none")
            found[name].append(loss.cpu())
    done = {name: torch.cat(each) for name, each in found.items()}
    return done, len(done["right"]) == n


def shift(losses: dict, report: Report) -> None:
    """Was it trained on targets that aren't the next id?"""
    right, read, twice = (losses[k].mean().item() for k in ("right", "read", "twice"))
    if min(read, twice) < right - 0.1:
        what = "✗ shift.twice" if twice < read else "✗ shift.none"
        report.add(what, loss=min(read, twice), right=right)


def ladder(mine: float) -> str:
    """The course's rung just above and just below, for Tiny Shakespeare."""
    from minigpt.course.ladder import recorded

    rungs = sorted((r.loss, f"{r.name} ({r.loss:.2f})") for r in recorded())
    worse = [name for loss, name in rungs if loss > mine]
    better = [name for loss, name in rungs if loss <= mine]
    if worse and better:
        return say("course.between", worse=worse[0], better=better[-1])
    return say("course.end", better=rungs[0][1])


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
