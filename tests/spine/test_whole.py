"""The page that holds the whole GPT trains and writes as the package does."""

import torch
from small import CORPUS, DATA, TOKENIZER, plan
from torch.testing import assert_close

from minigpt import whole
from minigpt.evaluation import evaluate
from minigpt.gpt import GPT, GPTConfig
from minigpt.training import preset, train


def test_its_recipe_is_the_cpu_preset():
    for config in preset("cpu", 65):
        for name, value in vars(whole.config).items():
            if name != "vocab_size" and hasattr(config, name):
                assert getattr(config, name) == value, name


def test_it_trains_and_writes_as_the_package_does(tmp_path, monkeypatch, capsys):
    path = tmp_path / "text.txt"
    path.write_text(CORPUS, encoding="utf-8")
    changes = {"steps": 20, "n_embd": 16, "block_size": 8, "batch_size": 4}
    for name, value in changes.items():
        monkeypatch.setattr(whole.config, name, value)
    torch.set_default_dtype(torch.float64)
    try:
        whole.main(path)
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
    assert len(printed.split("character\n")[1]) == 501 + 1  # and a line end
