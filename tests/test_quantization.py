"""Lesson 09: weights in eight bits."""

import copy
import io

import pytest
import torch
import torch.nn as nn
from small import DATA, V, fit, plan, small_gpt
from torch.testing import assert_close

from minigpt.cache import can_cache
from minigpt.evaluation import evaluate
from minigpt.generation import generate
from minigpt.gpt import GPTConfig
from minigpt.modern import ModernConfig
from minigpt.quantization import (
    Int8Linear,
    file_bytes,
    quantize,
    to_int8,
    whole_product,
)


@pytest.fixture(scope="module")
def trained():
    model = small_gpt()
    fit(model, plan(steps=120))
    return model


@pytest.fixture(params=[False, True], ids=["weights", "activations too"])
def activations(request):
    return request.param


def test_no_weight_moves_by_more_than_half_a_step():
    w = torch.randn(7, 50) * torch.tensor([1e-4, 1e-2, 1, 1, 10, 1e3, 1e5])[:, None]
    q, scale = to_int8(w)
    assert q.dtype == torch.int8 and scale.shape == (7, 1)
    assert ((w - q * scale).abs() <= scale * 0.5001).all()
    assert (q.abs().amax(dim=1) == 127).all()  # each row uses all of the range


def test_rows_of_zeros_stay_zeros():
    q, scale = to_int8(torch.zeros(2, 5))
    assert not q.any() and scale.isfinite().all()
    out = Int8Linear(nn.Linear(5, 3), activations=True)(torch.zeros(2, 5))
    assert out.isfinite().all()


def test_a_product_of_whole_numbers_is_exact():
    x, w = torch.randint(-127, 128, (2, 33, 400), dtype=torch.int8)
    expected = x.long() @ w.long().T
    assert torch.equal(whole_product(x, w).long(), expected)
    for rows in (1, 2, 17):
        assert torch.equal(whole_product(x[:rows], w).long(), expected[:rows])


@pytest.mark.parametrize("shape", [(20,), (1, 20), (2, 3, 20)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_answers_nearly_as_before(activations, shape, bias):
    layer, x = nn.Linear(20, 30, bias=bias), torch.randn(shape)
    small = Int8Linear(layer, activations)
    assert_close(small(x), layer(x), rtol=0, atol=0.03)
    assert not torch.equal(small(x), layer(x))
    assert "in_features=20, out_features=30" in repr(small)


def test_a_weight_of_whole_steps_is_kept_exactly():
    layer = nn.Linear(4, 2, bias=False)
    layer.weight.data = torch.tensor([[127, -3, 0, 64], [-127, 1, 2, 3]]) * 0.5
    x = torch.randn(3, 4)
    assert_close(Int8Linear(layer)(x), layer(x))


def test_a_trained_model_loses_hardly_anything(trained, activations):
    loss = evaluate(trained, DATA, 8)
    small = quantize(trained, activations)
    assert loss < 2.5
    assert abs(evaluate(small, DATA, 8) - loss) < 0.02


def test_the_model_itself_is_left_alone(trained, activations):
    before = copy.deepcopy(trained.state_dict())
    small = quantize(trained, activations)
    with torch.no_grad():
        for t in (*small.parameters(), *small.buffers()):
            t.zero_()
    for name, weight in trained.state_dict().items():
        assert torch.equal(weight, before[name]), name
    assert all(p.requires_grad for p in trained.parameters())


@pytest.mark.parametrize("kind", [GPTConfig, ModernConfig])
def test_every_linear_layer_is_replaced_and_writes_with_a_cache(kind, activations):
    config = kind(V, 8, n_layer=2, n_head=2, n_embd=16)
    small = quantize(config.build(), activations)
    layers = [m for m in small.modules() if isinstance(m, (nn.Linear, Int8Linear))]
    assert {type(m) for m in layers} == {Int8Linear} and len(layers) == 2 * 4 + 1
    assert can_cache(small) and not small.training
    texts = [
        generate(
            small,
            DATA[:3][None],
            20,
            generator=torch.Generator().manual_seed(1),
            cache=cache,
        )
        for cache in (True, False)
    ]
    assert torch.equal(*texts)


def test_the_file_takes_a_quarter_for_each_linear_weight():
    model = GPTConfig(65, 16, n_layer=2, n_head=2, n_embd=64).build()
    weights = sum(m.weight.numel() for m in model.modules() if type(m) is nn.Linear)
    rows = sum(m.out_features for m in model.modules() if type(m) is nn.Linear)
    saved = file_bytes(model) - file_bytes(quantize(model))
    assert saved == pytest.approx(3 * weights - 4 * rows, rel=0.05)


def test_a_file_is_read_back_into_a_quantized_model(trained, activations):
    small, file = quantize(trained, activations), io.BytesIO()
    torch.save(small.state_dict(), file)
    file.seek(0)
    again = quantize(small_gpt(), activations)
    again.load_state_dict(torch.load(file, weights_only=True))
    x = DATA[:8][None]
    assert torch.equal(again(x)[0], small(x)[0])
    assert not torch.equal(again(x)[0], quantize(small_gpt(), activations)(x)[0])
