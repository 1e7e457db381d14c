"""Gradients and the first loss; and whether one batch can be learned by heart."""

import contextlib
import math
import time
from collections import Counter, defaultdict
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.clinic.lines import apart
from minigpt.clinic.listening import tape, touched
from minigpt.clinic.patient import WAYS, Patient, candidates, read
from minigpt.clinic.report import Report


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The mean loss: nats per id."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def own_loss(patient: Patient, report: Report) -> None:
    """Is the loss that the model returns the cross-entropy of its logits?"""
    T = min(patient.T, 24)
    if T < 3 or patient.call not in WAYS or report.bad("luck", "state"):
        return
    x, y = patient.ids(3, T), patient.ids(3, T)
    patient.model.eval()
    logits, loss = patient.hear(x), None
    for way in WAYS[1:]:
        torch.default_generator.manual_seed(0)
        with torch.no_grad(), contextlib.suppress(Exception):
            out = way(patient.model, x, y)
            every: list[Any] = [getattr(out, "loss", None), *candidates(out)]
            loss = next((z.item() for z in every if is_number(z)), None)
        if loss is not None:
            break
    if loss is None:
        return
    again = read(out, 3, T, patient.V)
    if again is not None and apart(logits, again[..., : patient.V].float()):
        says = """The logits change with the targets: the model sees what it should
        predict. Use the targets for the loss alone."""
        return report.add("wrong", "targets", says)
    ours = cross_entropy(logits, y).item()
    known = {
        "": ours,
        "it shifts the targets itself": cross_entropy(logits[:, :-1], y[:, 1:]),
        "it is summed over all ids, not averaged": ours * y.numel(),
        "it is summed over a window's ids": ours * T,
        "it is summed over the rows": ours * 3,
        "it takes the softmax twice": cross_entropy(logits.softmax(-1), y),
        "B and T of the targets are swapped": cross_entropy(
            logits, y.t().reshape(3, T)
        ),
        "it compares with the ids that went in": cross_entropy(logits, x),
        "its sign is turned": -ours,
        "it leaves the last position out": cross_entropy(logits[:, :-1], y[:, :-1]),
        "it counts the last position alone": F.cross_entropy(logits[:, -1], y[:, -1]),
    }
    near = 0.02 if patient.coarse else 2e-4
    like = [k for k, v in known.items() if abs(loss - float(v)) <= near * abs(float(v))]
    if like[:1] == [""]:
        says = "The loss it returns is the cross-entropy of its logits."
        return report.add("fine", "loss", says)
    if like[:1] == ["it shifts the targets itself"]:
        says = """The loss it returns shifts the targets itself (transformers' models
        do). So give it the ids themselves as labels; don't shift them before."""
        return report.add("wanted?", "loss", says)
    says = f"""The loss it returns, {loss:.3f}, isn't the cross-entropy of its logits
    with the targets, {ours:.3f}. """
    says += f"It looks as if {like[0]}." if like else "A penalty may be added to it."
    report.add("wrong" if like else "wanted?", "loss", says)


def is_number(x: Any) -> bool:
    """Whether it's a tensor of one floating-point number."""
    return isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel() == 1


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


def inside(value: Any, tensor: torch.Tensor, depth: int = 0) -> bool:
    """Whether a tensor is somewhere in an attribute: a list, a dict, a module."""
    if isinstance(value, nn.Module):
        value = [*value.parameters(), *(v for m in value.modules() for v in held(m))]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and depth < 7:
        return any(inside(v, tensor, depth + 1) for v in value)
    return value is tensor


def held(module: nn.Module) -> list:
    """What a module keeps beside what it registers."""
    return [v for name, v in vars(module).items() if not name.startswith("_")]


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
        says = "All weights are frozen (requires_grad is False): nothing can learn."
        says = says if still else "It has no parameters at all, so nothing can learn."
        return report.add("wanted?", "frozen", says)
    if not loss.requires_grad:
        says = """No gradient comes back from the logits: there is a no_grad(), a
        detach(), an argmax or an .item() on the way."""
        return report.add("wrong", "cut", says)
    known = {id(p) for p in model.parameters()}
    if lost := [t for t in leaves(loss) if id(t) not in known]:
        says = f"""{sum(t.numel() for t in lost):,} numbers want to learn, but
        model.parameters() doesn't have them, so no optimizer will ever change them.
        They're in {holder(model, lost[0])}."""
        report.add("wrong", "unregistered", says)
    else:
        report.add("fine", "unregistered", "Everything that learns is in parameters().")
    if still:
        says = f"{len(still)} tensors are frozen, among them {still[0]}."
        report.add("wanted?", "frozen", says)


