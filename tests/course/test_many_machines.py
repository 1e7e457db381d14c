"""What notebook 10 leans on: workers in threads, its experiments, and its formulas."""

import threading
from types import SimpleNamespace

import pytest
import torch

from minigpt.course.checks.fake_workers import Stuck, as_workers
from minigpt.course.experiments import many_machines
from minigpt.data import CharTokenizer


def test_workers_in_threads_add_up_what_they_bring():
    def work(rank, own, group):
        group.barrier()
        return rank, group.all_reduce(own), group.size

    assert as_workers(work, [(1,), (10,), (100,)]) == tuple(
        (rank, 111, 3) for rank in range(3)
    )


def test_workers_that_would_wait_for_ever_are_named():
    def work(rank, group):
        if rank != 1:
            group.all_reduce(rank)

    with pytest.raises(Stuck, match=r"0 waits in all_reduce .*1 has left; worker 2 w"):
        as_workers(work, [(), (), ()])


def test_workers_that_wait_in_different_places_are_stuck_too():
    def work(rank, group):
        group.all_reduce(1) if rank else group.barrier()

    with pytest.raises(Stuck, match="barrier .*all_reduce"):
        as_workers(work, [(), ()])


def test_an_error_of_one_worker_ends_all_and_is_told():
    def work(rank, group):
        if rank == 1:
            raise ZeroDivisionError("of worker 1")
        group.barrier()

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match="of worker 1"):
        as_workers(work, [(), ()])
    assert threading.active_count() == before


def test_steps_to_a_loss_are_fewer_to_a_higher_one_and_end_at_most(monkeypatch):
    play = SimpleNamespace(ids=torch.arange(2000) % 5, tokenizer=CharTokenizer("abcde"))
    monkeypatch.setattr(many_machines.pocket, "load", lambda: play)
    high, low = (many_machines.steps_to(t, 8, 5e-3, 1, most=60) for t in (1.4, 0.3))
    assert 0 < high < low < 60
    assert many_machines.steps_to(0.0, 8, 5e-3, 1, most=20) == 20.0


def test_the_rate_that_is_tried_grows_like_the_root_of_the_batch():
    rates = [many_machines.rate_of(size) for size in (4, 16, 64)]
    assert [b / a for a, b in zip(rates, rates[1:])] == pytest.approx([2, 2])


@pytest.mark.weekly
def test_two_processes_tell_what_a_step_takes(monkeypatch):
    monkeypatch.setitem(many_machines.SHAPES, "tiny", ("cpu", 2, 1))
    found = many_machines.speed_up("tiny", seed=1)
    assert all(0 < each < 60_000 for each in found.values())
    assert found["megabytes"] == 1.683716
