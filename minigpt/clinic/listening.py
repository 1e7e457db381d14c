"""Who hears whom: what a model answers when ids change that shouldn't matter."""

import contextlib
import re
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.clinic.lines import Step, alone, apart, before, first
from minigpt.clinic.patient import (
    WAYS,
    Patient,
    candidates,
    read,
    said,
    shaken,
    untouched,
)
from minigpt.clinic.report import Report
from minigpt.clinic.sentences import say

MODES = {False: "eval()", True: "train()"}
LISTENS = r"att|query|key|value|qkv|rnn|lstm|gru|mixer|\bheads\b|\bsa\b|wq|wk"
BLOCK = r"(?P<block>.*?(?P<n>\d+)\.[^.]+)\..*[^.]"  # blocks.3.mlp of blocks.3.mlp.fc.w
ROTARY = "cos|sin|freq|rot"  # a buffer's name
HINTS = {  # an operation's name, and what it may have done
    r"softmax": "softmax",
    r"^(view|reshape|flatten|unflatten)$": "view",
    r"batch_norm": "batchnorm",
    r"^(roll|flip)$": "roll",
    r"^(mean|sum|var|std|cumsum|a?max|normalize|.*norm)$": "average",
    r"multi_head_attention|scaled_dot_product": "attention",
    r"lstm|gru|rnn": "rnn",
    r"conv": "conv",
}


def is_sound(patient: Patient, report: Report) -> bool:
    """Are these logits? False: they are no numbers, and it's no use to go on."""
    for train in MODES:
        ids = patient.ids(3, patient.W)
        out = patient.hear(ids, train)
        if not out.isfinite().all() and (out.isnan().any() or not is_log(out)):
            no_number(patient, report, ids, out, train)
            return False
    shares = out.double().exp() if is_log(out) else out.double()
    for dim, over in ((2, ""), (1, "the positions"), (0, "the rows of the batch")):
        gap = (shares.sum(dim) - 1).abs().max()
        if gap < 1e-3 and out.min() >= 0 and out.shape[dim] > 1:
            what = "✗ axis" if over else "✗ probabilities"
            report.add(what, over=over, line=where(patient, "softmax"))
            return True
    if is_log(out) and out.max() <= 1e-6:
        report.add("? logs")
    if out.min() == 0 and (out == 0).float().mean() > 0.2 and out.max() > 0:
        report.add("✗ range.relu", line=where(patient, "relu"))
        return True
    with shaken(patient.model, 30.0):  # what stays small now is held back
        out = patient.hear(patient.ids(2, patient.W))
    for low, name in ((0, "sigmoid"), (-1, "tanh")):
        inside = out.min() >= low and out.max() <= 1 and out.std() > 0.1
        if inside and (line := where(patient, name)):
            report.add("✗ range.bounded", low=low, high=1, name=name, line=line)
            break
    return True


def is_log(out: torch.Tensor) -> bool:
    """Whether each row is log-probabilities."""
    return bool(out.double().logsumexp(-1).abs().max() < 1e-3)


def where(patient: Patient, name: str) -> str:
    """The last line that calls an operation of this name, or nothing."""
    steps = patient.tape(patient.ids(3, patient.start))
    lines = [s.line for s in steps if s.name.startswith(name) and s.line]
    return f"See {lines[-1]}." if lines else ""


def begins(found: Step | None) -> str:
    """In which line."""
    return say("begins", line=found.line) if found and found.line else ""


