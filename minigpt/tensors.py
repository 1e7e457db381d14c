"""What is wrong with a tensor: said when torch fails, which costs nothing before.

What a model reads is not looked at in each step: on a GPU, looking means waiting.
torch computes; where it fails, or where shapes show that it would compute nonsense,
the reason is looked for and said in a sentence.
"""

import functools
import inspect

import torch
import torch.nn as nn

from minigpt.arguments import check_kind, shown

INTEGERS = (torch.int64, torch.uint8, torch.int16, torch.int32, torch.int8)
FAULTS = AssertionError, AttributeError, IndexError, RuntimeError, TypeError, ValueError


def check_ids(name, ids, dims, vocab_size=None):
    """Raise TypeError or ValueError unless ids are token ids: (N,) for dims=1, (B, T)
    with at least one token for dims=2; below vocab_size, if that is given."""
    shape, encoded = {
        1: ("(N,)", "torch.tensor(tokenizer.encode(text))"),
        2: ("(B, T)", "torch.tensor([tokenizer.encode(text)])"),
    }[dims]
    check_kind(
        name, ids, torch.Tensor, f"a tensor of ids {shape}, for example {encoded}"
    )
    if ids.dtype not in INTEGERS:
        raise TypeError(
            f"{name} holds {ids.dtype}; ids are whole numbers: give {name}.long()."
        )
    if ids.dim() != dims or (dims == 2 and ids.numel() == 0):
        raise ValueError(
            f"{name} has shape {tuple(ids.shape)}; give {shape} with at least one "
            "token."
        )
    if ids.is_meta:
        raise ValueError(f"{name} is on meta, without numbers: make it on the cpu.")
    if vocab_size is not None and ids.numel():
        low, high = (extreme.item() for extreme in ids.aminmax())
        if low < 0 or high >= vocab_size:
            wrong = ids[(ids < 0) | (ids >= vocab_size)][0].item()
            raise ValueError(
                f"{name} holds the id {wrong}; the model knows 0 to {vocab_size - 1}: "
                "encode the text with the tokenizer that the model was made for."
            )


def vocabulary_of(model):
    """How many ids a model of this package knows; None for another model."""
    for name, size in (("token_embedding", "num_embeddings"), ("counts", "vocab_size")):
        if hasattr(model, name):
            return getattr(getattr(model, name), size, None)


def reads_ids(forward):
    """Decorates a model's forward(idx, targets=None): what is wrong with either is
    said in a sentence."""

    @functools.wraps(forward)
    def explained(self, idx, targets=None):
        try:
            if idx.dim() != 2 or idx.is_meta or not idx.numel():
                _explain_ids(self, idx)
            if targets is None:
                return forward(self, idx)
            if targets.shape != idx.shape:
                _explain_ids(self, idx, targets)
            return forward(self, idx, targets)
        except FAULTS:
            _explain_ids(self, idx, targets)
            raise

    return explained


def _explain_ids(model, idx, targets=None):
    device = next(model.parameters()).device
    for name, ids in (("idx", idx), ("targets", targets)):
        if ids is None and name == "targets":
            continue
        if device.type != "meta":
            check_ids(name, ids, 2, vocabulary_of(model))
        if ids.device != device:
            raise ValueError(
                f"{name} is on {ids.device}, the model on {device}: give "
                f"{name}.to({str(device)!r})."
            )
        if ids.shape != idx.shape:
            raise ValueError(
                f"{name} has shape {tuple(ids.shape)}; give one for each token of "
                f"idx, {tuple(idx.shape)}."
            )


def takes(**shapes):
    """Decorates a function of tensors, or a module's forward. If it fails, the first
    of the named tensors that does not fit is named.

    Shapes are strings: "(..., T, head_size)". A dimension that two share must be the
    same; the last one of a module's input is what its first nn.Linear reads.
    """

    def decorate(function):
        names = inspect.signature(function).parameters

        @functools.wraps(function)
        def explained(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except FAULTS:
                _explain_shapes(shapes, dict(zip(names, args)) | kwargs)
                raise

        return explained

    return decorate


def _explain_shapes(shapes, given):
    sizes, owner, like, like_name = {}, {}, None, ""
    module = given.get("self")
    if module is not None:
        parts = [getattr(module, "lm_head", None), *module.modules()]
        linear = next((m for m in parts if isinstance(m, nn.Linear)), None)
        if linear is not None:
            sizes["n_embd"], like, like_name = linear.in_features, linear.weight, "its"
    for name, shape in shapes.items():
        if name not in given:
            continue
        x, dims = given[name], shape.strip("()").split(", ")
        wanted = "(" + ", ".join(str(sizes.get(d, d)) for d in dims) + ")"
        if not isinstance(x, torch.Tensor):
            raise TypeError(
                f"{name} is {shown(x)}; give a tensor {wanted}: torch.tensor makes one."
            )
        exact = dims[0] != "..."
        dims = dims if exact else dims[1:]
        found = tuple(x.shape)
        if len(found) < len(dims) or exact and len(found) != len(dims):
            raise ValueError(f"{name} has shape {found}; give {wanted}.")
        for d, size in zip(dims, found[-len(dims) :]):
            if sizes.setdefault(d, size) == size:
                owner.setdefault(d, f"{name} {found}")
            elif d in owner:
                raise ValueError(
                    f"{name} has shape {found}, {owner[d]}: {d} must be the same."
                )
            else:
                raise ValueError(f"{name} has shape {found}; give {wanted}.")
        if not x.is_floating_point():
            raise TypeError(f"{name} holds {x.dtype}; give {name}.float().")
        if like is None:
            like, like_name = x, f"{name}'s"
        if x.device != like.device:
            raise ValueError(
                f"{name} is on {x.device}, {like_name} numbers on {like.device}: give "
                f"{name}.to({str(like.device)!r})."
            )
        if x.dtype != like.dtype:
            raise TypeError(
                f"{name} holds {x.dtype}, {like_name} numbers are {like.dtype}: give "
                f"{name}.to({like.dtype})."
            )
