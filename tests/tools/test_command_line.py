"""python -m minigpt train | sample: exit codes, files, and what is said."""

import os
import signal
import subprocess
import sys
import urllib.error

import pytest
import torch
from small import TRAIN_SMALL as SMALL
from small import weights_of

import minigpt.tools.command_line as cli
from minigpt.data import CharTokenizer
from minigpt.evaluation import evaluate
from minigpt.generation import generate
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import MuonConfig
from minigpt.stored import load_stored
from minigpt.tools.command_line import main
from minigpt.tools.saving import load_any

CORPUS = "to be or not to be; " * 100  # the text in `folder`


def train(*options):  # on the device of `model.pt`: others round otherwise
    return main(["train", "--device", "cpu", "--data", "corpus.txt", *options])


def weights(path):
    return weights_of(load_any(path).model)


def refused(capsys):
    """The one line of an error."""
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    return last


# --- train ---


def test_every_option_of_training_reaches_the_model_or_its_recipe(folder):
    run = load_any("model.pt")
    shape, recipe = run.model.config, run.config
    assert (shape.block_size, shape.n_layer, shape.n_head) == (8, 1, 2)
    assert (shape.n_embd, shape.dropout) == (16, 0.1)
    assert (recipe.steps, recipe.batch_size, recipe.block_size) == (12, 4, 8)
    assert (recipe.learning_rate, recipe.seed) == (0.01, 1337)


def test_the_seed_decides_weights_batches_and_dropout(folder):
    torch.manual_seed(torch.seed() % 1000)  # whatever came before
    assert train("--out", "again.pt", *SMALL) == 0
    assert train("--out", "other.pt", *SMALL, "--seed", "3") == 0
    assert torch.equal(weights("again.pt"), weights("model.pt"))
    assert not torch.equal(weights("other.pt"), weights("model.pt"))
    assert load_any("other.pt").config.seed == 3


def test_without_a_preset_it_is_the_modern_one(folder):
    small = "--steps 3 --n-embd 16 --n-layer 1 --n-head 2 --block-size 8".split()
    assert train("--out", "new.pt", *small) == 0
    run = load_any("new.pt")
    assert type(run.model.config) is ModernConfig and type(run.config) is MuonConfig
    assert train("--out", "new.pt", "--resume", "--steps", "5") == 0
    assert load_any("new.pt").run.step == 5


def test_the_loss_that_is_told_is_the_exact_one_of_the_written_model(folder, capsys):
    assert train("--overwrite", *SMALL) == 0
    run = load_any("model.pt")
    loss = evaluate(run.model, torch.tensor(run.tokenizer.encode(CORPUS))[1800:], 8)
    said = capsys.readouterr().out
    assert f"Validation loss {loss:.4f} nats per character over the whole" in said


def test_of_a_long_text_a_part_is_judged_and_the_answer_says_so(
    folder, monkeypatch, capsys
):
    monkeypatch.setattr(cli, "JUDGED", 100)
    assert train("--overwrite", *SMALL) == 0
    run = load_any("model.pt")
    ids = torch.tensor(run.tokenizer.encode(CORPUS))[1800:1900]
    loss = evaluate(run.model, ids, 8)
    said = f"loss {loss:.4f} nats per character over the first 100 of 200 char"
    assert said in capsys.readouterr().out


def test_training_goes_on_to_more_steps_with_settings_that_may_change(folder):
    more = "--resume --steps 14 --batch-size 2 --learning-rate 0.5".split()
    assert train(*more) == 0
    run = load_any("model.pt")
    assert run.run.step == 14 and [row.step for row in run.run.history] == [12, 14]
    recipe = run.config
    assert (recipe.steps, recipe.batch_size, recipe.learning_rate) == (14, 2, 0.5)
    assert run.model.config.n_embd == 16


def test_a_complete_run_says_how_to_go_on_with_it(folder, capsys):
    before = (folder / "model.pt").read_bytes()
    assert train("--resume") == 0
    assert (
        "is complete; to continue it, ask for more than 12 --steps"
        in capsys.readouterr().out
    )
    assert (folder / "model.pt").read_bytes() == before


def test_a_run_goes_on_with_its_own_text_only(folder, capsys):
    for other in (CORPUS.replace("or", "ro"), CORPUS + "?"):
        (folder / "other.txt").write_text(other, encoding="utf-8")
        assert train("--resume", "--steps", "15", "--data", "other.txt") == 2
        assert "model.pt learned from another text: give that" in refused(capsys)
    assert load_any("model.pt").run.step == 12
    (folder / "moved.txt").write_text(CORPUS, encoding="utf-8")
    assert train("--resume", "--steps", "15", "--data", "moved.txt") == 0


def test_an_existing_model_is_replaced_only_on_request(folder, capsys):
    before = (folder / "model.pt").read_bytes()
    assert train(*SMALL) == 2
    assert "--resume" in (said := refused(capsys)) and "--overwrite" in said
    assert (folder / "model.pt").read_bytes() == before
    assert train(*SMALL, "--overwrite", "--seed", "3") == 0
    assert load_any("model.pt").config.seed == 3


@pytest.mark.parametrize("more", [[], ["--overwrite"], ["--resume"]], ids=str)
@pytest.mark.parametrize("out", ["corpus.txt", "same.txt", "letter.txt", "odd.pt"])
def test_no_file_is_replaced_but_a_run_of_ours(folder, capsys, out, more):
    os.link("corpus.txt", "same.txt")  # another name of the same file
    (folder / "letter.txt").write_text("Dear reader", encoding="utf-8")
    torch.save({"weights": torch.zeros(3)}, "odd.pt")
    before = (folder / out).read_bytes()
    assert train("--out", out, *SMALL, *more) == 2
    said = refused(capsys)
    assert "give another --out" in said and "--overwrite" not in said
    assert (folder / out).read_bytes() == before


