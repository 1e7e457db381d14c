"""How much room things take on a slide, and where code is cut that is too long for one.

The heights are estimates, good enough to choose by; the browser has the last word
(`deck.js`) and shrinks what is too high after all.
"""

import base64
import io
import math
import re
import struct
import tokenize
from itertools import pairwise

from nbformat import NotebookNode

WIDTH, HEIGHT = 1280, 720
WIDE = 1232  # a figure at most, which reaches into the margins
HIGH = 660  # pixels between the margins, and the gap below the last part
SMALL = 0.94  # a slide's type is shrunk to this share at most
MOST = 18  # lines of code that a slide holds, below a sentence of one line
RUNNING = 44  # pixels for a section's title above a slide
FIGURE = 0.75  # a figure may shrink to this share of its size; deck.js says the same
LARGE = 0.95  # but not below this beside code: then it has a slide of its own
ABRUPT = 6.0  # what it costs to show printed lines on another slide than their code
UNTOLD = 3.5  # and to leave no room below them for what they show


def filled(slide: dict) -> float:
    """About how many pixels of a slide are full."""
    top = RUNNING if slide["running"] else 0
    return top + sum(height(part["what"], part["cell"]) for part in slide["parts"])


def height(what: str, cell: NotebookNode) -> float:
    """About how many pixels a part takes, shrunk to SMALL, with the gap below it."""
    if what == "code":
        return code_height(len(cell.source.splitlines()))
    if what == "output":
        return sum(map(output_height, cell.outputs))
    paragraphs = re.split(r"\n{2,}", cell.source)
    return sum(map(text_height, paragraphs))


def code_height(lines: int) -> float:
    """Of so many lines of code."""
    return SMALL * (44 + 30 * lines)


def output_height(output: NotebookNode, share: float = FIGURE) -> float:
    """About how many pixels a result takes: a share of a figure's height, if it is no
    wider than a slide; as many lines as were printed."""
    data = output.get("data", {})
    if "image/png" in data:
        head = base64.b64decode(data["image/png"][:64])[16:24]
        wide, high = struct.unpack(">II", head) if head else (WIDTH, HEIGHT)
        return 20 + min(share * high * min(1, WIDE / wide), 560)
    if "high" in output.get("metadata", {}):  # a table drawn as dots
        return 20 + output.metadata.high
    printed = output.get("text") or data.get("text/plain", "")
    lines = sum(1 + len(line) // 85 for line in printed.strip("\n").split("\n"))
    return SMALL * (28 + 29 * lines)


def text_height(paragraph: str) -> float:
    """About how many pixels a paragraph takes, with 90 characters in a line."""
    paragraph = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", paragraph)  # as one sees it
    paragraph = re.sub(
        r"[*`]+", lambda mark: "" if mark.start() else mark[0], paragraph
    )
    if paragraph.startswith("#"):
        return 100 if paragraph.startswith("# ") else 72
    if paragraph.startswith("$$"):
        return SMALL * 110
    if paragraph.startswith(("```", "|")):
        return SMALL * (20 + 46 * paragraph.count("\n"))
    items = re.split(r"\n(?=- |\d+\. )", paragraph)
    lines = sum(1 + len(item) // 90 for item in items)
    gaps = 10 * (len(items) - 1)
    if paragraph.startswith(("**Predict", "**Think first")):
        gaps += 28
    return SMALL * (20 + 40 * lines + gaps)


def in_pieces(
    source: str,
    room: float = HIGH,
    after: float = 0,
    lonely: float = 0,
    finding: float = 0,
) -> tuple[bool, list[str]]:
    """Python source in pieces that fit a slide, cut where it hurts least; and whether
    the first is better begun on a new slide.

    room: pixels left where the code might begin; after: pixels that its printed lines
    take, which should stand below its end; lonely: what it costs to leave the slide.
    """
    lines = source.strip("\n").splitlines()
    if not lines:
        return False, []
    prices = cut_prices(lines)
    fresh = HIGH - RUNNING

    def best_from(start: int, space: float) -> tuple[float, list[int]]:
        ways = [(math.inf, [len(lines)])]
        for end in range(start + 1, len(lines) + 1):
            piece = "\n".join(lines[start:end]).strip("\n").splitlines()
            high = code_height(len(piece))
            if len(piece) > MOST or high > space:
                break
            if end not in prices:
                continue
            price, ends = best[end]
            price += prices[end] + len(piece) ** 2 / 400
            if all(re.match("(import|from|%%) ?|$", line) for line in piece):
                price += 2
            if end == len(lines) and after:
                if high + after > space:
                    price += ABRUPT
                elif high + after + finding > space:
                    price += UNTOLD
            ways.append((price, [end, *ends]))
        return min(ways)

    best: dict[int, tuple[float, list[int]]] = {len(lines): (0, [])}
    for start in reversed(range(len(lines))):
        best[start] = best_from(start, fresh)
    here, below = best_from(0, room), best[0]
    new = below[0] + lonely < here[0]
    ends = [0, *(below if new else here)[1]]
    pieces = ["\n".join(lines[a:b]).strip("\n") for a, b in pairwise(ends)]
    return new, pieces


def cut_prices(lines: list[str]) -> dict[int, float]:
    """{number of a line: what it costs to cut before it}, least between functions and
    nothing at the end."""
    whole, depth = set(), 0  # numbers of the lines before which no bracket is open
    text = "\n".join("#" * line.startswith("%") + line for line in lines) + "\n"
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if token.type in (tokenize.NEWLINE, tokenize.NL) and not depth:
            whole.add(token.end[0] if token.end[1] == 0 else token.start[0])
    prices = {len(lines): 0.0}
    for number in range(1, len(lines)):
        line, before = lines[number], lines[number - 1]
        if not line.strip():
            continue
        blank = not before.strip()
        level = (len(line) - len(line.lstrip())) / 4
        price = 1.5 + (0.7 * level if blank else 1 + 1.5 * level)
        if before.endswith(":") or re.match(r" *[@#]", before):
            price += 8
        if re.match(r" *(else|elif|except|finally)\b", line):
            price += 8
        prices[number] = price if number in whole else price + 30
    return prices
