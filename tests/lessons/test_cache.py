"""Lesson 09: what was computed once is not computed again, and nothing else changes."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from small import opinionated, seeded
from torch.testing import assert_close

from minigpt import generation
from minigpt.attention import Head
from minigpt.bigram import BigramLanguageModel
from minigpt.block import Block
from minigpt.fast.cache import KVCache
from minigpt.fast.reader import Reader, can_cache, forward_with_cache
from minigpt.fast.writing import generate
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.modern.model import ModernConfig, ModernGPT
from minigpt.multi_head import CausalSelfAttention

V, T, C = 11, 16, 24
SHAPE = dict(vocab_size=V, block_size=T, n_layer=3, n_head=4, n_embd=C)


CONFIGS = {
    "gpt": GPTConfig(**SHAPE),
    "modern": ModernConfig(**SHAPE, value_residual=True),
    "grouped": ModernConfig(**SHAPE, n_kv_head=2, softcap=5.0),
    "one key head": ModernConfig(**SHAPE, n_kv_head=1, embedding_mix=True),
    "modern, learned positions": ModernConfig(**SHAPE, rotary=False, bias=True),
}
ROTARY = ["modern", "grouped", "one key head"]


@pytest.fixture(params=CONFIGS)
def model(request):
    return opinionated(CONFIGS[request.param])


@pytest.fixture(params=ROTARY)
def rotary(request):
    return opinionated(CONFIGS[request.param])


def assert_same_logits(ours, expected):
    """Sums of float32 in another order: an error is measured by the largest logit."""
    assert_close(ours, expected, rtol=0, atol=1e-5 * expected.abs().max().item())


def some_text(B=2, length=T):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(V, (B, length), generator=generator)


@pytest.mark.parametrize("pieces", [[1] * T, [T], [5] + [1] * 11, [3, 6, 7]], ids=str)
def test_a_text_read_in_pieces_gets_the_logits_of_one_pass(model, pieces):
    idx, cache = some_text(3), KVCache(model, 3)
    ends = torch.tensor(pieces).cumsum(0)
    logits = [forward_with_cache(model, idx[:, :end], cache) for end in ends]
    assert [each.shape[1] for each in logits] == pieces
    assert_same_logits(torch.cat(logits, dim=1), model(idx)[0])


def test_what_is_forgotten_leaves_no_trace(model):
    idx, cache = some_text(), KVCache(model, 2)
    forward_with_cache(model, idx, cache)
    cache.length = 4
    spliced = torch.cat([idx[:, :4], idx.flip(1)[:, :5]], dim=1)
    again = forward_with_cache(model, spliced, cache)
    assert_same_logits(again, model(spliced)[0][:, 4:])


def test_a_refused_call_leaves_the_cache_as_it_was(model):
    idx, caches = some_text(2, 6), []
    for refused in (False, True):
        cache = KVCache(model, 2)
        for end in range(1, 6):
            forward_with_cache(model, idx[:, :end], cache)
        if refused:
            unknown, too_many = torch.full((2, 6), V), some_text(2, T + 1)
            for bad in (unknown, some_text(3, 6), too_many):
                with pytest.raises((IndexError, RuntimeError, ValueError)):
                    forward_with_cache(model, bad, cache)
        caches.append(cache)
    after = [forward_with_cache(model, idx, cache) for cache in caches]
    assert torch.equal(*after)


def test_two_texts_can_be_read_in_turns(model):
    idx, before = some_text(), model(some_text())[0]
    first, second = KVCache(model), KVCache(model)
    for t in range(T):
        one = forward_with_cache(model, idx[:1, : t + 1], first)
        two = forward_with_cache(model, idx[1:, : t + 1], second)
    assert_same_logits(torch.cat([one, two]), before[:, -1:])
    assert torch.equal(model(idx)[0], before)


def test_gradients_are_there_again_after_reading_and_after_writing():
    model = CONFIGS["gpt"].build()
    logits = forward_with_cache(model, some_text(1), KVCache(model))
    assert not logits.requires_grad
    text = generate(model, some_text(1, 3), 5)
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    assert model.training
    loss = model(text, text)[1]
    loss.backward()
    assert all(p.grad is not None for p in model.parameters())


def test_a_full_cache_says_what_to_do(model):
    cache = KVCache(model)
    forward_with_cache(model, some_text(1), cache)
    said = "16 of 16.*no room for 1 more|T = 17 tokens, but block_size is 16: pass"
    with pytest.raises(ValueError, match=said):
        forward_with_cache(model, some_text(1, T + 1), cache)


def test_with_a_cache_the_loss_is_that_of_the_rest():
    model, idx, targets = opinionated(CONFIGS["modern"]), some_text(3), some_text(3)
    cache = KVCache(model, 3)
    model(idx[:, :5], cache=cache)
    logits, loss = model(idx, targets[:, 5:], cache=cache)
    whole = F.cross_entropy(
        model(idx)[0][:, 5:].flatten(0, 1), targets[:, 5:].flatten()
    )
    assert logits.shape == (3, T - 5, V)
    assert_close(loss, whole)


def test_only_the_key_heads_take_memory():
    sizes = {n: KVCache(opinionated(CONFIGS[n])).keys.shape for n in CONFIGS}
    assert sizes["gpt"] == sizes["modern"] == (3, 1, 4, T, 6)
    assert sizes["grouped"] == (3, 1, 2, T, 6)
    assert sizes["one key head"] == (3, 1, 1, T, 6)


# --- writing ---


@pytest.mark.parametrize("knobs", [{}, {"top_k": 4}, {"top_p": 0.8}], ids=str)
def test_within_the_context_the_text_is_that_of_lesson_06(model, knobs):
    start = some_text(3, 2)
    text, expected = (
        g(model, start, T - 1, temperature=0.7, generator=seeded(), **knobs)
        for g in (generate, generation.generate)
    )
    assert torch.equal(text, expected) and len(text.unique()) > 3


def windows_of(length, prompt, window):
    """The text each character is drawn from, [start, end), by the words of Reader."""
    start = max(0, prompt - T)
    for end in range(prompt, length):
        if end - start > T:
            start = end - T if window == "slide" else start + T // 2
        yield start, end


@pytest.mark.parametrize("prompt", [1, T, T + 5])
@pytest.mark.parametrize("window", ["half", "slide"])
def test_beyond_the_context_each_window_is_read_as_in_one_pass(model, window, prompt):
    idx, reader = some_text(2, 2 * T + 2), Reader(model, window)
    for start, end in windows_of(2 * T + 2, prompt, window):
        expected = model(idx[:, start:end])[0][:, -1:]
        assert_same_logits(reader(idx[:, :end]), expected)


def test_how_many_characters_are_read_for_each_that_is_written(rotary):
    def read(window, prompt=1, length=3 * T):
        counts = []
        hook = rotary.token_embedding.register_forward_hook(
            lambda layer, inputs, out: counts.append(inputs[0].numel())
        )
        generate(rotary, some_text(1, prompt), length, window=window)
        hook.remove()
        return counts

    half = T // 2
    assert read(None) == [1] * T + ([half + 1] + [1] * (half - 1)) * 4
    assert read("half", prompt=T + 5, length=3) == [T, half + 1, 1]
    assert read("slide") == [1] * T + [T] * (2 * T)


def test_a_window_that_cannot_be_is_refused(rotary):
    with pytest.raises(ValueError, match="'whole'; give one of"):
        generate(rotary, some_text(1, 1), 1, window="whole")


# --- which models can ---


class MyAttention(CausalSelfAttention):
    def forward(self, x):
        return super().forward(x)


class MyGPT(GPT):
    def forward(self, idx, targets=None):
        return super().forward(idx, targets)


class MyModernGPT(ModernGPT):
    def forward(self, idx, targets=None):
        return super().forward(idx, targets)


class MyModernAttention(nn.Module):
    """Attention of 06 in a block of 08."""

    def __init__(self):
        super().__init__()
        self.own = CausalSelfAttention(C, 4)

    def forward(self, x, first_values, turns, **kept):
        return self.own(x), x


def with_part(model, **parts):
    """The same model, with other parts in its second block."""
    for name, part in parts.items():
        setattr(model.body[1], name, part)
    return model


def test_the_models_of_06_and_08_can_cache():
    for config in CONFIGS.values():
        assert can_cache(config.build())


OTHERS = {
    "a part that mixes": lambda: with_part(
        GPT(CONFIGS["gpt"]), feed_forward=Head(C, C)
    ),
    "own attention": lambda: with_part(
        GPT(CONFIGS["gpt"]), attention=MyAttention(C, 4)
    ),
    "own pass": lambda: MyGPT(CONFIGS["gpt"]),
    "no GPT": lambda: BigramLanguageModel(V),
    "own body": lambda: LanguageModel(V, T, C, nn.Sequential(Head(C, C), Block(C, 4))),
    "modern, own pass": lambda: MyModernGPT(CONFIGS["modern"]),
    "modern, own attention": lambda: with_part(
        ModernConfig(**SHAPE).build(), attention=MyModernAttention()
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_others_cannot_and_write_as_in_06(other):
    model = OTHERS[other]()
    assert not can_cache(model)
    text, expected = (
        g(model, some_text(2, 3), 3 * T, generator=seeded())
        for g in (generate, generation.generate)
    )
    assert torch.equal(text, expected)
