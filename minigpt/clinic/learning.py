"""Gradients and the first loss; and whether one batch can be learned by heart."""

import math
import time
from collections import Counter, defaultdict
from typing import Any

import torch
import torch.nn as nn

from minigpt.clinic.listening import cross_entropy, given
from minigpt.clinic.patient import Patient, untouched
from minigpt.clinic.report import Report
from minigpt.clinic.sentences import say


def wants_gradient(model: Any) -> dict[str, nn.Parameter]:
    """The parameters that training would change."""
    return {n: p for n, p in model.named_parameters() if p.requires_grad}


def inside(value: Any, tensor: torch.Tensor, depth: int = 0) -> bool:
    """Whether a tensor is somewhere in an attribute: a list, a dict, a module."""
    if isinstance(value, nn.Module):
        held = [v for m in value.modules() for n, v in vars(m).items() if n[0] != "_"]
        value = [*value.parameters(), *held]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and depth < 7:
        return any(inside(v, tensor, depth + 1) for v in value)
    return value is tensor


def holder(model: Any, tensor: torch.Tensor) -> str:
    """Which attribute holds a tensor that isn't registered."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name.startswith("_") or not inside(value, tensor):
                continue
            full = f"{path}.{name}" if path else name
            if isinstance(value, torch.Tensor):
                return f"{full}, a plain tensor; use nn.Parameter"
            if isinstance(value, dict):
                return f"{full}, a dict; use nn.ModuleDict"
            plain = any(isinstance(v, torch.Tensor) for v in value)
            better = "nn.ParameterList" if plain else "nn.ModuleList"
            return f"{full}, a {type(value).__name__}; use {better}"
    return "a variable that no module knows; make them in __init__ and put them in self"


def registered(patient: Patient, report: Report) -> None:
    """Is everything that learns in parameters()?"""
    model = patient.model
    for train in (True, False):
        model.train(train)
        x = patient.ids(2, min(patient.T, 16))
        with torch.enable_grad():
            loss = cross_entropy(patient.logits(x), patient.ids(*x.shape))
        if loss.requires_grad:
            break
    patient.learns_in = train
    still = [n for n, p in model.named_parameters() if not p.requires_grad]
    if not wants_gradient(model) and (still or not loss.requires_grad):
        return report.add("? frozen.all" if still else "? frozen.nothing")
    if not loss.requires_grad:
        return report.add("✗ cut")
    known = {id(p) for p in model.parameters()}
    used = [t if t._base is None else t._base for t in given(patient.tape(x, train))]
    lost = {id(t): t for t in used if t.requires_grad and id(t) not in known}
    if lost := [*lost.values()]:
        n = sum(t.numel() for t in lost)
        report.add("✗ unregistered", n=n, holder=holder(model, lost[0]))
    else:
        report.add("✓ unregistered.none")
    if still:
        report.add("? frozen.some", n=len(still), name=still[0])


def is_trained(model: Any) -> bool | None:
    """True or False if biases or norms tell; None if nothing does."""
    flat = [(n, p) for n, p in model.named_parameters() if p.dim() == 1 < p.numel()]
    if any((p == 0).all() or (p == 1).all() for _, p in flat):
        return False
    return True if any("weight" in n or "scale" in n for n, _ in flat) else None


def gradients(patient: Patient, report: Report) -> None:
    """The first loss, and what gets no gradient; judged after three steps."""
    model, ps = patient.model, wants_gradient(patient.model)
    if not ps or report.bad("cut"):
        return
    x, y = patient.ids(4, patient.W), patient.ids(4, patient.W)
    optimizer = torch.optim.Adam(ps.values(), lr=1e-3)
    got: dict[str, Any] = dict.fromkeys(ps)
    losses = []
    model.train(patient.learns_in)
    for step in range(3):
        grads = learn_from(patient, x, y, step, ps, losses)
        for name, grad in zip(ps, grads):
            if grad is not None:
                earlier = got[name]
                got[name] = grad.abs() if earlier is None else earlier.max(grad.abs())
        optimizer.step()
    used = {id(t) for t in given(patient.tape(x[:1], patient.learns_in))}
    silent_parts(report, model, got, used)
    dead_relus(patient, report, x)
    first_loss(patient, report, losses[0])


def learn_from(
    patient: Patient, x: Any, y: Any, seed: int, ps: dict, losses: list[float]
) -> tuple:
    """The gradients of a batch's loss, which is added to the losses."""
    with torch.enable_grad():
        loss = cross_entropy(patient.logits(x, seed), y)
        grads = torch.autograd.grad(loss, [*ps.values()], allow_unused=True)
    losses.append(loss.item())
    for p, grad in zip(ps.values(), grads):
        p.grad = grad
    return grads


