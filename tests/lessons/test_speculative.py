"""Lesson 09: a draft changes the speed of writing, not what is written."""

import itertools

import pytest
import torch
import torch.nn as nn
from small import opinionated, seeded
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.fast.speculative import CountingDraft, check, speculate
from minigpt.fast.writing import generate
from minigpt.generation import probabilities
from minigpt.gpt import GPTConfig
from minigpt.modern.model import ModernConfig

V, T = 4, 8
SHAPE = dict(vocab_size=V, block_size=T, n_layer=2, n_head=2, n_embd=8)
CONFIGS = {
    "gpt": GPTConfig(**SHAPE),
    "modern": ModernConfig(**SHAPE, n_kv_head=1, zero_init=False),
}
START = torch.tensor([[1, 3]])
TEXT = torch.randint(V, (300,), generator=torch.Generator().manual_seed(1)) ** 2 % V


@pytest.fixture(params=CONFIGS)
def model(request):
    return opinionated(CONFIGS[request.param])


DRAFTS = {
    "bigram": lambda: BigramLanguageModel(V),
    "trigram counts": lambda: CountingDraft(TEXT, V, 2),
    "one block": lambda: opinionated(ModernConfig(V, 4, 1, 1, 4), seed=5),
}


@pytest.fixture(params=DRAFTS)
def draft(request):
    torch.manual_seed(2)
    return DRAFTS[request.param]()


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
    logits = model(idx)[0][:, 1:-1]  # of what follows START, and so on
    p = probabilities(logits.flatten(0, 1), **knobs).view(len(texts), length, V)
    return p.gather(2, texts[..., None]).prod(dim=1)[:, 0].double()


def numbers(texts):
    """Each row of texts (N, length) as one number, in the order of above."""
    return (texts * V ** torch.arange(texts.shape[1] - 1, -1, -1)).sum(dim=1)


def test_speculation_writes_from_the_distribution_of_the_model():
    model = opinionated(CONFIGS["gpt"])
    draft, how, N = BigramLanguageModel(V), {"temperature": 3.0}, 1500
    exact, how["generator"] = exact_probabilities(model, 3, **how), seeded()
    texts = [speculate(model, draft, START, 3, **how).idx for _ in range(N)]
    assert p_value(numbers(torch.cat(texts)[:, 2:]), exact) > 0.01
    # The same test tells the draft's own texts from the model's.
    drafted = generate(draft, START.expand(N, -1), 3, **how)
    assert p_value(numbers(drafted[:, 2:]), exact) < 1e-6


@pytest.mark.parametrize("knobs", [{"top_k": 3}, {"top_p": 0.9}], ids=str)
def test_checked_tokens_follow_the_model_whatever_the_draft_says(knobs):
    """One token at a time, many of them: p is cut by the knobs, q is not."""
    torch.manual_seed(4)
    p = probabilities(torch.randn(2, V), **knobs)
    q = torch.tensor([[0.7, 0.1, 0.1, 0.1]])
    generator, written, both, N = seeded(), [], 0, 5000
    for token in torch.multinomial(q[0], N, True, generator=generator):
        kept, following = check(p, q, token[None], generator)
        written.append(token if kept else following[0])
        both += kept
    agreement = torch.minimum(p[0], q[0]).sum().item()
    assert both / N == pytest.approx(agreement, abs=0.02)
    possible, written = p[0] > 0, torch.stack(written)
    assert possible[written].all()
    rank = possible.cumsum(0) - 1
    assert p_value(rank[written], p[0][possible].double()) > 0.01


@pytest.mark.parametrize("k", [1, 3, 20])
def test_the_likeliest_text_is_that_of_generate_past_the_context_too(model, draft, k):
    for each in (model, BigramLanguageModel(V)):  # the second without a cache
        done = speculate(each, draft, START, 40, k, temperature=0)
        assert torch.equal(done.idx, generate(each, START, 40, temperature=0))
        assert 0 <= done.accepted <= done.drafted


def test_a_model_agrees_with_itself_in_a_pass_for_k_plus_one_tokens():
    model = opinionated(GPTConfig(V, 64, n_layer=2, n_head=2, n_embd=8))
    done = speculate(model, model, START, 50, k=4, generator=seeded())
    assert done.idx.shape == (1, 52) and done.passes == 10
    assert done.accepted == done.drafted == 40


def test_only_one_token_is_written_in_a_pass_that_accepts_none():
    class Wrong(nn.Module):
        block_size = 64

        def forward(self, idx, targets=None):
            """Sure of the token that the model likes least."""
            return model(idx)[0].mul(-1e4), None

    model = opinionated(GPTConfig(V, 64, n_layer=2, n_head=2, n_embd=8))
    done = speculate(model, Wrong(), START, 20, temperature=0)
    assert done.accepted == 0 and done.passes == 20
    assert torch.equal(done.idx, generate(model, START, 20, temperature=0))


@pytest.mark.parametrize("order", [1, 3])
def test_a_counting_draft_looks_up_what_followed(order):
    logits, loss = CountingDraft(TEXT, V, order)(TEXT[None])
    assert loss is None and logits.shape == (1, 300, V)
    text = TEXT.tolist()
    for t in (order - 1, 50, 299):
        context = text[t - order + 1 : t + 1]
        counts = torch.full((V,), 0.01)
        for end in range(order, 300):
            if text[end - order : end] == context:
                counts[text[end]] += 1
        assert_close(logits[0, t].softmax(-1), counts / counts.sum())
