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

BLOCK = "block_size context_length context_window n_positions max_position_embeddings "
BLOCK += "max_seq_len max_seq_length seq_len n_ctx max_len"
ENOUGH = 30_000_000  # logits at once: 120 MB
DTYPES = (torch.bfloat16, torch.float16)


class Patient:
    """A model, its vocabulary, the longest window T that it reads, how to call it.

    W: a window short enough for batches. start: one that it certainly reads.
    bounded: whether more than T ids are too many, as far as one can tell.
    """

    def __init__(
        self, model: Any, vocab_size: int, block_size: int | None, call: Callable | None
    ) -> None:
        self.model, self.V, self.call = model, vocab_size, call or WAYS[0]
        self.told = block_size or told(model)
        self.T = self.W = self.start = self.told or 8
        self.learns_in = True  # the mode in which gradients come back
        self.bounded = self.told is not None
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
        """All that torch computes on the way to the logits, step by step."""
        self.model.train(train)
        with Tape() as tape:
            self.raw(ids, seed)
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
        output = [output["logits"]] if "logits" in output else list(output.values())
    if isinstance(output, (tuple, list)):
        found = [x for x in output if isinstance(x, torch.Tensor)]
        return [x for x in found if x.is_floating_point()]
    return []


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
    modules = list(model.modules())
    tensors = [*model.parameters(), *model.buffers()]
    kept = [(t, t.detach().clone(), t.requires_grad) for t in tensors]
    grads = [(p, p.grad) for p in model.parameters()]
    attributes = [
        (m, dict(vars(m)), {k: (v, v.copy()) for k, v in vars(m).items() if plain(v)})
        for m in modules
    ]
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    state, pythons = torch.get_rng_state(), random.getstate()
    try:
        yield
    finally:
        for module, values, containers in attributes:
            vars(module).clear()
            vars(module).update(values)
            for now, before in containers.values():
                now.clear()
                now.extend(before) if isinstance(now, list) else now.update(before)
        with torch.no_grad():
            for tensor, before, wants in kept:
                if not torch.equal(tensor, before):
                    tensor.copy_(before)
                tensor.requires_grad_(wants)
        for p, grad in grads:
            p.grad = grad
        torch.set_rng_state(state)
        random.setstate(pythons)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def plain(value: Any) -> bool:
    """Whether an attribute is a container that a forward pass may fill."""
    return isinstance(value, (list, dict, set))


def said(error: Exception, at: bool = True) -> str:
    """An error, and (at) the line of the model where it happened."""
    line = ""
    for frame, number in walk_tb(error.__traceback__):
        if outside(frame.f_code.co_filename):
            line = spoken(frame.f_code.co_filename, number)
    words = str(error).strip().splitlines()
    told = f"{type(error).__name__}: {words[0] if words else ''}"
    return told + (f" ({line})" if line and at else "")


WAYS: list[Callable] = [
    lambda m, ids, y: m(ids),
    lambda m, ids, y: m(ids, y),
    lambda m, ids, y: m(ids, targets=y),
    lambda m, ids, y: m(ids, labels=y),
]


def knock(patient: Patient, report: Report) -> bool:
    """Find out how to call the model. False: it's no use to go on."""
    patient.model.eval()
    V, problem = patient.V, ""
    seen: list = []  # what came out instead: (T, shapes)
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
            seen.append((T, [tuple(x.shape) for x in candidates(out)]))
        if seen:
            break
    if seen:
        report.add("wrong", "door", shape_of(*max(seen, key=largest), V))
    else:
        says = f"It doesn't take a batch of ids (3, {lengths[0]}): {problem}."
        says += " If it wants to be called another way, say call=lambda m, ids: …"
        report.add("wrong", "door", says)
    return False


def largest(seen: tuple) -> int:
    """How many numbers came out, to choose the most telling of several calls."""
    return max((math.prod(shape) for shape in seen[1]), default=0)


def shape_of(T: int, shapes: list, V: int) -> str:
    """What's wrong with these shapes, for ids (3, T)."""
    start = f"Ids of shape (3, {T}) go in, so logits (3, {T}, {V}) should come out. "
    if not shapes:
        return start + "I got no tensor of numbers at all. Return the logits."
    start += f"I got {(s := shapes[0])}: "
    if s == (3, V, T):
        return start + "there is a transpose too many at the end."
    if s == (T, 3, V):
        return start + "time comes first. Use batch_first, or transpose(0, 1)."
    if s in ((3, V), (3, 1, V)):
        return (
            start
            + """the last position alone. You can write with that, but training
        needs an answer at every position: don't cut the logits to [:, -1]."""
        )
    if len(s) == 3 and s[:2] == (3, T):
        return (
            start
            + f"""the last layer gives {s[2]} numbers, the vocabulary has {V}.
        Either lm_head has the wrong width, or the vocab_size you told me is wrong."""
        )
    return start + """If the logits are hidden in there, say call=lambda m, ids: …"""


def works(patient: Patient, T: int) -> Exception | None:
    """The error that a window of T ids raises, or None."""
    try:
        patient.hear(patient.ids(1, T))
    except Exception as error:
        return error
    return None
