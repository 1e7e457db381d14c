"""Lessons 02 and 03: averaging, attention, one head."""

import math

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.testing import assert_close

from minigpt.attention import Head, SelfAttention, attention
from minigpt.averaging import (
    average_attention,
    average_loop,
    average_matmul,
    average_softmax,
)
from minigpt.language_model import LanguageModel


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 5, 3), (4, 32, 16)])
def test_the_four_averaging_versions_agree(shape):
    x = torch.randn(shape)
    zero = torch.zeros(*shape[:2], 4)
    expected = average_loop(x)
    assert_close(average_matmul(x), expected)
    assert_close(average_softmax(x), expected)
    assert_close(average_attention(x, zero, torch.randn_like(zero)), expected)


def test_version_4_is_attention_whose_values_are_the_input():
    x, q, k = torch.randn(3, 2, 5, 4)
    assert_close(average_attention(x, q, k), attention(q, k, x)[0])


def test_the_toy_of_the_course():
    x = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])
    expected = torch.tensor([[[2, 7], [4, 5.5], [14 / 3, 16 / 3]]])
    assert_close(average_loop(x), expected)


def test_attention_equals_the_double_loop_over_queries_and_keys():
    q, k, v = torch.randn(3, 2, 6, 5, dtype=torch.float64)
    out, weights = attention(q, k, v)
    for b in range(2):
        for t in range(6):
            scores = [math.exp(q[b, t] @ k[b, i] / math.sqrt(5)) for i in range(t + 1)]
            for i, score in enumerate(scores):
                assert weights[b, t, i].item() == pytest.approx(score / sum(scores))
            mixed = sum(s / sum(scores) * v[b, i] for i, s in enumerate(scores))
            assert_close(out[b, t], mixed)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("leading", [(), (3,), (2, 4)])
def test_attention_equals_torchs_own_for_any_leading_dimensions(causal, leading):
    q, k, v = torch.randn(3, *leading, 7, 8)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    assert_close(attention(q, k, v, causal)[0], expected)


@pytest.mark.parametrize("causal", [True, False])
def test_rows_of_weights_sum_to_one(causal):
    q, k, v = torch.randn(3, 2, 9, 4) * 10
    assert_close(attention(q, k, v, causal)[1].sum(-1), torch.ones(2, 9))


def test_causal_weights_are_exactly_zero_on_the_future():
    q, k, v = torch.randn(3, 2, 9, 4)
    weights = attention(q, k, v)[1]
    assert torch.equal(weights, weights.tril())
    assert (weights.diagonal(dim1=-2, dim2=-1) > 0).all()


def test_cross_attention_takes_keys_and_values_of_another_length():
    q, k, v = torch.randn(5, 8), torch.randn(9, 8), torch.randn(9, 3)
    out, weights = attention(q, k, v, causal=False)
    assert out.shape == (5, 3) and weights.shape == (5, 9)


def test_permuting_the_tokens_permutes_the_outputs_without_a_mask():
    layer, x, order = SelfAttention(8, 6), torch.randn(10, 8), torch.randperm(10)
    assert_close(layer(x[order]), layer(x)[order])


@pytest.mark.parametrize("layer", [SelfAttention(3, 2), Head(3, 2)])
def test_a_head_is_three_matrices_without_biases(layer):
    shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    assert shapes == dict.fromkeys(
        ["query.weight", "key.weight", "value.weight"], (2, 3)
    )


def test_the_seeded_head_of_the_course():
    torch.manual_seed(1337)
    x = torch.randn(4, 8, 32)
    head = Head(32, 16)  # key first, then query
    scores = head.query(x) @ head.key(x).transpose(-2, -1)
    expected = torch.tensor([-1.7629, -1.3011, 0.5652])
    assert_close(scores[0, 0, :3].detach(), expected, atol=5e-5, rtol=0)
    assert head(x).shape == (4, 8, 16)


@pytest.mark.parametrize("kind", [SelfAttention, Head])
def test_a_layer_equals_attention_of_its_own_matrices(kind):
    layer, x = kind(12, 5), torch.randn(2, 9, 12)
    q, k, v = layer.query(x), layer.key(x), layer.value(x)
    assert_close(layer(x), attention(q, k, v, causal=kind is Head)[0])


def test_dropout_in_a_head_acts_in_training_only():
    head, x = Head(12, 5, dropout=0.5), torch.randn(2, 9, 12)
    assert not torch.equal(head(x), head(x))
    head.eval()
    assert torch.equal(head(x), head(x))


def test_too_long_an_input_names_both_lengths_and_the_remedy():
    model = LanguageModel(5, 8, 4, nn.Identity())
    with pytest.raises(ValueError, match=r"T = 9 .* block_size is 8.*idx\[:, -8:\]"):
        model(torch.zeros(1, 9, dtype=torch.long))


def test_the_shell_adds_positions_to_tokens():
    model = LanguageModel(5, 8, 4, nn.Identity())
    idx = torch.tensor([[3, 3, 1]])
    x = model.token_embedding.weight[idx[0]] + model.position_embedding.weight[:3]
    assert_close(model(idx)[0][0], model.lm_head(x))
