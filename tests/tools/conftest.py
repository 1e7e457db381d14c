from urllib.parse import urlencode

import pytest
from pages import MODERN, PROMPT, QUIET, modern
from small import TOKENIZER, fit, plan, small_gpt

from minigpt.tools.page import write_page


@pytest.fixture(scope="module")
def gpt():
    model = small_gpt()
    fit(model, plan(steps=120))
    return model.eval()


@pytest.fixture(scope="module")
def models(gpt):
    return {"GPT": gpt} | {name: modern(**c) for name, c in MODERN.items()}


@pytest.fixture
def visit(browser, tmp_path):
    """A function that writes the page of a model and opens it with a text, unless told
    otherwise without a word of the model behind it."""

    def visit(model, tokenizer=TOKENIZER, prompt=PROMPT, address=None, **options):
        path = tmp_path / "page.html"
        write_page(path, model, tokenizer, prompt=prompt, **options)
        if address is None:
            address = {"text": prompt, "n": 0, "off": "", "tour": "off"}
        where = f"{path.as_uri()}#{urlencode(address)}" if address else path.as_uri()
        browser.open(where, QUIET)
        return browser

    return visit


@pytest.fixture
def telephone(browser):
    """The browser as a telephone of 390 × 844 that is touched."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=True)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    yield browser
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)
