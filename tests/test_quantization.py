"""Lesson 09: weights in eight bits."""

import copy

import pytest
import torch
import torch.nn as nn
from small import DATA, V, fit, plan, small_gpt
from torch.testing import assert_close

from minigpt.evaluation import evaluate
from minigpt.fast.quantization import Int8Linear, quantize, to_int8
from minigpt.fast.writing import generate
from minigpt.gpt import GPTConfig
from minigpt.modern.model import ModernConfig


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_no_weight_moves_by_more_than_half_a_step_in_any_precision(dtype):
    """In bf16 itself, one row in fourteen would have a weight of the other sign."""
    rows = torch.randn(20_000, 32) * torch.logspace(-4, 3, 20_000)[:, None]
    w = rows.to(dtype)
    q, scale = to_int8(w)
    assert q.dtype == torch.int8 and scale.shape == (20_000, 1)
    assert ((w.float() - q * scale).abs() <= scale * 0.50001).all()
    assert (q.abs().amax(dim=1) == 127).all()  # each row uses all of the range


def test_sixteen_bits_are_used_to_their_end():
    w = torch.randn(100, 32)
    q, scale = to_int8(w, torch.int16)
    assert_close(q * scale, w, rtol=0, atol=w.abs().max() / 32767 / 1.99)
    assert q.abs().max() == 32767


def test_rows_of_zeros_stay_zeros_and_hardly_more_than_zero_is_no_other_sign():
    q, scale = to_int8(torch.tensor([[0.0, 0.0], [2e-43, -2e-43]]))
    assert q.tolist() == [[0, 0], [127, -127]] and (scale > 0).all()


@pytest.mark.parametrize("shape", [(20,), (2, 3, 20)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_answers_nearly_as_before(shape, bias):
    layer, x = nn.Linear(20, 30, bias=bias), torch.randn(shape)
    small = Int8Linear(layer)
    assert_close(small(x), layer(x), rtol=0, atol=0.03)
    assert not torch.equal(small(x), layer(x))
    layer.weight.data = torch.randint(-127, 128, (30, 20)) * 0.5
    layer.weight.data[:, 0] = 63.5  # whole steps are kept exactly
    assert_close(Int8Linear(layer)(x), layer(x))


def test_a_trained_model_loses_hardly_anything_and_stays_itself():
    model = small_gpt()
    fit(model, plan(steps=120))
    loss, before = evaluate(model, DATA, 8), copy.deepcopy(model.state_dict())
    small = quantize(model)
    assert loss < 2.5 and abs(evaluate(small, DATA, 8) - loss) < 0.02
    for t in (*small.parameters(), *small.buffers()):
        t.zero_()
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, before[name]), name
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [GPTConfig, ModernConfig])
def test_every_linear_layer_is_replaced_and_the_model_writes(kind, dtype):
    model = kind(V, 8, n_layer=2, n_head=2, n_embd=16).build().to(dtype)
    torch.nn.init.normal_(model.lm_head.weight, std=0.1)
    small = quantize(model)
    layers = [m for m in small.modules() if isinstance(m, (nn.Linear, Int8Linear))]
    assert {type(m) for m in layers} == {Int8Linear} and len(layers) == 2 * 4 + 1
    with torch.no_grad():
        logits, expected = small(DATA[:8][None])[0], model(DATA[:8][None])[0]
    assert logits.dtype == dtype
    assert_close(logits, expected, rtol=0, atol=0.02)
    assert generate(small, DATA[:3][None], 20).shape == (1, 23)
