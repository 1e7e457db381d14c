"""Drawings of 11 and 12: what they say is what is computed."""

import pytest

from minigpt.backward.tensor import Tensor
from minigpt.course.drawings import graph, inside


def test_the_slopes_in_the_graph_are_those_of_backward():
    tensors = {name: Tensor(x) for name, x in [("a", 2.0), ("b", -3.0), ("c", 10.0)]}
    d = tensors["a"] * tensors["b"] + tensors["c"]
    (d * d).backward()
    for name, tensor in tensors.items():
        label, slope, depth, _ = graph.NODES[name]
        assert label == f"{name} = {tensor.data:.0f}".replace("-", "\u2212")
        assert slope == f"{tensor.grad:.0f}".replace("-", "\u2212")
        assert depth == tensor.depth


def test_of_the_pairs_the_head_that_brings_most_is_named():
    shares = {"seed 1": {("Nan", "Hob"): [0, 1], ("Hob", "Nan"): [0.9, 0.1]}}
    alt = inside.pairs(shares, {"seed 1": [3, 2]}, ["1.1", "1.2"]).alt
    assert "is 1.1 in 1, 1.2 in 1 of the pairs; the most expensive cut is 1.1." in alt


@pytest.mark.parametrize(
    "fig", [graph.way_back(), graph.walk_back(), inside.exchange()]
)
def test_each_drawing_knows_its_alternative_text(fig):
    assert len(fig.alt) > 60 and fig.alt[-1] in ".?"
