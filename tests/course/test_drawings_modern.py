"""Drawings of 08: what they count is right, and each can be read aloud."""

import pytest
import torch

from minigpt.course.drawings import modern

HALF = torch.tensor([[1.0, 0.8], [0.5, 0.8]])


def test_a_turned_pair_keeps_its_angle():
    alt = modern.turned([(3, 1), (8, 6)], theta=0.5).alt
    assert alt.count("57 degrees apart") == 2


def test_muons_step_is_a_circle():
    U, _, V_t = torch.linalg.svd(HALF)
    alt = modern.circles({"gradient": HALF, "step": U @ V_t}, U).alt
    assert "1.57, 0.25" in alt and "1.00, 1.00" in alt


@pytest.mark.parametrize(
    "fig",
    [
        modern.block(),
        modern.gate(),
        modern.norms({"x": torch.ones(4), "y": -torch.ones(4)}),
    ],
    ids=lambda fig: fig.alt[:20],
)
def test_each_drawing_knows_its_alternative_text(fig):
    assert len(fig.alt) > 60 and fig.alt.endswith(".")
