"""Following one character through the whole model, as the page shows it: each number
of each step beside torch's, the light in the drawing, keys, touch and the link; and
what one sees of the page before its model is there, and how well."""

import json
import re

import chromium
import pytest
import torch
from beside_torch import IDS, beside_torch, is_shown, queries_keys_values, read, shown
from pages import (
    PLACE,
    PROMPT,
    QUIET,
    STORY,
    TEXT,
    WINDOW,
    after,
    call,
    press,
    settled,
    turn,
)
from small import TOKENIZER, small_gpt

from minigpt.tools.page import page

ROW = PLACE - 1  # the character that is followed
STEPS = 31  # of a GPT of two blocks with several heads


def walk(browser, number=1):
    """Follow the character of PLACE from a step on, every step of the way."""
    browser.evaluate("$('every').checked = true")
    browser.evaluate(f"choose(active, {PLACE})")
    browser.evaluate(f"startWalk({number})")


# --- each number is torch's ---


def compare(browser, part, wanted):
    """All columns of a sheet beside some vectors, in their order."""
    columns, labels = shown(browser, part)
    assert labels == [str(i + 1) for i in range(len(wanted[0]))], part
    for (name, column), right in zip(columns.items(), wanted, strict=True):
        try:
            is_shown(column, right)
        except AssertionError as error:
            raise AssertionError(f"{part}, {name}: {error}") from None


def test_each_number_between_a_character_and_the_first_block_is_torchs(visit, models):
    for _, model, browser, _ in beside_torch(visit, models):
        token = model.token_embedding.weight[IDS[ROW]]
        terms = [token]
        if model.position_embedding is not None:
            terms.append(model.position_embedding.weight[ROW])
        compare(browser, "embedding", [*terms, sum(terms)])


def test_each_number_that_a_norm_shows_is_torchs(visit, models):
    for _, model, browser, seen in beside_torch(visit, models):
        *blocks, last = model.body
        for n, norm in enumerate([*(block.norm1 for block in blocks), last], 1):
            (inputs, *_), output = seen[norm]
            x, out = inputs[0, ROW], output[0, ROW]
            centred = x - x.mean() if isinstance(norm, torch.nn.LayerNorm) else x
            eps = getattr(norm, "eps", None) or model.config.norm_eps
            even = centred / (centred.square().mean() + eps).sqrt()
            steps = [x, centred, even, out] if centred is not x else [x, even, out]
            compare(browser, f"norm {n}", steps)


def test_each_number_of_a_query_a_key_and_a_value_is_torchs(visit, models):
    for _, model, browser, seen in beside_torch(visit, models):
        for n, block in enumerate(list(model.body)[:-1], 1):
            attention = block.attention
            with torch.no_grad():
                qkv = queries_keys_values(attention, seen[attention][0])
            raw = seen[attention.qkv][1][0, ROW]
            for h in (0, attention.n_head - 1):
                q, k, v = (x[h, ROW] for x in qkv)
                made = raw[h * len(q) : (h + 1) * len(q)]
                changed = [] if torch.allclose(made, q) else [q]
                compare(browser, f"query {n}.{h + 1}", [made, *changed, k, v])


def test_each_number_that_is_added_to_the_stream_is_torchs(visit, models):
    for _, model, browser, seen in beside_torch(visit, models):
        for n, block in enumerate(list(model.body)[:-1], 1):
            attention = block.attention
            (entered, *_), _ = seen[block.norm1]
            (between, *_), _ = seen[block.norm2]
            (out, *_), heads = seen[attention.proj]  # out: of all heads, side by side
            _, wrote = seen[block.feed_forward]
            entered, between, out, heads, wrote = (
                x[0, ROW] for x in (entered, between, out, heads, wrote)
            )
            size = len(out) // attention.n_head
            head = attention.proj.weight[:, :size] @ out[:size]
            others = heads - head
            compare(browser, f"heads {n}.1", [entered, head, others, between])
            compare(browser, f"add {n}", [between, wrote, between + wrote])
            steps = [entered, heads, wrote, between + wrote]
            compare(browser, f"block {n}", steps)
            line = browser.evaluate("$('line').textContent")
            *terms, total = map(read, re.findall(r"−?\d+\.\d+", line))
            assert sum(terms) == pytest.approx(total, abs=2e-3)


