"""python -m minigpt train | sample: exit codes, files, and what is said."""

import io
import os
import signal
import subprocess
import sys
import urllib.error
from errno import EINVAL

import pytest
import torch

import minigpt.__main__ as cli
from minigpt import texts
from minigpt.__main__ import main
from minigpt.checkpoint import load_checkpoint
from minigpt.evaluation import evaluate
from minigpt.generation import generate

SMALL = (
    "--preset cpu --steps 12 --batch-size 4 --block-size 8 --n-layer 1 --n-head 2 "
    "--n-embd 16 --learning-rate 0.01 --dropout 0.1"
).split()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a corpus, and a model trained on it by the command."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "corpus.txt").write_text("to be or not to be; " * 100, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "minigpt", "train", "--data", "corpus.txt", *SMALL],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Validation loss" in done.stdout and "nats per character" in done.stdout
    assert "12/12" in done.stderr  # the progress bar
    return folder


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    """A copy of it, in which the test runs."""
    for name in ("corpus.txt", "model.pt"):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(*options):
    return main(["train", "--data", "corpus.txt", "--device", "cpu", *options])


def refused(capsys):
    """The one line of an error."""
    lines = capsys.readouterr().err.strip().splitlines()
    assert [line for line in lines if "Traceback" in line] == []
    assert lines[-1].startswith("error: ")
    return lines[-1]


def weights(path):
    model = load_checkpoint(path).model
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# --- train ---


def test_every_option_of_training_reaches_the_model_or_its_recipe(folder):
    run = load_checkpoint("model.pt")
    model, recipe = run.model.config, run.config
    assert (model.block_size, model.n_layer, model.n_head) == (8, 1, 2)
    assert (model.n_embd, model.dropout) == (16, 0.1)
    assert (recipe.steps, recipe.batch_size, recipe.block_size) == (12, 4, 8)
    assert (recipe.learning_rate, recipe.seed) == (0.01, 1337)
    assert train("--out", "other.pt", *SMALL, "--seed", "3") == 0
    assert load_checkpoint("other.pt").config.seed == 3


def test_the_seed_decides_weights_batches_and_dropout(folder):
    torch.manual_seed(torch.seed() % 1000)  # whatever came before
    assert train("--out", "again.pt", *SMALL) == 0
    assert train("--out", "other.pt", *SMALL, "--seed", "3") == 0
    assert torch.equal(weights("again.pt"), weights("model.pt"))
    assert not torch.equal(weights("other.pt"), weights("model.pt"))


def test_the_loss_that_is_told_is_the_exact_one_of_the_written_model(folder, capsys):
    assert train("--overwrite", *SMALL) == 0
    run = load_checkpoint("model.pt")
    text = (folder / "corpus.txt").read_text(encoding="utf-8")
    ids = torch.tensor(run.tokenizer.encode(text))[1800:]
    loss = evaluate(run.model, ids, 8)
    assert f"Validation loss {loss:.4f} nats" in capsys.readouterr().out


def test_training_compiles_what_it_can(folder, monkeypatch, capsys):
    asked = []

    def compile(model):
        asked.append(model)
        if len(asked) > 1:
            raise RuntimeError("no compiler\nand more")
        return torch.nn.Sequential(model)[0]

    monkeypatch.setattr(torch, "compile", compile)
    for name in ("one.pt", "two.pt"):
        assert train("--out", name, *SMALL, "--compile") == 0
        assert torch.equal(weights(name), weights("model.pt"))
    assert len(asked) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if "compile" in line]
    assert len(said) == 1 and "RuntimeError, no compiler" in said[0]


def test_training_resumes_to_more_steps(folder):
    assert train("--resume", "--steps", "15") == 0
    run = load_checkpoint("model.pt")
    assert run.state.step == 15 and [r.step for r in run.state.history] == [12, 15]
    assert run.config.learning_rate == 0.01 and run.model.config.n_embd == 16


def test_a_complete_run_says_how_to_go_on_with_it(folder, capsys):
    before = (folder / "model.pt").read_bytes()
    assert train("--resume") == 0
    assert "is complete; --steps beyond 12" in capsys.readouterr().out
    assert (folder / "model.pt").read_bytes() == before


