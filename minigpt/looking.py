"""Lesson 11: what flows through a GPT, caught by hooks, taken apart, cut and exchanged.

Layers and heads count from 1. Sources: Elhage et al., A Mathematical Framework for
Transformer Circuits (2021), for the stream as a sum; nostalgebraist, Interpreting GPT:
the Logit Lens (2020); Meng et al., Locating and Editing Factual Associations in GPT
(2022), section 2, for the exchange of a part of the stream.
"""

from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.arguments import check_kind, must
from minigpt.attention import attention_weights
from minigpt.gpt import GPT
from minigpt.tensors import check_ids, vocabulary_of


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
def hooked(hooks):
    """Inside, hooks hang: (module, function) pairs; then they are gone, errors or not.

    function(module, inputs, output) -> None, or what takes the output's place.
    """
    with ExitStack() as hung:
        for module, function in hooks:
            hung.callback(module.register_forward_hook(function).remove)
        yield


def capture(model, idx):
    """Run a GPT on idx (B, T) and keep what flows through it: a Flow.

    Raises TypeError for another model, ValueError if T > block_size.
    """
    blocks = blocks_of(model)
    check_ids("idx", idx, 2, vocabulary_of(model))
    seen = {}

    def keep(module, inputs, output):
        seen[module] = inputs[0], output

    watched = [model.token_embedding, model.position_embedding]
    for block in blocks:
        a, f = block.attention, block.feed_forward
        watched += [block, a.qkv, a.proj, f.relu, f]
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), hooked([(module, keep) for module in watched]):
            model(idx)
    finally:
        model.train(was_training)
    flow = Flow(seen[watched[0]][1], seen[watched[1]][1], [], [], [], [], [])
    for block in blocks:
        a, f = block.attention, block.feed_forward
        qkv = seen[a.qkv][1].view(*idx.shape, 3, a.n_head, a.head_size)
        q, k, _ = qkv.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_size)
        flow.weights.append(attention_weights(q, k))
        flow.heads.append(seen[a.proj][0])
        flow.neurons.append(seen[f.relu][1])
        flow.computed.append(seen[f][1])
        flow.stream.append(seen[block][0])
    flow.stream.append(seen[blocks[-1]][1])
    return flow


def blocks_of(model):
    """The blocks of a GPT. Raises TypeError for another model: its parts differ."""
    check_kind("model", model, GPT, "a GPT of lesson 06, whose parts are known here")
    return list(model.body)[:-1]


def columns(block, head):
    """The slice of the C numbers that belongs to a head of the block, from 1."""
    a = block.attention
    fine = type(head) is int and 1 <= head <= a.n_head
    must("head", head, fine, f"a whole number from 1 to {a.n_head}")
    return slice((head - 1) * a.head_size, head * a.head_size)


def contributions(model, flow):
    """Who wrote what into the stream: {name: (B, T, C)}; the sum is flow.stream[-1].

    Names: "token", "position", "head 1.1" (layer, head), "bias 1" (of the layer's
    projection), "feed-forward 1", and so on.
    """
    parts = {"token": flow.token, "position": flow.position.expand_as(flow.token)}
    with torch.no_grad():
        for i, block in enumerate(blocks_of(model)):
            proj = block.attention.proj  # side by side @ weight.T is a sum over heads
            for head in range(1, block.attention.n_head + 1):
                mine = columns(block, head)
                out = flow.heads[i][..., mine]  # (B, T, head_size)
                parts[f"head {i + 1}.{head}"] = out @ proj.weight[:, mine].T
            parts[f"bias {i + 1}"] = proj.bias.detach().expand_as(flow.token)
            parts[f"feed-forward {i + 1}"] = flow.computed[i]
    return parts


def logit_shares(model, flow):
    """Direct logit attribution: {name: (B, T, V)}; the sum is the model's logits.

    The last LayerNorm divides by the stream's own standard deviation. That is kept as
    it was here, and so all that follows is linear; "last biases" are what remains.
    """
    norm, head, stream = model.body[-1], model.lm_head, flow.stream[-1]
    with torch.no_grad():
        variance = stream.var(dim=-1, unbiased=False, keepdim=True)
        scale = norm.weight / (variance + norm.eps).sqrt()  # (B, T, C)
        shares = {}
        for name, part in contributions(model, flow).items():
            centred = part - part.mean(dim=-1, keepdim=True)
            shares[name] = F.linear(centred * scale, head.weight)
        shares["last biases"] = F.linear(norm.bias, head.weight, head.bias).expand_as(
            shares["token"]
        )
    return shares


def lens(model, flow):
    """The logit lens: what the stream would say at once, before each block and after
    the last: a list of n_layer + 1 times (B, T, V)."""
    with torch.no_grad():
        return [model.logits(model.body[-1](stream)) for stream in flow.stream]


@contextmanager
def changed(model, layer, part, value=0.0):
    """Inside, what one part writes is `value`: 0.0, or its mean (ablation).

    part: a head's number, or "attention" or "feed-forward" for that part of the
    layer. value: a number, or a tensor (head_size,) for a head, (C,) for a part.
    """
    blocks = blocks_of(model)
    fine = type(layer) is int and 1 <= layer <= len(blocks)
    must("layer", layer, fine, f"a whole number from 1 to {len(blocks)}")
    block = blocks[layer - 1]
    whole = {"attention": block.attention, "feed-forward": block.feed_forward}

    def instead(module, inputs, output):
        return torch.zeros_like(output) + value

    def one_head(module, inputs, output):
        x = inputs[0].clone()  # (B, T, C), the heads side by side
        x[..., mine] = value
        return F.linear(x, module.weight, module.bias)

    if part in whole:
        hook = whole[part], instead
    else:
        mine = columns(block, part)
        hook = block.attention.proj, one_head
    with hooked([hook]):
        yield


@contextmanager
def patched(model, layer, position, vector):
    """Inside, the stream at some positions is `vector` before block `layer`, where
    n_layer + 1 is the last norm. So a part of one text is put into another.

    position: a number, a slice or a list of them; vector: (C,) or (positions, C).
    """
    last = len(blocks_of(model)) + 1
    fine = type(layer) is int and 1 <= layer <= last
    must("layer", layer, fine, f"a whole number from 1 to {last}")

    def exchange(module, inputs):
        x = inputs[0].clone()
        x[:, position] = vector
        return (x,)

    handle = model.body[layer - 1].register_forward_pre_hook(exchange)
    try:
        yield
    finally:
        handle.remove()
