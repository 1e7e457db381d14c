"""Who hears whom: what a model answers when ids change that shouldn't matter."""

import contextlib
import re
from collections.abc import Generator
from typing import Any

import torch
import torch.nn as nn

from minigpt.clinic.lines import Step, alone, apart, dims_of, earlier, first
from minigpt.clinic.patient import ENOUGH, Patient, said, works
from minigpt.clinic.report import Report

MODES = {False: "eval()", True: "train()"}
RESHAPES = "view", "reshape", "flatten", "unflatten"
AVERAGES = "mean", "sum", "var", "std", "norm", "layer_norm", "rms_norm", "max", "amax"
AVERAGES += "linalg_norm", "vector_norm", "group_norm", "cumsum", "normalize"
LISTENS = r"att|query|key|value|qkv|rnn|lstm|gru|mixer|\bheads?\b|\bsa\b|wq|wk"
BLOCK = r"(?P<block>.*?\d+\.[^.]+)\..*[^.]"  # blocks.3.mlp of blocks.3.mlp.fc.weight


def how_far(patient: Patient, report: Report) -> None:
    """How long a window may be; and what happens with one id, and with too many."""
    told, start = patient.told, patient.start
    if told and told < 8 and works(patient, 8) is None:
        told, patient.bounded = None, False  # a bigram's, which reads on
    longest, error = start, None
    for T in [told] if told else [8, 16, 32, 64, 128, 256]:
        if T > start and (error := works(patient, T)) is not None:
            break
        longest = max(longest, T)
    if error is not None:
        low, high = longest, T
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if works(patient, middle) else (middle, high)
        longest, patient.bounded = low, True
        if told:
            says = f"""Its own limit is {told} ids, but it breaks at more than
            {longest}: {said(error)}. Is a mask or a position table too small?"""
            report.add("wrong", "length", says)
    elif not told:
        longest = 64  # no limit found
    patient.T = max(1, longest)
    patient.W = max(1, min(patient.T, 128, ENOUGH // (5 * patient.V)))
    if start > 1 and (lone := works(patient, 1)) is not None:
        says = f"""With a single id it breaks: {said(lone)}. You can't write from
        one letter that way. Did a squeeze() take the axis of time away?"""
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


def is_sound(patient: Patient, report: Report) -> bool:
    """Are these logits? False: they are no numbers, and it's no use to go on."""
    for train in MODES:
        ids = patient.ids(3, patient.W)
        out = patient.hear(ids, train)
        if not out.isfinite().all() and (out.isnan().any() or not is_log(out)):
            report.add("wrong", "nan", no_number(patient, ids, out, train))
            return False
    shares = out.double().exp() if is_log(out) else out.double()
    for dim, over in ((2, ""), (1, "the positions"), (0, "the rows of the batch")):
        gap = (shares.sum(dim) - 1).abs().max()
        if gap >= 1e-3 or out.min() < 0 or out.shape[dim] == 1:
            continue
        line = where(patient, "softmax")
        if over:
            says = f"""The answers sum to 1 over {over}: there's a softmax at the
            end, and over the wrong axis. Return the logits. {line}"""
            report.add("wrong", "axis", says)
        else:
            says = f"""These are probabilities: each row sums to 1. cross_entropy
            wants logits and takes the softmax itself. Leave the softmax out of
            forward; with it, the model can hardly learn. {line}"""
            report.add("wrong", "probabilities", says)
        return True
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
    out = patient.hear(patient.ids(2, patient.W))
    if out.min() == 0 and (out == 0).float().mean() > 0.2 and out.max() > 0:
        says = f"""No logit is ever below 0: a relu comes after the last layer. Take
        it out. {where(patient, "relu")}"""
        report.add("wrong", "range", says)
        return
    with shaken(patient, 30.0):
        out = patient.hear(patient.ids(2, patient.W))
    for low, high, name in ((0, 1, "sigmoid"), (-1, 1, "tanh")):
        inside = out.min() >= low and out.max() <= high and out.std() > 0.1
        if inside and (line := where(patient, name)):
            says = f"""Whatever the weights are, all logits stay between {low} and
            {high}: a {name} comes after the last layer. It can never be sure of
            anything. {line}"""
            report.add("wrong", "range", says)
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
    strange = [s for s in steps if not s.out.isfinite().all()]
    found = next((s for s in strange if s.out.isnan().any()), (strange or [None])[0])
    if found is None:
        return says
    says += f"It begins in {found.line}. " if found.line else ""
    if "softmax" not in found.name and "attention" not in found.name:
        return (
            says
            + """Look for a division by 0, a log or a root of something
        negative."""
        )
    if hint := guess(found, "positions"):
        return says + hint
    rows = found.out.isnan().any(-1).reshape(-1, found.out.shape[-2]).any(0)
    if rows[0] and not rows[1:].any():
        return (
            says
            + """The first position sees nobody there, not even itself, so
        its softmax has nothing to share: the mask hides the diagonal. With tril keep
        diagonal=0, with triu say diagonal=1."""
        )
    return (
        says
        + """A softmax over nothing but -inf is nan: some position sees
    nobody. Look at the mask. Is it the wrong way round?"""
    )


def luck_and_memory(patient: Patient, report: Report) -> None:
    """Does the same question get the same answer?"""
    T, model = patient.W, patient.model
    ids, other = patient.ids(2, T), patient.ids(2, T)
    once = patient.hear(ids)
    problem, remembers, dice = "", False, once
    try:
        patient.hear(other)
        remembers, dice = apart(once, patient.hear(ids)), patient.hear(ids, seed=1)
        if not remembers:  # perhaps in train() only
            begin = patient.hear(ids, True)
            patient.hear(other, True)
            remembers = apart(begin, patient.hear(ids, True))
    except Exception as error:
        remembers, problem = True, f"The next call even breaks: {said(error)}."
    if remembers:
        says = f"""It remembers: after another text, the same ids get another
        answer. {problem} Something is kept from call to call, such as a cache, a
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
        (name, m.p)
        for name, m in model.named_modules()
        if isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0
    ]
    for name, p in [each for each in drops if each[1] > 0.6][:1]:
        says = f"""Dropout {p:.0%} in {name}: p is the share that's thrown away, not
        the share that's kept."""
        report.add("wrong" if p == 1 else "wanted?", "drops", says)
    if drops and not report.bad("luck", "state"):
        if not any(apart(once, patient.hear(ids, True, seed)) for seed in (0, 1)):
            says = f"""There is dropout ({drops[0][0]}, {len(drops)} in all), but
            train() answers like eval(): it is never called, or with training=False."""
            report.add("wrong", "alike", says)


def neighbors(patient: Patient, report: Report) -> None:
    """Does a row of the batch hear another one, or know which row it is?"""
    T = patient.W
    for train, row in ((False, 0), (False, 4), (True, 0), (True, 4)):
        a, b = patient.ids(5, T), patient.ids(5, T)
        b[row] = a[row]
        with looser(patient):
            if not apart(patient.hear(a, train)[row], patient.hear(b, train)[row]):
                continue
            short = [x[:, : min(T, 13)].contiguous() for x in (a, b)]
            found = first(*(tape(patient, x, train) for x in short), alone(row, 5))
        only = "in train() only, " if train else ""
        says = f"""The rows of a batch talk to each other, {only}so what one text
        gets depends on the texts beside it. {begins(found)} {guess(found, "rows")}"""
        return report.add("wrong", "neighbors", says)
    with looser(patient):
        out = patient.hear(patient.ids(1, T).expand(5, T).contiguous())
    if apart(out, out[:1].expand_as(out)) and not report.bad("luck"):
        says = f"""The same text gets another answer in another row of the batch.
        Something counts the rows where it should count positions: torch.arange(B) for
        torch.arange(T), or an axis that was swapped. {where(patient, "embedding")}"""
        return report.add("wrong", "neighbors", says)
    report.add("fine", "neighbors", "The rows of a batch don't hear each other.")


def begins(found: Step | None) -> str:
    """In which line."""
    return f"It shows first in {found.line}. " if found and found.line else ""


def guess(found: Step | None, what: str) -> str:
    """What a line that mixes positions, or rows, probably does wrong; or nothing."""
    if found is None:
        return ""
    name, dim = found.name, dims_of(found, None)
    if "softmax" in name:
        if dim in (None, -1, found.out.dim() - 1):
            return ""
        return f"""That softmax runs over dim={dim}. The weights of one position must
        sum to 1 over those it listens to: dim=-1."""
    if name in RESHAPES:
        return f"""A {name}() only counts numbers off in order; it can't swap axes,
        so here it mixes {what}. Split the last axis first, (B, T, heads, size), then
        transpose."""
    if "batch_norm" in name:
        return """BatchNorm averages over the rows and over time. Use LayerNorm, which
        looks at one position at a time."""
    if name in ("roll", "flip"):
        return f"{name}() moves {what} there."
    if name in AVERAGES:
        axis = f", with dim={dim}" if dim is not None else ""
        return f"""{name}() runs over {what} there{axis}. A norm looks at one position
        alone: dim=-1, the channels."""
    if "multi_head_attention" in name or "scaled_dot_product" in name:
        if what == "rows":
            return """Attention takes the rows for positions: say batch_first=True, or
            check which axis is time."""
        given = found.kwargs.get("attn_mask") is not None
        if not given and not found.kwargs.get("is_causal"):
            return "It was given no mask: say is_causal=True, or pass attn_mask."
    if re.search("lstm|gru|rnn", name):
        kind = "batch_first=True" if what == "rows" else "bidirectional=False"
        return f"Say {kind}."
    if "conv" in name:
        return "A convolution pads on both sides. Pad on the left only."
    return ""


def shakes(model: Any) -> bool:
    """Whether some matrix is all zero, so that what comes before it can't be heard."""
    return any(p.dim() > 1 and not p.any() for p in model.parameters())


@contextlib.contextmanager
def shaken(patient: Patient, by: float = 1.0) -> Generator[None]:
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


def looser(patient: Patient) -> Any:
    """Shaken, if the model begins with zeros."""
    return shaken(patient) if shakes(patient.model) else contextlib.nullcontext()


def effects(patient: Patient, train: bool, T: int) -> dict:
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


def future(patient: Patient, report: Report) -> dict:
    """Does a position hear what comes later? Returns the effects of each id."""
    T, heard = patient.T, {}
    with looser(patient):
        for n in dict.fromkeys((T, max(2, T // 2))):  # a mask may be cut wrongly
            for train in MODES if T > 1 else ():
                found = effects(patient, train, n)
                heard = heard or found
                pairs = [(s - t, s, t) for s, e in found.items() for t in range(s)]
                leaks = [(*p, found[p[1]][p[2]].item()) for p in pairs]
                leaks = [each for each in leaks if each[3]]
                if leaks:
                    says = leak(patient, leaks, found, train, n)
                    report.add("wrong", "future", says)
                    return heard
    if heard:
        says = f"Nobody hears the future, in windows of {T} and in both modes."
        report.add("fine", "future", says)
    return heard


def leak(patient: Patient, leaks: list, heard: dict, train: bool, T: int) -> str:
    """Which positions hear later ones, how far ahead, and what that looks like."""
    ahead, s, t, _ = max(leaks)
    only = ", in train() only" if train else ""
    only += f", in windows of {T}, not of {patient.T}" if T < patient.T else ""
    says = f"""It hears the future{only}: position {t} hears id {s}; up to {ahead}
    ahead. A change there moves the logits by up to {max(x[3] for x in leaks):.2g} of
    the largest one. A loss you get this way is too good, and worth nothing. """
    for length in dict.fromkeys((min(T, 11), min(T, 37), T)):
        a = patient.ids(3, length)
        b = a.clone()
        cut = length // 2
        b[:, cut:] = (b[:, cut:] + 1) % patient.V
        steps = [tape(patient, x, train) for x in (a, b)]
        if found := first(*steps, earlier(cut, length)):
            break
    hint = guess(found, "positions")
    says += begins(found) + hint
    if hint:
        return says
    if not any(e[s + 1 :].any() for s, e in heard.items() if s < T - 1):
        return (
            says
            + """And it doesn't hear the past: the mask is upside down (triu
        for tril, or == 0 where == 1 was meant)."""
        )
    if T < patient.T:
        return (
            says
            + """So the mask is right for a full window and wrong for a part
        of it: cut it to mask[:T, :T]."""
        )
    if ahead < min(8, T - 1):
        leaking = "id leaks" if ahead == 1 else f"{ahead} ids leak"
        return (
            says
            + f"""Only the next {leaking}: the mask is off by one somewhere
        (diagonal=1 in tril, diagonal=2 in triu; each layer adds one)."""
        )
    if found is None or "softmax" in found.name or "att" in found.name:
        says += """That's how it looks when there is no mask, or one that comes too
        late (after the softmax) or isn't -inf."""
    return says


def past(patient: Patient, report: Report, heard: dict) -> None:
    """How far back does it listen, and does the order count?"""
    T = patient.T
    if T < 3:
        return
    shook = shakes(patient.model)
    if not earlier_heard(heard, T) and not shook:
        shook = True
        with shaken(patient):
            heard = effects(patient, False, T)
    reach = earlier_heard(heard, T)
    own = heard[T - 1][T - 1].item()
    with shaken(patient) if shook else contextlib.nullcontext():
        if not own and not any(e.any() for e in heard.values()):
            says = """It doesn't listen at all: whatever the ids are, the answer is
            the same. Is the token embedding fed something else than the ids?"""
            return report.add("wrong", "past", says)
        if not own:
            says = f"""A position doesn't hear its own id: change the newest one, id
            {T - 1}, and the answer at position {T - 1} stays. The mask hides the
            diagonal, or the inputs were shifted once more inside."""
            report.add("wrong", "own", says)
        if not reach:
            return hears_one(patient, report)
        silent = [s for s in heard if s < T - 1 and not heard[s][s + 1 :].any()]
        if reach < T - 1:
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
        if own:
            around(patient, report)


def earlier_heard(heard: dict, T: int) -> int:
    """How far back the last position hears; else how far any does."""
    last = [T - 1 - s for s, e in heard.items() if s < T - 1 and e[T - 1]]
    any_one = [t - s for s, e in heard.items() for t in range(s + 1, T) if e[t]]
    return max(last, default=0) or max(any_one, default=0)


def named(model: Any, pattern: str) -> list[str]:
    """The modules whose name or class has this in it."""
    every = [(n, f"{n} {type(m).__name__}".lower()) for n, m in model.named_modules()]
    return [n or "the model" for n, words in every if re.search(pattern, words)]


def hears_one(patient: Patient, report: Report) -> None:
    """It hears the last id alone: a bigram, or a deaf attention?"""
    says = "It hears the last id alone, nothing before it. "
    if ears := [n for n in named(patient.model, LISTENS) if "lm_head" not in n]:
        says += f"""Yet there is {ears[0]}, which should listen. Either its mask
        hides everybody else (eye instead of tril, masked the wrong way round), or
        its result is thrown away."""
        report.add("wrong", "past", says)
    else:
        says += "A bigram is like that. If it's more than one, its context gets lost."
        report.add("wanted?", "past", says)


def order(patient: Patient, report: Report) -> None:
    """Does it matter which of two earlier ids comes first, and where they are?"""
    T = patient.T
    if T < 4 or report.bad("future") or patient.coarse:
        return
    ids = patient.ids(1, T)
    ids[0, -3], ids[0, -2] = 0, 1
    swapped = ids.clone()
    swapped[0, -3], swapped[0, -2] = 1, 0
    with shaken(patient):  # a fresh model's scores hardly differ
        moved = apart(patient.hear(ids)[:, -1], patient.hear(swapped)[:, -1])
        same = patient.hear(torch.zeros_like(ids))[0]
    if apart(same[1:], same[1:2].expand_as(same[1:])):
        report.add("fine", "order", "The order of the ids counts.")
    elif says := table(patient):
        report.add("wrong", "order", says)
    elif moved:
        says = """One letter repeated gets the same answer at every position. With
        rotary positions or ALiBi it should. If you have a table of positions, you
        forgot to add it: x = tok_emb + pos_emb."""
        report.add("wanted?", "order", says)
    else:
        says = """The order of the past doesn't count: swap two earlier ids, and the
        answer stays. Nothing tells it about positions. Is the position embedding
        added?"""
        mark = "wrong" if named(patient.model, "att|query|qkv|block") else "wanted?"
        report.add(mark, "order", says)


def table(patient: Patient) -> str:
    """What's wrong with a table of positions, or nothing."""
    model, asked = patient.model, {}
    tables = {m: n for n, m in model.named_modules() if isinstance(m, nn.Embedding)}
    hooks = [
        m.register_forward_hook(lambda m, args, _: asked.setdefault(m, []).append(args))
        for m in tables
    ]
    try:
        for ids in (patient.ids(2, patient.W), patient.ids(2, patient.W)):
            patient.hear(ids)
    finally:
        for hook in hooks:
            hook.remove()
    for module, calls in asked.items():
        one, two, name = calls[0][0], calls[-1][0], tables[module]
        if not isinstance(one, torch.Tensor):
            continue  # some tables are asked with a shape
        sized = module.num_embeddings == patient.T != patient.V
        if one.numel() == 1 or not (sized or re.search("pos|wpe", name.lower())):
            continue
        if len(one.unique()) == 1:
            return f"""{name} is asked for row {one.flatten()[0]} at every position, so
            it says the same everywhere. Give it torch.arange(T)."""
        if one.shape == two.shape and not torch.equal(one, two):
            return f"""{name} is asked for something that changes with the ids, so it's
            a second token embedding and knows no positions. Give it torch.arange(T)."""
    known = touched(patient, patient.ids(1, patient.W))
    turns = {n: b for n, b in model.named_buffers() if re.search("cos|sin|freq|rot", n)}
    if turns and not any(id(b) in known for b in turns.values()):
        return f"""Nothing tells it about positions: {next(iter(turns))} is made and
        never used. Is the rotation applied to queries and keys?"""
    return ""


def touched(patient: Patient, x: torch.Tensor, train: bool = False) -> set[int]:
    """The tensors that the operations of a forward pass were given: their id()."""
    steps = tape(patient, x[:1], train)
    given = [a for s in steps for a in (*s.args, *s.kwargs.values())]
    return {id(a) for a in given if isinstance(a, torch.Tensor)}


def around(patient: Patient, report: Report) -> None:
    """Is there a way around each part of a block? Switch off one matrix after the
    other, in two blocks: if no id gets through any more, there's no residual path."""
    ids = patient.ids(2, min(patient.T, 8))
    ids[:, -1] = torch.arange(2)
    found: dict[str, list[str]] = {}
    parts = [
        (re.fullmatch(BLOCK, name), p)
        for name, p in patient.model.named_parameters()
        if p.dim() > 1
    ]
    blocks = dict.fromkeys(re.findall(r"\d+", m[0])[0] for m, _ in parts if m)
    if len(blocks) < 2 or patient.coarse:
        return
    for match, p in parts:
        if not match or re.findall(r"\d+", match[0])[0] not in [*blocks][:2]:
            continue
        kept = p.detach().clone()
        with torch.no_grad():
            p.zero_()
            one, two = patient.hear(ids)[:, -1]
            p.copy_(kept)
        if not apart(one, two):
            part = match["block"]
            found.setdefault(re.sub(r"\d+", "#", part), []).append(part)
    cut = [dict.fromkeys(each) for each in found.values() if len({*each}) > 1]
    if not cut:
        says = "Each part of a block has a way around it: the residual path is there."
        return report.add("fine", "through", says)
    names = " and ".join(next(iter(each)) for each in cut)
    last = next(iter(cut[0])).split(".")[-1]
    says = f"""No way leads around {names}: switch it off, and the answer is the same
    whatever the ids are. The residual path is missing there: x = x + self.{last}(…),
    not x = self.{last}(…). It's the same in every block."""
    listens = named(patient.model, r"att|query|qkv|heads|\bsa\b|wq")
    report.add("wrong" if listens else "wanted?", "through", says)
