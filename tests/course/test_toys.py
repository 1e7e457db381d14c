"""A text whose rule a head can learn, and a valley for an optimizer."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course import drawings
from minigpt.course.toys import BEGIN, STEEP, last_capital, right, walk
from minigpt.data import CharTokenizer


def test_behind_each_question_mark_stands_the_last_capital():
    text = last_capital(5000)
    assert len(text) in (5000, 5001) and text.count("?") > 500
    last = ""
    for char, behind in zip(text, text[1:]):
        last = char if char.isupper() else last
        assert char != "?" or behind == last.lower()
    assert last_capital(5000) == text != last_capital(5000, seed=1)


class LastCapital(nn.Module):
    """Names the last capital of a window, in lowercase, wherever it is asked."""

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    def forward(self, x):
        named, chars = torch.zeros_like(x), self.tokenizer.chars
        for row, ids in enumerate(x.tolist()):
            last = chars[0]
            for t, char in enumerate(chars[i] for i in ids):
                last = char if char.isupper() else last
                named[row, t] = self.tokenizer.encode(last.lower())[0]
        return F.one_hot(named, len(chars)).float(), None


def test_a_model_that_knows_the_rule_is_always_right():
    tokenizer = CharTokenizer("?ABab")
    ids = torch.tensor(tokenizer.encode("A?aB?b?aA?a"))
    model = LastCapital(tokenizer)
    assert right(model, ids, tokenizer, T=5) == (1.0, 3)  # a fourth sees no capital
    ids[2] = ids[10] = tokenizer.encode("b")[0]  # behind each A stands a b
    share, cases = right(model, ids, tokenizer, T=5)
    assert cases == 3 and abs(share - 1 / 3) < 1e-6


@pytest.mark.parametrize("turned", [0, 45])
def test_a_plain_step_shrinks_each_direction_by_its_own_factor(turned):
    places, loss = walk("SGD", 0.035, steps=12, turned=turned)
    flat, steep = (
        [start * (1 - 0.035 * slope) ** t for t in range(13)]
        for start, slope in zip(BEGIN, (1, STEEP))
    )
    assert [v for place in places for v in place] == pytest.approx(
        [v for place in zip(flat, steep) for v in place], abs=1e-4
    )
    assert loss == pytest.approx((flat[-1] ** 2 + STEEP * steep[-1] ** 2) / 2, abs=1e-3)


def test_the_first_step_of_adam_is_as_long_in_both_directions():
    places, _ = walk("Adam", 0.3, steps=1)
    moved = [after - before for before, after in zip(*places)]
    assert moved == pytest.approx([0.3, -0.3], abs=1e-4)


def test_the_valley_is_drawn_with_the_losses_of_its_walks():
    alt = drawings.valley().alt
    for name, rate in (("SGD", 0.035), ("momentum", 0.022), ("Adam", 0.35)):
        assert f"{walk(name, rate)[1]:.2f}" in alt
