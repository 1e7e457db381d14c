"""Gradients and the first loss; and whether one batch can be learned by heart."""

import contextlib
import inspect
import math
import time
from collections import Counter, defaultdict
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.clinic.listening import RELU, tape
from minigpt.clinic.patient import WAYS, Patient, candidates
from minigpt.clinic.report import Report

TARGETS = "targets", "target", "labels", "label", "y", "yb"


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The mean loss: nats per id."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def own_loss(patient: Patient, report: Report) -> None:
    """Is the loss that the model returns the cross-entropy of its logits?"""
    model, T = patient.model, min(patient.T, 24)
    if T < 3 or patient.call not in WAYS:
        return
    x, y = patient.ids(3, T), patient.ids(3, T)
    model.eval()
    found = None
    with torch.no_grad():
        for ask in (
            lambda: model(x, targets=y),
            lambda: model(x, labels=y),
            lambda: model(x, y),
        ):
            torch.default_generator.manual_seed(0)
            with contextlib.suppress(Exception):
                out = ask()
                every = candidates(out) + [getattr(out, "loss", None)]
                if isinstance(out, (tuple, list)):
                    every += list(out)
                found = next((z for z in every if is_number(z)), None)
            if found is not None:
                break
        if found is None or report.bad("luck", "state"):
            return
        logits = patient.logits(x)
    loss, ours = float(found), cross_entropy(logits, y).item()
    shifted = cross_entropy(logits[:, :-1], y[:, 1:]).item()
    shares = cross_entropy(logits.softmax(-1), y).item()
    swapped = y.t().reshape(y.shape)
    back = cross_entropy(logits[:, 1:], y[:, :-1]).item()
    known = {
        "it is summed over all ids, not averaged": ours * y.numel(),
        "it is summed over a window's ids": ours * T,
        "it is summed over the rows": ours * 3,
        "it takes the softmax twice": shares,
        "its targets are rearranged (B and T swapped)": cross_entropy(
            logits, swapped
        ).item(),
        "it compares with the ids that went in, not with the targets": (
            cross_entropy(logits, x).item()
        ),
        "it compares each answer with the id before": back,
        "its sign is turned": -ours,
        "it leaves the last position out": cross_entropy(
            logits[:, :-1], y[:, :-1]
        ).item(),
        "it counts the last position alone": F.cross_entropy(
            logits[:, -1], y[:, -1]
        ).item(),
        "it is measured in bits (log2)": ours / math.log(2),
        "it is averaged in other pieces": 0.0,
    }
    near = 0.02 if patient.coarse else 2e-4
    if abs(loss - ours) <= near * abs(ours):
        report.add(
            "fine", "loss", "The loss it returns is the cross-entropy of its logits."
        )
    elif abs(loss - shifted) <= near * abs(shifted):
        says = """The loss it returns shifts the targets itself (transformers'
        models do). So give it the ids themselves as labels; don't shift them
        before."""
        report.add("wanted?", "loss", says)
    else:
        says = f"The loss it returns, {loss:.3f}, isn't the cross-entropy of its "
        says += "logits with "
        says += f"the targets, {ours:.3f}. "
        named = [k for k, v in known.items() if abs(loss - v) <= near * abs(v) and v]
        says += (
            f"It looks as if {named[0]}." if named else "A penalty may be added to it."
        )
        report.add("wrong" if named else "wanted?", "loss", says)


def is_number(x: Any) -> bool:
    """Whether it's a tensor of one floating-point number."""
    return isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel() == 1


def leaked_targets(patient: Patient, report: Report) -> None:
    """Do the targets change the logits?"""
    names = list(inspect.signature(patient.model.forward).parameters)[1:]
    target = next((n for n in names if n in TARGETS), None)
    if patient.call not in WAYS or patient.T < 2 or target is None:
        return
    model, x = patient.model, patient.ids(2, min(patient.T, 16))
    model.eval()
    with torch.no_grad(), contextlib.suppress(Exception):
        outs = []
        for _ in range(2):
            torch.manual_seed(0)
            y = patient.ids(*x.shape)
            outs.append(
                next(z for z in candidates(model(x, **{target: y})) if z.dim() > 1)
            )
        if not torch.allclose(*outs, rtol=1e-3, atol=1e-6) and not report.bad(
            "luck", "state"
        ):
            says = """The logits change with the targets: the model sees what it
            should predict. Use the targets for the loss alone."""
            report.add("wrong", "targets", says)


def wants_gradient(model: Any) -> list[nn.Parameter]:
    """The parameters that training would change."""
    return [p for p in model.parameters() if p.requires_grad]


