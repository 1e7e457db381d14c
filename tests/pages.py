"""Pages of small models, and how to drive them: for the tests of the page."""

import copy
import json

import chromium
import torch
from small import DATA, V

from minigpt.fast.quantization import to_int8
from minigpt.modern.model import ModernConfig
from minigpt.tools.page import Story, Text
from minigpt.training import Progress

PROMPT = "the quick"
WINDOW = "quick br"  # a whole context of the small models
PLACE = 5  # what is chosen of it: two more characters stand behind the one that looks
SIZES = {"block_size": 8, "n_layer": 3, "n_head": 4, "n_embd": 16}
MODERN = {
    "as it comes": {},
    "grouped": {
        "n_kv_head": 2,
        "norm_eps": 0.01,
        "value_residual": True,
        "activation": "swiglu",
    },
    "capped": {"softcap": 3.0, "bias": True, "rms_norm": False, "embedding_mix": True},
}
TEXT = Text(DATA, DATA)
HISTORY = [Progress(10, 2.5, 2.6, 1), Progress(20, 2, 2.1, 2)]
STORY = Story(20, 61.0, HISTORY, "a fox")
# What the modules of the page export, as names of the tests' scripts.
EXPOSE = """Promise.all(Object.keys(JSON.parse(document.querySelector(
  "script[type=importmap]").textContent).imports).map((name) => import(name)))
  .then((all) => { for (const one of all) for (const name of Object.keys(one))
    Object.defineProperty(globalThis, name,
      { get: () => one[name], configurable: true }); })"""
QUIET = """active.ids.length && sides.every(({ writing, ids, reading, intact }) =>
  !writing && reading.after.length === ids.length && intact.after.length === ids.length)
  || $('complaint').textContent"""


def modern(**changes):
    """A ModernGPT none of whose parameters is at its start, where many are 0 or 1."""
    torch.manual_seed(1)
    model = ModernConfig(V, **SIZES, **changes).build()
    for p in model.parameters():
        torch.nn.init.normal_(p, mean=0.5 if p.dim() == 1 else 0.0, std=0.4)
    return model


def rounded(model, weights):
    """The model whose weights the page should have."""
    model = copy.deepcopy(model)
    for part in model.modules():
        if weights == "int8" and isinstance(part, torch.nn.Linear):
            q, scale = to_int8(part.weight.data)
            part.weight.data = q * scale
    return model


def open_page(browser, address):
    """Go to a page, and wait until it is quiet."""
    browser.open(address)
    browser.evaluate(EXPOSE)
    quiet(browser, address)


def quiet(browser, what="a quiet page"):
    """Wait until all is read and written."""
    chromium.wait(lambda: browser.evaluate(QUIET), what)


def do(browser, body):
    """What an asynchronous JavaScript function with this body returns."""
    return browser.evaluate(f"(async () => {{ {body} }})()")


def begin(browser, text):
    """Begin the page anew with a text; all knobs and parts as at first."""
    do(
        browser,
        "for (const side of sides) { side.stop(); side.off.clear(); }"
        "for (const side of sides) side.zero = false;"
        "for (const [id, value] of [['temperature', .8], ['top-k', V], ['top-p', 1],"
        "  ['count', 300], ['seed', 1337]]) $(id).value = value;"
        "$('temperature').dispatchEvent(new Event('input'));"
        "setWalking(false); giveUp(); hush(); scrollTo(0, 0);"
        f"await begin(idsOf({json.dumps(text)})); choose(sides[0], Infinity);"
        "watch('head 1.1', 2); await showInside();",
    )


def with_side(ids, body):
    """The body of a function that has a `side` of its own, with a text."""
    return (
        "const side = new Side(sides[0].snapshots), array = (x) => Array.from(x);"
        f"side.begin({list(ids)}, 7); array(side.read()); {body}"
    )


def write(browser, count):
    """Let it write, as fast as it can -> the ids of the text."""
    return do(browser, f"await write({count}, Infinity); return active.ids;")


def enter(browser, prompt):
    """Open the field, and type a prompt over what is there."""
    browser.evaluate("$('prompt').hidden && $('edit').click()")
    browser.evaluate(f"$('prompt').value = {json.dumps(prompt)}")
    browser.evaluate("$('prompt').dispatchEvent(new Event('input'))")


def turn(browser, field, value):
    """Set a knob or a field, as a reader does."""
    browser.evaluate(f"$('{field}').value = {json.dumps(value)}")
    for event in ("input", "change"):
        browser.evaluate(f"$('{field}').dispatchEvent(new Event('{event}'))")


def press(browser, key, **how):
    """A key of the keyboard, down and up."""
    how, down = {"key": key, "code": key, **how}, {"type": "rawKeyDown"}
    if key == "Enter":
        down = {"type": "keyDown", "text": "\r", "windowsVirtualKeyCode": 13}
    browser.call("Input.dispatchKeyEvent", **down, **how)
    browser.call("Input.dispatchKeyEvent", type="keyUp", **how)


def size(browser, wide, high, touched=False):
    """Make the window so large."""
    how = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": touched}
    browser.call("Emulation.setDeviceMetricsOverride", **how)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=touched)
