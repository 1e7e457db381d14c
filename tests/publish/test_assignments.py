"""Assignments for nbgrader and Otter: fair to right, wrong and shuffled sheets."""

import ast
import contextlib
import copy
import io
import re
import sys

import nbformat
import pytest
import torch
from every_exercise import EXERCISES, names
from exercises import answered, exercises_of
from IPython.core.interactiveshell import InteractiveShell

from minigpt.course.checks import core
from minigpt.course.checks import grading as looks
from minigpt.course.publish import nbgrader, otter, shared, submitted

PATHS = shared.notebook_paths(shelf="exercises")


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nbgrader")
    nbgrader.build_nbgrader(folder)
    return folder


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def sheet(path, course):
    return shared.read(course / "source" / path.stem / path.name)


def about(cell):
    return cell.metadata.get("nbgrader")


def cell_of(sheet, name):
    (found,) = [cell for cell in sheet.cells if submitted.name(cell) == name]
    return found


def names_of(sheet):
    return [submitted.name(cell) for cell in sheet.cells if submitted.name(cell)]


def released(sheet):
    """What nbgrader makes of a source, as far as cells are concerned."""
    made = copy.deepcopy(sheet)
    for cell in made.cells:
        for what, stub in (("SOLUTION", "\n"), ("HIDDEN TESTS", "")):
            pattern = rf"### BEGIN {what}\n.*?\n### END {what}\n?"
            cell.source = re.sub(pattern, stub, cell.source, flags=re.S)
    return made


# What nbgrader gets


def test_prompt_answer_and_check_of_every_exercise(path, sheet):
    names, exercises = names_of(sheet), exercises_of(path.name[:2])
    assert len(set(names)) == len(names)
    for number, exercise in exercises.items():
        one = number.replace(".", "-")
        place = names.index(f"{one}-answer")
        assert (
            names[place - 1 : place + 2]
            == [f"{one}-{part}" for part in ("prompt", "answer", "check")]
            or names[place + 1] == f"{one}-check"
        )
        prompt, answer, check = (
            cell_of(sheet, f"{one}-{part}") for part in ("prompt", "answer", "check")
        )
        assert about(prompt).locked and not about(prompt).grade
        assert about(answer).solution and not about(answer).grade
        assert about(check).grade and about(check).locked
        assert about(check).points == re.search("★+", prompt.source)[0].count("★")
        assert exercise.solution.rstrip() in answer.source


def test_learners_get_the_skeleton_and_the_plain_check(path, sheet):
    given = released(sheet)
    exercises = exercises_of(path.name[:2])
    for number, exercise in exercises.items():
        one = number.replace(".", "-")
        assert cell_of(given, f"{one}-answer").source.strip() == exercise.skeleton
        check = cell_of(given, f"{one}-check")
        assert check.source == f"{exercise.check}.points({about(check).points})"
    text = nbformat.writes(given)
    assert "SOLUTION" not in text and "HIDDEN" not in text
    for title in re.findall(r"<summary>(.*?)</summary>", shared.markdown(given)):
        assert title.startswith("Hint")


# What a grader runs


def test_points_are_the_share_and_all_only_when_solved():
    def points(state, share, most):
        return core.Result("01.1", state, "", share).points(most)

    assert points("solved", 1.0, 3) == 3.0 and isinstance(
        points("solved", 1.0, 3), float
    )
    assert points("tried", 2 / 3, 2) == 1.33
    assert points("tried", 0.999, 1) == points("tried", 1.0, 1) == 0.99
    assert points("open", 0.0, 2) == points("untouched", 0.0, 2) == 0.0


def first(number):
    """The notebook's names, the solution done, and the name of what is checked."""
    learner = answered(EXERCISES[number], names(number[:2]), EXERCISES[number].solution)
    return learner, re.match(r"check_\w+\((\w+)", EXERCISES[number].check)[1]


def by_heart(program, table):
    """An answer that knows only what is in the table; the program fills it at first."""

    def answer(*inputs):
        key = repr([one.tolist() for one in inputs])
        if program is not None:
            table[key] = program(*inputs)
        return table.get(key, torch.zeros(()))

    return answer


def test_an_answer_that_has_the_cases_by_heart_is_found_by_the_second_look(capsys):
    learner, name = first("03.1")
    table, check = {}, ("self_attention", "check_scaled_scores")
    assert looks.once(*check)(by_heart(learner[name], table))
    memory = by_heart(None, table)
    assert looks.once(*check)(memory)
    capsys.readouterr()
    result = looks.twice(*check)(memory)
    assert not result and result.points(1) < 1
    assert "But with other numbers:\n✗ 03.1" in capsys.readouterr().out
    assert looks.twice(*check)(learner[name])
    assert "But" not in capsys.readouterr().out


