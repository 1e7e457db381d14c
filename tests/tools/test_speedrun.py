"""The speed run: what it says of a recipe, and the recipes of the course."""

import argparse
import math
import re
from collections import Counter
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from small import DATA, TOKENIZER, V, identical
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.course.experiments import fit, how_low
from minigpt.evaluation import evaluate
from minigpt.modern.model import ModernConfig
from minigpt.tools import speedrun
from minigpt.tools.corpus import Corpus
from minigpt.tools.recipes import gpt_of_06, nanogpt_demo, with_counts, without_counts
from minigpt.training import TrainConfig

TEXT = Corpus(DATA[:1500], DATA[1500:], TOKENIZER)
LETTERS = torch.randint(V, (6000,), generator=torch.Generator().manual_seed(1))
TABLE = """
from minigpt.bigram import BigramLanguageModel

class Table(BigramLanguageModel):
    block_size = 8

    def forward(self, idx, targets=None):
        x = idx  # what is looked up
        return self.token_embedding(x), 0.1 * x.sum()  # its own loss is not asked

def build(train_ids, vocab_size):
    return Table(vocab_size)

def train(model, train_ids, seed):
    pass
"""


@pytest.fixture(autouse=True)
def small_text(tmp_path, monkeypatch):
    """A short text, and an empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(speedrun, "corpus", lambda: TEXT)
    monkeypatch.setattr(fit, "corpus", lambda: TEXT)
    return tmp_path


def raced(source, *changes):
    """What speedrun.run says of a recipe with `changes`, each (old, new)."""
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    with open("mine.py", "w", encoding="utf-8") as file:
        file.write(source)
    return speedrun.run("mine.py", TEXT, seed=7)


def command(*options):
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser()
    speedrun.add_options(parser)
    return speedrun.main(parser.parse_args(options))


def test_a_recipe_is_judged_by_its_logits_from_its_seed():
    found = raced(TABLE)
    torch.manual_seed(7)
    model = BigramLanguageModel(V)
    assert found["loss"] == pytest.approx(evaluate(model, TEXT.val, 8), rel=1e-6)
    assert found["parameters"] == V * V and found["seconds"] >= 0


@pytest.mark.parametrize(
    "leak",
    [
        "x = idx.roll(-1, 1)",  # the next character
        "x = idx.flip(1)",  # the last one of all
        "x = (idx + len(idx)) % 28",  # how many windows there are
        "x = idx.roll(1, 0)",  # another window
    ],
)
def test_a_model_that_sees_more_than_it_may_is_refused(leak):
    with pytest.raises(ValueError, match="sees the future, or other windows"):
        raced(TABLE, ("x = idx ", leak + " "))


def test_what_is_no_recipe_is_refused_by_name():
    with pytest.raises(ValueError, match="mine.py has no function train"):
        raced(TABLE, ("def train", "def trained"))
    for size in (0, 257):
        with pytest.raises(ValueError, match=f"block_size is {size}; give 1 to 256"):
            raced(TABLE, ("block_size = 8", f"block_size = {size}"))
    with pytest.raises(ValueError, match="aren't finite: try a smaller learning rate"):
        raced(TABLE, ("    pass", "    model.token_embedding.weight.data /= 0"))
    with pytest.raises(ValueError, match="no file 'other.py'"):
        speedrun.run("other.py", TEXT, 1)


def test_the_command_lists_recipes_or_races_one(capsys):
    assert command() == 0
    paths = re.findall(r"^  (.*\.py)$", capsys.readouterr().out, re.M)
    assert {*map(str, speedrun.RECIPES.glob("[a-z]*.py"))} == {*paths}
    raced(TABLE)
    assert command("mine.py", "--seeds", "7", "8") == 0
    told = capsys.readouterr().out
    first, second, mean, spread = map(float, re.findall(r"\b\d\.\d{4}", told))
    assert mean == pytest.approx((first + second) / 2, abs=1e-4)
    assert spread == pytest.approx(abs(first - second), abs=2e-4) and spread > 0


# --- The recipes. ---


@pytest.fixture(params=[gpt_of_06, nanogpt_demo, without_counts, with_counts])
def recipe(request, monkeypatch):
    """A recipe of two steps."""
    monkeypatch.setattr(request.param, "STEPS", 2)
    if request.param is with_counts:
        monkeypatch.setattr(with_counts, "FIT_STEPS", 2)
    return request.param


def test_every_recipe_depends_on_its_seed_alone_and_sees_no_future(recipe):
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(recipe.build(LETTERS, V))
        recipe.train(made[-1], LETTERS, seed)
    speedrun.refuse_foresight(made[0], TEXT.val, windows=2)
    first, again, other = (model.eval()(TEXT.val[None, :60])[0] for model in made)
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_rows_of_pairs_and_triples_are_those_of_the_last_characters():
    torch.manual_seed(0)
    idx = torch.tensor([[1, 2, 3, 2, 3]])
    grams = without_counts.PairsAndTriples(4, n_embd=3).eval()
    assert grams(idx).abs().max() == 0
    nn_init = torch.nn.init.normal_
    nn_init(grams.pairs.weight)
    nn_init(grams.triples.weight)
    seen, row = grams(idx)[0], [0, 0, *idx[0].tolist()]  # 0 stands before the text
    for t in range(5):
        a, b, c = row[t : t + 3]
        expected = grams.pairs.weight[c + 4 * b]
        expected = expected + grams.triples.weight[c + 4 * b + 4**2 * a]
        assert_close(seen[t], expected)
    grams.pairs.weight.data.fill_(0.5)
    grams.triples.weight.data.fill_(1.0)
    heard = grams.train()(idx.expand(8, -1))  # (8, 5, 3), doubled where it is heard
    assert set(heard.flatten().tolist()) == {0.0, 1.0, 2.0, 3.0}


def test_the_demo_is_trained_as_its_readme_says():
    model = nanogpt_demo.build(TEXT.train, 65)
    config = model.config
    assert (config.n_layer, config.n_head, config.n_embd) == (4, 4, 128)
    assert config.block_size == 64 and nanogpt_demo.STEPS == 2000
    # As its code counts: with the tied head once, and without biases.
    C, matrices = 128, 4 * 12 * 128**2
    assert (
        sum(p.numel() for p in model.parameters()) == (65 + 64) * C + matrices + 9 * C
    )
    plan = nanogpt_demo.DemoConfig(2000, 12, 64, 1e-3)
    assert (plan.beta2, plan.weight_decay, plan.warmup_steps) == (0.99, 0.1, 100)
    ours = TrainConfig(2000, 12, 64, 1e-3)
    for step in (0, 50, 99):
        assert identical(plan.learning_rate_at(step), ours.learning_rate_at(step))
    assert plan.learning_rate_at(2000) == pytest.approx(1e-4)
    half = plan.learning_rate_at(1050)  # half a cosine, half of the way down
    assert half == pytest.approx((1e-3 + 1e-4) / 2)


# --- Counts. ---

W, ORDER = 3, 4  # a vocabulary
IDS = torch.randint(W, (207,), generator=torch.Generator().manual_seed(1))
ASKED = torch.randint(W, (2, 9), generator=torch.Generator().manual_seed(2))
PIECE = [i * with_counts.PIECES // (len(IDS) - 1) for i in range(len(IDS) - 1)]


@pytest.fixture
def counts():
    return with_counts.Counts(IDS, W, ORDER)


@pytest.mark.parametrize("without, order", [(None, ORDER), (0, ORDER), (3, 1), (9, 0)])
@pytest.mark.parametrize("T", [1, 2, 9])
def test_counts_are_those_of_a_dictionary(without, order, T):
    """The longest context in sight: how often; a shorter one: after how many different
    characters, that is, in how many different contexts a character longer."""
    text, often, before = IDS.tolist(), Counter(), set()
    for i in range(len(text) - 1):
        if PIECE[i] != without:
            for n in range(min(order, i + 1) + 1):
                pair = *text[i + 1 - n : i + 1], text[i + 1]
                often[pair] += 1
                if n > 0:
                    before.add(pair)
    different = Counter(pair[1:] for pair in before)
    found = with_counts.Counts(IDS, W, order)(ASKED[:, :T], without)
    for b, row in enumerate(ASKED[:, :T].tolist()):
        for t in range(T):
            longest = min(order, t + 1)
            for n in range(order + 1):
                told = often if n == longest else different
                expected = [
                    told[(*row[t + 1 - n : t + 1], c)] if n <= longest else 0
                    for c in range(W)
                ]
                assert found[b, t, n].tolist() == expected, (b, t, n)


def test_an_order_too_large_for_64_bits_is_refused():
    with pytest.raises(ValueError, match="9 characters out of 65 .* smaller order"):
        with_counts.Counts(IDS, 65, 9)


def test_counts_in_the_window_are_what_followed_before_in_it_alone():
    found = with_counts.counts_in_window(ASKED, W)
    for b, row in enumerate(ASKED.tolist()):
        for t in range(len(row)):
            for n in range(1, with_counts.RECENT + 1):
                follow = Counter(
                    row[s + 1]
                    for s in range(n - 1, t)
                    if t >= n - 1 and row[s + 1 - n : s + 1] == row[t + 1 - n : t + 1]
                )
                assert found[b, t, n - 1].tolist() == [follow[c] for c in range(W)]


def test_smoothing_by_hand():
    """Counts of 1, 2 and more are discounted by up to 1, 2 and 3."""
    smoothing = with_counts.Smoothing(1)
    smoothing.discount.data = torch.tensor([[0.3, -0.2, 0.1], [0.5, 0.0, -0.4]])
    counts = torch.tensor([[4.0, 2.0, 1.0, 7.0], [1.0, 0.0, 3.0, 2.0]])
    p = torch.full((4,), 0.25)
    for n in range(2):
        d1, d2, d3 = torch.sigmoid(smoothing.discount[n]) * torch.tensor([1.0, 2, 3])
        give = {0: torch.tensor(0.0), 1: d1, 2: d2}
        taken = torch.stack([give.get(c, d3) for c in counts[n].int().tolist()])
        p = (counts[n] - taken + taken.sum() * p) / counts[n].sum()
        assert_close(smoothing(counts[None, None])[0, 0, n], p.log())
    nothing = smoothing(torch.zeros(1, 1, 2, W))
    assert_close(nothing, torch.full_like(nothing, -math.log(W)))


def beside(counts):
    torch.manual_seed(0)
    config = ModernConfig(W, 9, n_layer=1, n_head=2, n_embd=8)
    return with_counts.CountingGPT(config, counts)


def test_a_new_model_says_what_the_longest_counts_say(counts):
    model = beside(counts)
    expected = model.smoothing(counts(ASKED))[..., -1, :]
    logits, loss = model(ASKED, ASKED)
    assert_close(logits, expected)
    assert_close(loss, F.cross_entropy(expected.flatten(0, 1), ASKED.flatten()))
    assert_close(how_low.CountsAlone(model)(ASKED)[0], expected)


def test_a_piece_is_left_out_in_training_and_never_in_judging(counts):
    model = beside(counts)
    assert_close(model.eval()(ASKED)[0], model.train()(ASKED)[0])
    model.without = 2
    judged, trained = model.eval()(ASKED)[0], model.train()(ASKED)[0]
    expected = model.smoothing(counts(ASKED, without=2))[..., -1, :]
    assert_close(trained, expected)
    assert (judged - trained).abs().max() > 1e-4


def test_a_batch_comes_from_the_piece_that_is_left_out(counts):
    model, generator, seen = beside(counts), torch.Generator(), set()
    text = IDS.tolist()
    for _ in range(20):
        x, y = with_counts.own_piece(model, IDS, 4, 8, generator=generator)
        seen.add(model.without)
        first = PIECE.index(model.without)
        last = len(PIECE) - PIECE[::-1].index(model.without)
        piece = text[first : last + 1]
        windows = [piece[i : i + 9] for i in range(len(piece) - 8)]
        for a, b in zip(x.tolist(), y.tolist()):
            assert [*a, b[-1]] in windows and a[1:] == b[:-1]
    assert len(seen) > 2


def test_discounts_are_learned_from_what_was_left_out():
    ids = torch.tensor([0, 1, 2]).repeat(69)  # after two, nothing is in doubt
    model = beside(with_counts.Counts(ids, W, 2))
    x, y = ids[None, :9], ids[None, 1:10]

    def loss():
        said = model.smoothing(model.counts(x, 0))[0, :, -1]
        return F.nll_loss(said, y[0]).item()

    before, plan = loss(), with_counts.plan_of(1)
    plan.block_size = 8
    with_counts.fit_smoothing(model, ids, plan)
    assert loss() < before and model.without is None
    assert not model.smoothing.discount.requires_grad


def test_what_07_says_of_own_counts_is_measured_on_the_training_text(monkeypatch):
    monkeypatch.setattr(with_counts, "ORDER", 3)
    monkeypatch.setattr(with_counts, "FIT_STEPS", 2)
    hidden = TEXT._replace(
        train=LETTERS, val=torch.full_like(TEXT.val, V + 5)
    )  # would raise
    monkeypatch.setattr(fit, "corpus", lambda: hidden)
    measured = partial(how_low.beside_counts, 1, steps=2)
    seen, left = measured(own_seen=True), measured()
    assert seen["in training"] < left["in training"]
    assert 0 < measured(train_gpt=False)["loss"] < 4
