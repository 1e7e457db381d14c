"""What beginners and adversaries type, as a table: one sentence, nothing written.

Bad input stops at three doors: the command line, the readers of files, and the
configurations (test_training, test_models, test_modern).
"""

import io
import shlex
import sys

import pytest
import torch
from small import CORPUS, PLAN, TOKENIZER, plan, small_gpt

from minigpt.checkpoint import Checkpoint, save_checkpoint
from minigpt.data import load_text
from minigpt.tools.command_line import main
from minigpt.training import Run

TRAIN = {  # what follows `train`, and what the last line must say
    "--steps ten": ["--steps", "'ten'"],
    "--steps 0": ["steps is 0", "at least 1"],
    "--learning-rate nan": ["learning_rate is nan", "above 0"],
    "--seed 99999999999999999999999": ["seed is 9999", "-2**63 to 2**64 - 1"],
    "--accumulate 0": ["accumulate is 0", "1 or more"],
    "--block-size 5000": ["5001", "smaller --block-size"],
    "--n-head 3": ["n_head = 3 must divide n_embd"],
    "--preset cpu --dropout 1": ["dropout is 1", "less than 1"],
    "--device cuda:99": ["cuda:99", "--device cpu"],
    "--data missing.txt": ["missing.txt", "path of a"],
    "--data folder": ["folder", "path of a"],
    "--data short.txt": ["has 2 characters", "longer text"],
    "--tokens 1": ["1 tokens: give at least"],
    "--data locked.txt": ["locked.txt", "Permission denied"],
    "--out folder": ["folder", "a file in it"],
    "--out model.pt": ["model.pt exists", "--resume"],
    "--out model.pt --resume --overwrite": ["--overwrite", "leave one of them out"],
    "--out damaged.pt --resume": ["damaged.pt is damaged", "another --out"],
    "--out model.pt --resume --n-layer 3": ["leave out --n-layer"],
    "--out model.pt --resume --data euro.txt": ["another text", "--data"],
    "--stepz 10": ["--stepz"],
}
SAMPLE = {
    "--checkpoint missing.pt": ["missing.pt", "Train one first"],
    "--checkpoint damaged.pt": ["damaged.pt", "train again"],
    "--prompt €": ["'€'", "Not in the vocabulary"],
    "--prompt ''": ["empty", "at least one character"],
    "--prompt -": ["empty", "at least one character"],  # nothing on standard input
    "--tokens -1": ["tokens is -1", "0 or more"],
    "--temperature nan": ["temperature is nan", "finite"],
    "--temperature 1e-40": ["temperature is 1e-40", "from 1e-6 up"],  # overflows
    "--top-k 0": ["top_k is 0", "at least 1"],
    "--n 0": ["n is 0", "1 to 100"],
    "--stop ''": ["stop is", "at least one"],
    "--device gpu": ["gpu", "--device cpu"],
}
OTHERS = {
    "": ["required", "command"],
    "tarin": ["'tarin'", "choose from"],
}
COMMANDS = {
    **{f"train --data corpus.txt --out new.pt {line}": TRAIN[line] for line in TRAIN},
    **{f"sample --checkpoint model.pt {line}": SAMPLE[line] for line in SAMPLE},
    **OTHERS,
}
READERS = {
    "no/such/file.txt": ["no/such/file.txt", "'tinyshakespeare'"],
    "folder": ["folder", "path of a"],
    "latin1.txt": ["latin1.txt", "save it as UTF-8"],
    "cut.txt": ["cut.txt", "save it as UTF-8"],
    "empty.txt": ["empty.txt", "some text"],
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A checkpoint of a GPT, as bytes."""
    path, model = tmp_path_factory.mktemp("bad") / "model.pt", small_gpt()
    config = plan(steps=1)
    save_checkpoint(path, Checkpoint(model, TOKENIZER, config, Run(model, PLAN)))
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path, monkeypatch, saved):
    """Where the call runs: good and bad files, and one that nobody may read."""
    damaged = bytearray(saved)
    damaged[len(saved) // 2 : len(saved) // 2 + 99] = bytes(99)
    files = {
        "corpus.txt": CORPUS.encode(),
        "model.pt": saved,
        "damaged.pt": damaged,
        "latin1.txt": "caf\xe9 noir".encode("latin-1"),
        "cut.txt": "caf\xe9".encode()[:-1],
        "empty.txt": b"",
        "short.txt": b"to be or not to be",
        "euro.txt": "5 \N{EURO SIGN} ".encode() * 500,
        "locked.txt": CORPUS.encode(),
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
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return tmp_path


def contents(folder):
    """Every file in it, and when it was last written."""
    return {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*")}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_bad_command_ends_with_2_and_a_sentence(folder, capsys, line):
    before = contents(folder)
    try:
        code = main(shlex.split(line))
    except SystemExit as stop:  # argparse's way
        code = stop.code
    out, err = capsys.readouterr()
    lines = err.strip().splitlines()
    assert code == 2 and out == ""
    assert len(lines) == 1 or lines[0].startswith("usage")
    for word in COMMANDS[line]:
        assert word in lines[-1]
    now = contents(folder)
    now.pop(folder, None)
    assert now == before


@pytest.mark.parametrize("path", READERS)
def test_a_text_that_cannot_be_read_says_why(folder, path):
    with pytest.raises((OSError, ValueError)) as said:
        load_text(path)
    for word in READERS[path]:
        assert word in str(said.value)


def test_the_good_files_are_good(folder):
    """What the table finds bad is not bad for another reason."""
    small = "--steps 1 --n-layer 1 --n-embd 16 --n-head 2 --block-size 8 --device cpu"
    for data in ("corpus.txt", "euro.txt"):
        assert main(f"train --data {data} --out {data}.pt {small}".split()) == 0
    assert main("sample --checkpoint model.pt --tokens 3 --device cpu".split()) == 0
    assert torch.load("model.pt", weights_only=True)["step"] == 0