def test_the_mistake_is_looked_for_once_until_there_is_another_answer(capsys):
    def last(x, t):
        return x[:, t]

    check = ("averaging", "check_mean_so_far")
    results = [looks.once(*check)(last), looks.again(*check)(last)]
    assert results[0] is results[1] is looks.twice(*check)(last)
    assert capsys.readouterr().out.count("✗ 02.1") == 1
    assert looks.again(*check)(lambda x, t: x[:, : t + 1].mean(1))


def test_the_other_numbers_end_with_the_second_look():
    usual = torch.Generator
    ours = torch.randn(3, generator=torch.Generator().manual_seed(1))
    with pytest.raises(ZeroDivisionError), looks.other_numbers():
        other = torch.randn(3, generator=torch.Generator().manual_seed(1))
        raise ZeroDivisionError
    assert torch.Generator is usual and not torch.equal(ours, other)


def test_the_solutions_are_right_with_other_numbers(path):
    torch.optim.AdamW([torch.zeros(1)])  # torch imports much for the first one
    for number, exercise in exercises_of(path.name[:2]).items():
        learner, _ = first(number)
        with looks.other_numbers(), contextlib.redirect_stdout(io.StringIO()) as said:
            assert eval(exercise.check, learner), said.getvalue()


def test_a_check_that_a_cell_has_overwritten_still_checks(course, capsys):
    sheet = shared.read(
        course / "source/02_averaging_exercises/02_averaging_exercises.ipynb"
    )
    learner = {"check_mean_so_far": lambda answer: core.Result("", "solved", "", 1.0)}
    exec("def mean_so_far(x, t): return x[:, t]", learner)
    *lines, last = cell_of(sheet, "02-1-check").source.splitlines()
    exec("\n".join(lines), learner)
    assert eval(last, learner) < 1
    assert "✗ 02.1" in capsys.readouterr().out


def test_what_an_answer_writes_to_stderr_is_no_failure(capsys):
    learner, name = first("02.1")

    def noisy(*inputs):
        print("careful", file=sys.stderr)
        return learner[name](*inputs)

    assert looks.twice("averaging", "check_mean_so_far")(noisy)
    out, err = capsys.readouterr()
    assert "careful" in out and err == ""


# Copied, moved and deleted cells


@pytest.fixture
def source(course):
    return shared.read(
        course / "source/03_self_attention_exercises/03_self_attention_exercises.ipynb"
    )


@pytest.fixture
def homework(source):
    return released(source)


def place_of(sheet, name):
    return names_of(sheet).index(name)


def take(sheet, name):
    cell = cell_of(sheet, name)
    sheet.cells.remove(cell)
    return cell


def test_a_sheet_in_order_stays_as_it_is(homework, source):
    own = nbformat.v4.new_code_cell("my_own = 1")
    homework.cells.insert(7, own)
    source.cells.insert(7, own)
    for one in names_of(source):
        if one.endswith("-answer"):
            cell_of(source, one).source = cell_of(homework, one).source
    assert submitted.mend(homework, source) == [] and homework == source


def test_a_changed_check_is_put_back(homework, source):
    cell_of(homework, "03-1-check").source = "3"
    done = submitted.mend(homework, source)
    assert done == ["03-1-check was changed, and was put back."]
    assert (
        cell_of(homework, "03-1-check").source == cell_of(source, "03-1-check").source
    )


def test_a_copy_of_an_answer_does_not_count_behind_its_check(homework, source):
    answer = cell_of(homework, "03-1-answer")
    homework.cells.append(copy.deepcopy(answer))
    answer.source = "the answer"
    done = submitted.mend(homework, source)
    assert done == ["03-1-answer was there 2 times; one of them counts."]
    assert cell_of(homework, "03-1-answer").source == "the answer"
    assert done[0] in homework.cells[0].source


def test_of_two_copies_before_the_check_the_last_one_counts(homework, source):
    answer = cell_of(homework, "03-1-answer")
    later = copy.deepcopy(answer)
    later.source = "the answer"
    homework.cells.insert(homework.cells.index(answer) + 1, later)
    submitted.mend(homework, source)
    assert cell_of(homework, "03-1-answer").source == "the answer"


