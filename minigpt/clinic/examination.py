"""The visit, from the door to the text. What it finds first, it says first."""

from collections.abc import Callable
from typing import Any

import torch

from minigpt.clinic import learning, listening
from minigpt.clinic.patient import Patient, knock, said, untouched
from minigpt.clinic.report import Report
from minigpt.clinic.text import judge
from minigpt.require import require


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
    text = (
        None if text_ids is None else torch.as_tensor(text_ids).flatten().long().cpu()
    )
    if text is not None and len(text):
        require(
            0 <= text.min() and text.max() < vocab_size,
            f"text_ids go from {text.min()} to {text.max()}, but the vocabulary has "
            f"{vocab_size} ids, 0 to {vocab_size - 1}: encode the text with its "
            "tokenizer.",
        )
    report = Report()
    with untouched(model):
        patient = Patient(model, vocab_size, block_size, call)
        visit(patient, report, text, trained, seconds if learn else 0)
    report.explain()
    return report


def visit(
    patient: Patient, report: Report, text: Any, trained: bool | None, seconds: float
) -> None:
    """All examinations, in their order."""
    if not knock(patient, report):
        return
    listening.how_far(patient, report)
    if not listening.is_sound(patient, report):
        return
    if trained is None:
        trained = learning.is_trained(patient.model)
    heard: dict = {}

    def own_loss() -> None:
        with listening.shaken(patient):  # a fresh model's logits are all alike
            learning.own_loss(patient, report)

    def future() -> None:
        heard.update(listening.future(patient, report))

    steps: list[Callable[[], Any]] = [
        lambda: listening.luck_and_memory(patient, report),
        own_loss,
        lambda: listening.neighbors(patient, report),
        future,
        lambda: learning.registered(patient, report),
        lambda: listening.past(patient, report, heard),
        lambda: restored(patient, lambda: learning.gradients(patient, report, trained)),
    ]
    if seconds > 0:
        heart = lambda: learning.by_heart(patient, report, text, seconds)  # noqa: E731
        steps.append(lambda: restored(patient, heart))
    if text is not None:
        steps.append(lambda: judge(patient, report, text, trained, max(4.0, seconds)))
    for step in steps:
        try:
            step()
        except Exception as error:  # of somebody's code
            says = f"The visit broke off here: {said(error)}."
            report.add("wrong", "broke", says)


def restored(patient: Patient, step: Callable[[], Any]) -> None:
    """Run what changes the weights; then put them back."""
    with untouched(patient.model):
        step()
