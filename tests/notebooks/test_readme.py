"""The README says what the record says, and every path in it leads somewhere."""

import re
from pathlib import Path

import pytest

import minigpt
from minigpt.course import ladder, record

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = ROOT / "minigpt" / "course" / "publish" / "README.md"


def test_its_table_of_losses_is_the_record():
    rows = re.findall(r"^\| ([\w ]+) \| 0\d \| (.*) \|$", README, flags=re.M)
    rungs = ladder.recorded()
    assert [name for name, _ in rows] == [rung.name for rung in rungs]
    for (_, cells), rung in zip(rows, rungs):
        spread = "exact" if rung.name in ladder.NAMES[:2] else f"{rung.spread:.3f}"
        seconds = f"{rung.seconds:.0f}" if rung.seconds else "counted"
        expected = [f"{rung.loss:.3f}", spread, f"{rung.parameters:,}", seconds]
        assert cells.split(" | ") == expected, rung.name


def test_its_table_of_the_speed_run_is_the_record():
    for name, variant in record.load("speedrun").items():
        row = re.search(rf"^\| {re.escape(name)}[^|]* \| (.*) \|$", README, flags=re.M)
        assert row[1] == f"{variant.mean():.3f} | {variant.spread():.3f}", name


@pytest.mark.parametrize("path", [ROOT / "README.md", GUIDE], ids=["door", "guide"])
def test_its_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    inside = [link for link in links if not link.startswith("http")]
    assert inside
    for link in inside:
        assert (path.parent / link).exists(), link


def test_help_and_the_readme_name_every_module():
    for text in (minigpt.__doc__, README[README.index("## The package") :]):
        words = set(re.findall(r"\w+", text))
        for module in (ROOT / "minigpt").glob("[a-z]*"):
            assert module.stem in words, module.name
