"""A text whose rule a head can learn, and how often a model knows it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from minigpt.course.toys import last_capital, right
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
