"""Who hears whom: what a model answers when ids change that shouldn't matter."""

import contextlib
import re
from typing import Any

import torch
import torch.nn as nn

from minigpt.clinic.lines import Step, alone, apart, dims_of, earlier, first
from minigpt.clinic.patient import ENOUGH, Patient, candidates, said, works
from minigpt.clinic.report import Report

MODES = {False: "eval()", True: "train()"}
RELU = "relu", "relu_"
RESHAPES = "view", "reshape", "flatten", "unflatten"
AVERAGES = (
    "mean sum var std norm layer_norm batch_norm rms_norm linalg_norm vector_norm"
)
AVERAGES += " group_norm instance_norm max amax logsumexp cumsum flip roll normalize"
LISTENS = (
    r"att|query|key|value|qkv|rnn|lstm|gru|mixer|heads?\b(?<!lm_head)|\bsa\b|wq|wk"
)


def how_far(patient: Patient, report: Report) -> None:
    """How long a window may be; and what happens with one id, and with too many."""
    told, start = patient.told, patient.start
    if told and told < 8 and works(patient, 8) is None:
        told, patient.bounded = None, False  # a bigram's, which reads on
    longest, error = start, None
    sizes = [told] if told else [8, 16, 32, 64, 128, 256]
    for T in sizes:
        if T > start and (error := works(patient, T)) is not None:
            break
        longest = max(longest, T)
    if error is not None:
        low, high = longest, T
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if works(patient, middle) else (middle, high)
        longest = low
        patient.bounded = True
        if told:
            says = f"""Its own limit is {told} ids, but it breaks at more than
            {longest}: {said(error)}. Is a mask or a position table too small?"""
            report.add("wrong", "length", says)
    elif not told:
        longest = 64  # no limit found
    patient.T = max(1, longest)
    patient.W = max(1, min(patient.T, 128, ENOUGH // (5 * patient.V)))
    if start > 1 and (lone := single(patient)) is not None:
        says = f"""With a single id it breaks: {said(lone)}. You can't write from
        one letter that way. Usually a squeeze() took the axis of time away."""
        report.add("wrong", "one", says)
    if not patient.bounded:
        return
    beyond = error if error is not None else works(patient, patient.T + 1)
    if beyond is None:
        says = f"It reads more than {patient.T} ids, too, although that's its limit."
    else:
        says = f"""It reads up to {patient.T} ids. Beyond that it stops with
        "{said(beyond, False)}", so cut the text before you ask: ids[:,
        -{patient.T}:]."""
    report.add("fine", "beyond", says)


def single(patient: Patient) -> Exception | None:
    """What goes wrong with windows of one id: an error, or an axis that's missing."""
    try:
        with torch.no_grad():
            shapes = [
                candidates(patient.raw(patient.ids(2, T)))[0].shape
                for T in (1, patient.start)
            ]
    except Exception as error:
        return error
    if len(shapes[0]) < len(shapes[1]):
        return ValueError(f"the logits have shape {tuple(shapes[0])}")
    return works(patient, 1)


def is_sound(patient: Patient, report: Report) -> bool:
    """Are these logits? False: they are no numbers, and it's no use to go on."""
    for train in MODES:
        ids = patient.ids(3, patient.W)
        out = patient.hear(ids, train)
        if not out.isfinite().all():
            if not out.isnan().any() and is_log(out):
                continue
            report.add("wrong", "nan", no_number(patient, ids, out, train))
            return False
    shares = out.double().exp() if is_log(out) else out.double()
    for dim, name in ((2, ""), (1, "the positions"), (0, "the rows of the batch")):
        total = shares.sum(dim)
        one = (total - 1).abs().max() < 1e-3 and out.min() >= 0 and out.shape[dim] > 1
        if one and not name:
            says = """These are probabilities: each row sums to 1. cross_entropy
            wants logits and takes the softmax itself. Leave the softmax out of
            forward; with it, the model can hardly learn. """
            report.add("wrong", "probabilities", says + where(patient, "softmax"))
        elif one:
            says = f"""The answers sum to 1 over {name}: there's a softmax at the
            end, and over the wrong axis. Return the logits. """
            report.add("wrong", "probabilities", says + where(patient, "softmax"))
    if is_log(out) and out.max() <= 1e-6:
        says = """These are log-probabilities, not logits. cross_entropy takes them
        as well: no harm, but its own log_softmax changes nothing then."""
        report.add("wanted?", "logs", says)
    bounded_range(patient, report)
    return True


def is_log(out: torch.Tensor) -> bool:
    """Whether each row is log-probabilities."""
    return bool(out.double().logsumexp(-1).abs().max() < 1e-3)


def bounded_range(patient: Patient, report: Report) -> None:
    """Can an answer be as large and as small as it likes?"""
    if report.bad("probabilities"):
        return
    out = patient.hear(patient.ids(2, patient.W))
    if out.min() == 0 and (out == 0).float().mean() > 0.2 and out.max() > 0:
        says = (
            "No logit is ever below 0: a relu comes after the last layer. Take it out. "
        )
        report.add("wrong", "range", says + where(patient, "relu"))
        return
    with shaken(patient, 30.0):
        out = patient.hear(patient.ids(2, patient.W))
    for low, high, name in ((0, 1, "sigmoid"), (-1, 1, "tanh")):
        if out.min() >= low and out.max() <= high and out.std() > 0.1:
            says = f"""Whatever the weights are, all logits stay between {low} and
            {high}: a {name} comes after the last layer. It can never be sure of
            anything. """
            report.add("wrong", "range", says + where(patient, name))
            return


def where(patient: Patient, name: str) -> str:
    """The last line that calls an operation of this name, or nothing."""
    steps = tape(patient, patient.ids(3, patient.start))
    lines = [s.line for s in steps if s.name.startswith(name) and s.line]
    return f"See {lines[-1]}." if lines else ""


def tape(
    patient: Patient, ids: torch.Tensor, train: bool = False, seed: int = 0
) -> Any:
    """The steps of a run; none if the model can't be recorded."""
    try:
        return patient.tape(ids, train, seed)
    except Exception:
        return []


def no_number(patient: Patient, ids: Any, out: torch.Tensor, train: bool) -> str:
    """Where a nan or an infinite logit comes from."""
    bad = ~out.isfinite().all(-1).all(0)  # (T,)
    kind = "nan" if out.isnan().any() else "infinite"
    says = f"It answers {kind} in {MODES[train]}, at {int(bad.sum())} of {len(bad)} "
    says += "positions. "
    steps = tape(patient, ids[:, : min(patient.W, 12)].contiguous(), train)
    found = next((s for s in steps if s.out.isnan().any()), None)
    if found is None:
        found = next((s for s in steps if not s.out.isfinite().all()), None)
    if found is None:
        return says
    says += f"It begins in {found.line}. " if found.line else ""
    if "softmax" in found.name or "attention" in found.name:
        if hint := guess(found, "positions"):
            return says + hint
        rows = found.out.isnan().any(-1).reshape(-1, found.out.shape[-2]).any(0)
        if rows[0] and not rows[1:].any():
            return says + (
                "The first position sees nobody there, not even itself, so its softmax "
                "has nothing to share: the mask hides the diagonal. With tril keep "
                "diagonal=0, with triu say diagonal=1."
            )
        return says + (
            "A softmax over nothing but -inf is nan: some position sees nobody. "
            "Look at "
            "the mask."
        )
    return says + "Look for a division by 0, a log or a root of something negative."


def luck_and_memory(patient: Patient, report: Report) -> None:
    """Does the same question get the same answer?"""
    T, model = patient.W, patient.model
    ids, other = patient.ids(2, T), patient.ids(2, T)
    once = patient.hear(ids)
    problem = ""
    try:
        patient.hear(other)
        again, dice = patient.hear(ids), patient.hear(ids, seed=1)
        if not apart(once, again):  # perhaps it remembers in train() only
            begin = patient.hear(ids, True)
            patient.hear(other, True)
            if apart(begin, patient.hear(ids, True)):
                again = once + 1
    except Exception as error:
        again, dice, problem = (
            once + 1,
            once,
            f" The next call even breaks: {said(error)}.",
        )
    if apart(once, again):
        says = f"""It remembers: after another text, the same ids get another
        answer.{problem} Something is kept from call to call, such as a cache, a
        hidden state or a mask that is changed in place. Clear it at the start of
        forward."""
        report.add("wrong", "state", says)
    elif apart(once, dice):
        steps = [tape(patient, ids[:, :12].contiguous(), seed=seed) for seed in (0, 1)]
        found = first(*steps, apart)
        says = "Two evaluations of the same ids differ: it rolls dice in eval(). "
        says += f"It begins in {found.line}. " if found and found.line else ""
        if found and "scaled_dot_product" in found.name:
            says += """scaled_dot_product_attention drops out whenever it's told to:
            say dropout_p=self.dropout if self.training else 0.0."""
        elif found and "dropout" in found.name:
            says += """This dropout doesn't know about eval(): use nn.Dropout
            (registered in the module), or F.dropout(x, p, training=self.training)."""
        report.add("wrong", "luck", says)
    else:
        says = "The same ids get the same answer, whatever was asked before."
        report.add("fine", "luck", says)
    drops = [
        (name, m)
        for name, m in model.named_modules()
        if isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0
    ]
    high = [(name, m.p) for name, m in drops if m.p > 0.6]
    if high:
        says = f"""Dropout {high[0][1]:.0%} in {high[0][0]}: p is the share that's
        thrown away, not the share that's kept. Did you mean {1 - high[0][1]:.2f}?"""
        report.add("wanted?", "drops", says)
    if drops and not report.bad("luck", "state"):
        if not any(apart(once, patient.hear(ids, True, seed)) for seed in (0, 1)):
            says = f"""There is dropout ({drops[0][0]}, {len(drops)} in all), but
            train() answers like eval(): it is never called, or with training=False."""
            report.add("wrong", "alike", says)


def neighbors(patient: Patient, report: Report) -> None:
    """Does a row of the batch hear another one?"""
    T = patient.W
    for train, row in ((False, 0), (False, 4), (True, 0), (True, 4)):
        a, b = patient.ids(5, T), patient.ids(5, T)
        b[row] = a[row]
        with looser(patient):
            one, two = patient.hear(a, train), patient.hear(b, train)
            if not apart(one[row], two[row]):
                continue
            steps = [
                tape(patient, x[:, : min(T, 13)].contiguous(), train) for x in (a, b)
            ]
        found = first(*steps, alone(row, 5))
        only = "in train() only, " if train else ""
        says = f"""The rows of a batch talk to each other, {only}so what one text
        gets depends on the texts beside it. """
        says += begins(found) + guess(found, "rows")
        report.add("wrong", "neighbors", says)
        return
    report.add("fine", "neighbors", "The rows of a batch don't hear each other.")


def begins(found: Step | None) -> str:
    """In which line."""
    return f"It shows first in {found.line}. " if found and found.line else ""


def guess(found: Step | None, what: str) -> str:
    """What a line that mixes positions, or rows, probably does wrong; or nothing."""
    if found is None:
        return ""
    says = ""
    name, dim = found.name, dims_of(found, None)
    if "softmax" in name and found.out.dim() > 1:
        if dim in (None, -1, found.out.dim() - 1):
            return says
        return says + (
            f"That softmax runs over dim={dim}. The weights of one position must "
            "sum to "
            "1 over those it listens to: dim=-1."
        )
    if name in RESHAPES:
        return says + (
            f"A {name}() only counts numbers off in order; it can't swap axes, so "
            "here it "
            f"mixes {what}. Split the last axis first, (B, T, heads, size), then "
            "transpose."
        )
    if "batch_norm" in name:
        return says + (
            "BatchNorm averages over the rows and over time. Use LayerNorm, which "
            "looks "
            "at one position at a time."
        )
    if name in AVERAGES.split():
        axis = f", with dim={dim}" if dim is not None else ""
        return says + (
            f"{name}() runs over {what} there{axis}. A norm looks at one position "
            "alone: "
            "dim=-1, the channels."
        )
    if "multi_head_attention" in name or "scaled_dot_product" in name:
        if what == "rows":
            return says + (
                "Attention takes the rows for positions: say batch_first=True, or "
                "check "
                "which axis is time."
            )
        masked = (
            found.kwargs.get("is_causal") or found.kwargs.get("attn_mask") is not None
        )
        if not masked:
            return "It was given no mask: say is_causal=True, or pass attn_mask."
        return says
    if re.search("lstm|gru|rnn", name):
        kind = "batch_first=True" if what == "rows" else "bidirectional=False"
        return says + f"Say {kind}."
    if "conv" in name:
        return says + "A convolution pads on both sides. Pad on the left only."
    return says


def shakes(model: Any) -> bool:
    """Whether some matrix is all zero, so that what comes before it can't be heard."""
    return any(p.dim() > 1 and not p.any() for p in model.parameters())


@contextlib.contextmanager
def shaken(patient: Patient, by: float = 1.0) -> Any:
    """Inside, the matrices have some noise added."""
    kept = [(p, p.detach().clone()) for p in patient.model.parameters() if p.dim() > 1]
    numbers = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p, _ in kept:
            noise = torch.randn(p.shape, generator=numbers).to(p.device, p.dtype)
            p.add_(noise, alpha=by * 0.7 / p.shape[-1] ** 0.5)
    try:
        yield
    finally:
        with torch.no_grad():
            for p, before in kept:
                p.copy_(before)


@contextlib.contextmanager
def looser(patient: Patient) -> Any:
    """Shaken, if the model begins with zeros."""
    with shaken(patient) if shakes(patient.model) else contextlib.nullcontext():
        yield


def effects(patient: Patient, train: bool, sources: list[int]) -> dict:
    """{s: (T,), how much the answer at each position moves with the id at s}."""
    ids = patient.ids(1, patient.T)
    base, found = patient.hear(ids, train), {}
    size = base.abs().max().item() + 1e-12
    for s in sources:
        moved = ids.clone()
        moved[0, s] = (moved[0, s] + 1 + s % max(1, patient.V - 1)) % patient.V
        if moved[0, s] == ids[0, s]:
            moved[0, s] = (moved[0, s] + 1) % patient.V
        gap = (patient.hear(moved, train) - base)[0].abs().amax(-1) / size
        found[s] = torch.where(gap > (0.02 if patient.coarse else 2e-5), gap, 0.0)
    return found


def choose(T: int) -> list[int]:
    """Some positions of a window, at its ends and between."""
    some = {0, 1, 2, T // 4, T // 2, 3 * T // 4, T - 3, T - 2, T - 1}
    return sorted(s for s in some if 0 <= s < T)


def future(patient: Patient, report: Report) -> dict:
    """Does a position hear what comes later? Returns the effects of each id."""
    T = patient.T
    if T == 1:
        return {}
    with looser(patient):
        both = {train: effects(patient, train, choose(T)) for train in MODES}
        leaks = {
            train: [
                (s - t, s, t, e[t].item())
                for s, e in found.items()
                for t in range(s)
                if e[t]
            ]
            for train, found in both.items()
        }
        if not leaks[False] and not leaks[True]:
            says = f"Nobody hears the future, in windows of {T} and in both modes."
            report.add("fine", "future", says)
            return both[False]
        train = not leaks[False]
        report.add("wrong", "future", leak(patient, leaks[train], both[train], train))
    return both[False]


def leak(patient: Patient, leaks: list, heard: dict, train: bool) -> str:
    """Which positions hear later ones, how far ahead, and what that looks like."""
    T = patient.T
    ahead, s, t, share = max(leaks)
    share = max(each[3] for each in leaks)
    says = "It hears the future" + (", in train() only" if train else "")
    says += (
        f": position {t} hears id {s}; up to {ahead} ahead. A change there moves the "
    )
    says += (
        f"logits by up to {share:.2g} of the largest one. A loss you get this way is "
    )
    says += "too good, and worth nothing. "
    for length in dict.fromkeys((min(T, 11), min(T, 37), T)):
        a = patient.ids(3, length)
        b = a.clone()
        cut = length // 2
        b[:, cut:] = (b[:, cut:] + 1) % patient.V
        steps = [tape(patient, x, train) for x in (a, b)]
        found = first(*steps, earlier(cut, length))
        if found is not None:
            break
    hint = guess(found, "positions")
    says += begins(found) + hint
    past = any(e[s + 1 :].any() for s, e in heard.items() if s < T - 1)
    if hint:
        return says
    if not past:
        says += """And it doesn't hear the past: the mask is upside down (triu for
        tril, or == 0 where == 1 was meant)."""
    elif ahead < min(8, T - 1):
        next_ones = "id leaks" if ahead == 1 else f"{ahead} ids leak"
        says += f"""Only the next {next_ones}: the mask is off by one somewhere
        (diagonal=1 in tril, diagonal=2 in triu; each layer adds one)."""
    elif found is None or "softmax" in found.name or "att" in found.name:
        says += """That's how it looks when there is no mask, or one that comes too
        late (after the softmax) or isn't -inf."""
    return says


def past(patient: Patient, report: Report, heard: dict) -> None:
    """How far back does it listen, and does the order count?"""
    T, model = patient.T, patient.model
    if T < 3:
        return
    reach, shook = earlier_heard(heard, T), shakes(model)
    if not reach and not shook:
        with shaken(patient):
            heard = effects(patient, False, choose(T))
        reach, shook = earlier_heard(heard, T), True
    own = heard[T - 1][T - 1].item()
    with shaken(patient) if shook else contextlib.nullcontext():
        if not own and not any(e.any() for e in heard.values()):
            says = """It doesn't listen at all: whatever the ids are, the answer is
            the same. Is the token embedding fed something else than the ids?"""
            return report.add("wrong", "past", says)
        if not own and T > 1:
            says = f"""A position doesn't hear its own id: change the newest one, id
            {T - 1}, and the answer at position {T - 1} stays. The mask hides the
            diagonal, or the inputs were shifted once more inside."""
            report.add("wrong", "own", says)
        if not reach:
            return hears_one(patient, report)
        table(patient, report)
        silent = [s for s in heard if s < T - 1 and not heard[s][s + 1 :].any()]
        if reach < T - 1 and max(heard) == T - 1:
            says = f"""The last position hears {reach} ids back, of {T - 1}. With a
            sliding window, a convolution or a forgetful RNN that's as it should be."""
            report.add("wanted?", "reach", says)
        elif silent:
            says = f"Nobody who comes later hears id {silent[0]}. Look at the mask."
            report.add("wanted?", "reach", says)
        else:
            says = f"The whole past is heard: position {T - 1} hears id 0."
            report.add("fine", "past", says)
        order(patient, report)
    if not report.bad("future", "own"):
        through(patient, report, heard)


def earlier_heard(heard: dict, T: int) -> int:
    """How far back the last position hears; else how far any does."""
    last = [T - 1 - s for s, e in heard.items() if s < T - 1 and e[T - 1]]
    any_one = [t - s for s, e in heard.items() for t in range(s + 1, T) if e[t]]
    return max(last, default=0) or max(any_one, default=0)


def hears_one(patient: Patient, report: Report) -> None:
    """It hears the last id alone: a bigram, or a deaf attention?"""
    names = [
        f"{name} {type(m).__name__}".lower()
        for name, m in patient.model.named_modules()
    ]
    says = "It hears the last id alone, nothing before it. "
    ears = [n.split()[0] for n in names if re.search(LISTENS, n)]
    if ears:
        says += f"""Yet there is {ears[0]}, which should listen. Either its mask
        hides everybody else (eye instead of tril, masked the wrong way round), or
        its result is thrown away."""
        report.add("wrong", "past", says)
    else:
        says += "A bigram is like that. If it's more than one, its context gets lost."
        report.add("wanted?", "past", says)


def table(patient: Patient, report: Report) -> None:
    """Is a table of positions asked for one row alone?"""
    ids, asked = patient.ids(2, patient.W), {}

    def note(module: Any, args: tuple, out: Any) -> None:
        asked.setdefault(module, args[0].detach().clone())

    hooks = [
        (name, m, m.register_forward_hook(note))
        for name, m in patient.model.named_modules()
        if isinstance(m, nn.Embedding)
    ]
    try:
        patient.hear(ids)
    finally:
        for _, _, hook in hooks:
            hook.remove()
    for name, module, _ in hooks:
        index = asked.get(module)
        if index is None or index.shape == ids.shape and torch.equal(index, ids):
            continue
        if index.numel() > 1 and len(index.unique()) == 1:
            says = f"""{name} is asked for row {index.flatten()[0]} at every
            position, so it says the same everywhere. Give it torch.arange(T)."""
            report.add("wrong", "table", says)


def order(patient: Patient, report: Report) -> None:
    """Does it matter which of two earlier ids comes first?"""
    T = patient.T
    if T < 4 or report.bad("future"):
        return
    ids = patient.ids(1, T)
    ids[0, 0], ids[0, 1] = 0, 1 % patient.V
    swapped = ids.clone()
    swapped[0, 0], swapped[0, 1] = ids[0, 1], ids[0, 0]
    moved = apart(patient.hear(ids)[:, -1], patient.hear(swapped)[:, -1])
    same = patient.hear(torch.zeros_like(ids))[0]
    alike = not apart(same[1:], same[1:2].expand_as(same[1:]))
    if patient.coarse:
        return
    if alike and not moved:
        says = """The order of the past doesn't count: swap two earlier ids, and the
        answer stays. Nothing tells it about positions. Is the position embedding
        added?"""
        mark = "wrong" if attends(patient.model) else "wanted?"
        report.add(mark, "order", says)
    elif alike:
        says = """One letter repeated gets the same answer at every position. With
        rotary positions or ALiBi it should. If you have a table of positions, you
        forgot to add it: x = tok_emb + pos_emb."""
        report.add("wanted?", "order", says)
    else:
        report.add("fine", "order", "The order of the ids counts.")


def attends(model: Any) -> bool:
    """Whether a name in the model says attention."""
    names = [f"{n} {type(m).__name__}".lower() for n, m in model.named_modules()]
    return any(re.search("att|query|qkv|block", name) for name in names)


def through(patient: Patient, report: Report, heard: dict) -> None:
    """How much more than an earlier id does the last one count?"""
    T = patient.T
    old = [e[T - 1].item() for s, e in heard.items() if s < T - 1 and e[T - 1]]
    if not old or not heard[T - 1][T - 1]:
        return
    ratio = heard[T - 1][T - 1].item() / (sum(old) / len(old))
    if ratio <= 0.3 and T > 4:
        says = f"""The last id counts only {ratio:.2f} times as much as an earlier
        one. In healthy models it counts 3.5 to 90 times as much. With two layers or
        more that's how it looks without a residual path: x = x + self.attention(…),
        not x = …"""
        report.add("wrong", "through", says)
    else:
        says = f"The last id counts {ratio:.1f} times as much as an earlier one."
        report.add("fine", "through", says)
