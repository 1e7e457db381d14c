"""The door: how a model is called, how much it reads; and leaving it as it was."""

import math
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

import torch

from minigpt.clinic.lines import Tape, outside, spoken
from minigpt.clinic.report import Report
from minigpt.clinic.sentences import say

BLOCK = "block_size context_length context_window n_positions max_position_embeddings "
BLOCK += "max_seq_len max_seq_length seq_len n_ctx max_len"
ENOUGH = 30_000_000  # logits at once: 120 MB
DTYPES = (torch.bfloat16, torch.float16)
WAYS: list[Callable] = [
    lambda m, ids, y: m(ids),
    lambda m, ids, y: m(ids, y),
    lambda m, ids, y: m(ids, targets=y),
    lambda m, ids, y: m(ids, labels=y),
]


class Patient:
    """A model, its vocabulary, the longest window T that it reads, how to call it.

    W: a window short enough for batches. start: one that it certainly reads. bounded:
    whether more than T ids are too many, as far as one can tell. learns_in: the mode
    in which gradients come back. heard: the effects of each id, at T ids.
    """

    text: torch.Tensor | None = None
    seconds: float = 0
    trained: bool | None = None
    learns_in = True

    def __init__(
        self, model: Any, vocab_size: int, block_size: int | None, call: Callable | None
    ) -> None:
        self.model, self.V, self.call = model, vocab_size, call or WAYS[0]
        self.told = block_size or told(model)
        self.T = self.W = self.start = self.told or 8
        self.bounded = self.told is not None
        self.heard: dict[int, torch.Tensor] = {}
        tensors = [*model.parameters(), *model.buffers()]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        self.coarse = any(t.dtype in DTYPES for t in tensors)
        self.numbers = torch.Generator().manual_seed(0)

    def ids(self, *shape: int) -> torch.Tensor:
        """Random ids."""
        ids = torch.randint(self.V, shape, generator=self.numbers)
        return ids.to(self.device)

    def raw(self, ids: torch.Tensor, seed: int = 0) -> Any:
        """What the model returns, with random numbers of this seed."""
        torch.default_generator.manual_seed(seed)  # the CPU's, in no time
        if self.device.type != "cpu":
            torch.manual_seed(seed)
        random.seed(seed)
        ids = ids.contiguous()  # theirs may view() it
        if self.call in WAYS:
            return self.call(self.model, ids, ids)
        return self.call(self.model, ids)

    def logits(self, ids: torch.Tensor, seed: int = 0) -> torch.Tensor:
        """(B, T) -> (B, T, V), float32 at least. Raises ValueError for other shapes."""
        out = read(self.raw(ids, seed), *ids.shape, self.V)
        if out is None:
            raise ValueError("no logits")
        return out[..., : self.V].float() if out.dtype in DTYPES else out[..., : self.V]

    @torch.no_grad()
    def hear(self, ids: torch.Tensor, train: bool = False, seed: int = 0) -> Any:
        """The logits in a mode, without a gradient."""
        self.model.train(train)
        return self.logits(ids, seed)

    @torch.no_grad()
    def tape(self, ids: torch.Tensor, train: bool = False, seed: int = 0) -> list:
        """All that torch computes on the way, step by step; [] if it can't be seen."""
        self.model.train(train)
        try:
            with Tape() as tape:
                self.raw(ids, seed)
        except Exception:  # of somebody's code
            return []
        return tape.steps


def told(model: Any) -> int | None:
    """The longest window, if the model or its config has one of the usual names."""
    config = getattr(model, "config", None) or getattr(model, "cfg", None)
    for name in BLOCK.split():
        for holder in (model, config):
            value = getattr(holder, name, None)
            if isinstance(holder, dict):
                value = holder.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def candidates(output: Any) -> list[torch.Tensor]:
    """The floating-point tensors in what a model returned, the likeliest first."""
    if isinstance(output, torch.Tensor):
        return [output]
    if getattr(output, "logits", None) is not None:
        return [output.logits]
    if isinstance(output, dict):
        output = [output.get("logits"), *output.values()]
    found = output if isinstance(output, (tuple, list)) else []
    return [x for x in found if isinstance(x, torch.Tensor) and x.is_floating_point()]


def read(output: Any, B: int, T: int, V: int) -> torch.Tensor | None:
    """The logits (B, T, at least V) in what a model returned, or None."""
    for x in candidates(output):
        if x.dim() == 3 and x.shape[:2] == (B, T) and x.shape[2] >= V:
            return x
        if x.dim() == 2 and x.shape[0] == B * T and x.shape[1] >= V:
            return x.view(B, T, -1)
    return None


