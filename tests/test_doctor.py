"""The doctor: devices that compute wrongly, imitated on the CPU, are found out."""

import argparse
import contextlib
import math
import re
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from small import V, small_gpt
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import minigpt.__main__ as cli
from minigpt import device, doctor
from minigpt.device import compiled, pick_device
from minigpt.doctor import CPU, TRUTH, Check, Place, compare, examine, fault
from minigpt.gpt import GPTConfig

HERE = torch.device("cpu")
TINY = GPTConfig(doctor.V, 8, n_layer=1, n_head=2, n_embd=16)


class LazyInPlace(TorchDispatchMode):
    """addcmul_ and addcdiv_ leave a tensor as it is unless it is contiguous."""

    lazy = (torch.ops.aten.addcmul_.default, torch.ops.aten.addcdiv_.default)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in self.lazy and not args[0].is_contiguous():
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
        q = q.detach().contiguous().view(-1).flip(0).view(q.shape)
    return F.scaled_dot_product_attention(q, k, v, **options)


def leaks_in_16_bits(q, k, v, is_causal=False, attn_mask=None, dropout_p=0.0):
    """In 16 bits the causal mask is that of every fourth row."""
    if is_causal and torch.is_autocast_enabled("cpu"):
        T = torch.arange(q.shape[2])
        is_causal, attn_mask = False, T[None, :] <= (T | 3)[:, None]
    return F.scaled_dot_product_attention(
        q, k, v, is_causal=is_causal, attn_mask=attn_mask
    )


class Missing(TorchFunctionMode):
    """A device without one operation, as it says in its own words."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.polar:
            raise NotImplementedError("no polar on this device.\nAnd much more.")
        return func(*args, **(kwargs or {}))


class StridesForgotten(TorchFunctionMode):
    """What is copied back from the device comes as it lies in memory."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cpu and not args[0].is_contiguous():
            x = args[0]
            return x.as_strided((x.numel(),), (1,)).view(x.shape).clone()
        return func(*args, **(kwargs or {}))


def failing(inside=contextlib.nullcontext):
    """{name: reason} of the small checks that fail in such a place."""
    rows = examine(Place(HERE, inside=inside), small=True)
    return {row.name: row.reason for row in rows if row.fails}


@pytest.fixture
def bf16(monkeypatch):
    """A CPU that trains in bf16, as a GPU that has it."""
    here = torch.autocast("cpu", torch.bfloat16)
    monkeypatch.setattr(doctor, "autocast", lambda device: here)


@pytest.fixture(autouse=True)
def unchecked():
    """No device has been checked yet, nor will have been."""
    for cached in (device._fault, device._say):
        cached.cache_clear()
    yield
    device._fault.cache_clear()


# --- The table tells who is wrong, and where. ---


def test_this_cpu_agrees_in_32_and_in_16_bits(bf16):
    rows = list(examine(CPU, small=True))
    assert [row.reason for row in rows if not row.agrees] == []
    assert sum(row.name.endswith(", bf16") for row in rows) == 12
    exact = [row for row in rows if row.most == 0]
    assert [row.name for row in exact] == ["copied there and back"]


def test_in_place_operations_that_skip_transposed_tensors_are_found():
    bad = failing(LazyInPlace)
    assert set(bad) == {"in place, transposed", "AdamW: five updates"}
    where = bad["in place, transposed"]
    assert re.search(r"at addc(mul|div)_ on x[.\[]", where)  # not on x itself
    assert bad["AdamW: five updates"].endswith(", single")


def test_attention_that_ignores_strides_is_found_though_training_goes_well():
    bad = failing(partial(Attention, ignores_strides))
    assert "attention, transposed" in bad
    assert "head_size = 64" in bad["attention, transposed"]
    assert "attention" not in bad  # the same numbers, contiguous
    assert not any("gradients" in name or "losses" in name for name in bad)


def test_the_truth_of_attention_does_not_rest_on_the_kernel():
    with Attention(pytest.fail):
        truth = doctor.attention(TRUTH)()
    assert doctor.apart(doctor.attention(CPU)(), truth)[0] < 2e-5


