"""The notebooks as a web site that opens without a network; `make book` builds it."""

import os
import re
import sys
from importlib.resources import files
from pathlib import Path

import nbformat

sys.path.insert(0, str(Path(__file__).parent))  # for anchors.py

REPOSITORY = os.environ.get("GITHUB_REPOSITORY")  # owner/name, once there is one
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(minigpt/[^)]*|README\.md)\)")

project = "minigpt"
copyright = "the minigpt authors, MIT license"
html_title = "minigpt"
html_theme = "furo"
extensions = ["myst_nb"]
exclude_patterns = ["lectures"]  # these become slides
nb_execution_mode = "off"  # the book shows what the notebooks printed
myst_enable_extensions = ["dollarmath", "html_admonition"]
myst_heading_anchors = 4
myst_heading_slug_func = "anchors.as_jupyter"
mathjax_path = "tex-svg-full.js"
MATHJAX = files("sphinx-mathjax-offline") / "static" / "mathjax"
html_static_path = [str(MATHJAX / mathjax_path)]
html_extra_path = ["model.html"]
templates_path = ["_templates"]
html_context = {"repository": REPOSITORY}
html_use_index = False
html_copy_source = False
html_show_search_summary = False  # a page on a disk may not read the other pages


def prepare(app, name, source):
    """Show pasted pictures, which myst-nb leaves out, and send links to the project's
    other files to GitHub, or name those files while there is no address."""
    if not app.env.doc2path(name).suffix == ".ipynb":
        return
    there = r"\1 (`\2`)"
    if REPOSITORY:
        there = rf"[\1](https://github.com/{REPOSITORY}/blob/HEAD/\2)"
    notebook = nbformat.reads(source[0], as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = OUTSIDE.sub(there, cell.source)
            for file, picture in cell.pop("attachments", {}).items():
                (kind, data), *_ = picture.items()
                inside = f"data:{kind};base64,{data}"
                cell.source = cell.source.replace(f"attachment:{file}", inside)
    source[0] = nbformat.writes(notebook)


def setup(app):
    app.connect("source-read", prepare)