def interrupt(monkeypatch, number, step=5):
    """Send the training a signal in the middle of a step."""

    def interrupted(model, data, val, config, run, on_eval, on_step):
        def stop(run):
            if run.step == step:
                signal.raise_signal(number)
            return on_step(run)

        return real(model, data, val, config, run, on_eval, stop)

    real = cli.train
    monkeypatch.setattr(cli, "train", interrupted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_end_keeps_its_step_and_goes_on(
    folder, monkeypatch, capsys, number
):
    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        interrupt(patch, number)
        assert train("--out", "cut.pt", *SMALL) == 130
    assert signal.getsignal(number) == before
    assert "after step 5 of 12" in capsys.readouterr().out
    assert load_any("cut.pt").run.step == 5
    torch.manual_seed(999)  # another process, another state
    assert train("--out", "cut.pt", "--resume") == 0
    assert torch.equal(weights("cut.pt"), weights("model.pt"))


@pytest.mark.parametrize("command", ["train --data corpus.txt --out new.pt", "sample"])
def test_an_interrupt_at_any_other_time_exits_with_130(
    folder, monkeypatch, capsys, command
):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    for name in ("read_ids", "stream"):
        monkeypatch.setattr(cli, name, interrupted)
    assert main(command.split()) == 130
    assert capsys.readouterr().err.strip().splitlines()[-1] == "Interrupted."


def test_the_command_line_never_trains_on_a_substitute(folder, monkeypatch, capsys):
    def download(*args, **kwargs):
        raise urllib.error.URLError("no network")

    monkeypatch.setenv("MINIGPT_DATA", "gone")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    assert main(["train", "--out", "new.pt", *SMALL]) == 2
    assert "Connect to the network" in refused(capsys)
    assert not (folder / "new.pt").exists()


# --- sample ---


def test_sample_writes_the_prompt_and_as_many_characters_as_asked(folder, capsys):
    assert main(["sample", "--prompt", "to be", "--tokens", "30"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("to be") and len(text) == 5 + 30 + 1
    assert main(["sample", "--tokens", "3"]) == 0
    assert len(capsys.readouterr().out) == 1 + 3 + 1


def test_before_any_training_the_stored_gpt_writes_and_says_so(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    given = []
    monkeypatch.setattr(cli, "stream", lambda *a, **k: given.extend(a) or iter([]))
    assert main(["sample", "--prompt", "ROMEO:", "--device", "cpu"]) == 0
    model, tokenizer = load_stored("gpt")
    assert torch.equal(weights_of(given[0]), weights_of(model))
    assert given[1].chars == tokenizer.chars
    said = capsys.readouterr().err
    assert said.startswith("There's no model.pt yet") and said.count("\n") == 1
    assert main(["sample", "--checkpoint", "model.pt"]) == 2  # who names one means it
    assert "Train one first" in refused(capsys)


def test_the_same_seed_samples_the_same_text(folder, capsys):
    texts = []
    for seed in ("1", "1", "2"):
        assert main(["sample", "--seed", seed, "--temperature", "2.5"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("knob", ["--temperature=0", "--top-k=1", "--top-p=0.001"])
def test_each_knob_can_make_sampling_greedy(folder, capsys, knob):
    run = load_any("model.pt")
    start = torch.tensor([run.tokenizer.encode("to")])
    idx = generate(run.model, start, 6, temperature=0)
    sample = "sample --device cpu --prompt to --tokens 6".split()
    assert main([*sample, knob]) == 0
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
        yield "be"
        signal.raise_signal(signal.SIGINT)
        yield "not"

    monkeypatch.setattr(cli, "stream", interrupted)
    assert main(["sample", "--prompt", "to "]) == 130
    assert capsys.readouterr().out == "to be\n"


def test_several_texts_stand_apart_and_differ(folder, capsys):
    assert main("sample --prompt to --n 3 --tokens 30 --temperature 3".split()) == 0
    texts = capsys.readouterr().out.removesuffix("\n").split("\n" + "-" * 20 + "\n")
    assert len(set(texts)) == 3
    assert {len(text) for text in texts} == {32}
    assert all(text.startswith("to") for text in texts)


def test_pipes_carry_utf_8_whatever_the_machine_prefers_and_may_be_closed(folder):
    text = "к одной и той же цели ведёт много дорог " * 20
    (folder / "russian.txt").write_text(text, encoding="utf-8")
    assert train("--data", "russian.txt", "--out", "russian.pt", *SMALL) == 0
    assert load_any("russian.pt").tokenizer.chars == CharTokenizer(text).chars
    command = "-m minigpt sample --checkpoint russian.pt --tokens 3000 --prompt -"
    pipes = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE)
    settings = {**os.environ, "PYTHONIOENCODING": "cp1252"}  # as on Windows
    sample = subprocess.Popen([sys.executable, *command.split()], env=settings, **pipes)
    sample.stdin.write("дорог".encode())
    sample.stdin.close()
    assert sample.stdout.read(10).decode("utf-8") == "дорог"
    sample.stdout.close()  # a reader that leaves is no error
    assert sample.stderr.read() == b"" and sample.wait(60) == 0
