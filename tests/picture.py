"""Make the README's two pictures again: python tests/picture.py

The ladder is drawn from the record. The page is a screenshot: that needs Chromium, and
Tiny Shakespeare, because the page says what it read.
"""

import base64
import io
import tempfile
from pathlib import Path

import chromium
from pages import do, open_page
from PIL import Image

from minigpt.course import ladder, plots
from minigpt.data import load_text
from minigpt.files import write_whole
from minigpt.stored import FOLDER
from minigpt.tools.command_line import main

WIDE, HIGH = 960, 800
HEAD = "(({ width, height }) => ({ x: 0, y: 0, width, height, scale: 1 }))"
HEAD += "(document.querySelector('header').getBoundingClientRect())"
PICTURES = Path(__file__).resolve().parents[1] / ".github"


def take(path):
    """The head of the page of the course's model, at a telling letter, as PNG."""
    load_text()  # or this says what to do
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        main(["page", "--checkpoint", str(FOLDER / "gpt.pt"), "--out", str(page)])
        browser = chromium.Chromium(WIDE, HIGH)
        size = {"width": WIDE, "height": HIGH, "deviceScaleFactor": 2, "mobile": False}
        browser.call("Emulation.setDeviceMetricsOverride", **size)
        open_page(browser, page.as_uri())
        written = "active.ids.length > 300 && !isWriting()"
        chromium.wait(lambda: browser.evaluate(written), "the text")
        telling = "choose(active, midWord(active)); await showInside();"
        do(browser, telling)  # where the walk begins
        clip = browser.evaluate(HEAD)
        shot = browser.call("Page.captureScreenshot", format="png", clip=clip)["data"]
        browser.close()
    image = Image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB")
    small = io.BytesIO()
    few = image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    write_whole(path, small.getvalue())


if __name__ == "__main__":
    ladder_figure = plots.ladder(ladder.recorded(), in_words=True)
    ladder_figure.savefig(PICTURES / "ladder.png", dpi=120, metadata={"Software": None})
    take(PICTURES / "page.png")
