"""Lesson 09: a draft changes the speed of writing, not what is written."""

import itertools

import pytest
import torch
import torch.nn as nn
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.counting import ContextCounts, Smoothing
from minigpt.generation import generate, probabilities
from minigpt.gpt import GPTConfig
from minigpt.modern import ModernConfig
from minigpt.speculative import CountingDraft, check, speculate

V, T = 4, 8
SHAPE = dict(vocab_size=V, block_size=T, n_layer=2, n_head=2, n_embd=8)
CONFIGS = {
    "gpt": GPTConfig(**SHAPE),
    "modern": ModernConfig(**SHAPE, n_kv_head=1, zero_init=False),
}
START = torch.tensor([[1, 3]])


def opinionated(config, seed=0):
    torch.manual_seed(seed)
    model = config.build().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.4)
    return model


def counts(order, seed=1):
    """A draft that knows a random text of V characters."""
    generator = torch.Generator().manual_seed(seed)
    text = torch.randint(V, (300,), generator=generator) ** 2 % V
    return CountingDraft(ContextCounts(text, V, order), Smoothing(order))


@pytest.fixture(params=CONFIGS)
def model(request):
    return opinionated(CONFIGS[request.param])


DRAFTS = {
    "bigram": lambda: BigramLanguageModel(V),
    "trigram counts": lambda: counts(2),
    "one block": lambda: opinionated(ModernConfig(V, 4, 1, 1, 4), seed=5),
}


@pytest.fixture(params=DRAFTS)
def draft(request):
    torch.manual_seed(2)
    return DRAFTS[request.param]()


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


def p_value(texts, exact):
    """Of the chi-square test that these texts (N,) were drawn from `exact` (K,)."""
    expected = exact * len(texts)
    assert expected.min() >= 5, "the test needs more texts"
    seen = texts.bincount(minlength=len(exact))
    chi2 = ((seen - expected) ** 2 / expected).sum()
    return torch.special.gammaincc(torch.tensor((len(exact) - 1) / 2), chi2 / 2).item()


def exact_probabilities(model, length, **knobs):
    """Of each of the V ** length texts after START, by the product rule."""
    texts = torch.tensor(list(itertools.product(range(V), repeat=length)))
    idx = torch.cat([START.expand(len(texts), -1), texts], dim=1)
    with torch.no_grad():
        logits = model(idx)[0][:, 1:-1]  # of what follows START, and so on
    p = probabilities(logits.flatten(0, 1), **knobs).view(len(texts), length, V)
    return p.gather(2, texts[..., None]).prod(dim=1)[:, 0].double()


def numbers(texts):
    """Each row of texts (N, length) as one number, in the order of above."""
    return (texts * V ** torch.arange(texts.shape[1] - 1, -1, -1)).sum(dim=1)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_speculation_writes_from_the_distribution_of_the_model(k):
    model = opinionated(CONFIGS["gpt"])
    draft, generator, N = BigramLanguageModel(V), seeded(), 1500
    exact = exact_probabilities(model, 3, temperature=3.0)
    texts = torch.cat(
        [
            speculate(model, draft, START, 3, k, 3.0, generator=generator).idx
            for _ in range(N)
        ]
    )
    assert p_value(numbers(texts[:, 2:]), exact) > 0.01
    # The same test tells the draft's own texts from the model's.
    drafted = generate(draft, START.expand(N, -1), 3, 3.0, generator=generator)
    assert p_value(numbers(drafted[:, 2:]), exact) < 1e-6


@pytest.mark.parametrize("knobs", [{"top_k": 3}, {"top_p": 0.9}], ids=str)
def test_checked_tokens_follow_the_model_whatever_the_draft_says(knobs):
    """One token at a time, many of them: p is cut by the knobs, q is not."""
    torch.manual_seed(4)
    p = probabilities(torch.randn(2, V), **knobs)
    q = torch.tensor([[0.7, 0.1, 0.1, 0.1]])
    generator, written = seeded(), []
    for token in torch.multinomial(q[0], 20_000, True, generator=generator):
        kept, following = check(p, q, token[None], generator)
        written.append(token if kept else following[0])
    possible = p[0] > 0
    written = torch.stack(written)
    assert possible[written].all()
    rank = possible.cumsum(0) - 1
    assert p_value(rank[written], p[0][possible].double()) > 0.01