def test_resume_without_a_run_begins_one(folder):
    assert train("--resume", "--out", "new.pt", *SMALL, "--seed", "5") == 0
    assert load_checkpoint("new.pt").config.seed == 5


def test_resuming_takes_the_settings_that_may_change(folder):
    assert train(*"--resume --steps 14 --batch-size 2 --learning-rate 0.5".split()) == 0
    recipe = load_checkpoint("model.pt").config
    assert (recipe.steps, recipe.batch_size, recipe.learning_rate) == (14, 2, 0.5)


@pytest.mark.parametrize(
    "option",
    "--seed=1 --preset=gpu --n-embd=32 --n-layer=2 --n-head=1 --block-size=4 "
    "--dropout=0".split(),
)
def test_resuming_refuses_what_cannot_change(folder, capsys, option):
    assert train("--resume", "--steps", "15", option) == 2
    flag, _, _ = option.partition("=")
    assert f"leave out {flag}." in refused(capsys)
    assert load_checkpoint("model.pt").state.step == 12


def test_an_existing_model_is_replaced_only_on_request(folder, capsys):
    before = (folder / "model.pt").read_bytes()
    assert train(*SMALL) == 2
    assert "--resume" in (said := refused(capsys)) and "--overwrite" in said
    assert (folder / "model.pt").read_bytes() == before
    assert train(*SMALL, "--overwrite", "--seed", "3") == 0
    assert load_checkpoint("model.pt").config.seed == 3


def test_an_interrupted_training_exits_with_130_keeps_its_model_and_goes_on(
    folder, monkeypatch, capsys
):
    def interrupted(*args, on_step, **kwargs):
        def stop(step):
            on_step(step)
            if step == 5:
                signal.raise_signal(signal.SIGINT)

        return real(*args, on_step=stop, **kwargs)

    real = cli.train
    monkeypatch.setattr(cli, "train", interrupted)
    assert train("--out", "cut.pt", *SMALL) == 130
    assert "after step 5 of 12" in capsys.readouterr().out
    assert load_checkpoint("cut.pt").state.step == 5
    monkeypatch.setattr(cli, "train", real)
    assert train("--out", "cut.pt", "--resume") == 0
    assert torch.equal(weights("cut.pt"), weights("model.pt"))


@pytest.mark.parametrize("command", ["train --data corpus.txt --out new.pt", "sample"])
def test_an_interrupt_at_any_other_time_exits_with_130(
    folder, monkeypatch, capsys, command
):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    for name in ("train", "stream"):
        monkeypatch.setattr(cli, name, interrupted)
    assert main(command.split()) == 130
    assert capsys.readouterr().err.strip().splitlines()[-1] == "Interrupted."