def silent_parts(report: Report, model: Any, got: dict, used: set[int]) -> None:
    """Parameters that got no gradient, matrices and the rest, and parts of them."""
    called = {n for n, p in model.named_parameters() if id(p) in used}
    whole = {n for n, p in model.named_parameters() if p.dim() > 1}
    unused = [n for n, g in got.items() if g is None]
    sizes = {n: g.max().item() for n, g in got.items() if g is not None}
    zero = [n for n, g in sizes.items() if g <= 1e-12 * max(sizes.values())]
    lost = [n for n in unused if n in whole]
    stuck = [n for n in zero if n in whole]
    if lost:
        place = len(lost) == 1 and any(w in lost[0].lower() for w in ("pos", "wpe"))
        how = "positions" if place else "cut"
        how = how if lost[0] in called else "never"
        report.add(f"✗ unused.{how}", names=names(lost))
    elif unused:
        report.add("? unused.small", names=names(unused))
    linear = [f"{n}.weight" for n, m in model.named_modules() if type(m) is nn.Linear]
    for name in (n for n in linear if n in sizes and n not in zero):
        idle = (got[name].amax(1) == 0).nonzero().flatten().tolist()
        n = len(got[name])
        if len(idle) * 8 >= n and idle == list(range(idle[0], idle[-1] + 1)):
            report.add("✗ unused.rows", name=name, start=idle[0], end=idle[-1], n=n)
            break
    if stuck:
        empty = not any(p.any() for p in model.parameters() if p.dim() > 1)
        report.add("✗ empty" if empty else "✗ gradient.zero", names=names(stuck))
    elif not unused:
        report.add("✓ gradient.all")


def names(found: list[str]) -> str:
    """A few names, and how many more."""
    few = ", ".join(found[:3])
    return few + (f" and {len(found) - 3} more" if len(found) > 3 else "")


def dead_relus(patient: Patient, report: Report, x: torch.Tensor) -> None:
    """Units of a relu that are 0 for every id."""
    for step in patient.tape(x[:, :32]):
        if not step.name.startswith("relu") or step.out.dim() < 2:
            continue
        flat = step.out.flatten(0, -2)
        dead = (flat <= 0).all(0).float().mean().item()
        if dead > 0.9 and len(flat) >= 16 and flat.shape[1] > 4:
            return report.add("✗ relu", dead=dead, line=step.line)


def first_loss(patient: Patient, report: Report, loss: float) -> None:
    """The loss on random ids against ln V, for a model that hasn't been trained."""
    even = math.log(patient.V)
    if patient.trained is not False:
        return
    what = "✓ first.fine"
    if loss > max(1.6 * even, even + 2):
        what = "✗ first.large"
    elif loss < even - 0.4:
        what = "✗ first.small"
    elif loss > even + 0.35:
        what = "? first.high"
    report.add(what, first=say("first", loss=loss, V=patient.V, even=even))