def test_a_causal_mask_that_leaks_in_16_bits_is_found(bf16):
    bad = failing(partial(Attention, leaks_in_16_bits))
    wrong = {"attention, bf16", "GPT: logits, bf16", "ModernGPT: gradients, bf16"}
    assert wrong <= set(bad)
    assert all(name.endswith(", bf16") for name in bad)


def test_a_copy_that_forgets_its_strides_is_found():
    where = failing(StridesForgotten)["copied there and back"]
    assert re.search(r"at (from )?x(\.|\[)", where)


def test_an_operation_that_is_missing_fails_in_the_devices_words():
    bad = failing(Missing)
    modern = {name for name in bad if "Modern" in name or "Muon: ten" in name}
    assert set(bad) == modern and len(bad) == 5
    assert set(bad.values()) == {"NotImplementedError: no polar on this device."}


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_number_is_infinitely_far_away(wrong):
    truth = {"a": torch.ones(3), "b": torch.zeros(2)}
    found = {"a": torch.ones(3), "b": torch.tensor([0.0, wrong])}
    assert doctor.apart(found, truth) == (math.inf, "b")
    assert doctor.apart({"a": torch.ones(2), "b": truth["b"]}, truth)[0] == math.inf


def test_a_difference_is_a_share_of_the_largest_number():
    truth = {"a": torch.tensor([100.0, 1.0]), "b": torch.tensor([1.0])}
    found = {"a": torch.tensor([100.0, 2.0]), "b": torch.tensor([1.5])}
    assert doctor.apart(found, truth) == (0.5, "b")
    found["b"] = truth["b"]
    assert doctor.apart(found, truth) == (0.01, "a")
    found["a"] = torch.tensor([100.0, 1.0 + 100.005])  # the length of the truth
    assert doctor.apart(found, truth, whole=True)[0] == pytest.approx(1, abs=1e-6)


def test_a_text_may_differ_where_two_tokens_are_as_good_as_tied():
    shape = doctor.GPTConfig(**doctor.SMALL)
    truth = doctor.text(TRUTH, shape, cache=True)()
    written = truth["text"].clone()
    assert doctor.given_away(shape, truth, truth)[0] == 0
    model = doctor.model_at(TRUTH, shape)
    with torch.no_grad():
        last = model(written[:, :-1])[0][0, -1]
    order = last.sort(descending=True)
    written[0, -1] = order.indices[1]  # the second likeliest
    lost = doctor.given_away(shape, {"text": written}, truth)[0]
    gap = order.values[0] - order.values[1]
    assert 0 < lost <= gap / last.abs().max() + 1e-9
    for token in (-1, V + 999):
        written[0, -1] = token
        assert doctor.given_away(shape, {"text": written}, truth)[0] == math.inf


def test_one_thread_and_several_are_compared(monkeypatch):
    step = partial(doctor.gradients, shape=TINY, rows=2)
    known = [Check("GPT: gradients", step, 1e-4), Check("copies", doctor.copies, 0)]
    monkeypatch.setattr(doctor, "checks", lambda small: known)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    row = list(examine(CPU, beside=doctor.ONE_THREAD))[-1]
    assert row.name == "GPT: gradients, 3 threads" and row.agrees


def test_the_checks_change_no_random_numbers():
    before = torch.get_rng_state()
    assert fault(HERE) == ""
    assert torch.equal(torch.get_rng_state(), before)


# --- The command. ---


def few(monkeypatch, most=1.0):
    """The command with one small check, which may differ so much."""
    check = Check("in place", doctor.in_place, most)
    monkeypatch.setattr(doctor, "checks", lambda small=False: [check])