def leaves(loss: torch.Tensor) -> list[torch.Tensor]:
    """The tensors at the ends of a graph, those that want a gradient."""
    seen, todo, found = set(), [loss.grad_fn], []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo += [after for after, _ in node.next_functions]
    return found


def holder(model: Any, tensor: torch.Tensor) -> str:
    """Which attribute holds a tensor that isn't registered."""

    def has(value: Any, depth: int = 0) -> bool:
        if value is tensor:
            return True
        if isinstance(value, nn.Module):
            return any(p is tensor for p in value.parameters()) or any(
                has(v, depth + 1)
                for m in value.modules()
                for k, v in vars(m).items()
                if not k.startswith("_") and depth < 3
            )
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)) and depth < 4:
            return any(has(v, depth + 1) for v in value)
        return False

    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name.startswith("_") or not has(value):
                continue
            full = f"{path}.{name}" if path else name
            if isinstance(value, torch.Tensor):
                return f"{full}, a plain tensor; use nn.Parameter"
            if isinstance(value, dict):
                return f"{full}, a dict; use nn.ModuleDict"
            inside = [v for v in value if isinstance(v, torch.Tensor)]
            better = "nn.ParameterList" if inside else "nn.ModuleList"
            return f"{full}, a {type(value).__name__}; use {better}"
    return "a variable that no module knows; put them into self"


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
    if not wants_gradient(model):
        if any(True for _ in model.parameters()):
            says = "All weights are frozen (requires_grad is False): nothing can learn."
            report.add("wanted?", "frozen", says)
            return
        if not loss.requires_grad:
            says = "It has no parameters at all, so nothing can learn."
            return report.add("wanted?", "frozen", says)
    if not loss.requires_grad:
        says = """No gradient comes back from the logits: there is a no_grad(), a
        detach(), an argmax or an .item() on the way."""
        return report.add("wrong", "cut", says)
    known = {id(p) for p in model.parameters()}
    lost = [t for t in leaves(loss) if id(t) not in known]
    if lost:
        count = sum(t.numel() for t in lost)
        says = f"""{count:,} numbers want to learn, but model.parameters() doesn't
        have them, so no optimizer will ever change them. They're in
        {holder(model, lost[0])}."""
        report.add("wrong", "unregistered", says)
    else:
        report.add("fine", "unregistered", "Everything that learns is in parameters().")
    still = [n for n, p in model.named_parameters() if not p.requires_grad]
    if still:
        says = f"{len(still)} tensors are frozen, among them {still[0]}."
        report.add("wanted?", "frozen", says)


