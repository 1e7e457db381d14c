"""Lesson 09: from text to text, as it comes, until a stop."""

import pytest
import torch
from small import DATA, TOKENIZER, small_gpt
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.data import CharTokenizer
from minigpt.generation import generate
from minigpt.writing import before_stop, left_padded, stream, write

LETTERS = CharTokenizer("abcdef")


@pytest.fixture
def alphabet():
    """A model that writes abcdefabcdef… from any letter on, at temperature 0."""
    model = BigramLanguageModel(6)
    model.token_embedding.weight.data = torch.eye(6).roll(1, 1) * 9
    return model


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


@pytest.mark.parametrize("knobs", [{}, {"cache": False}, {"window": "slide"}], ids=str)
def test_streamed_pieces_are_the_text_of_generate(model, knobs):
    start = torch.tensor([TOKENIZER.encode("the ")])
    text = generate(model, start, 30, 0.7, generator=seeded(), **knobs)[0, 4:]
    how = dict(temperature=0.7, generator=seeded(), **knobs)
    pieces = list(stream(model, TOKENIZER, "the ", 30, **how))
    assert len(pieces) == 30
    assert "".join(pieces) == TOKENIZER.decode(text)


@pytest.mark.parametrize(
    ("stop", "pieces"),
    [
        ((), list("bcdefab")),
        ("e", list("bcd")),
        ("de", ["b", "c"]),
        (["ef", "def"], ["b", "c"]),  # the first to begin
        ("dea", ["b", "c", "def", "a", "b"]),  # it might have been, but is not
        ("efabc", ["b", "c", "d", "efab"]),  # the end of the text decides
        ("b", []),
        (["x", "ff"], ["b", "c", "d", "e", "fa", "b"]),
    ],
    ids=str,
)
def test_a_piece_waits_while_it_may_become_a_stop(alphabet, stop, pieces):
    text = stream(alphabet, LETTERS, "a", 7, stop, temperature=0)
    assert list(text) == pieces
    text = write(alphabet, LETTERS, ["a"], 7, stop, temperature=0)
    assert text == ["".join(pieces)]


def test_nothing_more_is_computed_after_a_stop(alphabet):
    calls = []
    alphabet.register_forward_pre_hook(lambda m, x: calls.append(len(x[0])))
    list(stream(alphabet, LETTERS, "a", 1000, "d", temperature=0))
    assert calls == [1] * 3
    write(alphabet, LETTERS, ["b", "e"], 1000, "d", temperature=0)
    assert calls.count(1) == 3 + 2 * 5  # b c d, e f a b c d: row by row


def test_each_prompt_of_a_batch_gets_its_own_text_and_its_own_end(alphabet):
    texts = write(alphabet, LETTERS, ["abc", "e", "fa"], 9, "d", temperature=0)
    assert texts == ["", "fabc", "bc"]


@pytest.mark.parametrize("window", ["half", "slide"])
def test_prompts_of_different_lengths_are_written_as_if_alone(model, window):
    prompts = ["t", "the quick brown", "dog; ", "jumps over"]
    how = dict(temperature=0, window=window)
    alone = ["".join(stream(model, TOKENIZER, p, 25, **how)) for p in prompts]
    assert write(model, TOKENIZER, prompts, 25, **how) == alone
    assert len(set(alone)) == 4


def test_between_two_pieces_the_model_is_free_for_other_use(model):
    expected = "".join(stream(model, TOKENIZER, "dog", 12, generator=seeded()))
    text, x = "", DATA[:8][None]
    logits = model(x)[0]
    model.train()
    for piece in stream(model, TOKENIZER, "dog", 12, generator=seeded()):
        text += piece
        assert model.training and not torch.is_inference_mode_enabled()
        assert_close(model(x)[0], logits)
        model(x, x)[1].backward()
    assert text == expected


def test_prompts_are_padded_on_the_left():
    idx, lengths = left_padded([[5, 6], [1, 2, 3], [4]])
    assert lengths.tolist() == [2, 3, 1]
    assert idx[0, 1:].tolist() == [5, 6] and idx[1].tolist() == [1, 2, 3]
    assert idx[2, 2:].tolist() == [4]


def test_the_first_stop_in_a_text_ends_it():
    assert before_stop("to be or", ["or", "be"]) == "to "
    assert before_stop("to be or", ["not"]) is None
    assert before_stop("to be or", []) is None


@pytest.mark.parametrize(
    ("prompts", "stop", "message"),
    [
        (["a", ""], (), "A prompt is empty"),
        ([], (), "There is no prompt"),
        (["a"], "", "A stop string is empty"),
        (["a"], ["b", ""], "A stop string is empty"),
        (["x"], (), "no \\['x'\\]"),
    ],
)
def test_texts_that_cannot_be_written_are_refused(alphabet, prompts, stop, message):
    with pytest.raises(ValueError, match=message):
        write(alphabet, LETTERS, prompts, 5, stop)
    if len(prompts) == 1:
        with pytest.raises(ValueError, match=message):
            list(stream(alphabet, LETTERS, prompts[0], 5, stop))
