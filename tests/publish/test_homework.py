"""Homework the way a class does it: hand out, answer, grade, give back."""

import contextlib
import copy
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import the_exercises
import torch
from exercises import answered, exercises_of, solution_in
from syllabus import NOTEBOOKS, ROOT
from traitlets.config.loader import PyFileConfigLoader

from minigpt.course.checks.averaging import check_mean_so_far
from minigpt.course.checks.self_attention import check_scaled_scores

PATHS = sorted((NOTEBOOKS / "exercises").glob("*.ipynb"))
HERE = [pytest.param(path, id=path.stem) for path in PATHS]
GIVES_AWAY = "Solution", "answer-key", "Each hint is followed", "Skip any exercise"


def make(target, folder):
    """`make target` with another build folder and this Python."""
    if not shutil.which("make"):
        pytest.skip("there is no make on this machine")
    given = [f"BUILD={folder}", f"BIN={os.path.dirname(sys.executable)}"]
    command = ["make", "--silent", "--old-file=.venv/ready", target, *given]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder / target


@pytest.fixture(scope="module")
def worksheets(tmp_path_factory):
    return make("worksheets", tmp_path_factory.mktemp("build"))


@pytest.mark.parametrize("path", HERE)
def test_a_work_sheet_is_the_notebook_without_its_answer_key(path, worksheets):
    sheet = nbformat.read(worksheets / path.name, as_version=4)
    given = nbformat.read(path, as_version=4)
    asked = [c for c in given.cells if "answer-key" not in c.metadata.get("tags", [])]
    assert [cell.source for cell in sheet.cells] == [cell.source for cell in asked]
    assert not any(cell.get("outputs") for cell in sheet.cells)
    text = nbformat.writes(sheet)
    assert not [words for words in GIVES_AWAY if words in text]
    assert text.count("<summary>Hint") == len(exercises_of(path.name[:2]))


# What a check does when nbgrader runs it


