"""python -m minigpt train | sample, run as a user runs them."""

import os
import subprocess
import sys

import pytest
import torch

from minigpt.__main__ import main

SMALL = (
    "--steps 12 --batch-size 4 --block-size 8 --n-layer 1 --n-head 2 --n-embd 16"
).split()


def run(*arguments, cwd):
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-m", "minigpt", *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a corpus and a model trained on it by the command."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "corpus.txt").write_text("to be or not to be; " * 100, encoding="utf-8")
    done = run("train", "--data", "corpus.txt", "--device", "cpu", *SMALL, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Validation loss" in done.stdout and "nats per character" in done.stdout
    assert "12/12" in done.stderr  # the progress bar
    return folder


def test_sample_writes_the_prompt_and_as_many_characters_as_asked(folder):
    done = run("sample", "--prompt", "to be", "--tokens", 30, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("to be") and len(done.stdout) == 5 + 30 + 1


def test_the_same_seed_samples_the_same_text(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["sample", "--seed", seed, "--temperature", "2"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_training_resumes_to_more_steps(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    more = ["train", "--data", "corpus.txt", "--resume", "--steps", "15"]
    assert main(more) == 0
    assert torch.load("model.pt", weights_only=True)["step"] == 15
    assert main([*more, "--n-embd", "32"]) == 2
    assert "leave out --n-embd" in capsys.readouterr().err


def test_an_interrupted_training_exits_with_130_and_keeps_its_model(
    folder, monkeypatch, capsys
):
    import minigpt.__main__ as cli

    def interrupted(*args, on_step, **kwargs):
        def stop(step):
            on_step(step)
            if step == 5:
                raise KeyboardInterrupt

        return train(*args, on_step=stop, **kwargs)

    train = cli.train
    monkeypatch.setattr(cli, "train", interrupted)
    monkeypatch.chdir(folder)
    command = ["train", "--data", "corpus.txt", "--out", "cut.pt", *SMALL]
    assert main(command) == 130
    assert "after step 5 of 12" in capsys.readouterr().out
    assert torch.load("cut.pt", weights_only=True)["step"] == 5


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train --data missing.txt --out new.pt", "There is no file"),
        ("train --data corpus.txt", "--overwrite"),
        ("train --data corpus.txt --out new.pt --n-head 3", "n_head = 3"),
        ("train --data tiny.txt --out new.pt --block-size 64", "Use a longer text"),
        ("train --data corpus.txt --out new.pt --device nowhere", "nowhere"),
        ("train --data short.txt --out new.pt --block-size 64", "has 45 tokens"),
        ("train --data corpus.txt --out new.pt --steps 0", "steps is 0"),
        ("train --data corpus.txt --out new.pt --n-layer 0", "n_layer is 0"),
        ("train --data corpus.txt --out new.pt --n-embd 0", "n_embd = 0"),
        ("train --data corpus.txt --out new.pt --block-size 0", "block_size is 0"),
        ("train --data corpus.txt --resume --preset gpu", "leave out --preset"),
        ("sample --tokens -1", "max_new_tokens is -1"),
        ("sample --checkpoint none.pt", "python -m minigpt train"),
        ("sample --checkpoint corpus.txt", "not a checkpoint"),
        ("sample --prompt Ω", "'Ω'"),
        ("sample --prompt to --temperature -1", "temperature is -1"),
        ("sample --prompt to --top-p 7", "top_p is 7"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    folder, monkeypatch, capsys, command, message
):
    monkeypatch.chdir(folder)
    (folder / "tiny.txt").write_text("to be or not", encoding="utf-8")
    (folder / "short.txt").write_text("to be or not" * 37, encoding="utf-8")
    assert main(command.split()) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    last = error.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert not (folder / "new.pt").exists()


def test_help_explains_every_option(folder):
    for command in ("train", "sample"):
        done = run(command, "--help", cwd=folder)
        assert done.returncode == 0
        options = [line for line in done.stdout.splitlines() if line.startswith("  --")]
        assert len(options) >= 8
        assert "None" not in done.stdout  # no default that says nothing
    assert run(cwd=folder).returncode == 2
