"""Lesson 09: what was computed once is not computed again, and nothing else changes."""

import copy

import pytest
import torch
import torch.nn as nn
from torch.testing import assert_close

from minigpt.attention import Head
from minigpt.bigram import BigramLanguageModel
from minigpt.block import Block
from minigpt.cache import KVCache, can_cache
from minigpt.generation import generate
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.modern import ModernConfig
from minigpt.multi_head import CausalSelfAttention
from minigpt.reading import Reader

V, T, C = 11, 16, 24
SHAPE = dict(vocab_size=V, block_size=T, n_layer=3, n_head=4, n_embd=C)
CONFIGS = {
    "gpt": GPTConfig(**SHAPE),
    "modern": ModernConfig(**SHAPE),
    "grouped": ModernConfig(**SHAPE, n_kv_head=2, softcap=5.0),
    "one key head": ModernConfig(**SHAPE, n_kv_head=1, activation="swiglu"),
    "modern, learned positions": ModernConfig(**SHAPE, rotary=False, bias=True),
}
ROTARY = ["modern", "grouped", "one key head"]
# Sums of float32 in another order; the logits are of size 1 to 10.
CLOSE = dict(rtol=0, atol=2e-5)


def opinionated(config):
    """A model of random weights that is far from uniform, in evaluation mode."""
    torch.manual_seed(0)
    model = config.build().eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return model


@pytest.fixture(params=CONFIGS)
def model(request):
    return opinionated(CONFIGS[request.param])


@pytest.fixture(params=ROTARY)
def rotary(request):
    return opinionated(CONFIGS[request.param])


def some_text(B=2, length=T):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(V, (B, length), generator=generator)


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("pieces", [[1] * T, [T], [5] + [1] * 11, [3, 6, 7]], ids=str)
@pytest.mark.parametrize("B", [1, 3])
def test_a_text_read_in_pieces_gets_the_logits_of_one_pass(model, pieces, B):
    idx, cache = some_text(B), KVCache(model)
    with cache:
        logits = [model(piece)[0] for piece in idx.split(pieces, dim=1)]
    assert_close(torch.cat(logits, dim=1), model(idx)[0], **CLOSE)


def test_changing_a_character_changes_what_comes_after_it_through_the_cache(model):
    """The comparison above would see an attention that reads only the newest."""
    changed = some_text(1)
    changed[0, 0] = (changed[0, 0] + 1) % V
    last = []
    for idx in (some_text(1), changed):
        with KVCache(model):
            model(idx[:, :-1])
            last.append(model(idx[:, -1:])[0])
    assert (last[0] - last[1]).abs().max() > 1e-3


def test_what_is_forgotten_leaves_no_trace(model):
    idx, cache = some_text(), KVCache(model)
    with cache:
        model(idx)
        cache.keep(4)
        again = model(idx.flip(1)[:, :5])[0]
        cache.clear()
        anew = model(idx[:1])[0]  # also of another batch size
    spliced = torch.cat([idx[:, :4], idx.flip(1)[:, :5]], dim=1)
    assert_close(again, model(spliced)[0][:, 4:], **CLOSE)
    assert_close(anew, model(idx[:1])[0], **CLOSE)


def test_outside_the_cache_a_model_is_as_ever(model):
    idx = some_text()
    before, state = model(idx)[0], copy.deepcopy(model.state_dict())
    names = [name for name, _ in model.named_modules()]
    with pytest.raises(KeyError), KVCache(model):
        model(idx)
        assert list(model.state_dict()) == list(state)
        assert [name for name, _ in model.named_modules()] == names
        raise KeyError
    assert torch.equal(model(idx)[0], before)
    model(idx, idx)[1].backward()  # with gradients again
    assert "cache" not in repr(model)


def test_two_texts_can_be_read_in_turns(model):
    a, b = some_text()[:1], some_text()[1:]
    first, second = KVCache(model), KVCache(model)
    for t in range(T):
        with first:
            one = model(a[:, t : t + 1])[0]
        with second:
            two = model(b[:, t : t + 1])[0]
    assert_close(one, model(a)[0][:, -1:], **CLOSE)
    assert_close(two, model(b)[0][:, -1:], **CLOSE)


def test_a_full_cache_says_what_to_do(model):
    cache = KVCache(model)
    with cache:
        model(some_text(1))
        with pytest.raises(ValueError, match="16 of 16 characters.*clear it"):
            model(some_text(1)[:, :1])
    with pytest.raises(ValueError, match="cannot be kept"):
        cache.keep(17)


