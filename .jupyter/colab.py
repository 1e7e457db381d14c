"""Notebooks for Colab, which opens one file and knows nothing of this project.

    python .jupyter/colab.py      writes build/colab/03_self_attention.ipynb, and so on

Each is a lesson whose first cell unpacks the package beside it. If
GITHUB_REPOSITORY is set (owner/name), they link to one another on its branch `colab`.
"""

import base64
import io
import os
import posixpath
import re
import sys
import zipfile
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
FIRST = '''# @title Run this first: it unpacks minigpt {{ display-mode: "form" }}
# The package is in this cell, so nothing is installed. Running it again does no harm.
import base64, io, zipfile

zipfile.ZipFile(io.BytesIO(base64.b64decode("""
{package}"""))).extractall()
print("minigpt is ready.")
'''
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([\w./-]+\.(?:ipynb|md|py))(#[^)\s]*)?\)")


def build(
    folder: Path, repository: str | None, notebooks: Path = ROOT / "notebooks"
) -> None:
    """Write all notebooks, with the package in them, into the folder."""
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    first = FIRST.format(package=base64.encodebytes(packed()).decode("ascii"))
    for path in sorted(notebooks.rglob("[0-9]*.ipynb")):
        if path.parent.name == "lectures":  # these become slides
            continue
        place = path.relative_to(notebooks.parent).as_posix()
        notebook = read(path)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = led_on(cell.source, place, repository)
        cell = nbformat.v4.new_code_cell(first, id="unpack-minigpt", metadata=folded)
        notebook.cells.insert(0, cell)
        target = folder / path.relative_to(notebooks)
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)


def read(path: Path) -> nbformat.NotebookNode:
    """A notebook, whichever program saved it; Colab, say, gives cells no ids."""
    try:
        notebook = nbformat.read(path, as_version=4)
        return nbformat.v4.upgrade(notebook, 4, notebook.nbformat_minor)
    except Exception as error:  # of many kinds: JSON, keys, versions
        what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        sys.exit(
            f"{path} can't be read as a notebook ({what}). Save it anew in Jupyter."
        )


def packed() -> bytes:
    """The package as a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((ROOT / "minigpt").rglob("*.*")):
            if path.suffix not in {".pyc", ".tmp"}:
                archive.write(path, path.relative_to(ROOT))
    return buffer.getvalue()


def led_on(source: str, place: str, repository: str | None) -> str:
    """A text whose links lead to Colab and GitHub, or name files if there's no address.

    place: the notebook it stands in, as in "notebooks/03_self_attention.ipynb".
    """

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        if not repository:
            return f"{text} (`{path}`)"
        if path.startswith("notebooks/") and path.endswith(".ipynb"):
            path = path.removeprefix("notebooks/")
            colab = "https://colab.research.google.com/github"
            return f"[{text}]({colab}/{repository}/blob/colab/{path})"
        there = f"https://github.com/{repository}/blob/HEAD/{path}"
        return f"[{text}]({there}{anchor or ''})"

    return LINK.sub(link, source)


def address() -> str | None:
    """The owner/name on GitHub that the environment tells, if any."""
    repository = os.environ.get("GITHUB_REPOSITORY")
    if repository and not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        sys.exit(f"GITHUB_REPOSITORY is {repository!r}: give it as owner/name.")
    return repository


if __name__ == "__main__":
    build(ROOT / "build" / "colab", address())
    print("build/colab has the notebooks: upload one at colab.research.google.com.")
