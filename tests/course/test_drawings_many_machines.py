"""Drawings of 10: the numbers in them are those that workers would find."""

from minigpt.course.drawings import many_machines as pictures


def test_the_mean_of_the_gradients_goes_to_all():
    alt = pictures.averaging([1, 3], [-2, -6], before=0, after=2).alt
    assert "2 workers" in alt and "The mean of all, -4" in alt
    assert "from 0 to 2" in alt


def test_a_chunk_is_finished_when_it_is_the_sum_over_all_workers():
    states = [
        ("at first", [[1, 2], [10, 20]], []),
        ("add", [[1, 22], [11, 20]], [(1, 0), (0, 1)]),
        ("hand on", [[11, 22], [11, 22]], [(0, 0), (1, 1)]),
    ]
    alt = pictures.ring(states).alt
    for told in ("at first: 0 of 4", "add: 2 of 4", "hand on: 4 of 4"):
        assert f"{told} finished" in alt


def test_shards_add_up_to_what_one_worker_holds_with_ddp():
    for n in (2, 4):
        assert f"a part of each, {16 / n:g} together" in pictures.memory(n).alt