def test_the_command_prints_the_table_and_that_all_agree(monkeypatch, capsys):
    few(monkeypatch)
    assert cli.main(["doctor", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert f"torch {torch.__version__}" in out and "trains in float32" in out
    assert "in place" in out and "agrees" in out and "1e+00" in out
    assert out.splitlines()[-1] == "All 1 agree: use cpu as it is."


def test_what_does_not_agree_is_exit_code_1_and_a_remedy(monkeypatch, capsys):
    few(monkeypatch, most=1e-12)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert cli.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "DIFFERS" in out and "in place: differs by" in out
    last = out.splitlines()[-1]
    assert last.startswith("1 of 1 do not agree: compute with")
    assert "update torch" in last and "unset ATEN_CPU_CAPABILITY" in last
    assert "report this table" in last


def test_a_device_that_is_not_there_is_bad_input(capsys):
    assert cli.main(["doctor", "--device", "nowhere"]) == 2
    assert "torch finds no nowhere here" in capsys.readouterr().err


def test_a_compiler_that_is_not_asked_for_need_not_run(monkeypatch, capsys):
    step = partial(doctor.gradients, shape=TINY, rows=2)
    few(monkeypatch)
    monkeypatch.setattr(
        doctor, "checks", lambda small=False: [Check("GPT: gradients", step, 1e-4)]
    )

    def broken(model):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", broken)
    asked, unasked = (list(examine(CPU, compile=how))[-1] for how in (True, None))
    assert asked.name == unasked.name == "GPT: gradients, compiled"
    assert asked.fails and not unasked.fails and not unasked.agrees
    assert "does not run" in doctor.line(unasked) and "FAILS" in doctor.line(asked)
    assert cli.main(["doctor", "--compile"]) == 1
    assert "RuntimeError: no compiler" in capsys.readouterr().out


def test_a_compiled_model_is_compared_with_the_truth(monkeypatch):
    real = partial(torch.compile, backend="aot_eager")
    step = partial(doctor.gradients, shape=TINY, rows=2)
    check = Check("GPT: gradients, compiled", step, 1e-4)

    def wrong(model):
        torch.nn.init.ones_(model.token_embedding.weight)
        return real(model)

    assert compare(check, CPU._replace(change=real)).agrees
    row = compare(check, CPU._replace(change=wrong))
    assert row.fails and "differs by" in row.reason


def test_the_help_names_the_commands_options():
    parser = argparse.ArgumentParser()
    doctor.add_options(parser)
    assert parser.parse_args([]) == argparse.Namespace(device=None, compile=False)
    assert parser.parse_args(["--device", "mps", "--compile"]).compile is True


def test_the_head_of_the_table_names_what_stands_below_it():
    row = doctor.Row("logits", differs=1e-7, most=1e-4, seconds=0.5, beside=0.25)
    head, below = doctor.head("cuda", "cpu").splitlines()[-1], doctor.line(row)
    assert head.split() == ["differs", "allowed", "cuda", "cpu"]
    for word, number in zip(head.split(), ["1e-07", "1e-04", "500.0", "250.0"]):
        assert head.index(word) + len(word) == below.index(number) + len(number)


def test_every_check_stands_in_one_line_of_the_brief_table():
    for check in doctor.checks():
        words = sum(doctor.PARTS.values(), [])
        assert sum(word in check.name for word in words) == 1, check.name
    names = {check.name for check in doctor.checks(small=True)}
    assert set(doctor.QUICK) <= names


def test_the_brief_table_says_what_does_not_agree():
    fine = doctor.Row("attention", 1e-7, 1e-5)
    bad = doctor.Row("attention, transposed", 0.5, 1e-5, "one query")
    lines = doctor.brief([fine]).splitlines()
    assert lines[2].split() == ["attention", "agrees"]
    assert "text                not checked" in lines
    said = "NO, attention, transposed: differs by 5e-01 at one query"
    assert said in doctor.brief([fine, bad])


# --- pick_device passes over what fails. ---


@pytest.fixture
def broken_gpu(monkeypatch):
    """A machine with an Apple GPU whose in-place operations are LazyInPlace; the
    list of what was checked."""
    checked = []

    def imitated(device):
        checked.append(device)
        return fault(HERE, inside=LazyInPlace)

    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "is_available", lambda: True)
    monkeypatch.setattr(doctor, "fault", imitated)
    return checked


def test_a_gpu_that_computes_wrongly_is_passed_over_in_one_line(broken_gpu, capsys):
    assert pick_device() == pick_device() == HERE
    assert broken_gpu == [torch.device("mps")]  # once in a process
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("mps fails a check here (in place")
    assert "passed over; python -m minigpt doctor --device mps says" in lines[0]


def test_a_gpu_that_is_named_is_used_with_a_warning(broken_gpu, capsys):
    assert pick_device("mps") == torch.device("mps")
    assert "used because it is named" in capsys.readouterr().err
    assert pick_device("cpu") == HERE and capsys.readouterr().err == ""


def test_a_gpu_that_agrees_is_taken_without_a_word(monkeypatch, capsys):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(doctor, "fault", lambda device: fault(HERE))
    assert pick_device() == torch.device("mps")
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_gpu_that_only_seems_to_be_there_is_passed_over(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device() == HERE
    error = capsys.readouterr().err
    assert re.match(r"cuda fails a check here \((Assertion|Runtime)Error: ", error)
    assert error.count("\n") == 1


def test_a_machine_without_a_gpu_checks_nothing(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(doctor, "fault", pytest.fail)
    assert pick_device() == pick_device("cpu") == HERE


@pytest.mark.parametrize("major, narrow", [(7, False), (8, True)])
def test_a_gpu_computes_in_bf16_only_if_it_has_it(monkeypatch, major, narrow):
    """major: of its compute capability; 7 is a T4, on which bf16 is imitated."""
    known = argparse.Namespace(major=major)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: known)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda device: True)
    expected = torch.bfloat16 if narrow else None
    assert doctor.numbers_of_training(torch.device("cuda")) == expected
    assert doctor.numbers_of_training(torch.device("mps")) is None
    assert doctor.numbers_of_training(HERE) is None


# --- compiled: a compiler where there is one. ---


def batch():
    return torch.randint(V, (4, 8)), torch.randint(V, (4, 8))


def kept(capsys, model, x, y):
    """That the model was returned as it is; the one line that says why."""
    state, weights = torch.get_rng_state(), model.state_dict()
    before = {name: w.clone() for name, w in weights.items()}
    assert compiled(model, x, y) is model
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(w, before[name]) for name, w in weights.items())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "so the model runs as it is" in lines[0]
    return lines[0]


