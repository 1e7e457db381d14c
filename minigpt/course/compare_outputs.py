"""How nbval compares what a notebook prints with what it printed before.

    pytest --nbval notebooks/03*

pyproject.toml loads this plugin. A cell has to print the same letters as before, unless
a tag says otherwise. With `within-0.03` or `within-5%`, numbers with a decimal point
may differ by that much (absolute, or a share of the stored number); all else has to be
the same. With `tiny-shakespeare` or `transformers`, a cell is compared only where that
text or that library is there. nbval's own `nbval-ignore-output` compares nothing. The
summary lists what moved by more than half its tolerance. With OTHER_SEED=1338 in the
environment, seed 1337 becomes 1338 everywhere, and only trainings are compared.
"""

import functools
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
NEEDS = {  # tag: is it here?
    "tiny-shakespeare": lambda: len(load_text()) == TINY_SHAKESPEARE,
    "transformers": lambda: find_spec("transformers") is not None,
}
OTHER_SEED = os.environ.get("OTHER_SEED")
TRAINED = re.compile(r"\b(train|evaluate|estimate_loss)\(")


def tolerance_of(tags: Sequence[str]) -> Callable[[float], float] | None:
    """function(stored number) -> how far a new one may be from it; None without such
    a tag."""
    for tag in tags:
        if found := TAG.fullmatch(tag):
            size = float(found[1])
            return lambda stored: abs(stored) * size / 100 if found[2] else size
    return None


def settle(stored: str, new: str, tolerance: Callable[[float], float]) -> str:
    """`new` with each number that is near enough replaced by the stored one.

    If the words differ, or the count of numbers, `new` stays as it is.
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
    """Give each cell of a notebook its way of comparing."""
    is_here = functools.cache(lambda tag: NEEDS[tag]())
    for item in items:
        if not hasattr(item, "compare_outputs"):
            continue
        item.parent.skip_compare += ("stderr", "text/html")
        tags = item.cell.metadata.get("tags", [])
        tolerance = tolerance_of(tags)
        if tolerance is not None:
            item.compare_outputs = _comparison(item, tolerance)
        if OTHER_SEED:
            item.cell.source = item.cell.source.replace("1337", OTHER_SEED)
            if tolerance is None or not TRAINED.search(item.cell.source):
                item.options["check"] = False
        for tag in NEEDS.keys() & tags:
            if not is_here(tag):
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
    """List the cells that moved by more than half their tolerance, from all workers."""
    for report in terminalreporter.getreports("passed"):
        moved = max([by for name, by in report.user_properties if name == MOVED] + [0])
        if moved > 0.5:
            line = f"{moved:.2f} of its tolerance: {report.nodeid}"
            terminalreporter.write_line(line)
