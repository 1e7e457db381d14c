"""The visit, from the door to the text. What it finds first, it says first."""

from collections.abc import Callable
from typing import Any

import torch

from minigpt.clinic import learning, listening
from minigpt.clinic.patient import Patient, how_far, knock, said, shaken, untouched
from minigpt.clinic.report import Report
from minigpt.clinic.text import judge
from minigpt.require import require

LISTENING = (
    listening.luck_and_memory,
    listening.own_loss,
    listening.neighbors,
    listening.future,
    learning.registered,
    listening.past,
)


def examine(
    model: Any,
    vocab_size: int,
    text_ids: Any = None,
    *,
    block_size: int | None = None,
    call: Callable | None = None,
    trained: bool | None = None,
    seconds: float = 20,
    learn: bool = True,
) -> Report:
    """What's wrong with a model that turns ids (B, T) into logits (B, T, vocab_size).

    text_ids: ids of a text that it wasn't trained on, for losses. call: how to ask it,
    call(model, ids) -> logits. trained: whether it is; if you don't say, the clinic
    looks. seconds: for learning one batch, at most. learn=False leaves that out.
    Weights, gradients, mode and random numbers are as before when it returns.
    print() shows the page; its .findings have mark, says and explained_by.
    Raises ValueError for a model that isn't a torch module, or ids outside the
    vocabulary.
    """
    require(
        isinstance(model, torch.nn.Module),
        f"This is a {type(model).__name__}, and the clinic examines torch modules: "
        "give it the model, an nn.Module.",
    )
    require(
        vocab_size >= 2, f"vocab_size is {vocab_size}: give the number of ids, 2 up."
    )
    text = torch.as_tensor([] if text_ids is None else text_ids).flatten().long().cpu()
    require(
        not len(text) or 0 <= text.min() and text.max() < vocab_size,
        f"text_ids aren't all between 0 and {vocab_size - 1}, but the vocabulary has "
        f"{vocab_size} ids: encode the text with its tokenizer.",
    )
    report = Report()
    with untouched(model):
        patient = Patient(model, vocab_size, block_size, call)
        patient.text = None if text_ids is None else text
        patient.seconds = seconds if learn else 0
        patient.trained = learning.is_trained(model) if trained is None else trained
        visit(patient, report)
    report.explain()
    return report


def visit(patient: Patient, report: Report) -> None:
    """All examinations, in their order."""
    if not knock(patient, report):
        return
    how_far(patient, report)
    if not listening.is_sound(patient, report):
        return
    with shaken(patient.model):  # a fresh model's weights are too quiet to be heard
        for step in LISTENING:
            attempt(step, patient, report)
    with untouched(patient.model):
        attempt(learning.gradients, patient, report)
    attempt(learning.by_heart, patient, report)
    attempt(judge, patient, report)


def attempt(step: Callable, patient: Patient, report: Report) -> None:
    """Go through one examination; if it breaks, say so and go on."""
    try:
        step(patient, report)
    except Exception as error:  # of somebody's code
        report.add("✗ broke", problem=said(error))
