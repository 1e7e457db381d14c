"""The doctor: devices that compute wrongly, imitated on the CPU, are found out."""

import argparse
import re
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from minigpt.gpt import GPTConfig
from minigpt.tools import doctor
from minigpt.tools.doctor import Place, compare, examine
from minigpt.training import TrainConfig

HERE = torch.device("cpu")
TINY = GPTConfig(doctor.V, 8, n_layer=1, n_head=2, n_embd=16)
SHORT = torch.float32, torch.bfloat16, torch.complex64
PLAN = TrainConfig(10, 4, 8, 3e-3)
STEP = ("GPT", partial(doctor.learning, shape=TINY, config=PLAN), 1e-3, 0.1)


class LazyInPlace(TorchDispatchMode):
    """addcmul_ and addcdiv_ leave a float32 tensor as it is unless it is contiguous."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        lazy = torch.ops.aten.addcmul_.default, torch.ops.aten.addcdiv_.default
        if func in lazy and args[0].dtype == torch.float32:
            if not args[0].is_contiguous():
                return args[0]
        return func(*args, **(kwargs or {}))


class Attention(TorchFunctionMode):
    """scaled_dot_product_attention as wrong(q, k, v, **options) has it."""

    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is F.scaled_dot_product_attention:
            with torch._C.DisableTorchFunctionSubclass():
                return self.wrong(*args, **kwargs)
        return func(*args, **(kwargs or {}))


def ignores_strides(q, k, v, **options):
    """Short queries with wide heads are read as if they were contiguous."""
    if q.shape[2] <= 8 and q.shape[3] >= 64 and not q.is_contiguous():
        q = q.contiguous().view(-1).flip(0).view(q.shape)
    return F.scaled_dot_product_attention(q, k, v, **options)


def leaks_in_16_bits(q, k, v, **options):
    """In 16 bits the causal mask is that of every fourth row."""
    if not torch.is_autocast_enabled("cpu"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    T = torch.arange(q.shape[2])
    mask = T[None, :] <= (T | 3)[:, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@pytest.fixture
def bf16(monkeypatch):
    """A CPU that trains in bf16, as a GPU that has it."""
    here = torch.autocast("cpu", torch.bfloat16)
    monkeypatch.setattr(doctor, "autocast", lambda device: here)


@pytest.fixture
def few(monkeypatch):
    """A function that leaves the doctor those checks only."""
    known = doctor.checks()

    def leave(*names):
        kept = [check for check in known if check[0] in names]
        monkeypatch.setattr(doctor, "checks", lambda: kept)

    return leave


def failing():
    rows = examine(HERE)
    return {name: where for name, differs, where, most in rows if differs > most}


def test_this_cpu_agrees_in_32_and_in_16_bits(bf16):
    rows = list(examine(HERE))
    assert [row for row in rows if row[1] > row[3]] == []
    names = [row[0] for row in rows]
    assert [name.endswith("16 bits") for name in names].count(True) == 5
    assert len(set(names)) == 7 + 5
    assert all(row[1] > 0 for row in rows)  # no place is as good as the truth


def test_in_place_operations_that_skip_transposed_tensors_are_found(few):
    few("in place, transposed")
    with LazyInPlace():
        where = failing()["in place, transposed"]
    assert where in ("x.t()", "x[:, ::2]")  # not x itself


def test_attention_that_ignores_strides_is_found(few):
    few("attention", "GPT, AdamW")
    with Attention(ignores_strides):
        found = failing()
    assert (
        list(found) == ["attention"] and "head_size = 64, views" in found["attention"]
    )


def test_a_causal_mask_that_leaks_in_16_bits_is_found(few, bf16):
    few("attention", "ModernGPT, Muon")
    with Attention(leaks_in_16_bits):
        assert set(failing()) == {"attention, 16 bits", "ModernGPT, Muon, 16 bits"}


class Exact(TorchDispatchMode):
    """No operation may give numbers of 32 bits or fewer."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for x in tree_leaves(found):
            if isinstance(x, torch.Tensor) and x.dim() > 0:  # no count of steps
                assert x.dtype not in SHORT, func
        return found


@pytest.mark.parametrize("name", [check[0] for check in doctor.checks()])
def test_the_truth_is_in_float64_throughout(name):
    """Rotary positions once went through float32, and were judged by themselves."""
    compute = {check[0]: check[1] for check in doctor.checks()}[name]
    torch.set_default_dtype(torch.float64)  # what begins in float32 otherwise
    try:
        with Exact():
            compute(doctor.TRUTH)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_or_raises_does_not_agree(wrong):
    truth = {"a": torch.ones(3), "b": torch.tensor([1.0, 2.0])}

    def compute(place):
        return (
            truth
            if place is doctor.TRUTH
            else truth | {"b": torch.tensor([1.0, wrong])}
        )

    assert compare(compute, Place(HERE)) == (float("inf"), "b")

    def missing(place):
        raise NotImplementedError("no polar on this device.\nAnd much more.")

    where = "NotImplementedError: no polar on this device."
    assert compare(missing, Place(HERE)) == (float("inf"), where)


def test_a_difference_is_a_share_of_the_truths_length():
    truth = torch.tensor([3.0, 4.0])

    def compute(place):
        near = truth if place is doctor.TRUTH else torch.tensor([3.0, 4.5])
        return {"same": truth, "near": near}

    assert compare(compute, Place(HERE)) == (pytest.approx(0.1), "near")


def test_the_command_prints_the_table_and_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "checks", lambda: [STEP])
    parser = argparse.ArgumentParser()
    doctor.add_options(parser)
    assert doctor.main(parser.parse_args(["--device", "cpu"])) == 0
    out = capsys.readouterr().out
    assert f"torch {torch.__version__}" in out and re.search(
        r"GPT .* 1e-03  agrees", out
    )
    assert out.splitlines()[-1] == "All agree: use cpu as it is."
    monkeypatch.setattr(doctor, "checks", lambda: [(*STEP[:2], 1e-12, None)])
    assert doctor.main(parser.parse_args([])) == 1
    out = capsys.readouterr().out
    assert "DIFFERS: " in out and "1 do not agree: give --device cpu" in out
