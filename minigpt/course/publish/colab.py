"""Notebooks for Colab, which opens one file and knows nothing of this repository.

    python -m minigpt.course.publish.colab
        build/colab/NN_name.ipynb, each with the package inside its first cell
    python -m minigpt.course.publish.colab --repo owner/name
        the same below an "Open in Colab" badge, with links that lead to Colab

The badge leads to the exported file itself, so publish the folder as the branch `colab`
of the repository.
"""

import argparse
import base64
import hashlib
import io
import re
import zipfile
from pathlib import Path

import jinja2
import nbformat
from nbformat import NotebookNode

import minigpt
from minigpt.course.publish import shared

PACKAGE = shared.ROOT / "minigpt"
LEFT_OUT = PACKAGE / "course" / "publish"  # readers publish nothing
OLD = (2020, 1, 1, 0, 0, 0)  # one date for all files: equal input, equal output
BADGE = (
    "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    "({address})"
)


def build_colab(
    folder: Path = shared.BUILD / "colab",
    notebooks: Path = shared.NOTEBOOKS,
    repo: str | None = None,
) -> list[Path]:
    """Write all exported notebooks into the folder; list of their paths."""
    repo = shared.checked(repo or "")
    # Colab and Jupyter show the first cell folded.
    folded = {"cellView": "form", "jupyter": {"source_hidden": True}}
    new = nbformat.v4
    first = new.new_code_cell(carried(), id="set-up-minigpt", metadata=folded)
    written = []
    for path in shared.every_path(notebooks):
        notebook, place = shared.read(path), path.relative_to(notebooks)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = shared.to_files(cell.source, repo)
        notebook.cells.insert(0, first)
        if repo:
            lead_to_colab(notebook, repo, shared.shelf_of(path))
            badge = BADGE.format(address=address(repo, place.as_posix()))
            badge = new.new_markdown_cell(badge, id="open-in-colab")
            notebook.cells.insert(0, badge)
        nbformat.validate(notebook)
        target = folder / place
        shared.write(target, nbformat.writes(notebook) + "\n")
        written.append(target)
    return written


def carried() -> str:
    """Source of a cell that holds the package and unpacks it."""
    data = packed()
    template = jinja2.Template(shared.template_file("colab.py.txt"))
    return template.render(
        version=minigpt.__version__,
        package=base64.encodebytes(data).decode("ascii").strip(),
        key=hashlib.sha256(data).hexdigest()[:12],
    )


def address(repo: str, name: str) -> str:
    """Where Colab finds an exported notebook."""
    return f"https://colab.research.google.com/github/{repo}/blob/colab/{name}"


def lead_to_colab(notebook: NotebookNode, repo: str, shelf: str) -> None:
    """Turn links between notebooks into links that Colab can follow."""

    def link(found: re.Match[str]) -> str:
        up, other, name, _ = found.groups()
        there = other or ("" if up or not shelf else f"{shelf}/")
        return f"]({address(repo, f'{there}{name}.ipynb')})"

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = shared.LINK.sub(link, cell.source)


def packed() -> bytes:
    """The package as a .zip, equal for equal sources."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in carried_files():
            name = path.relative_to(shared.ROOT).as_posix()
            entry = zipfile.ZipInfo(name, date_time=OLD)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def carried_files() -> list[Path]:
    """Paths of the package's files, this publishing tool left out."""
    found = [path for path in sorted(PACKAGE.rglob("*")) if path.is_file()]
    return [
        path
        for path in found
        if path.suffix not in {".pyc", ".tmp"} and LEFT_OUT not in path.parents
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Export the notebooks for Colab.")
    parser.add_argument("--repo", help="owner/name on GitHub, for a badge")
    choice = parser.parse_args()
    shared.run_builder(
        lambda folder: build_colab(folder, repo=choice.repo),
        "The notebooks for Colab",
        shared.BUILD / "colab",
    )