@contextmanager
def untouched(model: Any) -> Generator[None]:
    """Inside, do what you like with a model; then it's as it was, random state, too."""
    tensors = [*model.parameters(), *model.buffers()]
    kept = [(t, t.detach().clone(), t.requires_grad, t.grad) for t in tensors]
    attributes = [
        (m, dict(vars(m)), {k: (v, v.copy()) for k, v in vars(m).items() if plain(v)})
        for m in model.modules()
    ]
    pythons = random.getstate()
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            yield
    finally:
        for module, values, containers in attributes:
            vars(module).clear()
            vars(module).update(values)
            for now, before in containers.values():
                now.clear()
                now.extend(before) if isinstance(now, list) else now.update(before)
        with torch.no_grad():
            for tensor, before, wants, grad in kept:
                if not torch.equal(tensor, before):
                    tensor.copy_(before)
                tensor.requires_grad_(wants)
                tensor.grad = grad
        random.setstate(pythons)


def plain(value: Any) -> bool:
    """Whether an attribute is a container that a forward pass may fill."""
    return isinstance(value, (list, dict, set))


@contextmanager
def shaken(model: Any, by: float = 1.0) -> Generator[None]:
    """Inside, the matrices that learn have some noise added; masks don't."""
    numbers = torch.Generator().manual_seed(0)
    with untouched(model):
        for p in model.parameters():
            learns = p.requires_grad and p.dim() > 1
            if learns and len(p.detach().flatten()[:1000].unique()) != 2:
                noise = torch.randn(p.shape, generator=numbers).to(p.device, p.dtype)
                p.data.add_(noise, alpha=by * 0.7 / p.shape[-1] ** 0.5)
        yield


def said(error: Exception, at: bool = True) -> str:
    """An error, and (at) the line of the model where it happened."""
    line = ""
    for frame, number in walk_tb(error.__traceback__):
        if outside(frame.f_code.co_filename):
            line = spoken(frame.f_code.co_filename, number)
    words = str(error).strip().splitlines()
    told = f"{type(error).__name__}: {words[0] if words else ''}"
    return told + (f" ({line})" if line and at else "")


def knock(patient: Patient, report: Report) -> bool:
    """Find out how to call the model. False: it's no use to go on."""
    patient.model.eval()
    V, problem, seen = patient.V, "", []  # seen: what came out instead
    lengths = [n for n in (5, patient.told, 8, 16, 32, 64, 128, 256, 512) if n]
    lengths = [n for n in lengths if n <= (patient.told or 512)]
    for T in dict.fromkeys(lengths or [1]):
        for way in WAYS if patient.call in WAYS else [patient.call]:
            patient.call = way
            try:
                with torch.no_grad():
                    out = patient.raw(patient.ids(3, T))
            except Exception as error:  # of somebody's code
                problem = problem or said(error)
                continue
            if read(out, 3, T, V) is not None:
                patient.start = T
                return True
            seen.append([tuple(x.shape) for x in candidates(out)])
        if seen:
            shapes = max(seen, key=lambda each: max(map(math.prod, each), default=0))
            report.add("✗ door.shape", T=T, V=V, got=shape_of(T, shapes, V))
            return False
    report.add("✗ door.refused", T=lengths[0], problem=problem)
    return False


def shape_of(T: int, shapes: list, V: int) -> str:
    """What's wrong with these shapes, for ids (3, T)."""
    if not shapes:
        return say("got.nothing")
    known: dict[tuple, str] = {(3, V, T): "transposed", (T, 3, V): "time"}
    known |= {(3, V): "last", (3, 1, V): "last"}
    s = shapes[0]
    wide = "width" if len(s) == 3 and s[:2] == (3, T) else "other"
    return say(f"got.{known.get(s, wide)}", shape=s, width=s[-1], V=V)


def works(patient: Patient, T: int) -> Exception | None:
    """The error that a window of T ids raises, or None."""
    try:
        patient.hear(patient.ids(1, T))
    except Exception as error:  # of somebody's code
        return error
    return None


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
        high = T
        while high - longest > 1:
            middle = (longest + high) // 2
            if works(patient, middle) is None:
                longest = middle
            else:
                high = middle
        patient.bounded = True
        if told:
            report.add("✗ length", told=told, longest=longest, problem=said(error))
    elif not told:
        longest = 64  # no limit found
    patient.T = max(1, longest)
    patient.W = max(1, min(patient.T, 128, ENOUGH // (5 * patient.V)))
    if start > 1 and (lone := works(patient, 1)) is not None:
        report.add("✗ one", problem=said(lone))
    if patient.bounded:
        beyond = error if error is not None else works(patient, patient.T + 1)
        how = "reads" if beyond is None else "stops"
        problem = said(beyond, False) if beyond is not None else ""
        report.add(f"✓ beyond.{how}", T=patient.T, problem=problem)
