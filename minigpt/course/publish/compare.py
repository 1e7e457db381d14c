"""How nbval compares what a notebook prints with what it printed before.

    pytest -p minigpt.course.publish.compare --nbval --nbval-current-env notebooks

A cell is compared letter by letter, unless one of its tags says otherwise:
`within-0.03` or `within-5%` compares numbers with a decimal point within that
tolerance (absolute, or relative to the stored one) and everything else letter by
letter; `tiny-shakespeare` and `transformers` compare only if that text or that library
is there; and nbval's own `nbval-ignore-output` compares nothing. At the end stands what
moved by more than half its tolerance. With OTHER_SEED=1338 in the environment only
trainings are compared.
"""

import os
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

from minigpt.data import load_text

TINY_SHAKESPEARE = 1_115_394  # characters
# A decimal number, with the blanks before it, which pad it to a width. Whole numbers
# (sizes, steps, seeds) are no measurements: they count as letters.
NUMBER = re.compile(r" *[-+−]?\d[\d,]*\.\d+(?:e[-+]?\d+)?")
MOVED = "difference in tolerances"
TAG = re.compile(r"within-(\d+(?:\.\d+)?)(%?)")
NEEDS = {  # tag: whether what its cells show can be shown here
    "tiny-shakespeare": lambda: len(load_text()) == TINY_SHAKESPEARE,
    "transformers": lambda: find_spec("transformers") is not None,
}
OTHER_SEED = os.environ.get("OTHER_SEED")  # takes the place of 1337 in all cells
TRAINED = re.compile(r"\b(train|evaluate|estimate_loss)\(")


def tolerance_of(tags: Sequence[str]) -> Callable[[float], float] | None:
    """function(stored number) -> how far a new one may be from it; None if no tag
    states it."""
    for tag in tags:
        if found := TAG.fullmatch(tag):
            size = float(found[1])
            return lambda stored: abs(stored) * size / 100 if found[2] else size
    return None


def settle(stored: str, new: str, tolerance: Callable[[float], float]) -> str:
    """`new` with each number that is near enough replaced by the stored one.

    With more or fewer numbers than stored, or other words, `new` stays as it is.
    """
    words, numbers = NUMBER.split(stored), NUMBER.findall(stored)
    if NUMBER.split(new) != words:
        return new
    text = words[0]
    for old, found, word in zip(numbers, NUMBER.findall(new), words[1:]):
        near = abs(_value(found) - _value(old)) <= tolerance(_value(old))
        text += (old if near else found) + word
    return text


def furthest(stored: str, new: str, tolerance: Callable[[float], float]) -> float:
    """The largest difference of a number from the stored one, in tolerances."""
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(new))
    pairs = [(_value(old), _value(found)) for old, found in pairs]
    return max([abs(b - a) / (tolerance(a) or 1) for a, b in pairs], default=0.0)


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-").strip())


def pytest_collection_modifyitems(items: list) -> None:
    """Give the cells of notebooks their way of comparing."""
    cells = [item for item in items if hasattr(item, "compare_outputs")]
    for item in cells:
        item.parent.skip_compare += ("stderr", "text/html")
        tags = item.cell.metadata.get("tags", [])
        tolerance = tolerance_of(tags)
        if tolerance is not None:
            item.compare_outputs = _comparison(item, tolerance)
        if OTHER_SEED:
            item.cell.source = item.cell.source.replace("1337", OTHER_SEED)
            trained = tolerance is not None and TRAINED.search(item.cell.source)
            item.options["check"] = item.options["check"] and bool(trained)
    for tag, is_there in NEEDS.items():
        shows = [item for item in cells if tag in item.cell.metadata.get("tags", [])]
        if shows and not is_there():
            for item in shows:
                item.options["check"] = False


def _comparison(item: Any, tolerance: Callable[[float], float]) -> Callable:
    letter_by_letter = item.compare_outputs

    def compare(test: Any, ref: Any, skip_compare: Any = None) -> Any:
        for new, stored in zip(test, ref):
            for place, key in ((new, "text"), (new.get("data", {}), "text/plain")):
                old = (stored if place is new else stored.get("data", {})).get(key)
                if old is not None and key in place:
                    moved = furthest(old, place[key], tolerance)
                    item.user_properties.append((MOVED, moved))
                    place[key] = settle(old, place[key], tolerance)
        return letter_by_letter(test, ref, skip_compare)

    return compare


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell which cells moved by more than half their tolerance, from all workers."""
    for report in terminalreporter.getreports("passed"):
        moved = max([by for name, by in report.user_properties if name == MOVED] + [0])
        if moved > 0.5:
            line = f"{moved:.2f} of its tolerance: {report.nodeid}"
            terminalreporter.write_line(line)
