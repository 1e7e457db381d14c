"""Lesson 09: weights in eight bits."""

import pytest
import torch
from torch.testing import assert_close

from minigpt.fast.quantization import to_int8


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