def test_a_random_number_falls_where_it_fell_when_it_was_drawn(visit, gpt):
    browser = visit(gpt)
    after(browser, "go", len(PROMPT) + 30, count=30, temperature=1)
    for place in range(len(PROMPT), len(PROMPT) + 30):
        columns, labels = shown_at(browser, place)
        chance, came = browser.evaluate(
            f"[active.drawn[{place}].chance, glyph(texts[active.ids[{place}]])]"
        )
        row = labels.index(came)
        assert columns["from"][row] - 1e-3 <= chance <= columns["to"][row] + 1e-3
        says = browser.evaluate("$('says').textContent")
        assert f"there lies “{came}”, and it is written." in says
        assert float(re.search(r"was (\d\.\d+):", says)[1]) == pytest.approx(
            chance, abs=6e-4
        )
        assert line_falls(browser) == pytest.approx(chance, abs=0.01)
    shown_at(browser, 3)
    assert "Here none was drawn" in browser.evaluate("$('says').textContent")
    assert line_falls(browser) is None


def line_falls(browser):
    """Where the golden line stands on the picture of the pile, from 0 to 1, or None."""
    return browser.evaluate(
        """(() => {
        const canvas = $("drawn-from"), { width, height } = canvas;
        const { data } = canvas.getContext("2d").getImageData(0, height - 8, width, 1);
        const gold = colours().ink, at = [];
        for (let x = 0; x < width; x++) {
          if (gold.every((v, c) => Math.abs(data[4 * x + c] - v) < 9)) at.push(x + .5);
        }
        return at.length ? sum(at) / at.length / width : null;
        })()"""
    )


def shown_at(browser, place):
    """The sheet of the logits of any character."""
    browser.evaluate(f"choose(active, {place}); watched = 'logits'; showInside()")
    there = f"sheetKey.watched === 'logits' && sheetKey.place === {place}"
    chromium.wait(lambda: browser.evaluate(there), f"character {place}")
    columns = browser.evaluate(
        "Object.fromEntries(watching.sheet.columns.map("
        "({ head, values }) => [head.join(''), values]))"
    )
    labels = "watching.trs.map((tr) => tr.firstChild.firstChild.textContent)"
    return columns, browser.evaluate(labels)


# --- step by step ---

LIT = "[...drawing.lights].filter(([, e]) => e.matches('.lit')).map(([name]) => name)"


