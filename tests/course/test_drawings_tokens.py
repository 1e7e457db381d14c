"""The drawing of 13: what a box holds is a token, and nothing is lost between them."""

from minigpt.course.drawings import tokens


def test_boxes_are_read_aloud_token_by_token():
    rows = [("3 letters", ["a", "\n", "b"], ()), ("2 tokens", ["a\n", "b"], {"a\n"})]
    alt = tokens.boxes(rows).alt
    assert "3 letters: a | line break | b; 2 tokens: aline break | b." in alt
