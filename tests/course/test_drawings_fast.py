"""Drawings of 09: what they count is right, and each can be read aloud."""

import pytest
from matplotlib.patches import Rectangle

from minigpt.course.drawings import fast


def squares(ax, colour):
    """How many squares of a panel have this fill."""
    shapes = [p for p in ax.patches if isinstance(p, Rectangle)]
    return sum(p.get_facecolor() == fast_colour(colour) for p in shapes)


def fast_colour(colour):
    return Rectangle((0, 0), 1, 1, fc=colour).get_facecolor()


def test_the_staircases_count_what_is_computed():
    fig = fast.work(5)
    without, with_cache = fig.axes
    assert squares(without, fast.NEW) == 15 and squares(without, fast.KEPT) == 0
    assert squares(with_cache, fast.NEW) == 5 and squares(with_cache, fast.KEPT) == 10
    assert "15 in all" in fig.alt and "5 in all" in fig.alt


def test_the_cache_grows_by_a_key_and_a_value_in_each_step():
    for t, ax in enumerate(fast.grown("ROME").axes):
        assert squares(ax, fast.NEW) == 3  # query, key, value
        assert squares(ax, fast.KEPT) == 2 * t


def test_what_is_accepted_and_what_is_lacking_are_the_model():
    fig = fast.shared_out([0.5, 0.2, 0.3], [0.2, 0.7, 0.1], "abc")
    assert "Accepted: a 0.2, b 0.2, c 0.1" in fig.alt
    assert "Added after refusals: a 0.3, b 0.0, c 0.2" in fig.alt
    drafted, accepted, added, together = fig.axes
    assert squares(drafted, fast.DRAFTED) == 3  # grey is the draft alone
    assert squares(drafted, fast.ACCEPTED) == squares(accepted, fast.DRAFTED) == 0
    assert squares(accepted, fast.ACCEPTED) == squares(together, fast.ACCEPTED) == 3
    assert squares(added, fast.NEW) == squares(together, fast.NEW) == 3


def test_after_a_round_stands_what_was_accepted_and_one_character_more():
    alt = fast.checked("my l", "ord, ", 3, "s").alt
    assert "'my lords'" in alt and "3 are accepted" in alt


@pytest.mark.parametrize(
    "fig",
    [fast.work(3), fast.grown("ab"), fast.checked("a", "b", 0, "c")],
    ids=lambda fig: fig.alt[:20],
)
def test_each_drawing_knows_its_alternative_text(fig):
    assert len(fig.alt) > 60 and fig.alt.endswith(".")
