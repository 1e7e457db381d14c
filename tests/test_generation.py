"""Lesson 06: text from a model."""

import math

import pytest
import torch
from small import DATA, TOKENIZER, V, small_gpt
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.generation import generate, keep_likeliest
from minigpt.gpt import GPT

START = torch.tensor([TOKENIZER.encode("the "), TOKENIZER.encode("dog;")])


@pytest.fixture
def model():
    """A GPT that, as a new one would not, sees the one character likelier than the
    other."""
    model = small_gpt()
    with torch.no_grad():
        model.lm_head.weight.mul_(50)
    return model


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


def test_generation_keeps_the_prompt_and_goes_past_the_context(model):
    out = generate(model, START, 20)
    assert out.shape == (2, 24)
    assert torch.equal(out[:, :4], START)
    assert torch.equal(generate(model, START, 0), START)


def test_generation_depends_only_on_the_last_block_of_the_text(model):
    long = torch.cat([START, START, START], dim=1)
    a = generate(model, long, 5, generator=seeded())[:, -5:]
    b = generate(model, long[:, -8:], 5, generator=seeded())[:, -5:]
    c = generate(model, long[:, -7:], 5, generator=seeded())[:, -5:]
    assert torch.equal(a, b) and not torch.equal(a, c)


def test_a_model_without_a_limit_reads_all_of_the_text():
    seen = []

    class Reader(BigramLanguageModel):
        def forward(self, idx, targets=None):
            seen.append(idx.shape[1])
            return super().forward(idx, targets)

    generate(Reader(V), START, 12)
    assert seen == list(range(4, 16))


def test_only_the_last_position_is_computed_and_it_is_the_same(model):
    whole = GPT.forward

    class Whole(GPT):
        def forward(self, idx, targets=None):
            return whole(self, idx, targets)

    slow = Whole(model.config)
    slow.load_state_dict(model.state_dict())
    widths = []
    model.lm_head.register_forward_pre_hook(lambda m, x: widths.append(x[0].shape))
    one = generate(model, START, 12, generator=seeded(), window="slide")
    assert torch.equal(one, generate(slow, START, 12, generator=seeded()))
    assert set(widths) == {(2, 1, 16)}


def test_a_readers_own_forward_decides_what_is_written(model):
    class Stubborn(GPT):
        def forward(self, idx, targets=None):
            return super().forward(idx, targets)[0].index_fill(-1, SEVEN, 99), None

    SEVEN = torch.tensor([7])
    assert (generate(Stubborn(model.config), START, 5)[:, 4:] == 7).all()


def test_a_generator_makes_the_text_repeatable_and_spares_the_global_state(model):
    before = torch.get_rng_state()
    texts = [generate(model, START, 20, generator=seeded(s)) for s in (3, 3, 4)]
    assert torch.equal(texts[0], texts[1]) and not torch.equal(texts[0], texts[2])
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(3)
    assert torch.equal(generate(model, START, 20), texts[0])


def test_no_temperature_is_too_low_and_the_lowest_take_the_likeliest(model):
    before = torch.get_rng_state()
    greedy = generate(model, START, 10, temperature=0)
    assert torch.equal(torch.get_rng_state(), before)  # nothing is drawn
    assert torch.equal(greedy, generate(model, START, 10, top_k=1))
    assert torch.equal(greedy[:, 4], model(START)[0][:, -1].argmax(-1))
    for temperature in (1e-10, 1e-40, 1e-300):
        assert torch.equal(greedy, generate(model, START, 10, temperature=temperature))


def test_sampled_frequencies_follow_softmax_of_scaled_logits():
    model = BigramLanguageModel(4)
    start = torch.zeros(20_000, 1, dtype=torch.long)
    torch.manual_seed(0)
    drawn = generate(model, start, 1, temperature=0.5)[:, 1]
    expected = torch.softmax(model.token_embedding.weight[0] / 0.5, -1)
    assert_close(drawn.bincount(minlength=4) / 20_000, expected, atol=0.02, rtol=0)


