"""A text whose rule a head can learn."""

from minigpt.course.toys import last_capital


def test_behind_each_question_mark_stands_the_last_capital():
    text = last_capital(5000)
    assert len(text) in (5000, 5001) and text.count("?") > 500
    last = ""
    for char, behind in zip(text, text[1:]):
        last = char if char.isupper() else last
        assert char != "?" or behind == last.lower()
    assert last_capital(5000) == text != last_capital(5000, seed=1)
