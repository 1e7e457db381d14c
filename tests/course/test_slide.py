"""What a lecture's cells show: pictures that can be read, bars from 0."""

import re

import pytest

from minigpt.course import slide
from minigpt.course.drawings import lecture
from minigpt.course.plots import Picture


@pytest.fixture
def shown(monkeypatch):
    """What is displayed: a list of (HTML, the same in plain words)."""
    found = []
    monkeypatch.setattr(slide, "_display", lambda *both: found.append(both))
    return found


def test_letters_that_the_last_row_cannot_read_are_an_error(shown):
    fig = Picture(figsize=(4, 3))
    fig.alt = "A word in small letters, to see that it's refused."
    fig.text(0.5, 0.5, "small", fontsize=13)
    with pytest.raises(ValueError, match="'small' are 13 points; the last row needs"):
        slide.show(fig)
    assert not shown


def test_a_picture_beyond_the_margins_or_without_words_is_an_error():
    fig = Picture(figsize=(13, 3))
    with pytest.raises(ValueError, match="Describe the picture"):
        slide.show(fig)
    fig.alt = "An empty picture, wider than a slide."
    with pytest.raises(ValueError, match="13.00 x 3.00 inches; a slide has room for"):
        slide.show(fig)


def test_a_picture_grows_by_one_fragment_a_step(shown):
    slide.show(*lecture.known())
    ((source, told),) = shown
    assert source.count("<img") == 2 and source.count('class="fragment"') == 1
    assert told.endswith("n: 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 4, 1; "
                         "g: 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 1.")  # fmt: skip


def test_bars_begin_at_zero_and_are_as_long_as_their_numbers(shown):
    slide.bars({"a": 4.0, "b": 1.0}, "nats", waits=["b"])
    ((source, told),) = shown
    widths = [float(width) for width in re.findall(r"width: ([\d.]+)%", source)]
    assert widths == [100, 25] and told == "nats:\na: 4.00\nb: 1.00"
    assert source.count('<tr class="fragment">') == 1


def test_words_of_a_table_and_of_samples_are_not_taken_for_html(shown):
    slide.table(["a < b", "c"], ["<i>", 1.5], waits=1)
    slide.samples({"one": "<b>\n&"})
    assert "a &lt; b" in shown[0][0] and "&lt;i&gt;" in shown[0][0]
    assert 'class="fragment" data-fragment-index="0">1.5<' in shown[0][0]
    assert "&lt;b&gt;</p><p>&amp;" in shown[1][0] and shown[1][1] == "one:\n<b>\n&"


def test_drawings_by_hand_have_the_numbers_of_the_lesson():
    assert "key (20·1, 2·4) = (20, 8)" in lecture.read()[-1].alt
    assert lecture.by_hand("g")[-1].alt.endswith("g gets 1.00 · n.")
    mixed = "o gets 0.76 · o + 0.18 · r + 0.04 · t + 0.01 · s."
    assert lecture.by_hand("o")[-1].alt.endswith(mixed)
    leak = lecture.leak()[-1].alt
    assert "0.25, -, -; 0.25, 0.5, -; 0.5, 0.5, 1" in leak
    assert "0.125, -, -; 0.125, 0.5, -; 0.75, 0.5, 1" in leak
    assert lecture.opposite()[-1].alt.endswith("to 1, 2, 1 to 3, 5.")


def test_the_steps_of_a_drawing_have_one_size():
    for make in (lecture.known, lecture.read, lecture.leak, lecture.opposite):
        assert len({tuple(fig.get_size_inches()) for fig in make()}) == 1
    table = lecture.Grid([["1"]])
    sizes = [fig.get_size_inches() for fig in lecture.grids(table, "=", table)]
    assert len(sizes) == 2 and (sizes[0] == sizes[1]).all()


def test_a_shuffled_past_gives_the_last_letter_the_same():
    assert "the g is the same in both" in lecture.shuffled().alt  # it checks itself
