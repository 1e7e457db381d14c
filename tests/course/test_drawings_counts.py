"""Drawings of 08b: what they say of a text is what its counts say."""

import torch

from minigpt.course.drawings import counts as pictures
from minigpt.data import CharTokenizer
from minigpt.modern.counts import ContextCounts


def seen_in(text, order):
    tokenizer = CharTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))
    asked = torch.tensor([tokenizer.encode("cabr")])
    seen = ContextCounts(ids, tokenizer.vocab_size, order)(asked)[0, -1]
    return pictures.staircase("cabr", seen, tokenizer.chars).alt


def test_the_staircase_ends_where_a_context_was_never_seen():
    alt = seen_in("abracadabra", order=4)
    assert "'r' 2 times, then 'a' with 100%" in alt
    assert "'abr' 2 times" in alt and "'cabr' never" in alt


def test_the_staircase_asks_the_text_that_it_is_given():
    assert "'cabr' 1 time, then 'x' with 100%" in seen_in("abcabrx", order=4)


def test_a_window_remembers_the_longest_context_that_stood_in_it_before():
    alt = pictures.reaches("Kate and\nKat", order=5, longest=4).alt
    assert "Its last 3, 'Kat', stood earlier" in alt and "'e' came next" in alt
    assert "'d\\nKat'" in alt  # the last five
    alt = pictures.reaches("and Kate and Kat", order=5, longest=4).alt
    assert "Its last 4, ' Kat'" in alt


def test_a_window_that_repeats_nothing_finds_nothing():
    assert "'nothing' came next" in pictures.reaches("abcd", order=2, longest=4).alt


def test_the_three_ways_to_the_logits_are_told():
    alt = pictures.beside().alt
    assert alt.startswith("ids go three ways") and alt.endswith("the logits.")
