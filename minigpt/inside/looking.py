"""Lesson 11: catch what flows through a GPT, take it apart, cut it and exchange it.

Layers and heads are counted from 1. Sources: Elhage et al., A Mathematical Framework
for Transformer Circuits (2021), for the stream as a sum; Meng et al., Locating and
Editing Factual Associations in GPT (2022), section 2, for the exchange of a part.
"""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from minigpt.attention import attention_weights
from minigpt.evaluation import evaluating
from minigpt.interfaces import Model


class Flow(NamedTuple):
    """What one forward pass computed. Lists have an entry for each layer."""

    token: torch.Tensor  # (B, T, C), the embedding of each character
    position: torch.Tensor  # (T, C)
    weights: list  # (B, n_head, T, T), rows sum to one
    heads: list  # (B, T, C), the heads' outputs side by side, before proj
    neurons: list  # (B, T, 4 * C), after the ReLU
    computed: list  # (B, T, C), what the feed-forward layer adds to the stream
    stream: list  # (B, T, C): before the first block, and after each: n_layer + 1


@contextmanager
def hooked(hooks: list) -> Generator[None]:
    """Attach hooks, (module, function) pairs, inside this block. Afterwards they're
    removed, even after an error.

    function(module, inputs, output) -> None, or a replacement for the output.
    """
    with ExitStack() as hung:
        for module, function in hooks:
            hung.enter_context(module.register_forward_hook(function))
        yield


@torch.no_grad()
def capture(model: Model, idx: torch.Tensor) -> Flow:
    """Run a GPT on idx (B, T) and return what flows through it: a Flow."""
    seen = {}

    def keep(module, inputs, output):
        seen[module] = inputs[0], output

    hooks = [(module, keep) for module in model.modules()]
    with evaluating(model), hooked(hooks):
        model(idx)
    token, position = model.token_embedding, model.position_embedding
    flow = Flow(seen[token][1], seen[position][1], [], [], [], [], [])
    for block in model.body[:-1]:  # the last is the LayerNorm
        a, f = block.attention, block.feed_forward
        qkv = seen[a.qkv][1].view(*idx.shape, 3, a.n_head, a.head_size)
        q, k, _ = qkv.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_size)
        flow.weights.append(attention_weights(q, k))
        flow.heads.append(seen[a.proj][0])
        flow.neurons.append(seen[f.relu][1])
        flow.computed.append(seen[f][1])
        flow.stream.append(seen[block][0])
    flow.stream.append(seen[model.body[-1]][0])
    return flow


def columns(attention: Any, head: int) -> slice:
    """Which slice of the C numbers belongs to a head. Heads are counted from 1."""
    return slice((head - 1) * attention.head_size, head * attention.head_size)


@torch.no_grad()
def contributions(model: Model, flow: Flow) -> dict[str, torch.Tensor]:
    """Who wrote what into the stream: {name: (B, T, C)}; the sum is flow.stream[-1].

    Names: "token", "position", "head 1.1" (layer, head), "bias 1" (of the layer's
    projection), "feed-forward 1", and so on.
    """
    parts = {"token": flow.token, "position": flow.position.expand_as(flow.token)}
    for layer, block in enumerate(model.body[:-1], 1):
        proj = block.attention.proj  # side by side @ weight.T is a sum over heads
        for head in range(1, block.attention.n_head + 1):
            mine = columns(block.attention, head)
            out = flow.heads[layer - 1][..., mine]  # (B, T, head_size)
            parts[f"head {layer}.{head}"] = out @ proj.weight[:, mine].T
        parts[f"bias {layer}"] = proj.bias.expand_as(flow.token)
        parts[f"feed-forward {layer}"] = flow.computed[layer - 1]
    return parts


@torch.no_grad()
def logit_shares(model: Model, flow: Flow) -> dict[str, torch.Tensor]:
    """Direct logit attribution: {name: (B, T, V)}; the sum is the model's logits.

    The last LayerNorm divides by the stream's own standard deviation. We keep that
    fixed, so everything after it is linear. "last biases" is what's left over.
    """
    norm, head, stream = model.body[-1], model.lm_head, flow.stream[-1]
    variance = stream.var(dim=-1, unbiased=False, keepdim=True)
    scale = norm.weight / (variance + norm.eps).sqrt()  # (B, T, C)
    shares = {}
    for name, part in contributions(model, flow).items():
        centred = part - part.mean(dim=-1, keepdim=True)
        shares[name] = F.linear(centred * scale, head.weight)  # (B, T, V)
    last = F.linear(norm.bias, head.weight, head.bias)  # (V,)
    return {**shares, "last biases": last.expand_as(shares["token"])}


def check_layer(layer: int, last: int) -> None:
    """Raise ValueError: body[-1], say, would silently be another layer."""
    if not 1 <= layer <= last:
        raise ValueError(f"layer is {layer}; give a number from 1 to {last}.")


@contextmanager
def changed(
    model: Model, layer: int, part: Any, value: float | torch.Tensor = 0.0
) -> Generator[None]:
    """Inside this block, one part writes `value`: zeros, a mean, or its output for
    another text.

    part: a head's number, or "attention" or "feed-forward" for that part of the layer.
    value: a number, or a tensor that torch can broadcast to (B, T, head_size) for a
    head or (B, T, C) for a part. Raises ValueError for a part that the model doesn't
    have.
    """
    check_layer(layer, len(model.body) - 1)
    block = model.body[layer - 1]
    a = block.attention
    whole = {"attention": a, "feed-forward": block.feed_forward}
    if part not in [*range(1, a.n_head + 1), *whole]:
        raise ValueError(
            f"There is no part {part!r}: give a head from 1 to {a.n_head}, "
            "'attention' or 'feed-forward'."
        )

    def instead(module, inputs, output):
        return torch.zeros_like(output) + value

    def one_head(proj, inputs, output):
        x = inputs[0].clone()  # (B, T, C), the heads side by side
        x[..., columns(a, part)] = value
        return F.linear(x, proj.weight, proj.bias)

    hook = (whole[part], instead) if part in whole else (a.proj, one_head)
    with hooked([hook]):
        yield


@contextmanager
def patched(
    model: Model, layer: int, position: int | slice | list[int], vector: torch.Tensor
) -> Generator[None]:
    """Inside this block, the stream at some positions is replaced by `vector` before
    block `layer`; n_layer + 1 means the last norm. This puts a part of one text into
    another.

    position: a number, a slice or a list of them; vector: (C,) or (positions, C).
    """
    check_layer(layer, len(model.body))

    def exchange(module, inputs):
        x = inputs[0].clone()
        x[:, position] = vector
        return (x,)

    with model.body[layer - 1].register_forward_pre_hook(exchange):
        yield