def test_the_memory_is_that_of_all_positions_and_of_the_key_heads_only():
    for name, heads in {"modern": 4, "grouped": 2, "one key head": 1}.items():
        model = opinionated(CONFIGS[name])
        cache = KVCache(model)
        assert cache.bytes() == 0
        with cache:
            model(some_text(2, 3))
        assert cache.bytes() == 3 * 2 * 2 * T * heads * 6 * 4  # layers, k and v, B


# --- padding ---


def padded(lengths, width):
    """Rows of these many real tokens, on the right; rubbish before them."""
    idx = some_text(len(lengths), width)
    return idx, [idx[b : b + 1, width - n :] for b, n in enumerate(lengths)]


def test_a_row_padded_on_the_left_gets_the_logits_of_the_row_alone(model):
    lengths = [3, 7, 1, 5]
    idx, rows = padded(lengths, 12)
    cache = KVCache(model, lengths=torch.tensor(lengths))
    with cache:
        logits = [model(piece)[0] for piece in idx.split([7, 1, 1, 1, 2], dim=1)]
    logits = torch.cat(logits, dim=1)
    # Lengths are counted in the first piece, which ends at position 7.
    for b, n in enumerate(lengths):
        alone = model(idx[b : b + 1, 7 - n :])[0]
        assert_close(logits[b : b + 1, 7 - n :], alone, **CLOSE)


@pytest.mark.parametrize("window", ["half", "slide", "roll"])
@pytest.mark.parametrize("cache", [True, False])
def test_each_row_of_a_padded_batch_is_written_as_if_alone(rotary, window, cache):
    """Also long past the context, where each row drops its own beginning."""
    if window == "roll" and not cache:
        return
    lengths = [3, 9, 1, 14, 20]
    idx, rows = padded(lengths, 20)
    how = dict(temperature=0, window=window, cache=cache)
    out = generate(rotary, idx, 30, **how, lengths=torch.tensor(lengths))
    for b, row in enumerate(rows):
        assert torch.equal(out[b, 20:], generate(rotary, row, 30, **how)[0, -30:])


def test_rows_of_a_padded_batch_get_the_logits_of_the_uncached_way(model):
    lengths = torch.tensor([3, 9, 1, 14])
    idx = some_text(4, 40)
    cached, reference = (Reader(model, c, lengths=lengths) for c in (True, False))
    for t in range(14, 40):
        with torch.inference_mode():
            assert_close(cached(idx[:, :t]), reference(idx[:, :t]), **CLOSE)


@pytest.mark.parametrize("lengths", [[3], [0, 4], [4, 5]])
def test_lengths_that_no_row_can_have_are_refused(lengths):
    model = opinionated(CONFIGS["gpt"])
    with pytest.raises(ValueError, match="from 1 to 4 for each of the 2 rows"):
        generate(model, some_text(2, 4), 1, lengths=torch.tensor(lengths))


# --- writing ---


@pytest.mark.parametrize("B", [1, 16])
@pytest.mark.parametrize("prompt", [1, T - 1, T, T + 5])
@pytest.mark.parametrize("window", ["half", "slide"])
def test_the_same_seed_writes_the_same_text_cached_or_not(model, B, prompt, window):
    texts = [
        generate(
            model,
            some_text(B, prompt),
            2 * T,
            generator=seeded(),
            cache=cache,
            window=window,
        )
        for cache in (True, False)
    ]
    assert torch.equal(*texts)
    assert len(texts[0].unique()) > 3


@pytest.mark.parametrize("window", ["half", "slide"])
def test_the_logits_are_equal_at_every_step(model, window):
    idx = some_text(2, 5 * T)
    readers = [Reader(model, cache, window) for cache in (True, False)]
    for t in range(1, 5 * T):
        with torch.inference_mode():
            assert_close(*(reader(idx[:, :t]) for reader in readers), **CLOSE)


def passes(model, window, length, prompt=1):
    """How many characters the model reads in each step of writing `length`."""
    read = []
    hook = model.body.register_forward_pre_hook(lambda m, x: read.append(x[0].shape[1]))
    generate(model, some_text(1, prompt), length, window=window)
    hook.remove()
    return read


def test_half_a_window_is_read_again_each_half_window(model):
    half = T // 2
    again = [half + 1] + [1] * (half - 1)
    assert passes(model, "half", 3 * T) == [1] * T + again * 4
    assert passes(model, "half", 3, prompt=T + 5) == [T, half + 1, 1]


def test_sliding_reads_a_whole_window_for_each_character(model):
    assert passes(model, "slide", 2 * T) == [1] * T + [T] * T


