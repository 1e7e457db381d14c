"""Work sheets for homework, and the solutions that belong to them.

    python -m minigpt.course.publish.worksheets
        build/worksheets/NN_name.ipynb              hints yes, solutions no
        build/worksheets/solutions/NN_name.ipynb    for the teacher

In the notebooks, solutions, answers and explanations stand in folds. On a work
sheet only those folds stay whose title begins with "Hint".
"""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from minigpt.course.publish import shared

FOLD = re.compile(
    r"<details[^>]*>\s*<summary>(?P<title>.*?)</summary>(?P<text>.*?)</details>", re.S
)
HEADING = re.compile(r"^#+ (.*)", re.M)


def build_worksheets(
    folder: Path = shared.BUILD / "worksheets", notebooks: Path = shared.NOTEBOOKS
) -> list[Path]:
    """Write work sheets and solutions into the folder; list of the paths."""
    written = []
    paths, repo = shared.notebook_paths(notebooks, "exercises"), shared.repository()
    for path in paths:
        notebook = shared.read(path)
        check_folds(notebook, path.name)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                beside = {other.stem for other in paths}
                cell.source = shared.handed_out(cell.source, repo, beside)
        for target, made in [
            (folder / path.name, worksheet(notebook)),
            (folder / "solutions" / path.name, solutions(notebook)),
        ]:
            nbformat.validate(made)
            shared.write(target, nbformat.writes(made) + "\n")
            written.append(target)
    return written


def check_folds(notebook: NotebookNode, name: str) -> None:
    """ValueError where a fold is not closed, or stands inside another one."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            folds = FOLD.findall(cell.source)
            opened = cell.source.count("<details")
            if not len(folds) == opened == cell.source.count("</details>"):
                raise ValueError(
                    f"{name}, cell {cell.id}: {opened} <details> but "
                    f"{len(folds)} complete folds with a <summary>. Close each "
                    "fold, and put none inside another."
                )


def worksheet(notebook: NotebookNode) -> NotebookNode:
    """The notebook, stored outputs included, with no fold left but the hints."""
    made = nbformat.from_dict(notebook)
    for cell in made.cells:
        if cell.cell_type == "markdown":
            source = FOLD.sub(hint_or_nothing, cell.source)
            cell.source = re.sub(r"\n{3,}", "\n\n", source).strip("\n")
    made.cells = [cell for cell in made.cells if cell.source]
    return made


def solutions(notebook: NotebookNode) -> NotebookNode:
    """What the work sheet leaves out, as a notebook of text under the same headings."""
    parts = [f"# Solutions: {shared.title(notebook)}"]
    text, heading = shared.markdown(notebook), None
    for fold in FOLD.finditer(text):
        if is_hint(fold["title"]):
            continue
        before = text[: fold.start()]
        current = HEADING.findall(re.sub(r"```.*?```", "", before, flags=re.S))[-1]
        if current != heading:
            parts.append(f"## {current}")
            heading = current
        parts[-1] += f"\n\n**{fold['title']}**\n\n{fold['text'].strip()}"
    made = nbformat.v4.new_notebook(metadata=notebook.metadata)
    for number, source in enumerate(parts):
        name = f"solution-{number}"  # the same at each build
        made.cells.append(nbformat.v4.new_markdown_cell(source, id=name))
    return made


def hint_or_nothing(fold: re.Match[str]) -> str:
    """What stands in a fold's place on the work sheet."""
    return fold[0] if is_hint(fold["title"]) else ""


def is_hint(title: str) -> bool:
    """Does a fold with this title stay on the work sheet?"""
    return title.strip().lower().startswith("hint")


if __name__ == "__main__":
    shared.run_builder(build_worksheets, "The work sheets", shared.BUILD / "worksheets")