def test_a_compiler_that_fails_leaves_the_model_as_it_is(monkeypatch, capsys):
    def broken(model):
        raise RuntimeError("no working C++ compiler\n(more)")

    monkeypatch.setattr(torch, "compile", broken)
    said = kept(capsys, small_gpt(dropout=0.2), *batch())
    assert said.endswith("RuntimeError, no working C++ compiler")


def test_a_compiler_that_fails_at_the_first_call_does_too(monkeypatch, capsys):
    def fails(graph, inputs):
        raise OSError("disk full")

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=fails))
    assert "BackendCompilerFailed" in kept(capsys, small_gpt(), *batch())


def test_a_compiled_model_with_another_loss_is_not_used(monkeypatch, capsys):
    wrong = torch.nn.Linear(2, 2)  # somebody else's weights
    wrong.forward = lambda x, y: (None, 3 * wrong.weight.square().sum())
    monkeypatch.setattr(torch, "compile", lambda model: wrong)
    assert "ValueError, it makes the loss" in kept(capsys, small_gpt(), *batch())


def test_a_compiler_that_works_is_used_and_shares_the_weights(monkeypatch, capsys):
    backend = partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(torch, "compile", backend)
    model, (x, y) = small_gpt(), batch()
    state = torch.get_rng_state()
    faster = compiled(model, x, y)
    assert faster is not model and capsys.readouterr().err == ""
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in model.parameters())
    torch.testing.assert_close(faster(x, y)[1], model(x, y)[1])
    faster(x, y)[1].backward()
    assert all(p.grad is not None for p in model.parameters())