def test_rolling_reads_nothing_twice(rotary):
    assert passes(rotary, "roll", 3 * T) == [1] * (3 * T)


def test_without_being_told_a_model_that_can_reads_halves_and_others_slide(model):
    for cache in (True, False):
        how = dict(temperature=0, cache=cache)
        text = generate(model, some_text(2, 5), 3 * T, **how)
        half = generate(model, some_text(2, 5), 3 * T, **how, window="half")
        assert torch.equal(text, half)
    one_head = LanguageModel(V, T, C, Head(C, C))
    text = generate(one_head, some_text(2, 5), 3 * T, generator=seeded())
    for t in range(3 * T):
        context = text[:, : 5 + t][:, -T:]
        expected = one_head(context)[0][:, -1]
        reader = Reader(one_head)
        with torch.no_grad():
            assert_close(reader(text[:, : 5 + t]), expected)
    slide = generate(
        one_head, some_text(2, 5), 3 * T, generator=seeded(), window="slide"
    )
    assert torch.equal(text, slide)


def banded(model, idx):
    """Logits of one pass in which each position sees the last T of its keys only."""

    class Band:
        def __init__(self):
            self.positions = torch.arange(idx.shape[1])

        def extend(self, length):
            return self.positions

        def attend(self, q, k, v):
            k, v = (t.repeat_interleave(4 // k.shape[1], dim=1) for t in (k, v))
            age = self.positions[:, None] - self.positions
            mask = (age >= 0) & (age < T)
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    readers = [m for m in model.modules() if hasattr(m, "cache")]
    for module in readers:
        module.cache = Band()
    with torch.no_grad():
        logits = model(idx)[0]
    for module in readers:
        module.cache = None
    return logits


def test_a_rolling_cache_is_attention_to_the_last_keys_for_ever(rotary):
    idx, cache = some_text(2, 5 * T), KVCache(rotary, roll=True)
    with cache:
        logits = [rotary(idx[:, :10])[0]]
        logits += [rotary(idx[:, t : t + 1])[0] for t in range(10, 5 * T)]
    assert_close(torch.cat(logits, dim=1), banded(rotary, idx), **CLOSE)
    assert cache.bytes() == KVCacheBytes(rotary)


def KVCacheBytes(model):
    """Of a cache that has read one whole context of two texts."""
    cache = KVCache(model)
    with cache:
        model(some_text(2))
    return cache.bytes()


def test_within_the_context_all_windows_write_the_same(rotary):
    texts = [
        generate(rotary, some_text(2, 3), T - 2, generator=seeded(), window=window)
        for window in ("half", "slide", "roll")
    ]
    assert torch.equal(texts[0], texts[1]) and torch.equal(texts[0], texts[2])


def test_windows_that_cannot_be_are_refused(rotary):
    learned = opinionated(CONFIGS["gpt"])
    for model, how, message in [
        (learned, dict(window="roll"), "rotary"),
        (rotary, dict(window="roll", cache=False), "there is none"),
        (BigramLanguageModel(V), dict(window="roll"), "there is none"),
        (learned, dict(window="whole"), "'whole'; it must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            generate(model, some_text(1, 1), 1, **how)
    with pytest.raises(ValueError, match="one at a time"), KVCache(rotary, roll=True):
        rotary(some_text(1))
        rotary(some_text(1)[:, :2])


# --- which models can ---


def test_the_models_of_06_and_08_can_and_no_others():
    class MyHead(Head):
        pass

    class MyAttention(CausalSelfAttention):
        def forward(self, x):
            return super().forward(x)

    class MyGPT(GPT):
        def forward(self, idx, targets=None):
            return super().forward(idx, targets)

    for config in CONFIGS.values():
        assert can_cache(config.build())
    own_part, own_attention = GPT(CONFIGS["gpt"]), GPT(CONFIGS["gpt"])
    own_part.body[1].feed_forward = MyHead(C, C)
    own_attention.body[1].attention = MyAttention(C, 4)
    own_head = GPT(CONFIGS["gpt"])
    own_head.body[1].attention = Head(C, C)
    for model in (
        own_part,
        own_attention,
        own_head,
        MyGPT(CONFIGS["gpt"]),
        BigramLanguageModel(V),
        LanguageModel(V, T, C, Head(C, C)),
        LanguageModel(V, T, C, nn.Sequential(Head(C, C), Block(C, 4))),
    ):
        assert not can_cache(model)
        assert generate(model, some_text(2, 3), 20).shape == (2, 23)
        with pytest.raises(ValueError, match="cannot keep keys and values"):
            KVCache(model)
