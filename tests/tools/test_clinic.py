"""The clinic names what is wrong, says what is fine, and touches nothing."""

from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from small import DATA, V, fit, small_gpt

from minigpt.bigram import BigramLanguageModel
from minigpt.clinic import examine
from minigpt.modern.model import ModernConfig
from minigpt.tools.command_line import main

T, C = 16, 16


class Layer(nn.Module):
    """Attention of one head, with a bug of your choice."""

    def __init__(self, bug):
        super().__init__()
        self.qkv, self.out, self.bug = nn.Linear(C, 3 * C), nn.Linear(C, C), bug
        self.norm, self.drop = nn.LayerNorm(C), nn.Dropout(0.1)
        self.after = nn.Linear(C, C)

    def forward(self, x):
        B, n, _ = x.shape
        h = self.norm(x)
        if self.bug == "norm over time":
            h = x - x.mean(1, keepdim=True)
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) * C**-0.5
        diagonal = {"off by one": 1, "hides itself": -1}.get(self.bug, 0)
        mask = torch.ones(T, T).tril(diagonal)[-n if self.bug == "cut" else 0 :][:n, :n]
        mask = mask == 0
        if self.bug == "upside down":
            mask = torch.ones(n, n).triu() == 0
        lost = self.bug == "mask lost in train" and self.training
        if self.bug != "no mask" and not lost:
            scores = scores.masked_fill(mask, float("-inf"))
        axis = {"softmax over queries": 1, "softmax over rows": 0}.get(self.bug, -1)
        weights = F.softmax(scores, dim=axis)
        drop = F.dropout(weights, 0.1) if self.bug == "dice" else self.drop(weights)
        y = self.out(drop @ (q if self.bug == "q for v" else v))
        if self.bug == "detached":
            y = y.detach()
        x = y if self.bug == "no residual" else x + y
        part = self.after(self.norm(x).relu())
        return part if self.bug == "no residual later" else x + part


class Theirs(nn.Module):
    """A small GPT of somebody else's."""

    def __init__(self, bug=""):
        super().__init__()
        torch.manual_seed(0)
        self.block_size, self.bug, self.seen = T, bug, None
        self.tok, self.pos = nn.Embedding(V, C), nn.Embedding(T, C)
        layers = [Layer(bug) for _ in range(3)]
        self.layers = layers if bug == "a list" else nn.ModuleList(layers)
        self.norm, self.head = nn.LayerNorm(C), nn.Linear(C, V)
        self.copied = self.head.weight.clone() if bug == "a copy" else None
        std = 1.0 if bug == "large" else 0.1
        for p in [self.tok.weight, self.pos.weight, self.head.weight]:
            nn.init.normal_(p, std=std * (3 if bug == "large" else 1))
        for name, p in self.named_parameters() if bug == "zeros" else ():
            p.data *= "norm.weight" in name

    def forward(self, ids, targets=None):
        where = torch.arange(ids.shape[1])
        if self.bug == "one row":
            where = where * 0
        if self.bug == "positions by row":
            where = torch.arange(len(ids))[:, None]
        if self.bug == "positions by id":
            where = ids % T
        x = self.tok(ids)
        if self.bug != "no positions":
            x = x + self.pos(where)
        part = self.bug == "remembers a part" and ids.shape[1] < T
        if self.bug == "remembers" or part:
            old, self.seen = self.seen, x[:1, :1].detach()
            x = x if old is None else x + old
        if self.bug == "sees targets" and targets is not None:
            x = x + self.tok(targets)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        logits = self.head(x) if self.copied is None else x @ self.copied.T
        if self.bug == "probabilities":
            logits = logits.softmax(-1)
        if self.bug == "transposed":
            logits = logits.transpose(1, 2)
        if targets is None or self.bug == "transposed":
            return logits, None
        y = ids if self.bug == "loss of the input" else targets
        how = "sum" if self.bug == "loss summed" else "mean"
        return logits, F.cross_entropy(logits.flatten(0, 1), y.view(-1), reduction=how)


