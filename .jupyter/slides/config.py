"""How nbconvert makes slides of a lecture: one HTML file that needs no network.

    jupyter nbconvert --to slides --config .jupyter/slides/config.py \
        --output-dir build/slides notebooks/lectures/*.ipynb

reveal.js and the fonts lie in the wheel of sphinx-revealjs, MathJax in that of
sphinx-mathjax-offline, the letters of code in matplotlib.
"""

from importlib.metadata import files
from pathlib import Path

import matplotlib
import sphinx_revealjs

here = Path(".jupyter/slides").resolve()
reveal = Path(sphinx_revealjs.__file__).parent / "_static" / "revealjs"
(mathjax,) = [
    path.locate()
    for path in files("sphinx-mathjax-offline")
    if path.name == "tex-svg-full.js"
]
letters = [reveal / "dist" / "theme" / "fonts", Path(matplotlib.get_data_path())]

c = get_config()  # noqa: F821
c.SlidesExporter.template_name = "lecture"
c.TemplateExporter.extra_template_basedirs = [str(here / "templates")]
c.TemplateExporter.extra_template_paths = [
    str(path) for path in (reveal, mathjax.parent, *letters)
]
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_input_tags = {"remove-input"}
c.HTMLExporter.exclude_anchor_links = True
c.TemplateExporter.exclude_input_prompt = True
c.TemplateExporter.exclude_output_prompt = True
c.CSSHTMLHeaderPreprocessor.style = "default"  # not JupyterLab's, which needs its page