def no_number(
    patient: Patient, report: Report, ids: Any, out: torch.Tensor, train: bool
) -> None:
    """Where a nan or an infinite logit comes from."""
    bad = ~out.isfinite().all(-1).all(0)  # (T,)
    shown = max(min(12, patient.W), int(bad.int().argmax()) + 1)
    steps = patient.tape(ids[:, :shown], train)
    strange = [s for s in steps if not s.out.isfinite().all()]
    nans = [s for s in strange if s.out.isnan().any()]
    found, hint = next(iter(nans or strange), None), ""
    if found and not re.search("softmax|attention|transformer|mask|where", found.name):
        large = [a for a in found.args if isinstance(a, torch.Tensor)]
        grows = not nans or any(bool((a.abs() > 1e15).any()) for a in large)
        hint = say("nan.grows" if grows else "nan.sum")
    elif found and not (hint := guess(found, "positions")):
        rows = found.out.isnan().any(-1).reshape(-1, found.out.shape[-2]).any(0)
        alone = bool(rows[0]) and not rows[1:].any()
        hint = say("nan.diagonal" if alone else "nan.nobody")
    kind = "nan" if out.isnan().any() else "infinite"
    report.add(
        "✗ nan",
        kind=kind,
        mode=MODES[train],
        n=int(bad.sum()),
        T=len(bad),
        begins=begins(found),
        hint=hint,
    )


def guess(found: Step | None, what: str) -> str:
    """What a line that mixes positions, or rows, probably does wrong; or nothing."""
    if found is None:
        return ""
    kind = next((k for name, k in HINTS.items() if re.search(name, found.name)), "")
    dim = found.dim()
    if kind == "softmax" and dim in (None, -1, found.out.dim() - 1):
        return ""
    if kind == "attention":
        masked = found.kwargs.get("attn_mask") is not None
        masked = masked or found.kwargs.get("is_causal")
        kind = "rows" if what == "rows" else "" if masked else "maskless"
    axis = f", with dim={dim}" if dim is not None else ""
    one = "batch_first=True" if what == "rows" else "bidirectional=False"
    blanks = {"name": found.name, "what": what, "dim": dim, "axis": axis}
    return say(f"hint.{kind}", argument=one, **blanks) if kind else ""


