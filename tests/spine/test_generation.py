"""Lesson 06: sampling."""

import pytest
import torch
from small import DATA, V, seeded, small_gpt
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.generation import generate, probabilities

START = DATA[:8].view(2, 4)


@pytest.fixture
def model():
    model = small_gpt()
    model.lm_head.weight.data *= 50  # it has opinions
    return model


def test_new_tokens_follow_the_prompt_which_is_left_as_it_was(model):
    prompt = START.clone()
    out = generate(model, prompt, 30)  # far beyond the block of 8
    assert out.shape == (2, 34) and torch.equal(out[:, :4], START)
    assert 0 <= out.min() and out.max() < V
    out[:, 0] += 1
    assert torch.equal(prompt, START)


def test_the_model_reads_the_last_block_and_all_of_a_shorter_text(model):
    read = []
    model.register_forward_pre_hook(lambda m, inputs: read.append(inputs[0]))
    out = generate(model, DATA[:6][None], 5)
    assert [idx.shape[1] for idx in read] == [6, 7, 8, 8, 8]
    assert torch.equal(read[-1], out[:, 2:10])


def test_a_generator_makes_the_text_repeatable_and_spares_the_global_state(model):
    before = torch.get_rng_state()
    texts = [generate(model, START, 20, generator=seeded(s)) for s in (3, 3, 4)]
    assert torch.equal(texts[0], texts[1]) and not torch.equal(texts[0], texts[2])
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(3)
    assert torch.equal(generate(model, START, 20), texts[0])


def test_temperature_zero_takes_the_likeliest(model):
    greedy = generate(model, START, 10, temperature=0)
    assert torch.equal(greedy, generate(model, START, 10, top_k=1))
    assert torch.equal(greedy[:, 4], model(START)[0][:, -1].argmax(-1))


def test_sampled_frequencies_follow_softmax_of_scaled_logits():
    model = BigramLanguageModel(4)
    start = torch.zeros(20_000, 1, dtype=torch.long)
    drawn = generate(model, start, 1, temperature=0.5, generator=seeded())[:, 1]
    expected = torch.softmax(model.token_embedding.weight[0] / 0.5, -1)
    assert_close(drawn.bincount(minlength=4) / 20_000, expected, atol=0.02, rtol=0)


def kept(logits, **knobs):
    return (probabilities(logits, **knobs) > 0).tolist()


def test_top_k_and_top_p_keep_the_likeliest_and_nothing_else():
    logits = torch.tensor([[0.15, 0.5, 0.05, 0.3], [0.3, 0.05, 0.5, 0.15]]).log()
    assert kept(logits, top_k=2) == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert kept(logits, top_p=0.7) == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert kept(logits, top_p=0.9) == [[1, 1, 0, 1], [1, 0, 1, 1]]
    assert kept(logits, top_p=0.1) == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert kept(logits, top_p=0.85, top_k=2) == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert kept(logits, top_k=99) == kept(logits, top_p=1.0) == [[1] * 4] * 2
    assert kept(logits, top_p=0.8, temperature=0.5) == [[0, 1, 0, 1], [1, 0, 1, 0]]


def test_what_is_kept_keeps_its_proportions():
    probs = probabilities(torch.tensor([[0.1, 0.2, 0.7]]).log(), top_k=2)
    assert_close(probs, torch.tensor([[0, 2 / 9, 7 / 9]]))


def test_what_reaches_top_p_exactly_is_enough_and_ties_with_the_kth_stay():
    quarters = torch.zeros(1, 4)
    assert sum(kept(quarters, top_p=0.5)[0]) == 2
    assert sum(kept(quarters, top_p=0.51)[0]) == 3
    assert kept(quarters, top_k=2) == [[True] * 4]


def test_the_logits_themselves_are_left_alone():
    logits = torch.randn(2, 9)
    before = logits.clone()
    probabilities(logits, top_k=2, top_p=0.5)
    assert torch.equal(logits, before)


def test_what_a_model_wrote_can_be_learned_from(model):
    out = generate(model, START, 5)
    model(out[:, -4:], out[:, -4:])[1].backward()
    assert model.lm_head.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "knobs, said",
    [
        ({"temperature": -1}, "temperature is -1; give 0"),
        ({"temperature": float("nan")}, "temperature is nan; give 0"),
        ({"top_k": 0}, "top_k is 0; give at least 1"),
        ({"top_p": 0}, "top_p is 0; give more than 0"),
        ({"top_p": 1.5}, "top_p is 1.5; give more than 0 and at most 1"),
    ],
    ids=str,
)
def test_knobs_with_which_nothing_can_be_drawn_are_refused(model, knobs, said):
    with pytest.raises(ValueError, match=said):
        generate(model, START, 1, **knobs)