def is_trained(model: Any) -> bool | None:
    """True or False if biases or norms tell; None if nothing does."""
    flat = [(n, p) for n, p in model.named_parameters() if p.dim() == 1 < p.numel()]
    if any((p == 0).all() or (p == 1).all() for _, p in flat):
        return False
    return True if any("weight" in n or "scale" in n for n, _ in flat) else None


def gradients(patient: Patient, report: Report, trained: bool | None) -> None:
    """The first loss, and what gets no gradient; judged after three steps."""
    model = patient.model
    if not wants_gradient(model) or report.bad("cut"):
        return
    x, y = patient.ids(4, patient.W), patient.ids(4, patient.W)
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    ps = [p for _, p in named]
    optimizer = torch.optim.Adam(ps, lr=1e-3)
    got: dict[str, torch.Tensor | None] = dict.fromkeys(n for n, _ in named)
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
                before = got[name]
                got[name] = grad.abs() if before is None else before.max(grad.abs())
        optimizer.step()
    silent_parts(report, model, got, touched(patient, x, patient.learns_in))
    dead_relus(patient, report, x)
    first_loss(patient, report, start, trained)


def silent_parts(report: Report, model: Any, got: dict, used: set[int]) -> None:
    """Parameters that got no gradient, matrices and the rest, and parts of them."""
    called = {n for n, p in model.named_parameters() if id(p) in used}
    whole = {n for n, p in model.named_parameters() if p.dim() > 1}
    unused = [n for n, g in got.items() if g is None]
    sizes = {n: g.max().item() for n, g in got.items() if g is not None}
    zero = [n for n, g in sizes.items() if g <= 1e-12 * max(sizes.values())]
    lost = [n for n in unused if n in whole]
    stuck = [n for n in zero if n in whole]
    if lost and lost[0] in called:
        says = f"""{names(lost)}: used, but no gradient comes back. After it there is a
        detach(), a no_grad(), or a result that is computed and then thrown away."""
        if re_position(lost):
            says = f"""{names(lost)}: looked up, and then not used. Add the positions:
            x = tok_emb + pos_emb."""
        report.add("wrong", "unused", says)
    elif lost:
        says = f"""{names(lost)}: never used. It's made in __init__, but forward
        doesn't call it."""
        report.add("wrong", "unused", says)
    elif unused:
        report.add("wanted?", "unused", f"{names(unused)}: never used.")
    linear = [f"{n}.weight" for n, m in model.named_modules() if type(m) is nn.Linear]
    for name in (n for n in linear if n in sizes and n not in zero):
        idle = (got[name].amax(1) == 0).nonzero().flatten().tolist()
        n = len(got[name])
        if len(idle) * 8 >= n and idle == list(range(idle[0], idle[-1] + 1)):
            says = f"""{name}: rows {idle[0]} to {idle[-1]} of {n} get no gradient, so
            that part of the result is never used. If it makes queries, keys and
            values at once, one of the three is left out; perhaps another is taken
            twice."""
            report.add("wrong", "unused", says)
            break
    if stuck:
        says = f"""{names(stuck)}: used, but its gradient is exactly 0, so it never
        learns. Look behind it for a detach(), a no_grad(), a multiplication by 0, a
        softmax over an axis of size 1, or a mask that leaves nothing to choose."""
        report.add("wrong", "gradient", says)
    if not unused and not stuck:
        report.add("fine", "gradient", "A gradient reaches every matrix.")


def re_position(found: list[str]) -> bool:
    """Whether it's a table of positions, by its name."""
    return len(found) == 1 and any(w in found[0].lower() for w in ("pos", "wpe"))


def names(found: list[str]) -> str:
    """A few names, and how many more."""
    few = ", ".join(found[:3])
    return few + (f" and {len(found) - 3} more" if len(found) > 3 else "")


def dead_relus(patient: Patient, report: Report, x: torch.Tensor) -> None:
    """Units of a relu that are 0 for every id."""
    for step in tape(patient, x[:, :32]):
        if not step.name.startswith("relu") or step.out.dim() < 2:
            continue
        flat = step.out.flatten(0, -2)
        dead = (flat <= 0).all(0).float().mean().item()
        if dead > 0.9 and len(flat) >= 16 and flat.shape[1] > 4:
            says = f"""{dead:.0%} of the relu's outputs are 0 whatever it reads:
            {step.line}. What is dead gets no gradient. Look at the scale and the bias
            of the layer before."""
            return report.add("wrong", "relu", says)