def batch_of(patient: Patient, text: torch.Tensor | None) -> tuple:
    """One batch (x, y) with something to learn; without a text, each id mostly follows
    from the two before it."""
    T, B = min(patient.T, 24), 4
    if text is not None and len(text) > B * (T + 1):
        rows = text[: len(text) // (T + 1) * (T + 1)].view(-1, T + 1)
        rows = rows[torch.linspace(0, len(rows) - 1, B).long()].to(patient.device)
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    letters = min(patient.V, 8)
    rule = torch.randint(letters, (letters, letters), generator=patient.numbers)
    rows = torch.randint(letters, (B, T + 1), generator=patient.numbers)
    for t in range(2, T + 1):
        follows = torch.rand(B, generator=patient.numbers) < 0.6
        rows[:, t] = torch.where(
            follows, rule[rows[:, t - 2], rows[:, t - 1]], rows[:, t]
        )
    rows = rows.to(patient.device)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def entropy(x: torch.Tensor, y: torch.Tensor, last: int) -> float:
    """The least loss, in nats per id, for who knows the last so many ids: 0, 1, …"""
    counts: dict[tuple, Counter] = defaultdict(Counter)
    for xs, ys in zip(x.tolist(), y.tolist()):
        for t, answer in enumerate(ys):
            counts[tuple(xs[max(0, t + 1 - last) : t + 1])][answer] += 1
    each = [
        n * math.log(sum(c.values()) / n) for c in counts.values() for n in c.values()
    ]
    return sum(each) / y.numel()


def known_values(
    patient: Patient, x: torch.Tensor, y: torch.Tensor
) -> dict[str, float]:
    """The losses at which a model may stop, and what it knows then."""
    return {
        "nothing": math.log(patient.V),
        "the letter frequencies": entropy(x, y, 0),
        "the last letter": entropy(x, y, 1),
    }


def is_trained(model: Any) -> bool | None:
    """True or False if biases or norms tell; None if nothing does."""
    flat = [
        (n, p) for n, p in model.named_parameters() if p.dim() == 1 and p.numel() > 1
    ]
    fresh = [bool((p == 0).all() or (p == 1).all()) for _, p in flat]
    if not fresh:
        return None
    norms = [f for (n, _), f in zip(flat, fresh) if f or "weight" in n or "scale" in n]
    if any(fresh):
        return False
    return True if norms else None


def gradients(patient: Patient, report: Report, trained: bool | None) -> None:
    """The first loss, and what gets no gradient; judged after three steps."""
    model = patient.model
    if not wants_gradient(model) or report.bad("cut"):
        return
    x, y = patient.ids(4, patient.W), patient.ids(4, patient.W)
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    ps = [p for _, p in named]
    optimizer = torch.optim.Adam(ps, lr=1e-3)
    got: dict[str, float | None] = dict.fromkeys(n for n, _ in named)
    start = 0.0
    model.train(patient.learns_in)
    for step in range(3):
        with torch.enable_grad():
            loss = cross_entropy(patient.logits(x, step), y)
            grads = torch.autograd.grad(loss, ps, allow_unused=True)
        start = loss.item() if step == 0 else start
        for (name, p), grad in zip(named, grads):
            p.grad = grad
            if grad is not None:
                got[name] = max(got[name] or 0.0, grad.abs().max().item())
        optimizer.step()
    silent_parts(report, model, got, touched(patient, x))
    dead_relus(patient, report, x)
    first_loss(patient, report, start, trained)


def touched(patient: Patient, x: torch.Tensor) -> set[int]:
    """The tensors that the operations of a forward pass were given: their id()."""
    steps = tape(patient, x[:1], patient.learns_in)
    given = [a for s in steps for a in (*s.args, *s.kwargs.values())]
    return {id(a) for a in given if isinstance(a, torch.Tensor)}


def silent_parts(report: Report, model: Any, got: dict, used: set[int]) -> None:
    """Parameters that got no gradient, matrices and the rest."""
    called = [n for n, p in model.named_parameters() if id(p) in used]
    whole = [n for n, p in model.named_parameters() if p.dim() > 1]
    most = max((g for g in got.values() if g), default=0.0)
    unused = [n for n, g in got.items() if g is None]
    zero = [n for n, g in got.items() if g is not None and g <= 1e-12 * most]
    big = [n for n in unused if n in whole]
    if big and big[0] in called:
        says = f"""{names(big)}: used, but no gradient comes back. After it there is
        a detach(), a no_grad(), or a result that is computed and then thrown away."""
        report.add("wrong", "unused", says)
    elif big:
        says = f"""{names(big)}: never used. It's made in __init__, but forward
        doesn't call it."""
        report.add("wrong", "unused", says)
    elif unused:
        says = f"{names(unused)}: never used."
        report.add("wanted?", "unused", says)
    big = [n for n in zero if n in whole]
    if big:
        says = f"""{names(big)}: used, but its gradient is exactly 0, so it never
        learns. Look behind it for a detach(), a no_grad(), a multiplication by 0, a
        softmax over an axis of size 1, or a mask that leaves nothing to choose."""
        report.add("wrong", "gradient", says)
    if not unused and not big:
        report.add("fine", "gradient", "A gradient reaches every matrix.")


def names(found: list[str]) -> str:
    """A few names, and how many more."""
    few = ", ".join(found[:3])
    return few + (f" and {len(found) - 3} more" if len(found) > 3 else "")


def dead_relus(patient: Patient, report: Report, x: torch.Tensor) -> None:
    """Units of a relu that are 0 for every id."""
    for step in tape(patient, x[:, :32]):
        if step.name in RELU and step.out.dim() > 1:
            flat = step.out.reshape(-1, step.out.shape[-1])
            dead = (flat <= 0).all(0).float().mean().item()
            if dead > 0.9 and flat.shape[0] >= 16 and flat.shape[1] > 4:
                says = f"""{dead:.0%} of the relu's outputs are 0 whatever it reads:
                {step.line}. What is dead gets no gradient. Look at the scale and
                the bias of the layer before."""
                return report.add("wrong", "relu", says)


def first_loss(patient: Patient, report: Report, start: float, trained: Any) -> None:
    """The loss on random ids against ln V, for a model that hasn't been trained."""
    even = math.log(patient.V)
    if trained is not False:
        return
    says = f"On random ids its first loss is {start:.2f}; knowing nothing is ln "
    says += f"{patient.V} = "
    says += f"{even:.2f}. "
    if start > max(1.6 * even, even + 2):
        says += """It begins with strong opinions, and they're wrong: its weights
        are too large at the start. Embeddings of standard deviation 1 that lm_head
        shares, a scale that's missing, or a lost norm before lm_head do that. 0.02
        is usual."""
        report.add("wrong", "first", says)
    elif start < even - 0.4:
        says += "Nobody can do better than that on random ids: the answers get in "
        says += "somewhere."
        report.add("wrong", "first", says)
    elif start > even + 0.35:
        says += "A little high: smaller weights at the start would save it some steps."
        report.add("wanted?", "first", says)
    else:
        report.add("fine", "first", says + "As it should be.")


def by_heart(
    patient: Patient, report: Report, text: torch.Tensor | None, seconds: float
) -> None:
    """Can one batch be learned by heart; and if not, what did it learn?"""
    model = patient.model
    if not wants_gradient(model) or report.bad("cut"):
        return
    x, y = batch_of(patient, text)
    floor, known = entropy(x, y, 10_000), known_values(patient, x, y)
    ladder = ", ".join(f"{name} {value:.2f}" for name, value in known.items())
    ladder = ladder.replace("nothing", "knowing nothing")
    kept = [(p, p.detach().clone()) for p in model.parameters()]
    kept += [(b, b.detach().clone()) for b in model.buffers()]
    size = sum(p.numel() for p in model.parameters())
    end, tried = time.monotonic() + seconds, []
    rates = [3e-3 if size < 3e6 else 3e-4, 1e-2 if size < 3e6 else 1e-3, 5e-4]
    for rate in rates:
        losses, done = learn(patient, x, y, rate, end, floor, known["the last letter"])
        with torch.no_grad():
            for tensor, before in kept:
                tensor.copy_(before)
        tried.append((min(losses), losses))
        if done or time.monotonic() > end:
            break
    loss, losses = min(tried, key=lambda each: each[0])
    if loss < floor + 0.15 + 0.1 * (known["the last letter"] - floor):
        says = f"One batch by heart: after {len(losses)} steps its loss is {loss:.2f} "
        says += f"(the least there is: {floor:.2f}; {ladder})."
        return report.add("fine", "learning", says)
    early = losses[: len(losses) * 3 // 4] or losses
    falling = min(early) - loss > 0.03 * max(loss, 0.1)
    if not all(map(math.isfinite, losses)):
        says = "Learning one batch, its loss becomes nan."
        return report.add("wrong", "learning", says)
    if len(losses) < 60 or falling:
        says = f"One batch: {losses[0]:.2f} at first, {loss:.2f} after "
        says += f"{len(losses)} steps, "
        says += f"and still falling ({ladder})."
        mark = "fine" if falling or len(losses) < 60 else "wanted?"
        return report.add(mark, "learning", says)
    stop = min(known, key=lambda name: abs(known[name] - loss))
    says = f"It can't learn one batch by heart: it stops at {loss:.2f} ({ladder}; "
    says += "by heart "
    says += f"{floor:.2f}). "
    near = abs(known[stop] - loss) < 0.08 * known[stop]
    only = [f.key for f in report.findings if f.mark == "wanted?"]
    if near and stop == "the last letter" and "past" in only:
        says = f"It learned all that the last letter tells: {loss:.2f} ({ladder})."
        return report.add("fine", "learning", says)
    if near:
        says += {
            "nothing": "It has learned nothing at all. Does the gradient arrive?",
            "the letter frequencies": "So it knows how often each letter comes, and "
            "nothing of what it reads: only the last bias learns.",
            "the last letter": "So it uses the letter before, and no more context.",
        }[stop]
    elif loss > known["the letter frequencies"]:
        says += "That's worse than the letter frequencies. Something holds it back."
    if (
        not near
        and loss <= known["the letter frequencies"]
        or {"order", "frozen"} & {*only}
    ):
        return report.add("wanted?", "learning", says)
    report.add("wrong", "learning", says)


def learn(
    patient: Patient, x: Any, y: Any, rate: float, end: float, floor: float, last: float
) -> tuple[list[float], bool]:
    """The losses of a training on one batch, and whether it's known by heart."""
    ps = wants_gradient(patient.model)
    optimizer = torch.optim.Adam(ps, lr=rate, betas=(0.9, 0.95))
    patient.model.eval()
    with torch.enable_grad():
        if not patient.logits(x[:1]).requires_grad:
            patient.model.train()
    losses: list[float] = []
    for step in range(400):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 10)
        with torch.enable_grad():
            loss = cross_entropy(patient.logits(x, step), y)
            grads = torch.autograd.grad(loss, ps, allow_unused=True)
        losses.append(loss.item())
        if losses[-1] < floor + 0.1 + 0.05 * (last - floor):
            return losses, True
        if not math.isfinite(losses[-1]):
            return losses[:-1] or [math.nan], False
        if time.monotonic() > end and step > 3:
            return losses, True
        if step in (150, 300) and min(losses[:-60]) - min(losses) < 0.02:
            return losses, False
        for p, grad in zip(ps, grads):
            p.grad = grad
        nn.utils.clip_grad_norm_(ps, 1.0)
        optimizer.step()
    return losses, False