def test_the_walk_leads_from_the_character_to_the_draw_and_lights_its_way(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    browser.evaluate("watched = 'head 1.2'")
    walk(browser)
    way = []
    for number in range(1, STEPS + 1):
        count = browser.evaluate("$('walk-count').textContent")
        assert count == f"{number} of {STEPS}"
        says = browser.evaluate("$('says').textContent")
        assert len(says) > 40 and says.endswith("."), (number, says)
        lit = browser.evaluate(LIT)
        assert lit, number
        way += [name for name in lit if name not in way]
        step = browser.evaluate("$('steps').children[watching.at - 1].textContent")
        assert browser.evaluate("$('line').textContent"), (number, step)
        press(browser, "ArrowRight")
        next = f"$('walk-count').textContent !== '{count}' || {number} === {STEPS}"
        chromium.wait(lambda next=next: browser.evaluate(next), f"step {number + 1}")
    assert way == [
        *("token", "position", "stream 0", "norm 1.1", "head 1.2"),
        *("head 1.1", "add 1.1", "norm 1.2", "feed-forward 1", "add 1.2"),
        *("head 2.1", "head 2.2", "feed-forward 2", "add 2.2"),
        *("norm last", "last biases", "to"),
    ]
    assert browser.evaluate("$('step-on').getAttribute('aria-disabled')") == "true"
    assert browser.errors == []


def test_the_character_moves_along_the_line_and_leaves_it_gold(visit, browser, gpt):
    still = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.call("Emulation.setEmulatedMedia", features=still)
    visit(gpt, prompt=WINDOW)
    walk(browser)
    where = "[drawing.from, drawing.way].map((e) => e.getBoundingClientRect().right)"
    places = []
    for number in (1, *range(4, STEPS + 1)):
        browser.evaluate(f"goTo({number})")
        places.append(browser.evaluate(where))
    assert places == sorted(places)
    assert len({at for at, _ in places}) > 7  # at each part, in both blocks
    last = browser.evaluate("drawing.to.getBoundingClientRect().left")
    assert places[-1][0] < last == pytest.approx(places[-1][1], abs=1)
    press(browser, "Escape")
    chromium.wait(lambda: browser.evaluate("!walking"), "the end")
    assert browser.evaluate("drawing.way.offsetWidth") == 0
    browser.call("Emulation.setEmulatedMedia", features=[])


def test_a_number_of_the_query_is_told_as_a_sum_of_products(visit, models):
    for _, model, browser, seen in beside_torch(visit, models):
        attention = model.body[0].attention
        raw = seen[attention.qkv][1][0, ROW]
        browser.evaluate(f"choose(active, {PLACE}); startWalk()")
        browser.evaluate("watched = 'query 1.1'; showInside()")
        for row in (0, 1):
            line = browser.evaluate(
                f"watching.sheet.lines.at(-1)({row}).split(': ')[1]"
            )
            plain = line.replace("−", "-").replace("×", "*")
            terms, total = re.sub(r"\([a-z\d ]+\)", "", plain).split(" = ")
            assert eval(terms) == pytest.approx(float(total), abs=0.01)
            assert float(total) == pytest.approx(raw[row].item(), abs=2e-3)
        browser.evaluate("endWalk()")


def test_keys_go_on_and_back_and_out(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    browser.evaluate("watched = 'head 2.1'")
    walk(browser)
    number = "stepNumber()"
    for key, wanted in (
        *(("ArrowRight", 2), (" ", 3), (" ", 4), ("ArrowLeft", 3)),
        *(("ArrowLeft", 2), ("ArrowLeft", 1), ("ArrowLeft", 1)),
    ):
        press(browser, key)
        arrived = f"{number} === {wanted}"
        chromium.wait(lambda arrived=arrived: browser.evaluate(arrived), f"{wanted}")
    browser.evaluate("$('temperature').focus()")  # which needs the arrows itself
    press(browser, "ArrowRight")
    assert browser.evaluate(number) == 1
    press(browser, "Escape")
    chromium.wait(lambda: browser.evaluate("!walking"), "the end")
    assert browser.evaluate("watched") == "head 2.1"
    assert browser.evaluate(LIT) == []


def test_the_walk_is_played_at_its_own_pace_and_can_be_held(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    walk(browser)
    turn(browser, "walk-pace", "2.5")
    whole = "(lasting(watching.sheet, 2) + lasting(watching.sheet, 3)) / 2000"
    whole = browser.evaluate(whole)
    browser.evaluate(
        "globalThis.came = []; globalThis.noted = setInterval(() => {"
        "const at = stepNumber(); if (came.at(-1)?.[0] !== at) "
        "came.push([at, performance.now()]); }, 10); $('play').click()"
    )
    chromium.wait(lambda: browser.evaluate("stepNumber() >= 4"), "the second stop")
    browser.evaluate("$('play').click()")
    came = browser.evaluate("clearInterval(noted), came")
    assert [at for at, _ in came] == [1, 2, 3, 4]
    seconds = (came[3][1] - came[1][1]) / 2000
    assert whole / 2.5 - 0.1 < seconds < whole  # faster than at the steady pace
    held = browser.evaluate("stepNumber()")
    assert browser.evaluate("wait(1500).then(stepNumber)") == held
    browser.evaluate("$('step-on').click()")
    chromium.wait(lambda: browser.evaluate(f"stepNumber() === {held + 1}"), "the next")
    assert not browser.evaluate("watching.playing")


def test_a_click_on_another_head_leads_the_walk_through_it(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    walk(browser)
    browser.evaluate("document.querySelector('[aria-label*=\"head 2.2\"]').click()")
    chromium.wait(lambda: browser.evaluate("watched === 'head 2.2'"), "the other head")
    stops = browser.evaluate("stops()")
    assert stops[1:5] == ["block 1", "norm 2", "query 2.2", "head 2.2"]
    assert (
        browser.evaluate("$('walk-count').textContent")
        == f"{3 + 2 + 3 + 2 + 1} of {STEPS}"
    )


def test_a_link_carries_the_step(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    browser.evaluate("watched = 'head 1.2'")
    walk(browser, 17)
    seen = "[walking, stepNumber(), throughHead, $('says').textContent, active.chosen]"
    before = browser.evaluate(seen)
    assert before[:3] == [True, 17, "head 1.2"]
    browser.open(browser.evaluate("location.href"), f"({QUIET}) && walking && drawing")
    chromium.wait(lambda: browser.evaluate(seen) == before, "the same step")
    for odd in ("0", "-3", "999", "x"):  # what no page wrote
        address = browser.evaluate("location.href.replace(/walk=[^&]*/, 'walk=')") + odd
        browser.open(
            address.replace("walk=", f"walk={odd}&x="), f"({QUIET}) && walking"
        )
        chromium.wait(lambda: browser.evaluate("watching.sheet"), odd)
        assert 1 <= browser.evaluate("stepNumber()") <= STEPS
    assert browser.errors == []


def test_who_wants_no_motion_goes_step_by_step(visit, browser, gpt):
    still = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.call("Emulation.setEmulatedMedia", features=still)
    visit(gpt, prompt=WINDOW)
    browser.evaluate(f"choose(active, {PLACE})")
    browser.evaluate("document.querySelector('.follow').click()")
    chromium.wait(lambda: browser.evaluate("walking && watching.sheet"), "the walk")
    assert not browser.evaluate("watching.playing")
    moving = "document.getAnimations().filter((a) => a.playState === 'running').length"
    press(browser, " ")
    assert browser.evaluate(moving) == 0
    chromium.wait(lambda: browser.evaluate("stepNumber() === 2"), "the second step")
    browser.call("Emulation.setEmulatedMedia", features=[])


def test_on_a_telephone_drawing_sentence_and_numbers_are_seen_at_once(
    telephone, visit, gpt
):
    browser = visit(gpt, prompt=WINDOW)
    walk(browser, 9)
    box = "(id) => { const { top, bottom } = $(id).getBoundingClientRect();"
    box = f"['drawing', 'says', 'line'].map({box} return [top, bottom]; }})"
    (top, _), (_, says), (_, line) = settled(browser, box)
    assert 0 <= top and says < 500 and line < 844
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    browser.evaluate("$('more').click()")
    small = (
        "['play', 'step-back', 'step-on', 'more', 'walk-pace', 'walk-end']"
        ".filter((id) => { "
        "const { width, height } = $(id).getBoundingClientRect();"
        "return width < 44 || height < 44; })"
    )
    assert browser.evaluate(small) == []
    lit = "document.querySelector('#drawing .lit').getBoundingClientRect().toJSON()"
    for number in (1, 9, STEPS):
        browser.evaluate(f"goTo({number})")
        at = browser.evaluate(lit)
        assert 0 <= at["left"] and at["right"] <= 390, number
    browser.evaluate("goTo(9)")
    browser.evaluate("$('step-on').click()")
    assert browser.evaluate("stepNumber()") == 10


def test_what_begins_a_text_ends_the_walk(visit, gpt):
    browser = visit({"": {0: small_gpt().eval(), "end": gpt}}, prompt=WINDOW)
    turn(browser, "count", 3)
    for length, change in (
        (len(WINDOW) + 3, "$('go').click()"),
        (len(WINDOW) + 3, "train(sides[0], 0)"),
        (len(PROMPT), f"begin(idsOf('{PROMPT}'))"),
    ):
        walk(browser, 5)
        browser.evaluate(f"{change}, 0")
        done = f"({QUIET}) && active.ids.length === {length} && !walking"
        chromium.wait(lambda done=done: browser.evaluate(done), change)
        assert browser.evaluate(LIT) == [] and browser.errors == []


# --- before the model is there ---

SHIFTS = """globalThis.jumped = 0;
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) {
    if (!hadRecentInput) jumped += value;
  }
}).observe({ type: "layout-shift", buffered: true });"""


@pytest.mark.parametrize("wide, high", [(1280, 800), (390, 844)])
@pytest.mark.parametrize("filmed", [False, True], ids=["one", "film"])
def test_nothing_moves_when_the_model_comes(visit, browser, gpt, wide, high, filmed):
    size = {"width": wide, "height": high, "deviceScaleFactor": 1}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=wide < 500)
    added = browser.call("Page.addScriptToEvaluateOnNewDocument", source=SHIFTS)
    models = {"": {0: small_gpt().eval(), 10: gpt, "end": gpt}} if filmed else gpt
    visit(models, address={}, text=TEXT, stories=[STORY])
    written = f"({QUIET}) && active.ids.length > 300"
    chromium.wait(lambda: browser.evaluate(written), "the text")
    jumped = browser.evaluate("wait(300).then(() => jumped)")
    browser.call(
        "Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"]
    )
    seen = "h1, #glance, #tour, #examples button, #sides, #go, #bars, #temperature"
    tops = f"[...document.querySelectorAll('{seen}')].map((e) => "
    tops += "e.getBoundingClientRect().top + scrollY)"
    later = browser.evaluate(tops)
    here = browser.evaluate("location.href.split('#')[0]")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(here)  # as it stands before its model, and without scripts
    browser.evaluate("document.querySelector('noscript').hidden = true")
    first = browser.evaluate(tops)
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)
    assert jumped < 0.1
    assert len(first) == len(later) == 8
    assert first == pytest.approx(later, abs=high / 40)


def test_the_page_says_what_it_is_before_any_script_has_run(gpt):
    html = page(gpt, TOKENIZER, text=TEXT)
    seen = html[: html.index("<script")]
    assert "<em>Now it writes, one letter at a time.</em>" in seen
    count = sum(p.numel() for p in gpt.parameters())
    assert f"<title>A GPT of {count:,} parameters</title>" in seen
    name = "<img src=x onerror=alert(1)>"  # a name is text
    html = page({name: {"end": gpt}, "b": {"end": gpt}}, TOKENIZER)
    assert "<img" not in html[: html.index('id="content"')]
    assert (
        name
        in json.loads(re.search(r'id="content">(.*?)</script>', html)[1])["models"][0][
            "name"
        ]
    )


# --- contrast ---

CONTRAST = r"""(() => {
  const read = (colour) => {
    const found = colour.match(/[\d.]+/g).map(Number);
    return found.length < 4 ? [...found, 1] : found;
  };
  const over = (top, below) => [0, 1, 2]
    .map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= .03928 ? v / 12.92
      : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ratio = (...two) => {
    const [dark, bright] = two.map(light).sort((x, y) => x - y);
    return (bright + .05) / (dark + .05);
  };
  const behind = (element) => {
    const found = [];
    for (let e = element; e; e = e.parentElement) {
      found.unshift(read(getComputedStyle(e).backgroundColor));
      if (found[0][3] === 1) break;
    }
    return found.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const seen = (e) => !e.closest("script, style, noscript, .unseen, textarea, option")
    && e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const low = [];
  let count = 0;
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement, style = getComputedStyle(e);
    if (!texts.currentNode.data.trim() || !seen(e)) continue;
    let opacity = 1;
    for (let p = e; p; p = p.parentElement) opacity *= getComputedStyle(p).opacity;
    if (opacity < .05) continue; // a column of a later step
    const size = parseFloat(style.fontSize), bold = style.fontWeight >= 700;
    const below = behind(e), [r, g, b, a] = read(style.color);
    const has = ratio(over([r, g, b, a * opacity], below), below);
    count++;
    if (has < (size >= 24 || (bold && size >= 18.66) ? 3 : 4.5)) {
      low.push([e.id || e.className || e.tagName, texts.currentNode.data.trim(), has]);
    }
  }
  return [count, low];
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_against_what_lies_behind_it(visit, browser, gpt, scheme):
    wants = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.call("Emulation.setEmulatedMedia", features=wants)
    visit(gpt, address={"text": PROMPT}, text=TEXT)
    browser.evaluate("document.querySelector('.writing details').open = true")
    browser.evaluate("$('numbers').click()")
    after(browser, "go", len(PROMPT) + 60, count=60, temperature=1.5)
    browser.evaluate("switchParts(({ off }) => off.add('head 1.1'))")
    views = [
        *("showTour(2)", "explain(document.querySelector('.word'), 'what it means')"),
        *("endTour()", "watch('feed-forward 1')", "watch('head 1.2')"),
        *(f"startWalk({n})" for n in (3, 6, 8, 17, STEPS)),
    ]
    for view in views:
        browser.evaluate(view)
        count, low = browser.evaluate(f"wait(100).then(() => {CONTRAST})")
        assert count > 150 and low == [], view
    browser.call("Emulation.setEmulatedMedia", features=[])


def test_the_page_needs_no_more_than_itself_for_the_walk(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    walk(browser)
    for number in range(1, STEPS + 1):
        browser.evaluate(f"goTo({number})")
    assert len([r for r in browser.requests if not r.startswith("data:")]) == 1
    assert browser.errors == []
    got = call(browser, "return Array.from(active.reading.after.at(-1).logits);")
    with torch.no_grad():
        right = gpt(torch.tensor([TOKENIZER.encode(WINDOW)]))[0][0, -1]
    torch.testing.assert_close(torch.tensor(got), right, atol=1e-3, rtol=0)
