"""Execute notebooks in place from fresh kernels, and clean what they store.

    python -m minigpt.course.publish.execute                      all of them
    python -m minigpt.course.publish.execute 03 exercises/05      those that begin so

The exercises' folded solutions are written anew from minigpt/course/checks, the cells
behind an answer are called after it (`-check`, `-demo`),
each lesson says at its top, and notebook 00 in its table, how many minutes a newcomer
needs, and the README's figure, minutes and exercises follow (door.py).
"""

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from minigpt.course import ladder, plots
from minigpt.course.checks.solutions import texts
from minigpt.course.publish import door, shared
from minigpt.files import replacing

FIGURE = shared.ROOT / ".github" / "ladder.png"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
ANSWER = r"# (?:Exercise|Bug hunt) (\d\d\.\d+)\n"
FOLD = r"<summary>Solution[^<]*</summary>(?:(?!```).)*(```python\n(?:.*?\n)?```)"


def execute(path: Path) -> float:
    """Run one notebook from its own folder and write it back; seconds taken."""
    notebook = nbformat.read(path, as_version=4)
    fold_solutions(notebook)
    name_checks(notebook)
    start = time.perf_counter()
    NotebookClient(
        notebook,
        timeout=900,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=40"],  # errors only: no chatter of the kernel
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    seconds = time.perf_counter() - start
    clean(notebook)
    nbformat.validate(notebook)
    with replacing(path) as unfinished:
        nbformat.write(notebook, unfinished)
    return seconds


def fold_solutions(notebook: NotebookNode) -> int:
    """Write each exercise's solution into the fold that follows it; how many."""
    number, written = None, 0
    for cell in notebook.cells:
        head = re.match(ANSWER, cell.source)
        if cell.cell_type == "code" and head:
            number = head[1]
        elif number and cell.cell_type == "markdown":
            fold = f"```python\n{texts(number[:2])[number]}\n```"
            found = re.search(FOLD, cell.source, re.S)
            if found:
                start, end = found.span(1)
                cell.source = cell.source[:start] + fold + cell.source[end:]
                number, written = None, written + 1
    return written


def name_checks(notebook: NotebookNode) -> None:
    """Give the check behind each answer the answer's id and `-check`, and the cell of
    code behind the check, which shows what the answer does, `-demo`."""
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and re.match(ANSWER, cell.source):
            for after, what in zip(notebook.cells[place + 1 :], ("check", "demo")):
                if after.cell_type != "code" or re.match(ANSWER, after.source):
                    break
                after.id = f"{cell.id}-{what}"


def clean(notebook: NotebookNode) -> None:
    """Keep only metadata that the course uses, and join streams that follow on."""
    version = {"name": "python"}  # no version: any supported Python runs it
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": version}
    )
    for cell in notebook.cells:
        for key in set(cell.metadata) - {"tags"}:
            del cell.metadata[key]
        for output in cell.get("outputs", []):
            if output.output_type == "display_data":
                output.metadata.pop("transient", None)


def write_minutes() -> None:
    """The time row of each lesson, and the last column of the table in 00."""
    lessons = shared.notebook_paths()
    needed = {path.name: shared.range_of(path) for path in lessons}
    for path in lessons:
        notebook = shared.read(path)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = with_minutes(cell.source, path.name, needed)
        with replacing(path) as unfinished:
            nbformat.write(notebook, unfinished)


def with_minutes(text: str, name: str, needed: dict[str, str]) -> str:
    """A cell of the lesson `name`, with the minutes that each lesson needs."""
    time = r"(?m)^(\| Time \| )(?:about )?\S+ minutes(?: to read)?"
    text = re.sub(time, rf"\g<1>{needed[name]} minutes", text)
    for other, number in needed.items():
        row = rf"(?m)^(\| \[.*\]\({re.escape(other)}\) \|.*\| )\S+ \|$"
        text = re.sub(row, rf"\g<1>{number} |", text)
    return text


def draw_ladder() -> None:
    """The README's figure, from the record."""
    FIGURE.parent.mkdir(exist_ok=True)
    fig = plots.ladder(ladder.recorded())
    fig.savefig(FIGURE, dpi=120, metadata={"Software": None})


def main(prefixes: Sequence[str]) -> None:
    """Execute the notebooks whose path below notebooks/ begins with one of the
    prefixes ("03", "evidence", "exercises/03"); all without any."""
    names = [str(path.relative_to(shared.NOTEBOOKS)) for path in shared.every_path()]
    chosen = [n for n in names if not prefixes or n.startswith(tuple(prefixes))]
    for prefix in prefixes:
        if not any(name.startswith(prefix) for name in names):
            sys.exit(f"no notebook begins with {prefix!r}: give 03 or exercises/03.")
    for name in chosen:
        print(f"{name}: {execute(shared.NOTEBOOKS / name):.0f} s", flush=True)
    write_minutes()
    draw_ladder()
    door.refresh()


if __name__ == "__main__":
    main(sys.argv[1:])