def test_moved_and_deleted_cells_are_put_back(homework, source):
    homework.cells.append(take(homework, "03-4-answer"))
    take(homework, "03-1-check")
    done = submitted.mend(homework, source)
    assert done[0] == "Some cells stood in another order, and were moved back."
    assert done[1:] == ["03-1-check was deleted, and was put back."]
    assert names_of(homework) == names_of(source)


def test_a_deleted_answer_is_said_and_the_solution_not_put_in_its_place(
    homework, source
):
    take(homework, "03-1-answer")
    done = submitted.mend(homework, source)
    assert done == ["03-1-answer was deleted: there is no answer to count."]
    assert "03-1-answer" not in names_of(homework)


def test_own_cells_stay_behind_the_cell_that_they_follow(homework, source):
    own = nbformat.v4.new_code_cell("helper = 1")
    answer = take(homework, "03-4-answer")
    homework.cells += [answer, own]
    submitted.mend(homework, source)
    place = homework.cells.index(own)
    assert submitted.name(homework.cells[place - 1]) == "03-4-answer"


# What Otter gets


@pytest.fixture(scope="module")
def otters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("otter")
    otter.build_otter(folder)
    return folder


def test_every_question_is_closed_and_has_an_answer_and_tests(path, otters):
    notebook = shared.read(otters / path.stem / path.name)
    lines = [c.source.splitlines()[0] for c in notebook.cells if c.cell_type == "raw"]
    assert lines.pop(0) == "# ASSIGNMENT CONFIG"
    text = "\n".join(line[2:] for line in lines)
    one = "BEGIN QUESTION\nBEGIN SOLUTION\nEND SOLUTION\n(BEGIN TESTS\nEND TESTS\n)?"
    assert re.fullmatch(f"({one}END QUESTION\n)+", text + "\n")
    assert text.count("BEGIN TESTS") == len(exercises_of(path.name[:2]))


def test_the_cases_of_a_question_share_its_points(path, otters):
    notebook = shared.read(otters / path.stem / path.name)
    tests = [c for c in notebook.cells if "-check-" in c.id and c.cell_type == "code"]
    for number, exercise in exercises_of(path.name[:2]).items():
        one = number.replace(".", "-")
        cases = [c.source for c in tests if c.id.startswith(f"{one}-check-")]
        (stars,) = re.findall(
            r"points: (\d)", cell_by_id(notebook, f"{one}-prompt-begin")
        )
        points = [float(re.search(r"^points: (.*)", s, re.M)[1]) for s in cases]
        assert sum(points) == int(stars)
        assert ["hidden: true" in source for source in cases] == [False, False, True]
        arguments = ast.parse(exercise.check).body[0].value.args
        for source in cases:
            (function,) = ast.parse(source).body[1:]
            wanted = [argument.id for argument in arguments]
            assert [argument.arg for argument in function.args.args] == wanted


def cell_by_id(notebook, name):
    (found,) = [cell.source for cell in notebook.cells if cell.id == name]
    return found


@pytest.mark.parametrize("right", [True, False])
def test_a_failed_case_says_what_the_check_says(right, otters):
    exercise, wrong = EXERCISES["02.1"], "def mean_so_far(x, t): return x[:, 0]"
    learner = answered(exercise, names("02"), exercise.solution if right else wrong)
    notebook, messages = (
        shared.read(otters / "02_averaging_exercises/02_averaging_exercises.ipynb"),
        [],
    )
    for case in (1, 2, 3):
        exec(cell_by_id(notebook, f"02-1-check-{case}"), learner)
        test = [learner.pop(n) for n in list(learner) if n.startswith("test_")][0]
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                messages.append(test(learner["mean_so_far"]))
            except AssertionError as error:
                messages.append(str(error))
    assert [message is None for message in messages] == [right] * 3
    assert right or messages[0].startswith("✗ 02.1 ")


def test_the_autograder_has_the_package(otters):
    for path in PATHS:
        folder = otters / path.stem
        assert (folder / "minigpt/course/checks/grading.py").exists()
        assert not (folder / "minigpt/course/publish").exists()
        assert "torch" in (folder / "requirements.txt").read_text()


def test_a_cell_that_never_ends_is_interrupted_and_the_next_one_is_not():
    shell = InteractiveShell()
    looks.limit_cells(shell, seconds=0.2)
    endless = shell.run_cell("while True:\n    pass")
    assert isinstance(endless.error_in_exec, KeyboardInterrupt)
    assert shell.run_cell("import time; time.sleep(0.5); 1").result == 1