def batch_of(patient: Patient) -> tuple[torch.Tensor, torch.Tensor]:
    """One batch (x, y) with something to learn; without a text, each id mostly follows
    from the two before it."""
    T, B, text = min(patient.T, 24), 4, patient.text
    if text is not None and len(text) > B * (T + 1):
        rows = text[: len(text) // (T + 1) * (T + 1)].view(-1, T + 1)
        rows = rows[torch.linspace(0, len(rows) - 1, B).long()]
    else:
        letters, numbers = min(patient.V, 8), patient.numbers
        rule = torch.randint(letters, (letters, letters), generator=numbers)
        rows = torch.randint(letters, (B, T + 1), generator=numbers)
        for t in range(2, T + 1):
            follows = torch.rand(B, generator=numbers) < 0.6
            ruled = rule[rows[:, t - 2], rows[:, t - 1]]
            rows[:, t] = torch.where(follows, ruled, rows[:, t])
    rows = rows.to(patient.device)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def entropy(x: torch.Tensor, y: torch.Tensor, last: int) -> float:
    """The least loss, in nats per id, for who knows the last so many ids: 0, 1, …"""
    counts: dict[tuple, Counter] = defaultdict(Counter)
    for xs, ys in zip(x.tolist(), y.tolist()):
        for t, answer in enumerate(ys):
            counts[tuple(xs[max(0, t + 1 - last) : t + 1])][answer] += 1
    each = [n * math.log(c.total() / n) for c in counts.values() for n in c.values()]
    return sum(each) / y.numel()


def by_heart(patient: Patient, report: Report) -> None:
    """Can one batch be learned by heart; and if not, what did it learn?"""
    ps = wants_gradient(patient.model)
    if not ps or report.bad() or not patient.seconds:
        return  # what's wrong above may be behind it
    x, y = batch_of(patient)
    floor, letters, last = (entropy(x, y, n) for n in (10_000, 0, 1))
    known = {"nothing": math.log(patient.V), "letters": letters, "last": last}
    good = floor + 0.1 + 0.05 * (last - floor)
    small = sum(p.numel() for p in ps.values()) < 3e6
    end, tried = time.monotonic() + patient.seconds, []
    for rate in [3e-3, 1e-2, 5e-4] if small else [3e-4, 1e-3, 5e-4]:
        with untouched(patient.model):
            tried.append(learn(patient, x, y, rate, end, good))
        if min(tried[-1]) < good or time.monotonic() > end:
            break
    losses = min(tried, key=min)
    loss, steps = min(losses), len(losses)
    early = losses[: steps * 3 // 4] or losses
    at = min(known, key=lambda name: abs(known[name] - loss))
    near = abs(known[at] - loss) < 0.08 * known[at]
    hint = say(f"stops.{at}") if near else say("stops.worse") if loss > letters else ""
    what = "✗ learning.stops"
    if math.isnan(loss):
        what = "✗ learning.nan"
    elif loss < good + 0.05 + 0.05 * (last - floor):
        what = "✓ learning.heart"
    elif steps < 60 or min(early) - loss > 0.03 * max(loss, 0.1):
        what = "✓ learning.falls"
    elif time.monotonic() > end:
        what = "✓ learning.late"
    elif near and at == "last" and report.has("?", "past"):
        what = "✓ learning.last"
    elif not hint or report.has("?", "order", "frozen"):
        what = "? learning.stops"
    blanks = {"start": losses[0], "loss": loss, "steps": steps, "floor": floor}
    ladder = f"knowing nothing {known['nothing']:.2f}, the letter frequencies "
    ladder += f"{letters:.2f}, the last letter {last:.2f}"
    report.add(what, ladder=ladder, hint=hint, **blanks)


def learn(
    patient: Patient, x: Any, y: Any, rate: float, end: float, good: float
) -> list[float]:
    """The losses of a training on one batch, until they're good or it stands still."""
    ps = wants_gradient(patient.model)
    optimizer = torch.optim.Adam(ps.values(), lr=rate, betas=(0.9, 0.95))
    patient.model.eval()
    with torch.enable_grad():
        if not patient.logits(x[:1]).requires_grad:
            patient.model.train()
    losses: list[float] = []
    for step in range(400):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 10)
        learn_from(patient, x, y, step, ps, losses)
        if not math.isfinite(losses[-1]):
            return losses[:-1] or [math.nan]
        late = time.monotonic() > end and step > 3
        stands = step in (150, 300) and min(losses[:-60]) - min(losses) < 0.02
        if losses[-1] < good or late or stands:
            break
        nn.utils.clip_grad_norm_(ps.values(), 1.0)
        optimizer.step()
    return losses
