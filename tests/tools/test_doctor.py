"""The doctor: devices that compute wrongly, imitated on the CPU, are found out."""

import argparse
import re

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from minigpt.gpt import GPTConfig
from minigpt.tools import doctor
from minigpt.training import TrainConfig

HERE = torch.device("cpu")
SHORT = torch.float32, torch.bfloat16, torch.complex64
TINY = GPTConfig(doctor.V, 16, n_layer=1, n_head=2, n_embd=16)
STEP = ("GPT", TINY, TrainConfig(10, 4, 16, 3e-3), 1e-3, 0.1)


class Attention(TorchFunctionMode):
    """scaled_dot_product_attention whose causal mask in 16 bits is that of every
    fourth row."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is F.scaled_dot_product_attention:
            with torch._C.DisableTorchFunctionSubclass():
                if torch.is_autocast_enabled("cpu"):
                    T = torch.arange(args[0].shape[2])
                    mask = T[None, :] <= (T | 3)[:, None]
                    return func(*args, attn_mask=mask)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def bf16(monkeypatch):
    """A CPU that trains in bf16, as a GPU that has it."""
    here = torch.autocast("cpu", torch.bfloat16)
    monkeypatch.setattr(doctor, "autocast", lambda device: here)


def test_this_cpu_agrees_in_32_and_in_16_bits(bf16):
    rows = list(doctor.examine(HERE))
    assert [row for row in rows if row[1] > row[3]] == []
    assert [row[0].endswith("16 bits") for row in rows] == [False, True] * 2
    assert all(row[1] > 0 for row in rows)  # no place is as good as the truth


def test_a_causal_mask_that_leaks_in_16_bits_is_found(bf16, monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", doctor.CHECKS[1:])
    with Attention():
        rows = doctor.examine(HERE)
        failing = {name for name, differs, _, most in rows if differs > most}
    assert failing == {"ModernGPT, Muon, 16 bits"}


class Exact(TorchDispatchMode):
    """No operation may give numbers of 32 bits or fewer."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for x in tree_leaves(found):
            if isinstance(x, torch.Tensor) and x.dim() > 0:  # no count of steps
                assert x.dtype not in SHORT, func
        return found


@pytest.mark.parametrize("check", doctor.CHECKS, ids=lambda check: check[0])
def test_the_truth_is_in_float64_throughout(check):
    """Rotary positions once went through float32, and were judged by themselves."""
    torch.set_default_dtype(torch.float64)  # what begins in float32 otherwise
    try:
        with Exact():
            doctor.trained(*check[1:3])
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_no_number_or_raises_does_not_agree(monkeypatch):
    truth = {"a": torch.ones(3), "b": torch.tensor([3.0, 4.0])}

    def as_if(here):
        monkeypatch.setattr(doctor, "trained", lambda *_: here)
        return doctor.compare(truth, TINY, None)

    near = truth | {"b": torch.tensor([3.0, 4.5])}
    assert as_if(near) == (pytest.approx(0.1), "b")  # a share of the truth's length
    for wrong in (float("nan"), float("inf")):
        assert as_if(truth | {"b": torch.tensor([1.0, wrong])}) == (float("inf"), "b")
    assert as_if({})[1] == "KeyError: 'a'"


def command(*options):
    parser = argparse.ArgumentParser()
    doctor.add_options(parser)
    return doctor.main(parser.parse_args(options))


def test_the_command_prints_the_table_and_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "set_up", lambda: iter([]))
    monkeypatch.setattr(doctor, "CHECKS", [STEP])
    assert command("--device", "cpu") == 0
    out = capsys.readouterr().out
    assert "Your setup is complete." in out and f"torch {torch.__version__}" in out
    assert re.search(r"GPT .* 1e-03  agrees", out)
    assert out.splitlines()[-1] == "Everything agrees: you can use cpu."
    monkeypatch.setattr(doctor, "CHECKS", [(*STEP[:3], 1e-12, None)])
    assert command() == 1
    out = capsys.readouterr().out
    assert (
        "DIFFERS: " in out
        and "Rows that differ too much: 1. For now, use --device cpu" in out
    )


def test_what_a_set_up_lacks_is_told_with_its_remedy(monkeypatch, capsys):
    def lost(*_):
        raise FileNotFoundError("Nothing there: connect to the network.")

    monkeypatch.setitem(__import__("sys").modules, "jupyterlab", None)
    monkeypatch.setattr(doctor, "load_stored", lost)
    monkeypatch.setattr(doctor, "tiny_shakespeare", lost)
    monkeypatch.setattr(doctor, "CHECKS", [])
    assert command("--device", "cpu") == 1
    out = capsys.readouterr().out
    for told in ("jupyterlab isn't installed", "files again", "connect to the"):
        assert told in out
