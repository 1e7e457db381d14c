"""Lesson 09: from text to text, as it comes, until a stop."""

import pytest
import torch
from small import DATA, TOKENIZER, seeded, small_gpt
from torch.testing import assert_close

from minigpt.bigram import BigramLanguageModel
from minigpt.data import CharTokenizer
from minigpt.fast.writing import generate, stream

LETTERS = CharTokenizer("abcdef")


@pytest.fixture
def alphabet():
    """A model that writes abcdefabcdef… from any letter on, at temperature 0."""
    model = BigramLanguageModel(6)
    model.token_embedding.weight.data = torch.eye(6).roll(1, 1) * 9
    return model


@pytest.fixture
def model():
    """A GPT that, as a new one would not, sees one character likelier than another."""
    model = small_gpt()
    with torch.no_grad():
        model.lm_head.weight.mul_(50)
    return model


def test_streamed_pieces_are_the_text_of_generate(model):
    start = torch.tensor([TOKENIZER.encode("the ")])
    text = generate(model, start, 30, temperature=0.7, generator=seeded())[0, 4:]
    knobs = dict(temperature=0.7, generator=seeded())
    pieces = list(stream(model, TOKENIZER, "the ", 30, **knobs))
    assert len(pieces) == 30 and "".join(pieces) == TOKENIZER.decode(text)


@pytest.mark.parametrize(
    ("stop", "pieces"),
    [
        ([], list("bcdefab")),
        (["de"], ["b", "c"]),
        (["ef", "def"], ["b", "c"]),  # the first to begin
        (["de", "bcdef"], ["bc"]),  # the first to end
        (["dea"], ["b", "c", "def", "a", "b"]),  # it might have been, but is not
        (["efabc"], ["b", "c", "d", "efab"]),  # the end of the text decides
        (["b"], []),
    ],
    ids=str,
)
def test_a_piece_waits_while_it_may_become_a_stop(alphabet, stop, pieces):
    text = stream(alphabet, LETTERS, "a", 7, stop, temperature=0)
    assert list(text) == pieces


def test_nothing_more_is_computed_after_a_stop(alphabet):
    calls = []
    alphabet.register_forward_pre_hook(lambda m, x: calls.append(len(x[0])))
    list(stream(alphabet, LETTERS, "a", 1000, ["d"], temperature=0))
    assert calls == [1] * 3  # b c d


def test_between_two_pieces_the_model_is_free_for_other_use(model):
    expected = "".join(stream(model, TOKENIZER, "dog", 12, generator=seeded()))
    pieces, x = stream(model, TOKENIZER, "dog", 12, generator=seeded()), DATA[:8][None]
    logits = model(x)[0]
    text = next(pieces)
    other = "".join(stream(model, TOKENIZER, "the", 12, generator=seeded(4)))
    assert_close(model(x)[0], logits)
    model(x, x)[1].backward()
    assert text + "".join(pieces) == expected != other
    assert model.training
