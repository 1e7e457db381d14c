"""Bad input, as a table (bad_input.py): one sentence of ours, nothing written."""

import importlib
import io
import linecache
import math
import shlex
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import bad_input
import pytest
import torch
import torch.nn as nn
from small import CORPUS, DATA, PLAN, TOKENIZER, V, plan, small_gpt

from minigpt import record
from minigpt.__main__ import main
from minigpt.bigram import BigramLanguageModel
from minigpt.checkpoint import Checkpoint, saver
from minigpt.counting import ContextCounts, CountingGPT, CountsAlone, Smoothing
from minigpt.data import load_text
from minigpt.language_model import LanguageModel
from minigpt.modern import ModernConfig, ModernGPT
from minigpt.playwright import write_play
from minigpt.training import TrainState, train

LESSONS = (
    "data corpus device evaluation averaging attention language_model multi_head block "
    "gpt recipe optimizer training checkpoint cache reading generation modern writing "
    "speculative quantization playwright ladder"
).split()
PACKAGE = Path(load_text.__code__.co_filename).parent
nan, inf = math.nan, math.inf
IDS = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 4]])
PROMPT = IDS[:1, :3]
X = torch.randn(2, 4, 16)
MATRICES = [torch.ones(2, 3, requires_grad=True)]
PLAY = write_play(100)
ONE, TWO = record.Variant("one", {1: {"loss": 2}}), record.Variant("two", {2: {}})
COUNTS, SMOOTHING = ContextCounts(DATA, V, 2), Smoothing(2)
text_of = "".join


def modern(**changes):
    return replace(ModernConfig(V, 8, n_layer=1, n_head=2, n_embd=16), **changes)


OTHER_VOCABULARY = modern(vocab_size=V + 1)
BIGRAM, GPT_, MODERN = BigramLanguageModel(V), small_gpt(), ModernGPT(modern())
BROKEN = nn.Sequential(nn.Linear(2, 2))
BROKEN[0].weight.data.fill_(nan)
SHELL = LanguageModel(V, 8, 16, nn.Identity())
COUNTING = CountingGPT(modern(), COUNTS, SMOOTHING)
ALONE = CountsAlone(COUNTS, SMOOTHING, 8)
STATE = TrainState(1, [], {}, {}, 1337)
CHECKPOINT = Checkpoint(GPT_, TOKENIZER, PLAN, STATE)
MODELS = ["BIGRAM", "SHELL", "GPT_", "MODERN", "COUNTING", "ALONE"]

API = [
    *bad_input.LESSON_01,
    *bad_input.LESSONS_02_TO_05,
    *bad_input.LESSON_06,
    *bad_input.LATER_LESSONS,
    *[(name + row[0], *row[1:]) for name in MODELS for row in bad_input.FORWARD],
    *[(name + bad_input.TOO_LONG[0], *bad_input.TOO_LONG[1:]) for name in MODELS[1:]],
]
TRAIN = "train --data corpus.txt --out new.pt --steps 2"
SAMPLE = "sample --checkpoint model.pt"
SCOPE = {}  # what the calls of the table may name
for lesson in LESSONS:
    module = importlib.import_module(f"minigpt.{lesson}")
    SCOPE |= {lesson: module, **vars(module)}
SCOPE |= globals()
COMMANDS = [
    *[(f"{TRAIN} {options}", *words) for options, *words in bad_input.TRAIN],
    *[(f"{SAMPLE} {options}", *words) for options, *words in bad_input.SAMPLE],
    *bad_input.OTHERS,
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint of a GPT, as bytes."""
    path = tmp_path_factory.mktemp("bad") / "model.pt"
    model, config = small_gpt(), plan(steps=1, warmup_steps=0)
    train(model, DATA, DATA, config, save=saver(path, model, TOKENIZER, config))
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path, monkeypatch, saved):
    """Where the call runs: good and bad files, and one that nobody may read."""
    files = {
        "corpus.txt": CORPUS.encode(),
        "model.pt": saved,
        "latin1.txt": "caf\xe9 noir".encode("latin-1"),
        "utf16.txt": "to be".encode("utf-16"),
        "cut.txt": "caf\xe9".encode()[:-1],
        "empty.txt": b"",
        "short.txt": b"to be or not to be",
        "euro.txt": "5 \N{EURO SIGN} ".encode() * 500,
        "locked.txt": CORPUS.encode(),
        "norecipe.py": b"x = 1\n",
        "recipe.py": b"def recipe(train_ids, vocab_size, seed):\n    1 / 0\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    opened = io.open

    def guarded(file, *args, **kwargs):  # as for one who is not root
        if str(file).endswith("locked.txt"):
            raise PermissionError(13, "Permission denied", str(file))
        return opened(file, *args, **kwargs)

    monkeypatch.setattr(io, "open", guarded)
    monkeypatch.setattr("builtins.open", guarded)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return tmp_path


def contents(folder):
    """Every file in it, and when it was last written."""
    return {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*")}


def fault(call, words):
    """What is wrong with the answer to a bad call; None if it is as it should be."""
    try:
        eval(call, SCOPE)
    except Exception as error:
        frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
        path, message = frame.f_code.co_filename, str(error)
        by_us = linecache.getline(path, line).strip().startswith("raise ")
        told = f"{type(error).__name__}: {message}"
        if not (by_us and Path(path).is_relative_to(PACKAGE)):
            return f"not our own sentence: {told}"
        if not isinstance(error, (ValueError, TypeError, OSError, IndexError)):
            return f"another kind of error: {told}"
        if "\n" in message or len(message) > 400:
            return f"more than a sentence: {told}"
        return _lacking(words, message)
    return "accepted"


def _lacking(words, message):
    words = [f"id {V}" if word == "id V" else word for word in words]
    lacking = [w for w in words if w != "V" and w not in message]
    return f"{lacking} not in: {message}" if lacking else None


@pytest.mark.parametrize("call, words", [(c, w) for c, *w in API], ids=str)
def test_a_bad_argument_gets_a_sentence_that_names_the_remedy(folder, call, words):
    before, weights = contents(folder), GPT_.lm_head.weight.clone()
    assert fault(call, words) is None
    assert contents(folder) == before
    assert torch.equal(GPT_.lm_head.weight, weights)


@pytest.mark.parametrize("line, words", [(c, w) for c, *w in COMMANDS], ids=str)
def test_a_bad_command_ends_with_2_and_a_sentence(folder, capsys, line, words):
    before = contents(folder)
    assert command_fault(line, words, capsys) is None
    assert contents(folder) == before


def command_fault(line, words, capsys):
    try:
        code = main(shlex.split(line))
    except SystemExit as stop:  # argparse's way
        code = stop.code
    except Exception as error:
        return f"not our own sentence: {type(error).__name__}: {error}"
    out, err = capsys.readouterr()
    if code != 2:
        return f"exit code {code}: {err or out}"
    lines = err.strip().splitlines()
    usage = lines and lines[0].startswith("usage")
    if out or "Traceback" in err or not lines or (len(lines) > 1 and not usage):
        return f"more than a sentence: {out}{err}"
    return _lacking(words, lines[-1])