def test_top_k_and_top_p_draw_among_the_likeliest_only():
    model, start = BigramLanguageModel(4), torch.zeros(2_000, 1, dtype=torch.long)
    model.token_embedding.weight.data[0] = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    for knobs, found in [
        ({"top_k": 2}, [0, 1]),
        ({"top_p": 0.65}, [0, 1]),
        ({"top_p": 0.85, "top_k": 2}, [0, 1]),
        ({"top_p": 0.85}, [0, 1, 2]),
        ({"top_p": 0.8, "temperature": 0.5}, [0, 1]),  # 0.53, 0.30, 0.13, 0.03
        ({}, [0, 1, 2, 3]),
    ]:
        assert generate(model, start, 1, **knobs)[:, 1].unique().tolist() == found


def kept(logits, **knobs):
    return (keep_likeliest(logits, **knobs) > -torch.inf).tolist()


def test_top_k_and_top_p_keep_the_likeliest_and_nothing_else():
    logits = torch.tensor([[0.15, 0.5, 0.05, 0.3], [0.3, 0.05, 0.5, 0.15]]).log()
    assert kept(logits, top_k=2) == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert kept(logits, top_p=0.7) == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert kept(logits, top_p=0.9) == [[1, 1, 0, 1], [1, 0, 1, 1]]
    assert kept(logits, top_p=0.1) == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert kept(logits, top_k=1) == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert kept(logits, top_k=99) == kept(logits, top_p=1.0) == [[1] * 4] * 2
    assert torch.equal(keep_likeliest(logits), logits)


def test_what_reaches_top_p_exactly_is_enough_and_ties_with_the_kth_stay():
    quarters = torch.zeros(1, 4)
    assert sum(kept(quarters, top_p=0.5)[0]) == 2
    assert sum(kept(quarters, top_p=0.51)[0]) == 3
    assert kept(quarters, top_k=2) == [[True] * 4]


def test_top_p_of_one_keeps_every_character_however_rare():
    """Rounding must not: over 90 nats, sums in float32 reach 1 before the end."""
    logits = torch.rand(200, 65) * 90
    probs = logits.softmax(-1).sort(descending=True).values
    assert (probs.cumsum(-1)[:, -2] >= 1).any()  # the rare ones are at risk
    assert kept(logits, top_p=1.0) == [[True] * 65] * 200


def test_knobs_that_keep_all_draw_as_if_they_were_not_there(model):
    plain = generate(model, START, 20, generator=seeded())
    for knobs in ({"top_p": 1.0}, {"top_k": 99}, {"temperature": 1}):
        assert torch.equal(
            plain, generate(model, START, 20, generator=seeded(), **knobs)
        )


def test_the_logits_themselves_are_left_alone():
    logits = torch.randn(2, 9)
    before = logits.clone()
    keep_likeliest(logits, top_k=2, top_p=0.5)
    assert torch.equal(logits, before)


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": math.inf}, "temperature is inf; it must be finite"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"top_k": 0}, "top_k is 0"),
        ({"top_p": 0.0}, "top_p is 0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_p": math.nan}, "top_p is nan"),
        ({"max_new_tokens": -1}, "max_new_tokens is -1"),
    ],
    ids=str,
)
def test_knobs_out_of_range_are_refused(model, knobs, message):
    with pytest.raises(ValueError, match=message):
        generate(model, START, **{"max_new_tokens": 1, **knobs})


@pytest.mark.parametrize("shape", [(1, 0), (4,), (1, 1, 1)])
def test_generation_from_nothing_or_from_no_batch_is_refused(model, shape):
    with pytest.raises(ValueError, match="at least one token"):
        generate(model, torch.zeros(shape, dtype=torch.long), 1)


@pytest.mark.parametrize("n", [0, 5])
def test_what_a_model_wrote_can_be_learned_from(model, n):
    out = generate(model, START, n)
    assert not out.is_inference()
    out[:, 0] = 3
    x = torch.nn.Parameter(torch.ones(V, 2))[out]  # an index is kept for the gradient
    x.sum().backward()
    model(out[:, -4:], out[:, -4:])[1].backward()


def test_the_prompt_is_left_as_it_was(model):
    prompt = DATA[:4][None].clone()
    generate(model, prompt, 5)[:, 0] += 1
    generate(model, prompt, 0)[:, 0] += 1
    assert torch.equal(prompt, DATA[:4][None])