def test_the_command_line_never_trains_on_a_substitute(folder, monkeypatch, capsys):
    def download(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setenv("MINIGPT_DATA", "gone")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    for options in ([], ["--resume"]):
        assert main(["train", "--out", "new.pt", *options, *SMALL]) == 2
        said = refused(capsys)
        assert "connect to the network" in said and texts.URL in said
    assert not (folder / "new.pt").exists()


@pytest.mark.parametrize("out", ["corpus.txt/model.pt", "a folder", "forbidden.pt"])
@pytest.mark.parametrize("more", [[], ["--overwrite"], ["--resume"]], ids=str)
def test_a_place_that_cannot_be_written_is_refused_before_training(
    folder, monkeypatch, capsys, out, more
):
    def forbidden(path, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    (folder / "a folder").mkdir()
    if out == "forbidden.pt":
        monkeypatch.setattr("pathlib.Path.touch", forbidden)
    monkeypatch.setattr(cli, "train", lambda *a, **k: pytest.fail("trained"))
    before = sorted(folder.rglob("*"))
    assert train("--out", out, *more, *SMALL) == 2
    assert out in (said := refused(capsys))
    assert "another place" in said or "name of a file in it" in said
    assert sorted(folder.rglob("*")) == before


# --- sample ---


def test_sample_writes_the_prompt_and_as_many_characters_as_asked(folder, capsys):
    assert main(["sample", "--prompt", "to be", "--tokens", "30"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("to be") and len(text) == 5 + 30 + 1
    assert main(["sample", "--tokens", "3"]) == 0
    assert len(capsys.readouterr().out) == 1 + 3 + 1


def test_the_same_seed_samples_the_same_text(folder, capsys):
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["sample", "--seed", seed, "--temperature", "2"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    "knob", ["--temperature=0", "--temperature=1e-40", "--top-k=1", "--top-p=0.001"]
)
def test_each_knob_can_make_sampling_greedy(folder, capsys, knob):
    texts = set()
    for seed in ("1", "2"):
        assert main(["sample", "--seed", seed, knob, "--tokens", "60"]) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1


def test_a_text_is_what_generate_would_have_written(folder, capsys):
    run = load_checkpoint("model.pt")
    assert main("sample --prompt to --tokens 40 --seed 5 --window slide".split()) == 0
    torch.manual_seed(5)
    start = torch.tensor([run.tokenizer.encode("to")])
    idx = generate(run.model, start, 40, temperature=0.8, window="slide")
    assert capsys.readouterr().out == run.tokenizer.decode(idx[0]) + "\n"


def test_the_text_is_printed_as_it_is_written(folder, monkeypatch, capsys):
    seen = []

    def slow(*args, **kwargs):
        for char in "abc":
            yield char
            seen.append(capsys.readouterr().out)

    monkeypatch.setattr(cli, "stream", slow)
    assert main(["sample", "--prompt", "to "]) == 0
    assert seen == ["to a", "b", "c"] and capsys.readouterr().out == "\n"


def test_an_interrupted_text_ends_its_line(folder, monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        yield "be "
        yield "or"
        signal.raise_signal(signal.SIGINT)
        yield "not"

    monkeypatch.setattr(cli, "stream", interrupted)
    assert main(["sample", "--prompt", "to "]) == 130
    said = capsys.readouterr()
    assert said.out == "to be or\n" and said.err == "Interrupted.\n"


def test_several_texts_stand_apart_and_differ(folder, capsys):
    assert main("sample --prompt to --n 3 --tokens 30 --temperature 3".split()) == 0
    texts = capsys.readouterr().out.removesuffix("\n").split("\n" + "-" * 20 + "\n")
    assert len(set(texts)) == 3
    assert {len(text) for text in texts} == {32}
    assert all(text.startswith("to") for text in texts)


def test_the_prompt_can_come_from_standard_input(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("to be or not"))
    assert main("sample --prompt - --tokens 5".split()) == 0
    assert capsys.readouterr().out.startswith("to be or not")
    assert main("sample --prompt - --tokens 5".split()) == 2  # nothing is left
    assert "A prompt is empty" in refused(capsys)


@pytest.mark.parametrize("n", [1, 2])
def test_a_text_ends_before_the_first_stop(folder, monkeypatch, capsys, n):
    for name in ("stream", "write"):
        real = getattr(cli, name)

        def noting(*args, real=real, **kwargs):
            given.append(kwargs["stop"])
            return real(*args, **kwargs)

        monkeypatch.setattr(cli, name, noting)
    given = []
    command = (
        f"sample --prompt to --tokens 400 --seed 1 --n {n} --stop e --stop".split()
    )
    assert main([*command, r";\n"]) == 0
    assert given == [["e", ";\n"]]
    out = capsys.readouterr().out
    assert "e" not in out and out.count("to") >= n and len(out) < 800


def test_a_reader_that_leaves_is_no_error(folder):
    command = [sys.executable, "-m", "minigpt", "sample", "--tokens", "3000"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    sample = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    sample.stdout.read(5)
    sample.stdout.close()
    assert sample.stderr.read() == b"" and sample.wait(60) == 0


def test_windows_has_another_word_for_a_reader_that_leaves(monkeypatch):
    closed, misnamed = OSError(EINVAL, "Invalid"), OSError(EINVAL, "Invalid", "a?.pt")
    assert cli.nobody_reads_on(BrokenPipeError()) and not cli.nobody_reads_on(closed)
    monkeypatch.setattr(cli.sys, "platform", "win32")
    assert cli.nobody_reads_on(closed) and not cli.nobody_reads_on(misnamed)
    assert not cli.nobody_reads_on(ValueError("Give another."))


def test_pipes_carry_utf_8_whatever_the_machine_prefers(folder):
    text = "к одной и той же цели ведёт много дорог " * 20
    (folder / "russian.txt").write_text(text, encoding="utf-8")
    assert train("--data", "russian.txt", "--out", "russian.pt", *SMALL) == 0
    command = "-m minigpt sample --checkpoint russian.pt --tokens 9 --prompt -"
    sample = subprocess.run(
        [sys.executable, *command.split()],
        input="дорог".encode(),
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},  # as on Windows
    )
    assert sample.returncode == 0, sample.stderr
    assert sample.stdout.decode("utf-8").startswith("дорог")


def damaged(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("command", ["sample", "train --data corpus.txt --resume"])
def test_a_damaged_model_gets_one_line_and_exit_code_2(folder, capsys, command):
    damaged(folder / "model.pt")
    assert main(command.split()) == 2
    assert "damaged or cut short" in refused(capsys)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("train --data missing.txt --out new.pt", "There is no file"),
        ("train --data corpus.txt --out new.pt --n-head 3", "n_head = 3"),
        ("train --data tiny.txt --out new.pt --block-size 64", "Use a longer text"),
        ("train --data corpus.txt --out new.pt --device nowhere", "no nowhere here"),
        ("train --data short.txt --out new.pt --block-size 64", "has 45 tokens"),
        ("train --data corpus.txt --out new.pt --steps 0", "steps is 0"),
        ("train --data corpus.txt --out new.pt --n-layer 0", "n_layer is 0"),
        ("train --data corpus.txt --out new.pt --n-embd 0", "n_embd is 0"),
        ("train --data corpus.txt --out new.pt --block-size 0", "block_size is 0"),
        ("train --data corpus.txt --out new.pt --dropout nan", "dropout is nan"),
        ("train --data corpus.txt --out new.pt --learning-rate 0", "rate is 0.0"),
        ("train --data strange.txt --resume", "--resume takes the text of the run"),
        ("sample --tokens -1", "max_new_tokens is -1"),
        ("sample --checkpoint none.pt", "python -m minigpt train"),
        ("sample --checkpoint corpus.txt", "not a checkpoint"),
        ("sample --prompt Ω", "'Ω'"),
        ("sample --device nowhere", "finds no nowhere here"),
        ("sample --prompt to --temperature -1", "temperature is -1"),
        ("sample --prompt to --temperature inf", "temperature is inf"),
        ("sample --prompt to --top-p 7", "top_p is 7"),
        ("sample --n 0", "n is 0"),
        ("sample --stop=", "A stop string is empty"),
        ("sample --n 2 --stop=", "A stop string is empty"),
        ("sample --window roll", "rotary"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(folder, capsys, command, message):
    (folder / "tiny.txt").write_text("to be or not", encoding="utf-8")
    (folder / "short.txt").write_text("to be or not" * 37, encoding="utf-8")
    (folder / "strange.txt").write_text("X" * 99, encoding="utf-8")
    before = sorted(folder.iterdir())
    assert main(command.split()) == 2
    assert message in refused(capsys)
    assert sorted(folder.iterdir()) == before


def test_help_explains_every_option(capsys):
    for command in ("train", "sample"):
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code == 0
        said = capsys.readouterr().out
        options = [line for line in said.splitlines() if line.startswith("  --")]
        assert len(options) >= 8
        assert "None" not in said  # no default that says nothing
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2


def test_defaults_are_those_that_the_help_names():
    options = cli.parser().parse_args(["train"])
    assert (options.data, options.out) == ("tinyshakespeare", "model.pt")
    assert not options.resume and not options.overwrite
    options = cli.parser().parse_args(["sample"])
    assert (options.checkpoint, options.tokens) == ("model.pt", 500)
    assert options.temperature == 0.8 and options.seed is None