@pytest.fixture
def graded(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")


def test_only_nbgrader_sees_a_number_below_a_check(monkeypatch):
    result = check_mean_so_far(lambda x, t: x[:, t])
    assert result._ipython_display_() is None  # IPython shows nothing
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(NotImplementedError):  # IPython shows the repr
        result._ipython_display_()
    assert 0 < float(repr(result)) < 1


def by_heart(program, table):
    """An answer that knows only what is in the table; the program fills it at first."""

    def answer(*inputs):
        key = repr([one.tolist() for one in inputs])
        if program is not None:
            table[key] = program(*inputs)
        return table.get(key, torch.zeros(()))

    return answer


def test_an_answer_that_has_the_cases_by_heart_is_found_by_the_second_look(monkeypatch):
    exercise, table = exercises_of("03")["03.1"], {}
    right = answered(exercise, the_exercises.names("03"), exercise.solution)[
        "scaled_scores"
    ]
    assert check_scaled_scores(by_heart(right, table))
    memory = by_heart(None, table)
    assert check_scaled_scores(memory)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert check_scaled_scores(right)
    assert not check_scaled_scores(memory)


@pytest.mark.parametrize("path", HERE)
def test_the_solutions_are_right_on_the_second_look_too(path, graded):
    torch.optim.AdamW([torch.zeros(1)])  # torch imports much for the first one
    for exercise in exercises_of(path.name[:2]).values():
        learner = answered(
            exercise, the_exercises.names(path.name[:2]), exercise.solution
        )
        with contextlib.redirect_stdout(io.StringIO()) as said:
            assert eval(exercise.check, learner), said.getvalue()


# A class

NAME = "02_averaging_exercises"
CHECKS = ["c02-057-check", "c02-066-check", "c02-073-check", "c02-076-check"]


def cell_of(sheet, name):
    return next(cell for cell in sheet.cells if cell.id == name)


def answer_of(sheet, check):
    return cell_of(sheet, check.removesuffix("-check"))


def all_right(sheet, key):
    """The first answer needs a helper, which is in a cell of the learner's own."""
    for check in CHECKS:
        place = key.cells.index(answer_of(key, check))
        answer_of(sheet, check).source = solution_in(key.cells[place:])
    first = answer_of(sheet, CHECKS[0])
    helper = nbformat.v4.new_code_cell(first.source.replace("mean_so_far", "helper"))
    first.source = "mean_so_far = helper"
    sheet.cells.insert(sheet.cells.index(first), helper)


def every_trick(sheet, key):
    """A check deleted, one redefined, one changed, and a right answer copied."""
    all_right(sheet, key)
    answer_of(sheet, CHECKS[0]).source = "def mean_so_far(x, t): return x[:, 0]"
    sheet.cells.remove(cell_of(sheet, CHECKS[0]))
    answer_of(
        sheet, CHECKS[1]
    ).source = "fading_average = ...\ncheck_fading_average = print"
    answer_of(sheet, CHECKS[2]).source = "nats_per_character = ..."
    cell_of(sheet, CHECKS[2]).source = "pass"
    copied = copy.deepcopy(answer_of(sheet, CHECKS[3]))
    copied.id = "copied"
    sheet.cells.append(copied)


def below_their_checks(sheet, key):
    """All is right, and the last two answers come below their checks."""
    all_right(sheet, key)
    for check in CHECKS[2:]:
        cell = cell_of(sheet, check)
        sheet.cells.remove(cell)
        sheet.cells.insert(1, cell)


def endless(sheet, key):
    """The same, but the second answer never ends."""
    below_their_checks(sheet, key)
    answer_of(sheet, CHECKS[1]).source = "import time\nwhile True:\n    time.sleep(1)"


CLASS = {"ann": below_their_checks, "bob": every_trick, "eve": endless}


def is_fair(student, points):
    """Ann's are all right, and eve's but for the endless one. Bob's first answer is
    right in some of the cases."""
    if student == "bob":
        return 0 < points[0] < 1 and points[1:] == [0, 0, 1]
    return points == {"ann": [1, 1, 1, 1], "eve": [1, 0, 1, 1]}[student]


@pytest.fixture(scope="module")
def key():
    return nbformat.read(NOTEBOOKS / "exercises" / f"{NAME}.ipynb", as_version=4)


@pytest.fixture
def steps(worksheets, tmp_path):
    """The steps of nbgrader that are ours, in a course that released the work sheet."""
    pytest.importorskip("nbgrader")
    course = make("nbgrader", tmp_path)
    (course / "release" / NAME).mkdir(parents=True)
    shutil.copy(worksheets / f"{NAME}.ipynb", course / "release" / NAME)
    config = PyFileConfigLoader(str(course / "nbgrader_config.py")).load_config()
    steps = config.Autograde.sanitize_preprocessors
    steps += config.Autograde.autograde_preprocessors
    return {step.__name__: step() for step in steps}


@pytest.mark.parametrize("student", ["ann", "bob"])
def test_a_sheet_is_graded_fairly(student, key, worksheets, steps, shell, graded):
    """Here, in this process; once a week nbgrader grades a class, each in a kernel."""
    from nbgrader.utils import determine_grade, is_grade

    sheet = nbformat.read(worksheets / f"{NAME}.ipynb", as_version=4)
    CLASS[student](sheet, key)
    about = {"nbgrader": {"assignment": NAME, "notebook": NAME}}
    sheet, _ = steps["IntoTheRelease"].preprocess(sheet, about)
    for cell in sheet.cells:
        if cell.cell_type == "code":
            result = shell.run_cell(cell.source).result
            text, _ = shell.display_formatter.format(result)
            if result is not None and text:
                shown = nbformat.v4.new_output("execute_result", text)
                cell.outputs = [shown]
    sheet, _ = steps["Points"].preprocess(sheet, about)
    score = {c.id: determine_grade(c)[0] for c in sheet.cells if is_grade(c)}
    assert is_fair(student, [score[check] for check in CHECKS])


def test_a_check_that_shows_nothing_gets_no_points(key, steps):
    from nbgrader.utils import determine_grade

    check = copy.deepcopy(cell_of(key, CHECKS[0]))
    check.outputs = []
    assert determine_grade(check)[0] == 1  # what nbgrader alone would say
    assert determine_grade(steps["Points"].preprocess_cell(check, {}, 0)[0])[0] == 0


@pytest.mark.weekly
def test_a_class_is_graded_fairly(key, tmp_path, monkeypatch):
    pytest.importorskip("nbgrader")
    from nbgrader.api import Gradebook

    # nbgrader calls `alembic`, also where nobody activated the environment.
    here = Path(sys.executable).parent
    monkeypatch.setenv("PATH", os.pathsep.join([str(here), os.environ["PATH"]]))

    course = make("nbgrader", tmp_path)

    def nbgrader(*command):
        run = [sys.executable, "-m", "nbgrader", *command, NAME]
        us = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(run, cwd=course, env=us, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    nbgrader("generate_assignment")
    released = course / "release" / NAME / f"{NAME}.ipynb"
    text = released.read_text(encoding="utf-8")
    assert not [words for words in GIVES_AWAY if words in text]
    for student, hand_in in CLASS.items():
        sheet = nbformat.read(released, as_version=4)
        for check in CHECKS:  # learners get what is in the notebook
            assert cell_of(sheet, check).source == cell_of(key, check).source
            assert answer_of(sheet, check).source == answer_of(key, check).source
        hand_in(sheet, key)
        folder = course / "submitted" / student / NAME
        folder.mkdir(parents=True)
        nbformat.write(sheet, folder / released.name)

    nbgrader("autograde", "--Execute.timeout=25")  # seconds: a busy machine is slow
    nbgrader("generate_feedback")
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}", "minigpt") as book:
        for student in CLASS:
            grades = book.find_submission_notebook(NAME, NAME, student).grades
            score = {grade.name: grade.score for grade in grades}
            assert is_fair(student, [score[check] for check in CHECKS]), student
    page = course / "feedback" / "bob" / NAME / f"{NAME}.html"
    assert "✗ 02.1" in page.read_text(encoding="utf-8")