def luck_and_memory(patient: Patient, report: Report) -> None:
    """Does the same question get the same answer?"""
    T, model = patient.W, patient.model
    ids, other = patient.ids(2, T), patient.ids(2, T)
    once = patient.hear(ids)
    problem, remembers, dice = "", False, once
    try:
        dice = patient.hear(ids, seed=1)  # before train() changes a BatchNorm
        for train, n in ((False, T), (False, min(T, max(2, T // 4))), (True, T)):
            begin = patient.hear(ids[:, :n], train)
            patient.hear(other[:, :n], train)
            remembers = remembers or apart(begin, patient.hear(ids[:, :n], train))
    except Exception as error:  # of somebody's code
        remembers, problem = True, say("state.breaks", problem=said(error))
    if remembers:
        report.add("✗ state", problem=problem)
    elif apart(once, dice):
        runs = [patient.tape(ids[:, :12], seed=seed) for seed in (0, 1)]
        found = first(runs, lambda x: x)
        name = found.name if found else ""
        kind = (
            "sdpa" if "scaled_dot" in name else "dropout" if "dropout" in name else ""
        )
        hint = say(f"hint.{kind}") if kind else ""
        report.add("✗ luck", begins=begins(found), hint=hint)
    else:
        report.add("✓ luck.none")
    layers = {m: name for name, m in model.named_modules()}
    drops = [m for m in layers if isinstance(m, nn.modules.dropout._DropoutNd) and m.p]
    for m in [m for m in drops if m.p > 0.6][:1]:
        report.add("✗ drops" if m.p == 1 else "? drops", p=m.p, name=layers[m])
    if drops and not report.bad("luck", "state"):
        if not any(apart(once, patient.hear(ids, True, seed)) for seed in (0, 1)):
            report.add("✗ alike", name=layers[drops[0]], n=len(drops))


def own_loss(patient: Patient, report: Report) -> None:
    """Is the loss that the model returns the cross-entropy of its logits?"""
    T = min(patient.T, 24)
    if T < 3 or patient.call not in WAYS or report.bad("luck", "state"):
        return
    x, y = patient.ids(3, T), patient.ids(3, T)
    logits, loss, out = patient.hear(x), None, None
    for way in WAYS[1:]:
        torch.manual_seed(0)
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
        return report.add("✗ targets")
    right = cross_entropy(logits, y).item()
    known = {
        "": right,
        "it shifts the targets itself": cross_entropy(logits[:, :-1], y[:, 1:]),
        "it is summed over all ids, not averaged": right * y.numel(),
        "it is summed over a window's ids": right * T,
        "it is summed over the rows": right * 3,
        "it takes the softmax twice": cross_entropy(logits.softmax(-1), y),
        "B and T of the targets are swapped": cross_entropy(logits, y.t()),
        "it compares with the ids that went in": cross_entropy(logits, x),
        "its sign is flipped": -right,
        "it leaves the last position out": cross_entropy(logits[:, :-1], y[:, :-1]),
        "it counts the last position alone": cross_entropy(logits[:, -1:], y[:, -1:]),
    }
    near = 0.02 if patient.coarse else 2e-4
    like = [k for k, v in known.items() if abs(loss - float(v)) <= near * abs(float(v))]
    if not like:
        guess = "A penalty may be added to it"
        report.add("? loss.wrong", loss=loss, right=right, like=guess)
    elif not like[0]:
        report.add("✓ loss.right")
    elif like[0] == "it shifts the targets itself":
        report.add("? loss.shifts")
    else:
        guess = f"It looks as if {like[0]}"
        report.add("✗ loss.wrong", loss=loss, right=right, like=guess)


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The mean loss: nats per id."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def is_number(x: Any) -> bool:
    """Whether it's a tensor of one floating-point number."""
    return isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel() == 1


def neighbors(patient: Patient, report: Report) -> None:
    """Does a row of the batch hear another one, or know which row it is?"""
    T = patient.W
    for train, row in ((False, 0), (False, 4), (True, 0), (True, 4)):
        a, b = patient.ids(5, T), patient.ids(5, T)
        b[row] = a[row]
        if apart(patient.hear(a, train)[row], patient.hear(b, train)[row]):
            runs = [patient.tape(x[:, :13], train) for x in (a, b)]
            found = first(runs, alone(row, 5))
            only, hint = "in train() only, " if train else "", guess(found, "rows")
            return report.add(
                "✗ neighbors.talk", only=only, begins=begins(found), hint=hint
            )
    out = patient.hear(patient.ids(1, T).expand(5, T))
    if apart(out, out[:1].expand_as(out)) and not report.bad("luck"):
        return report.add("✗ neighbors.counts", line=where(patient, "embedding"))
    report.add("✓ neighbors.none")


def effects(patient: Patient, train: bool, T: int) -> dict[int, torch.Tensor]:
    """{s: (T,), how much the answer at each position moves with the id at s}, for
    some s at the ends of a window and between."""
    ids = patient.ids(1, T)
    base, found = patient.hear(ids, train), {}
    size = base.abs().max().item() + 1e-12
    some = {0, 1, 2, T // 4, T // 2, 3 * T // 4, T - 3, T - 2, T - 1}
    for s in sorted(s for s in some if 0 <= s < T):
        moved = ids.clone()
        moved[0, s] = (moved[0, s] + 1 + s % (patient.V - 1)) % patient.V
        gap = (patient.hear(moved, train) - base)[0].abs().amax(-1) / size
        found[s] = torch.where(gap > (0.02 if patient.coarse else 2e-5), gap, 0.0)
    return found


def future(patient: Patient, report: Report) -> None:
    """Does a position hear what comes later? At full T, and cut; in both modes."""
    T = patient.T
    for n in dict.fromkeys((T, max(2, T // 2))):  # a mask may be cut wrongly
        for train in MODES if T > 1 else ():
            found = effects(patient, train, n)
            patient.heard = patient.heard or found
            pairs = [(s - t, s, t) for s, e in found.items() for t in range(s)]
            leaks = [(*p, found[p[1]][p[2]].item()) for p in pairs]
            if leaks := [each for each in leaks if each[3]]:
                return leak(patient, report, leaks, found, train, n)
    report.add("✓ future.none", T=T)


def leak(
    patient: Patient, report: Report, leaks: list, heard: dict, train: bool, T: int
) -> None:
    """Which positions hear later ones, how far ahead, and what that looks like."""
    ahead, s, t, _ = max(leaks)
    only = ", in train() only" if train else ""
    only += f", in windows of {T}, not of {patient.T}" if T < patient.T else ""
    found = None
    for length in dict.fromkeys((min(T, 11), min(T, 37), T)):
        a, cut = patient.ids(3, length), length // 2
        b = a.clone()
        b[:, cut:] = (b[:, cut:] + 1) % patient.V
        runs = [patient.tape(x, train) for x in (a, b)]
        if found := first(runs, before(cut, length)):
            break
    if not (hint := guess(found, "positions")):
        n = "id leaks" if ahead == 1 else f"{ahead} ids leak"
        if not any(e[s + 1 :].any() for s, e in heard.items() if s < T - 1):
            hint = say("leak.upside")
        elif T < patient.T:
            hint = say("leak.cut")
        elif ahead < min(8, T - 1):
            hint = say("leak.shifted", n=n)
        elif found is None or re.search("softmax|att", found.name):
            hint = say("leak.maskless")
    report.add(
        "✗ future",
        only=only,
        t=t,
        s=s,
        ahead=ahead,
        size=max(each[3] for each in leaks),
        begins=begins(found),
        hint=hint,
    )


def past(patient: Patient, report: Report) -> None:
    """How far back does it listen, and does the order count?"""
    heard, last = patient.heard, patient.T - 1
    if last < 2 or not heard:
        return
    if not any(e.any() for e in heard.values()):
        return report.add("✗ past.deaf")
    own = bool(heard[last][last])
    if not own:
        report.add("✗ own", last=last)
    backs = [last - s for s, e in heard.items() if s < last and e[last]]
    anyone = [t - s for s, e in heard.items() for t in range(s + 1, last + 1) if e[t]]
    silent = [s for s, e in heard.items() if s < last and not e[s + 1 :].any()]
    reach = max(backs, default=0) or max(anyone, default=0)
    if not reach:  # a bigram, or a deaf attention?
        ears = [n for n in named(patient.model, LISTENS) if "lm_head" not in n]
        what = "✗ past.wasted" if ears else "? past.bigram"
        return report.add(what, name=ears[0] if ears else "")
    if reach < last:
        report.add("? reach.short", reach=reach, last=last)
    elif silent:
        report.add("? reach.silent", s=silent[0])
    else:
        report.add("✓ past.whole", last=last)
    order(patient, report)
    if own:
        around(patient, report)


def named(model: Any, pattern: str) -> list[str]:
    """The modules and parameters whose name or class has this in it."""
    every = [(n, f"{n} {type(m).__name__}".lower()) for n, m in model.named_modules()]
    every += [(n, n.lower()) for n, _ in model.named_parameters()]
    return [n or "the model" for n, words in every if re.search(pattern, words)]


def order(patient: Patient, report: Report) -> None:
    """Does it matter which of two earlier ids comes first, and where they are?"""
    if patient.T < 4 or report.bad("future") or patient.coarse:
        return
    ids = patient.ids(1, patient.T)
    ids[0, -3], ids[0, -2] = 0, 1
    swapped = ids.clone()
    swapped[0, -3], swapped[0, -2] = 1, 0
    moved = apart(patient.hear(ids)[:, -1], patient.hear(swapped)[:, -1])
    same = patient.hear(torch.zeros_like(ids))[0]
    if apart(same[1:], same[1:2].expand_as(same[1:])):
        return report.add("✓ order.counts")
    if table(patient, report):
        return
    with untouched(patient.model), torch.no_grad():
        for _, n, p in parts_of(patient.model):  # one block alone, the first
            p.mul_(n == parts_of(patient.model)[0][1])
        one, two, other = (
            patient.hear(x)[:, -1] for x in (ids, swapped, patient.ids(1, patient.T))
        )
    turned = [n for n, _ in tensors_of(patient.model) if re.search(ROTARY, n)]
    if apart(one, two):
        report.add("✓ order.counts")
    elif turned and apart(one, other):
        report.add("✗ order.idle", name=turned[0])
    elif moved:
        report.add("? order.rotary")
    else:
        sure = named(patient.model, "att|query|qkv|block")
        report.add(f"{'✗' if sure else '?'} order.lost")


def table(patient: Patient, report: Report) -> bool:
    """Whether something's wrong with a table of positions."""
    names = {id(p): n.removesuffix(".weight") for n, p in tensors_of(patient.model)}
    runs = [patient.tape(patient.ids(2, patient.W)) for _ in range(2)]
    for (asked, weight), (again, _) in zip(*([*lookups(run)] for run in runs)):
        name = names.get(id(weight), "a table")
        sized = len(weight) == patient.T != patient.V
        if asked.numel() == 1 or not sized and not re.search("pos|wpe", name.lower()):
            continue
        if len(asked.unique()) == 1:
            report.add("✗ order.one", name=name, row=asked.flatten()[0])
            return True
        if asked.shape == again.shape and not torch.equal(asked, again):
            report.add("✗ order.ids", name=name)
            return True
    used = {id(t) for t in given(runs[0])}
    turns = {n: t for n, t in tensors_of(patient.model) if re.search(ROTARY, n)}
    if turns and not any(id(t) in used for t in turns.values()):
        report.add("✗ order.unturned", name=next(iter(turns)))
        return True
    return False


def tensors_of(model: Any) -> list[tuple[str, torch.Tensor]]:
    """All that's registered, with its name."""
    return [*model.named_parameters(), *model.named_buffers()]


def lookups(steps: list[Step]) -> list[tuple]:
    """What each table was asked for, and the table."""
    return [s.args[:2] for s in steps if s.name == "embedding" and len(s.args) > 1]


def given(steps: list[Step]) -> list[torch.Tensor]:
    """The tensors that the operations of a forward pass were given."""
    every = [a for s in steps for a in (*s.args, *s.kwargs.values())]
    every += [b for a in every if isinstance(a, (list, tuple)) for b in a]
    return list({id(a): a for a in every if isinstance(a, torch.Tensor)}.values())


def parts_of(model: Any) -> list[tuple[str, str, nn.Parameter]]:
    """The matrices in numbered blocks: the part that has it, the number, itself."""
    every = [(re.fullmatch(BLOCK, n), p) for n, p in model.named_parameters()]
    return [(m["block"], m["n"], p) for m, p in every if m and p.dim() > 1]


def around(patient: Patient, report: Report) -> None:
    """Is there a way around each part of a block? Switch off one matrix after the
    other, in two blocks: if no id gets through any more, there's no residual path."""
    ids = patient.ids(2, min(patient.T, 8))
    ids[:, -1] = torch.arange(2)
    parts = parts_of(patient.model)
    blocks = [*dict.fromkeys(n for _, n, _ in parts)][:2]
    if len(blocks) < 2 or patient.coarse:
        return
    found: dict[str, dict[str, None]] = {}  # the parts of each name
    for part, n, p in parts:
        if n not in blocks:
            continue
        kept = p.detach().clone()
        with torch.no_grad():
            p.zero_()
            one, two = patient.hear(ids)[:, -1]
            p.copy_(kept)
        if not apart(one, two):
            found.setdefault(re.sub(r"\d+", "#", part), {})[part] = None
    cut = [next(iter(each)) for each in found.values() if len(each) > 1]
    if not cut:
        return report.add("✓ through.there")
    mark = "✗" if named(patient.model, r"att|query|qkv|heads|\bsa\b|wq") else "?"
    last = cut[0].split(".")[-1]
    report.add(f"{mark} through.cut", names=" and ".join(cut), last=last)
