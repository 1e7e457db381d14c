"""What 00 shows: the stored GPT goes on from a prompt, and says kindly if it can't; and
what draws and saves while 06 trains."""

import re

import nbformat
import pytest
import torch
from small import PLAN, TOKENIZER, fit, small_gpt
from syllabus import MAIN_LINE, NOTEBOOKS

from minigpt import course
from minigpt.checkpoint import load_checkpoint
from minigpt.course import plots
from minigpt.course.drawings import idioms


def test_the_same_seed_writes_the_same_text_and_another_seed_another():
    first, again = (course.continued("ROMEO:", n=40) for _ in range(2))
    assert first == again
    assert first.startswith("ROMEO:") and len(first) == 46
    assert course.continued("ROMEO:", n=40, seed=2) != first


def test_a_prompt_it_cannot_read_gets_a_sentence_with_its_characters():
    answer = course.continued("2 + 2 =")
    assert answer.startswith("Sorry, I can't read '2', '+', '='.")
    with pytest.raises(ValueError, match="Sorry, I can't read 'é'"):
        course.likely("é")


def test_an_empty_prompt_starts_a_new_line():
    assert course.continued("", n=20) == course.continued("\n", n=20)


def test_likely_gives_the_largest_probabilities_first():
    best = course.likely("ROMEO:\nWh", k=65)
    numbers = [p for _, p in best]
    assert numbers == sorted(numbers, reverse=True)
    assert sum(numbers) == pytest.approx(1, abs=1e-5)
    assert {character for character, _ in best[:3]} == set("aye")


def test_a_prompt_longer_than_the_context_is_read_from_its_end():
    long = "To be, or not to be, that is the question. " * 3
    assert course.likely(long) == course.likely(long[-64:])


def test_the_page_is_written_and_opened(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(course, "PAGE", tmp_path / "build" / "page.html")
    monkeypatch.setattr(course.webbrowser, "open", opened.append)
    assert "build/page.html" in course.open_page()
    assert opened == [course.PAGE.as_uri()]
    assert course.PAGE.read_bytes().startswith(b"<!DOCTYPE html>")


def test_a_watched_training_draws_its_curve_and_saves_the_model(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "_display", lambda *each: drawn.append(each[1]))
    model, path = small_gpt(), tmp_path / "model.pt"
    fit(model, on_eval=course.watch(model, TOKENIZER, PLAN, path))
    assert len(drawn) == 2 and "counted bigram" in drawn[0]
    saved = load_checkpoint(path)
    assert saved.run.step == PLAN.steps
    torch.testing.assert_close(saved.model.state_dict(), model.state_dict())


@pytest.mark.parametrize("draw", [idioms.broadcast, idioms.view, idioms.transpose])
def test_drawings_of_idioms_know_their_alternative_text(draw):
    assert len(draw().alt) > 60


def test_the_lines_that_00b_quotes_are_lines_of_the_main_line():
    texts = {path.name: nbformat.read(path, 4) for path in NOTEBOOKS.glob("0*.ipynb")}
    cells = [cell for name in MAIN_LINE for cell in texts[f"{name}.ipynb"].cells]
    code = {line.strip() for cell in cells for line in cell.source.splitlines()}
    quoted = re.compile(r"^    +(\S.*)$", re.M)
    told = texts["00b_python_and_torch.ipynb"].cells
    lines = [
        q for c in told if c.cell_type == "markdown" for q in quoted.findall(c.source)
    ]
    assert len(lines) >= 10
    for line in lines:
        assert line in code, line
