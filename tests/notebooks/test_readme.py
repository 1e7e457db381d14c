"""The README says what the record says, and every path in it leads somewhere."""

import importlib.util
import re

import nbformat
import pytest
from every_exercise import EXERCISES, names
from exercises import play
from syllabus import ROOT

import minigpt
from minigpt.course import ladder, record
from minigpt.course.publish import door, shared
from minigpt.tools import command_line

README = (ROOT / "README.md").read_text(encoding="utf-8")
SPEED = ROOT / "minigpt" / "course" / "SPEED.md"
GUIDE = ROOT / "notebooks" / "lectures" / "README.md"


def test_what_it_lets_the_gpt_write_is_what_00_prints():
    quoted = re.search(r"((?:^> .*\n)+)", README, re.M)[1]
    sample = re.sub(r"^> |\\$", "", quoted, flags=re.M)
    assert sample.startswith("ROMEO:\n")
    start = ROOT / "notebooks" / "00_start_here.ipynb"
    outputs = [
        output.get("text", "")
        for cell in shared.read(start).cells
        for output in cell.get("outputs", [])
    ]
    assert any(printed.startswith(sample) for printed in outputs)


def test_what_it_lets_a_check_say_is_what_that_says():
    quoted = re.search(r"```\n(✗ 02\.1 .*?)\n```", README, re.S)[1]
    line = quoted.partition("your line 2: ")[2]
    code = f"def mean_so_far(x, t):\n    {line}\n"
    assert play(EXERCISES["02.1"], names("02"), code).startswith(quoted)


def test_its_table_of_losses_is_the_record():
    rows = re.findall(r"^\| ([\w ]+) \| 0\d \| (.*) \|$", README, flags=re.M)
    rungs = ladder.recorded()
    assert [name for name, _ in rows] == [rung.name for rung in rungs]
    for (_, cells), rung in zip(rows, rungs):
        spread = "exact" if rung.name in ladder.NAMES[:2] else f"{rung.spread:.3f}"
        seconds = f"{rung.seconds:.0f}" if rung.seconds else "–"
        expected = [f"{rung.loss:.3f}", spread, f"{rung.parameters:,}", seconds]
        assert cells.split(" | ") == expected, rung.name


def test_its_losses_of_counts_are_the_records():
    told = README.partition("**Plain counting")[2].partition("SPEED.md")[0]
    windows = record.load("08-windows")["Kneser-Ney"]
    speedrun = record.load("speedrun")
    losses = [
        windows.mean("windows of 64"),
        speedrun["counts alone"].mean(),
        speedrun["+ counts"].mean(),
    ]
    assert re.findall(r"\b1\.\d\d\b", told)[:3] == [f"{x:.2f}" for x in losses]


def test_the_table_of_the_speed_run_is_the_record():
    text, above = SPEED.read_text(encoding="utf-8"), None
    for name, v in record.load("speedrun").items():
        row = re.search(rf"^\| {re.escape(name)} \| \d+ \| (.*) \|$", text, flags=re.M)
        new = above is None or name in ("counts alone", "GPT alone")
        gain = "–" if new else str(record.difference(above, v))
        expected = f"{v.mean():.3f} | {v.spread():.3f} | {v.values('steps')[0]:,}"
        assert row[1] == f"{expected} | {gain}", name
        above = v


PAGES = {"door": ROOT / "README.md", "guide": GUIDE, "speed": SPEED}
PAGES["contributing"] = ROOT / ".github" / "CONTRIBUTING.md"


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_its_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    inside = [link for link in links if not link.startswith("http")]
    assert inside
    for link in inside:
        assert (path.parent / link).exists(), link


def test_help_names_every_module():
    words = set(re.findall(r"\w+", minigpt.__doc__))
    for module in (ROOT / "minigpt").glob("[a-z]*"):
        assert module.stem in words, module.name


def test_its_exercises_are_those_of_the_notebooks():
    assert "\n" + door.exercises() + "\n" in README, "make door writes them"


def test_its_minutes_are_those_of_the_notebooks():
    new = door.written(README)
    rows = zip(door.ROW.findall(README), door.ROW.findall(new), strict=True)
    for (_, name, said, _), (_, _, now, _) in rows:
        pairs = zip(said.split("–"), now.split("–"), strict=True)
        for before, after in pairs:
            assert int(before) == pytest.approx(int(after), rel=0.1, abs=2), (
                f"{name}: make door"
            )
    assert len(door.ROW.findall(new)) >= 7


def test_a_newcomers_minutes():
    cells = [nbformat.v4.new_markdown_cell("word " * 149 + "**Predict**")]
    cells.append(nbformat.v4.new_code_cell("a\n\nb\nc"))
    figure = {"image/png": "", "text/plain": "Figure"}
    cells[1].outputs = [
        nbformat.v4.new_output("stream", text="1\n" * 13),
        nbformat.v4.new_output("display_data", figure),
    ]
    made = nbformat.v4.new_notebook(cells=cells)
    assert shared.minutes(made) == round(1 + 1.5 + (3 * 7 + 13 * 3) / 60 + 1)
    cells[1].source = "f(1)\n" * 40 + "g(f(2), len([3]))\n" + "f(4)\n" * 9
    assert shared.first_calls([cells[1].source] * 2) == 2  # f and g, not len
    assert shared.minutes(made, torch_is_new=True) == round(
        1.5 + 1.5 + (50 * 15 + 2 * 20 + 13 * 5) / 60 + 1.5
    )
    assert [door.hours(m) for m in (180, 181, 211, 240)] == [
        "3 hours",
        "3½ hours",
        "4 hours",
        "4 hours",
    ]


def test_it_leads_to_what_is_published_once_it_is():
    unset = door.written(README)
    assert "github.io" not in unset and "badge.svg" not in unset
    told = door.written(README, "Owner/name")
    for link in (
        "https://owner.github.io/name/model.html",
        "https://owner.github.io/name/)",
        "https://colab.research.google.com/github/Owner/name/blob/colab/00_start_here",
        "https://github.com/Owner/name/actions/workflows/tests.yml/badge.svg",
    ):
        assert link in told
    assert door.written(told) == unset


def code_in(path):
    """All that stands between backticks in a text, as one string."""
    return " ".join(re.findall(r"`([^`]*)`", path.read_text(encoding="utf-8")))


def test_every_target_of_make_has_its_command_without():
    """For a visitor in the README, for a teacher in the guide, else in CONTRIBUTING."""
    code = " ".join(map(code_in, PAGES.values()))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"^([a-z]+):.*##", makefile, re.M)) - {
        "help",
        "clean",
    }:
        assert f"make {target}" in code or f"make lint {target}" in code, target
    recipes = re.findall(r"\$\(BIN\)/python -m (minigpt[\w. ]*\w)", makefile)
    for command in recipes:
        name = command.replace("minigpt.course.publish.", "")
        assert f"-m {command}" in code or f".{name}" in code, command


def test_the_commands_of_all_pages_exist():
    code = " ".join(map(code_in, PAGES.values()))
    modules = set(re.findall(r"-m (minigpt[\w.]*)", code))
    for beside in re.findall(r" \.(?!venv|ci|github)([a-z]+)(?= )", code_in(GUIDE)):
        modules.add(f"minigpt.course.publish.{beside}")
    assert len(modules) >= 4
    for module in modules:
        assert importlib.util.find_spec(module), module
    commands = set(re.findall(r"-m minigpt (\w+)", README))
    told = command_line.parser().format_help()
    assert all(f"    {command} " in told for command in commands)
