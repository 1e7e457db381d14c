"""The README says what the record says, and every path in it leads somewhere."""

import importlib.util
import re
import runpy

import nbformat
import pytest
from exercises import headings_of, play
from syllabus import MAIN_LINE, ROOT, exercises
from the_exercises import EXERCISES, names

import minigpt
from minigpt.course import ladder, record
from minigpt.tools import command_line
from minigpt.tools.speedrun import RECIPES

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
        for cell in nbformat.read(start, as_version=4).cells
        for output in cell.get("outputs", [])
    ]
    assert any(printed.startswith(sample) for printed in outputs)


def test_what_it_lets_a_check_say_is_what_that_says():
    quoted = re.search(r"```\n(✗ 02\.1 .*?)\n```", README, re.S)[1]
    line = re.search(r"line 2: +(.*)", quoted)[1]
    code = f"def mean_so_far(x, t):\n    {line}\n"
    says = play(EXERCISES["02.1"], names("02"), code)
    assert " ".join(says.split()).startswith(" ".join(quoted.split()))  # it is wrapped


def test_its_table_of_losses_is_the_record():
    rows = re.findall(r"^\| ([\w ]+) \| 0\d \| (.*) \|$", README, flags=re.M)
    rungs = ladder.recorded()
    assert [name for name, _ in rows] == [rung.name for rung in rungs]
    for (_, cells), rung in zip(rows, rungs):
        spread = "exact" if rung.name in ladder.NAMES[:2] else f"{rung.spread:.3f}"
        seconds = f"{rung.seconds:.0f}" if rung.seconds else "–"
        expected = [f"{rung.loss:.3f}", spread, f"{rung.parameters:,}", seconds]
        assert cells.split(" | ") == expected, rung.name


def test_the_table_of_the_speed_run_is_the_record():
    text = SPEED.read_text(encoding="utf-8")
    for name, v in record.load("speedrun").items():
        row = re.search(rf"^\| \[`{name}.py`\].* \| \d+ \| (.*) \|$", text, re.M)
        recipe = runpy.run_path(str(RECIPES / f"{name}.py"))
        assert row[1] == f"{v.mean():.3f} | {v.spread():.3f} | {recipe['STEPS']:,}"
    counts = record.load("07-kneser-ney")["Kneser-Ney"]
    for T in (64, 256):
        loss = counts.mean(f"windows of {T}")
        assert re.search(rf"{loss:.3f}\s+in\s+windows\s+of {T}\b", text)


PAGES = {"door": ROOT / "README.md", "guide": GUIDE, "speed": SPEED}
PAGES["contributing"] = ROOT / ".github" / "CONTRIBUTING.md"
PAGES["troubleshooting"] = ROOT / ".github" / "TROUBLESHOOTING.md"
PAGES["exercises"] = ROOT / "notebooks" / "exercises" / "README.md"


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


def test_the_table_of_exercises_is_that_of_the_notebooks():
    table = PAGES["exercises"].read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| (\d\d\.\d+) \| \[(.*?)\]\(", table, re.M))
    assert told == {n: t for name in exercises() for n, t in headings_of(name).items()}


MINUTES = r"(?:about |up to )?(\d+(?:–\d+)?)"  # 75, about 75, 35–75


def minutes_in(path):
    """{"01": "35–75"}: what a text's table rows, by the lesson that they link to, say
    in a cell of their own: "35–75", "35–75 min", "75 minutes"."""
    rows = re.compile(
        r"^\| \[[^\n]*?\]\((?:notebooks/)?(\d\db?)_\w+\.ipynb\)(.*)$", re.M
    )
    said = {}
    for lesson, row in rows.findall(text_of(path)):
        cells = [cell.strip() for cell in row.split("|")]
        for cell in cells:
            if found := re.fullmatch(rf"{MINUTES}(?: min| minutes)?", cell):
                said.setdefault(lesson, found[1])
    return said


def text_of(path):
    """A page as it is, or all markdown of a notebook."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_readme_and_00_promise_the_minutes_that_the_lesson_promises():
    lessons = sorted((ROOT / "notebooks").glob("*.ipynb"))
    promised = {}
    for path in lessons:
        found = re.search(rf"^\| Time \| {MINUTES} minutes", text_of(path), re.M)
        assert found, f"{path.name}: no row | Time | … minutes at its top"
        promised[path.name.partition("_")[0]] = found[1]
    readme, start = minutes_in(ROOT / "README.md"), minutes_in(lessons[0])
    for name in MAIN_LINE:
        assert name[:2] in readme, f"README.md: no row with the minutes of {name}"
        assert name[:2] in {*start, "00"}, f"00: no row with the minutes of {name}"
    for page, said in (("README.md", readme), ("00", start)):
        told = {lesson: promised[lesson] for lesson in said}
        assert said == told, f"{page} and the lessons promise different minutes"


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
        assert f"-m {command}" in code, command


def test_the_commands_of_all_pages_exist():
    code = " ".join(map(code_in, PAGES.values()))
    modules = set(re.findall(r"-m (minigpt[\w.]*)", code))
    assert len(modules) >= 3
    for module in modules:
        assert importlib.util.find_spec(module), module
    commands = set(re.findall(r"-m minigpt (\w+)", README))
    told = command_line.parser().format_help()
    assert all(f"    {command} " in told for command in commands)