BUGS = {
    "no mask": ("future", "up to 15 ahead"),
    "off by one": ("future", "off by one"),
    "upside down": ("future", "upside down"),
    "mask lost in train": ("future", "in train() only"),
    "softmax over queries": ("future", "runs over dim=1"),
    "norm over time": ("future", "h = x - x.mean(1, keepdim=True)"),
    "softmax over rows": ("nan", "runs over dim=0"),
    "hides itself": ("nan", "hides the diagonal"),
    "dice": ("luck", "training=self.training"),
    "remembers": ("state", "a different answer"),
    "a list": ("unregistered", "They're in layers, a list; use nn.ModuleList"),
    "a copy": ("unregistered", "They're in copied, a plain tensor"),
    "zeros": ("empty", "Every matrix is 0"),
    "remembers a part": ("state", "a different answer"),
    "detached": ("unused", "layers.0.qkv.weight"),
    "no residual": ("through", "No way leads around layers.0.qkv"),
    "no residual later": ("through", "No way leads around layers.0.after"),
    "cut": ("future", "cut it to mask[:T, :T]"),
    "q for v": ("unused", "rows 32 to 47 of 48"),
    "positions by row": ("neighbors", "counts the rows"),
    "positions by id": ("order", "pos is asked for something that changes"),
    "large": ("first", "strong opinions"),
    "one row": ("order", "pos is asked for row 0"),
    "no positions": ("unused", "pos.weight"),
    "sees targets": ("targets", "targets"),
    "probabilities": ("probabilities", "each row sums to 1"),
    "transposed": ("door", "one transpose too many"),
    "loss summed": ("loss", "summed over all ids"),
    "loss of the input": ("loss", "the ids that went in"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_it_names_the_bug_first_and_nothing_else_for_certain(bug):
    page = examine(Theirs(bug), V, learn=False)
    key, words = BUGS[bug]
    wrong = [f for f in page.findings if f.mark == "wrong" and not f.explained_by]
    assert [f.key for f in wrong] == [key], str(page)
    assert words in wrong[0].says
    assert str(page).startswith("✗")


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.rnn = nn.Embedding(V, C), nn.LSTM(C, 32, batch_first=True)
        self.head = nn.Linear(32, V)

    def forward(self, ids):
        return SimpleNamespace(logits=self.head(self.rnn(self.tok(ids))[0]))


HEALTHY = {
    "theirs": Theirs,
    "ours": small_gpt,
    "with dropout": lambda: small_gpt(0.1),
    "modern": lambda: ModernConfig(V, 16, 2, 2, 16).build(),
    "bigram": lambda: BigramLanguageModel(V),
    "a head": lambda: nn.Sequential(
        OrderedDict(tok=nn.Embedding(V, C), head=nn.Linear(C, V))
    ),
    "recurrent": Recurrent,
    "bfloat16": lambda: small_gpt().to(torch.bfloat16),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_model_gets_no_alarm(name):
    page = examine(HEALTHY[name](), V, learn=name in ("theirs", "bigram"))
    assert not page.bad(), str(page)
    assert "Your model is honest" in str(page)


@pytest.mark.parametrize("bug", ["", "no mask", "remembers", "a list"])
def test_it_touches_nothing(bug):
    model = Theirs(bug)
    model.layers[0].eval()
    model.head.weight.grad = grad = torch.ones_like(model.head.weight)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    state = torch.get_rng_state()
    examine(model, V, seconds=0.5)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state()) and model.seen is None
    assert model.training and not model.layers[0].training
    assert model.head.weight.grad is grad and bool((grad == 1).all())
    assert model.tok.weight.grad is None


def test_a_trained_model_is_put_between_counts():
    model = small_gpt()
    fit(model)
    page = examine(model, V, DATA, trained=True, learn=False)
    said = next(f for f in page.findings if f.key == "text")
    assert "the letter frequencies" in said.says and said.mark == "fine"
    assert "Loss by position" in str(page)


def test_targets_that_were_not_shifted_are_seen():
    class Copies(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(9.0))

        def forward(self, ids):
            return self.scale * F.one_hot(ids, V).float()

    page = examine(Copies(), V, DATA, trained=True, learn=False)
    assert "weren't shifted" in next(f.says for f in page.findings if f.key == "shift")


def test_it_refuses_what_it_cannot_examine():
    with pytest.raises(ValueError, match="nn.Module"):
        examine(lambda ids: ids, V)
    with pytest.raises(ValueError, match="encode the text"):
        examine(small_gpt(), V, [V])


def test_the_command_reads_a_file(tmp_path, capsys):
    file = tmp_path / "their_model.py"
    code = "import torch.nn as nn\nclass M(nn.Module):\n    def __init__(self, V):\n"
    code += "        super().__init__()\n        self.tok = nn.Embedding(V, V)\n"
    code += "    def forward(self, ids):\n        return self.tok(ids).softmax(-1)\n"
    code += "def build(vocab_size):\n    return M(vocab_size)\n"
    file.write_text(code, encoding="utf-8")
    assert main(["clinic", str(file), "--seconds", "1"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("✗ These are probabilities")
    assert "line 7 of their_model.py, `return self.tok(ids).softmax(-1)`" in (
        " ".join(said.split())
    )
