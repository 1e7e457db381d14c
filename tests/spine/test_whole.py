"""The file that holds the whole GPT runs alone, and trains as the package does."""

import ast
import runpy
import shutil
import sys
from pathlib import Path

import torch
from small import CORPUS, DATA, TOKENIZER, plan
from torch.testing import assert_close

from minigpt import whole
from minigpt.evaluation import evaluate
from minigpt.gpt import GPT, GPTConfig
from minigpt.training import preset, train

FILE = Path(whole.__file__)
RECIPE = {"steps": 20, "n_embd": 16, "block_size": 8, "batch_size": 4}


def test_its_recipe_is_the_cpu_preset():
    ours = vars(whole.Config())
    for config in preset("cpu", 65):
        for name in ours.keys() & vars(config).keys():
            assert ours[name] == getattr(config, name), name


def test_copied_into_an_empty_folder_it_trains_and_writes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    shutil.copy(FILE, tmp_path)
    for name in [*sys.modules]:
        if name.partition(".")[0] == "minigpt":  # to import it raises ImportError
            monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "my_book.txt").write_text(CORPUS, encoding="utf-8")
    recipe = [f"{name}={value}" for name, value in RECIPE.items()]
    monkeypatch.setattr(sys, "argv", ["whole.py", "my_book.txt", *recipe])
    runpy.run_path("whole.py", run_name="__main__")
    head, text = capsys.readouterr().out.split(" nats per character\n")
    losses = [line.split()[-1] for line in head.splitlines() if "loss" in line]
    first, *_, last = map(float, losses)
    assert last < first
    assert len(text) == 1 + 500 + 1  # what it began from, and a line end
    assert set(text) <= set(CORPUS) | {"\n"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my_book.txt", "whole.py"]


def test_it_imports_torch_and_what_comes_with_python():
    names = set()
    for node in ast.walk(ast.parse(FILE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
    assert names - sys.stdlib_module_names == {"torch"}


def test_without_a_path_it_reads_what_lies_in_the_network(tmp_path, monkeypatch):
    path = tmp_path / "input.txt"
    path.write_text(CORPUS, encoding="utf-8")
    monkeypatch.setattr(whole, "SHAKESPEARE", path.as_uri())
    assert whole.read_text() == whole.read_text(path) == CORPUS


def test_it_trains_and_writes_as_the_package_does(tmp_path, monkeypatch, capsys):
    path = tmp_path / "text.txt"
    path.write_text(CORPUS, encoding="utf-8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    torch.set_default_dtype(torch.float64)
    try:
        whole.main(path, **RECIPE)
        shape = GPTConfig(TOKENIZER.vocab_size, 8, 2, 4, 16)
        torch.manual_seed(1337)
        model = GPT(shape)
        n = int(0.9 * len(DATA))
        train(model, DATA[:n], DATA[n:], plan(learning_rate=3e-3, warmup_steps=100))
        loss = evaluate(model, DATA[n:], 8)
    finally:
        torch.set_default_dtype(torch.float32)
    printed = capsys.readouterr().out
    said = float(printed.split("validation loss ")[1].split()[0])
    assert_close(said, loss, atol=1e-4, rtol=0)
