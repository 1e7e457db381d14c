from urllib.parse import urlencode

import pytest
from pages import MODERN, PROMPT, STORY, TEXT, begin, modern, open_page, size
from small import TOKENIZER, fit, plan, small_gpt

from minigpt.tools.page import write_page


@pytest.fixture(scope="session")
def gpt():
    model = small_gpt()
    fit(model, plan(steps=120))
    return model.eval()


@pytest.fixture(scope="session")
def models(gpt):
    return {"GPT": gpt} | {name: modern(**c) for name, c in MODERN.items()}


@pytest.fixture(scope="session")
def visit(browser, tmp_path_factory):
    """A function that writes the page of a model and opens it with a text, unless told
    otherwise without a word of the model behind it."""

    def visit(model, tokenizer=TOKENIZER, prompt=PROMPT, address=None, **options):
        path = tmp_path_factory.mktemp("page") / "page.html"
        write_page(path, model, tokenizer, prompt=prompt, **options)
        if address is None:
            address = {"text": prompt, "n": 0, "off": ""}
        where = f"{path.as_uri()}#{urlencode(address)}" if address else path.as_uri()
        open_page(browser, where)
        return browser

    return visit


@pytest.fixture(scope="session")
def opened(visit, browser, gpt):
    """The page of a GPT, its address without what is behind #."""
    visit(gpt, text=TEXT, stories=[STORY], weights="float32")
    return browser.evaluate("location.href.split('#')[0]")


@pytest.fixture
def page(browser, opened):
    """The browser with that page, which begins anew."""
    if browser.evaluate("location.href.split('#')[0]") != opened:
        open_page(browser, f"{opened}#{urlencode({'text': PROMPT, 'n': 0})}")
    size(browser, 1280, 900)
    begin(browser, PROMPT)
    yield browser
    errors, browser.errors = browser.errors, []
    assert errors == []


@pytest.fixture
def telephone(browser):
    """The browser as a telephone of 390 × 844 that is touched."""
    yield lambda: size(browser, 390, 844, touched=True)
    size(browser, 1280, 900)