def test_a_token_is_kept_as_often_as_both_agree():
    p = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    q = torch.tensor([[0.2, 0.7, 0.1]])
    generator = seeded()
    tokens = torch.multinomial(q[0], 20_000, True, generator=generator)
    kept = [check(p, q, token[None], generator)[0] for token in tokens]
    assert sum(kept) / 20_000 == pytest.approx(0.2 + 0.3 + 0.1, abs=0.01)  # sum of min


@pytest.mark.parametrize("window", ["half", "slide"])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_the_likeliest_text_is_that_of_generate_past_the_context_too(
    model, draft, window, k
):
    how = dict(temperature=0, window=window)
    expected = generate(model, START, 40, **how)
    done = speculate(model, draft, START, 40, k, **how)
    assert torch.equal(done.idx, expected)
    assert 0 <= done.accepted <= done.drafted and 0 <= done.share <= 1


def test_a_rolling_window_is_no_obstacle():
    model = opinionated(CONFIGS["modern"])
    how = dict(temperature=0, window="roll")
    done = speculate(model, model, START, 30, **how)
    assert torch.equal(done.idx, generate(model, START, 30, **how))


def test_a_model_that_cannot_keep_keys_and_values_can_be_sped_up_too(draft):
    torch.manual_seed(9)
    model = BigramLanguageModel(V)
    done = speculate(model, draft, START, 30, temperature=0)
    assert torch.equal(done.idx, generate(model, START, 30, temperature=0))


def test_a_model_agrees_with_itself_in_a_pass_for_k_plus_one_tokens():
    config = GPTConfig(V, 64, n_layer=2, n_head=2, n_embd=8)
    model = opinionated(config)
    done = speculate(model, model, START, 50, k=4, generator=seeded())
    assert done.share > 0.99  # but for rounding
    assert done.idx.shape == (1, 52) and done.passes == 10


def test_only_one_token_is_written_in_a_pass_that_accepts_none():
    class Wrong(nn.Module):
        def forward(self, idx, targets=None):
            """Sure of the token that the model likes least."""
            return model(idx)[0].mul(-1e4), None

    config = GPTConfig(V, 64, n_layer=2, n_head=2, n_embd=8)
    model = opinionated(config)
    done = speculate(model, Wrong(), START, 20, temperature=0)
    assert done.accepted == 0 and done.passes == 20
    assert torch.equal(done.idx, generate(model, START, 20, temperature=0))


def test_speculation_is_repeatable_and_leaves_modes_and_global_state(model, draft):
    model.train(), draft.train()
    before = torch.get_rng_state()
    texts = [speculate(model, draft, START, 20, generator=seeded(s)) for s in (3, 3, 4)]
    assert torch.equal(texts[0].idx, texts[1].idx)
    assert not torch.equal(texts[0].idx, texts[2].idx)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training and draft.training and not texts[0].idx.is_inference()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_counting_draft_looks_up_what_the_counts_say(order):
    draft = counts(order)
    idx = torch.randint(V, (2, 9))
    logits, loss = draft(idx)
    generator = torch.Generator().manual_seed(1)
    text = torch.randint(V, (300,), generator=generator) ** 2 % V
    expected = Smoothing(order)(ContextCounts(text, V, order)(idx))[..., -1, :]
    assert loss is None
    assert_close(logits[:, order - 1 :], expected[:, order - 1 :])
    assert_close(logits.exp().sum(-1), torch.ones(2, 9))


def test_what_cannot_be_speculated_is_refused(model):
    bigram = BigramLanguageModel(V)
    for idx, how, message in [
        (START.expand(2, -1), {}, "2 rows"),
        (START, {"k": 0}, "k is 0"),
        (START, {"temperature": -1}, "temperature is -1"),
        (START, {"window": "roll", "k": 2, "top_k": 0}, "top_k is 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            speculate(model, bigram, idx, 5, **how)
    for order in (0, 12):
        with pytest.raises(ValueError, match=f"order {order} for 4 characters"):
            counts(order)