def first_loss(patient: Patient, report: Report, start: float, trained: Any) -> None:
    """The loss on random ids against ln V, for a model that hasn't been trained."""
    even = math.log(patient.V)
    if trained is not False:
        return
    says = f"""On random ids its first loss is {start:.2f}; knowing nothing is ln
    {patient.V} = {even:.2f}. """
    if start > max(1.6 * even, even + 2):
        says += """It begins with strong opinions, and they're wrong: its weights are
        too large at the start. Embeddings of standard deviation 1 that lm_head shares,
        a scale that's missing, or a lost norm before lm_head do that. 0.02 is usual."""
        report.add("wrong", "first", says)
    elif start < even - 0.4:
        says += """Nobody can do better than that on random ids: the answers get in
        somewhere."""
        report.add("wrong", "first", says)
    elif start > even + 0.35:
        says += "A little high: smaller weights at the start would save it some steps."
        report.add("wanted?", "first", says)
    else:
        report.add("fine", "first", says + "As it should be.")


def batch_of(patient: Patient, text: torch.Tensor | None) -> tuple:
    """One batch (x, y) with something to learn; without a text, each id mostly follows
    from the two before it."""
    T, B = min(patient.T, 24), 4
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
    each = [
        n * math.log(sum(c.values()) / n) for c in counts.values() for n in c.values()
    ]
    return sum(each) / y.numel()


def by_heart(
    patient: Patient, report: Report, text: torch.Tensor | None, seconds: float
) -> None:
    """Can one batch be learned by heart; and if not, what did it learn?"""
    if not wants_gradient(patient.model) or report.bad():
        return  # what's wrong above may be behind it
    x, y = batch_of(patient, text)
    floor = entropy(x, y, 10_000)
    known = {
        "knowing nothing": math.log(patient.V),
        "the letter frequencies": entropy(x, y, 0),
        "the last letter": entropy(x, y, 1),
    }
    ladder = ", ".join(f"{name} {value:.2f}" for name, value in known.items())
    good = floor + 0.1 + 0.05 * (known["the last letter"] - floor)
    state = [*patient.model.parameters(), *patient.model.buffers()]
    kept = [(t, t.detach().clone()) for t in state]
    small = sum(p.numel() for p in patient.model.parameters()) < 3e6
    end, tried = time.monotonic() + seconds, []
    for rate in [3e-3, 1e-2, 5e-4] if small else [3e-4, 1e-3, 5e-4]:
        tried.append(learn(patient, x, y, rate, end, good))
        with torch.no_grad():
            for tensor, before in kept:
                tensor.copy_(before)
        if min(tried[-1]) < good or time.monotonic() > end:
            break
    losses = min(tried, key=min)
    loss, steps = min(losses), len(losses)
    early = losses[: steps * 3 // 4] or losses
    falling = steps < 60 or min(early) - loss > 0.03 * max(loss, 0.1)
    at = min(known, key=lambda name: abs(known[name] - loss))
    near = abs(known[at] - loss) < 0.08 * known[at]
    wanted = {f.key for f in report.findings if f.mark == "wanted?"}
    if math.isnan(loss):
        return report.add(
            "wrong", "learning", "Learning a batch, its loss becomes nan."
        )
    if loss < good + 0.05 + 0.05 * (known["the last letter"] - floor):
        says = f"""One batch by heart: after {steps} steps its loss is {loss:.2f} (the
        least there is: {floor:.2f}; {ladder})."""
        return report.add("fine", "learning", says)
    if falling:
        says = f"""One batch: {losses[0]:.2f} at first, {loss:.2f} after {steps} steps,
        and still falling ({ladder})."""
        return report.add("fine", "learning", says)
    if near and at == "the last letter" and "past" in wanted:
        says = f"It learned all that the last letter tells: {loss:.2f} ({ladder})."
        return report.add("fine", "learning", says)
    says = f"""It can't learn one batch by heart: it stops at {loss:.2f} ({ladder}; by
    heart {floor:.2f}). """
    if near:
        says += {
            "knowing nothing": "It has learned nothing at all.",
            "the letter frequencies": """So it knows how often each letter comes, and
            nothing of what it reads: only the last bias learns.""",
            "the last letter": "So it uses the letter before, and no more context.",
        }[at]
    elif loss > known["the letter frequencies"]:
        says += "That's worse than the letter frequencies. Something holds it back."
    sure = (near or loss > known["the letter frequencies"]) and not (
        {"order", "frozen"} & wanted
    )
    report.add("wrong" if sure else "wanted?", "learning", says)


def learn(
    patient: Patient, x: Any, y: Any, rate: float, end: float, good: float
) -> list[float]:
    """The losses of a training on one batch, until they're good or it stands still."""
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
        if not math.isfinite(loss.item()):
            return losses or [math.nan]
        losses.append(loss.item())
        late = time.monotonic() > end and step > 3
        stands = step in (150, 300) and min(losses[:-60]) - min(losses) < 0.02
        if losses[-1] < good or late or stands:
            break
        for p, grad in zip(ps, grads):
            p.grad = grad
        nn.utils.clip_grad_norm_(ps, 1.0)
        optimizer.step()
    return losses
