"""Following a character by one click: few steps, nothing shown before its step, and
what one sees at the end."""

import re

import chromium
import pytest
import torch
from beside_torch import read, shown
from pages import PLACE, PROMPT, WINDOW, after, call, settled, turn
from small import TOKENIZER

from minigpt.inside.looking import capture

SHORT = 15  # steps through a GPT of two blocks


def follow(browser, place=PLACE, number=1):
    """What a click on "Follow it through" begins, held at a step."""
    browser.evaluate(f"choose(active, {place})")
    browser.evaluate("follow()")
    chromium.wait(lambda: browser.evaluate("watching.playing"), "the walk")
    browser.evaluate("watching.stop()")
    browser.evaluate(f"goTo({number})")
    at = f"stepNumber() === {number} && {{}}"
    chromium.wait(lambda: browser.evaluate(at.format(1)), f"step {number}")


def test_a_click_leads_through_few_steps_and_a_head_of_the_first_block(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    browser.evaluate("watched = 'head 1.1'")
    follow(browser)
    assert browser.evaluate("$('walk-count').textContent") == f"1 of {SHORT}"
    # Through one that keeps to a distance, if there is one, and of these who adds most.
    shares = dict(browser.evaluate("[...drawing.shares]"))
    ids = torch.tensor([TOKENIZER.encode(WINDOW)])
    maps = capture(gpt, ids).weights[0][0]  # of block 1: (heads, T, T)
    habit = [
        max(m.diagonal(-n).sum().item() / len(m) for n in range(1, len(m))) > 0.5
        for m in maps
    ]
    heads = {f"head 1.{h + 1}": (habit[h], shares[f"head 1.{h + 1}"]) for h in (0, 1)}
    assert browser.evaluate("throughHead") == max(heads, key=heads.get)
    # How long it takes at the steady pace, and whether one can read it.
    seconds, attention = 0, None
    for number in range(1, SHORT + 1):
        browser.evaluate(f"goTo({number})")
        if browser.evaluate("partOf(watched).kind") == "head" and attention is None:
            attention = seconds
        lasts = browser.evaluate("lasting(watching.sheet, watching.at) / 1000")
        said = browser.evaluate("$('says').textContent")
        why = browser.evaluate("document.querySelector('.why').textContent")
        assert said.startswith(why) and why[-1] in ".?" and len(why.split()) <= 16, why
        assert len(said) > 40 and len(said.split()) <= 36, said
        assert lasts >= 0.25 * len(said.split()), said
        seconds += lasts
    assert 0 < attention <= 22 and seconds < 110, (attention, seconds)
    browser.evaluate("$('every').click()")
    chromium.wait(lambda: browser.evaluate("stepNumber() === 31"), "every step")
    assert browser.evaluate("$('walk-count').textContent") == "31 of 31"
    assert "every=1" in browser.evaluate("location.hash")


def test_the_offer_goes_when_it_is_taken_and_nothing_begins_while_the_page_moves(
    visit, gpt
):
    browser = visit(gpt, address={"text": PROMPT})
    browser.evaluate("localStorage.clear(), $('tour').hidden = false")
    browser.evaluate(
        "globalThis.playedAt = new Promise((done) => { const play = watching.play; "
        "watching.play = () => { done(scrollY); play.call(watching); }; }), 0"
    )
    browser.evaluate("$('tour-follow').click()")
    began = browser.evaluate("playedAt")
    assert browser.evaluate("$('tour').hidden") and began > 0
    assert browser.evaluate("wait(300).then(() => scrollY)") == began
    browser.evaluate("localStorage.clear()")


def test_it_is_played_to_the_row_that_is_drawn_and_then_goes_on(visit, gpt):
    browser = visit(gpt)
    after(browser, "go", len(PROMPT) + 30, count=30, temperature=1.5)
    ranks = (
        "active.ids.map((id, i) => (i < active.given ? 0 : "
        "ranked(active.reading.after[i - 1].logits).indexOf(id)))"
    )
    ranks = browser.evaluate(ranks)
    place = next(i for i, rank in enumerate(ranks) if rank > 0)  # not the likeliest
    follow(browser, place, SHORT - 1)
    assert browser.evaluate("[trail.landed, $('onward').hidden]") == [None, True]
    turn(browser, "walk-pace", "2.5")
    browser.evaluate("$('play').click()")
    chromium.wait(
        lambda: browser.evaluate("!watching.playing && isLastStep()"), "the end"
    )
    line, says, button = browser.evaluate(
        "['line', 'says', 'play'].map((id) => $(id).textContent)"
    )
    came = browser.evaluate(f"texts[active.ids[{place}]]")
    chance = browser.evaluate(f"active.drawn[{place}].chance")
    glyph = came.replace(" ", "␣")
    assert line.startswith(f"“{glyph}” is drawn by") and f"lies “{glyph}”" in says
    low, high = map(float, re.findall(r"\d\.\d+", line))
    assert low - 1e-3 <= chance <= high + 1e-3
    assert button == "↻ From the start"
    assert browser.evaluate("trail.landed") == came
    browser.evaluate("$('other-head').click()")
    chromium.wait(lambda: browser.evaluate("watched.startsWith('head')"), "a head")
    heads = browser.evaluate("headsToFollow()")
    assert [name[5] for name in heads] == ["1", "1", "2", "2"]
    assert browser.evaluate("throughHead") == heads[1]
    browser.evaluate(f"watching.stop(), goTo({SHORT})")
    browser.evaluate("$('next-one').click()")
    there = f"walking && active.chosen === {place + 1} && stepNumber() === 1"
    chromium.wait(lambda: browser.evaluate(there), "the next character")
    assert f"“{glyph}” becomes" in browser.evaluate("$('watch-title').textContent")
    browser.evaluate("watching.stop()")
    browser.evaluate(f"goTo({SHORT})")
    browser.evaluate("$('play').click()")
    chromium.wait(
        lambda: browser.evaluate("stepNumber() === 1 && watching.playing"), "again"
    )
    assert browser.errors == []


def test_behind_the_last_character_another_is_written_and_followed(visit, gpt):
    browser = visit(gpt)
    last = len(PROMPT) - 1
    follow(browser, last, SHORT)
    browser.evaluate("$('next-one').click()")
    there = f"walking && active.chosen === {last + 1} && stepNumber() === 1"
    chromium.wait(lambda: browser.evaluate(there), "the one that is written")
    assert browser.evaluate("active.drawn[active.chosen].chance >= 0")


def test_no_picture_is_seen_before_its_step(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    after(browser, "go", len(WINDOW) + 2, count=2)
    follow(browser, len(WINDOW) + 1)
    see = """(() => {
    const seen = (e) => e.checkVisibility({ visibilityProperty: true })
      && getComputedStyle(e).opacity > .5 && e.offsetWidth > 0;
    const tiles = [...drawing.tiles].filter(([, { picture }]) => seen(picture));
    const figures = ["map", "after-bend", "drawn-from"].filter((id) => seen($(id)));
    const { width, height } = $("drawn-from"), gold = colours().ink;
    const { data } = width && $("drawn-from").getContext("2d")
      .getImageData(0, height - 8, width, 1);
    const line = data?.some((_, i) => i % 4 === 0
      && gold.every((v, c) => Math.abs(data[i + c] - v) < 9)) ?? false;
    return [watched.split(" ")[0], watching.sheet.steps[watching.at - 1].name,
      tiles.map(([name]) => name), figures, figures.includes("drawn-from") && line];
    })()"""
    came, dim = (
        browser.evaluate("drawing.came"),
        """[...drawing.tiles.values()].filter(
    ({ tile }) => tile.matches(".seen")).map(({ picture }) =>
    Number(getComputedStyle(picture.parentElement).opacity)).filter((v) => v < .75)""",
    )
    seen = {}
    for number in range(1, SHORT + 1):
        browser.evaluate(f"goTo({number})")
        kind, step, *rest = browser.evaluate(f"wait(400).then(() => {see})")
        seen[kind, step] = rest
        assert browser.evaluate(dim) == []  # what has been stays bright
        ends = browser.evaluate("drawing.to.textContent")
        assert ends == (came if number == SHORT else "?")
    head = browser.evaluate("throughHead")
    block = int(head[5])
    before = ["token", "position"]
    if block == 2:
        before += ["head 1.1", "head 1.2", "feed-forward 1"]
    assert seen["head", "q · k"] == [before, [], False]
    assert set(seen["head", "softmax"][0]) == {*before, head}
    assert seen["head", "softmax"][1] == ["map"]
    bend = {*before, f"head {block}.1", f"head {block}.2", f"feed-forward {block}"}
    assert set(seen["feed-forward", "bend"][0]) == bend
    assert "after-bend" in seen["feed-forward", "bend"][1]
    tiles, figures, line = seen["logits", "w · x + b"]
    assert "last biases" not in tiles and "feed-forward 2" in tiles
    assert figures == [] and not line
    tiles, figures, line = seen["logits", "softmax"]
    assert "last biases" in tiles and figures == ["drawn-from"] and not line
    assert seen["logits", "draw"][1:] == [["drawn-from"], True]
    # In the feed-forward layer of the walk with every step the bend has its own.
    browser.evaluate("$('every').click()")
    chromium.wait(lambda: browser.evaluate("stepNumber() === 31"), "every step")
    browser.evaluate(f"watch('feed-forward {block}'), watching.stop()")
    browser.evaluate("wait(300).then(() => (watching.stop(), watching.step(1)))")
    _, step, tiles, figures, _ = browser.evaluate(f"wait(400).then(() => {see})")
    assert step == "w · x + b" and "after-bend" not in figures
    assert f"feed-forward {block}" not in tiles


def test_arcs_grow_to_the_weights_that_torch_computes(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    follow(browser, number=4)
    assert browser.evaluate("trail.arcs") == []
    ids = torch.tensor([TOKENIZER.encode(WINDOW)])
    layer, index = (int(n) - 1 for n in browser.evaluate("throughHead")[5:].split("."))
    right = capture(gpt, ids).weights[layer][0, index, PLACE - 1, :PLACE].tolist()
    browser.evaluate("goTo(5), 0")
    sums = []

    def grown():
        sums.append(sum(browser.evaluate("trail.arcs")))
        return sums[-1] > 0.999

    chromium.wait(grown, "the arcs")
    assert sums == sorted(sums) and len(set(sums)) > 3
    assert browser.evaluate("trail.arcs") == pytest.approx(right, abs=1e-2)
    inked = (
        "$('trail').getContext('2d').getImageData(0, 0, $('trail').width, 30)"
        ".data.some((v) => v > 0)"
    )
    assert browser.evaluate(inked)


def test_on_a_telephone_what_is_multiplied_is_in_view_and_makes_the_sum(
    telephone, visit, gpt
):
    browser = visit(gpt, prompt=WINDOW)
    follow(browser)
    browser.evaluate("$('every').click()")
    all = "$('walk-count').textContent.includes('31')"
    chromium.wait(lambda: browser.evaluate(all), "every step")
    settled(browser, "scrollY")
    see = """(() => {
    const box = $("sheet").parentElement.getBoundingClientRect();
    const row = watching.trs[watching.row].getBoundingClientRect();
    const head = $("sheet").tHead.getBoundingClientRect().bottom;
    const foot = $("sheet").tFoot?.checkVisibility()
      ? $("sheet").tFoot.getBoundingClientRect().top : box.bottom;
    return { cells: [...document.querySelectorAll(".product:not(.legend) b")]
        .map((e) => e.textContent),
      line: $("line").textContent, bottom: $("products").getBoundingClientRect().bottom,
      seen: row.top >= head - 1 && row.bottom <= foot + 1,
      wide: $("sheet").offsetWidth <= $("sheet").parentElement.clientWidth }; })()"""
    multiplied = set()
    for number in range(1, 32):
        browser.evaluate(f"goTo({number})")
        told = browser.evaluate("tellingOf(watching.sheet, watching.at)")
        for row in told:
            browser.evaluate(f"watching.select({row})")
            at = browser.evaluate(see)
            assert at["seen"] and at["wide"], (number, row)
            if not at["cells"]:
                continue
            multiplied.add(browser.evaluate("partOf(watched).kind"))
            assert len(at["cells"]) <= 16 and at["bottom"] <= 844, at
            total = read(re.search(r"= (−?\d+\.\d+)", at["line"] + " = 0.0")[1])
            if "q · k" in at["line"] or "w · x" in at["line"]:
                parts = sum(map(read, at["cells"]))
                assert parts == pytest.approx(total, abs=0.09), at
    assert {"head", "feed-forward", "logits"} <= multiplied
    top = "$('{}').getBoundingClientRect().top"  # in the last step
    pile, sheet = (browser.evaluate(top.format(i)) for i in ("pile", "sheet"))
    assert 0 < pile < sheet
    # What is seldom needed stands behind one button.
    browser.evaluate("goTo(4)")
    assert not browser.evaluate("$('walk-pace').checkVisibility()")
    browser.evaluate("$('more').click()")
    small = (
        "['walk-pace', 'walk-end', 'more', 'step-on'].filter((id) => { const r = "
        "$(id).getBoundingClientRect(); return r.height < 44 || r.right > 390; })"
    )
    assert browser.evaluate(small) == []
    browser.evaluate("$('walk-end').click()")
    chromium.wait(lambda: browser.evaluate("!walking"), "the end")


@pytest.mark.parametrize("wide, high", [(1280, 800), (1440, 900)])
def test_what_is_multiplied_is_in_view(visit, browser, gpt, wide, high):
    size = {"width": wide, "height": high, "deviceScaleFactor": 1}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)
    visit(gpt, prompt=WINDOW)
    tops = "[...document.querySelectorAll('.stage')].map((e) => e.offsetTop)"
    assert len(set(browser.evaluate(tops))) == 1  # the model stands in a row
    # Of a head that is clicked, the model stays in sight, and what is multiplied comes.
    browser.evaluate(
        "document.querySelector('[aria-label*=\"head 1.2\"]').dispatchEvent("
        "new MouseEvent('click', { detail: 1, bubbles: true }))"
    )
    chromium.wait(lambda: browser.evaluate("watching.playing"), "the head")
    places = "['drawing', 'products', 'sheet'].map((id) => "
    places += "$(id).getBoundingClientRect().toJSON())"
    drawing, products, sheet = settled(browser, places)
    browser.evaluate("watching.stop()")
    assert 0 <= drawing["top"] and drawing["bottom"] < sheet["top"]
    assert products["bottom"] <= high and products["left"] >= sheet["right"]
    tip = "parseFloat($('watch').style.getPropertyValue('--tip'))"
    tip += " + $('watch').getBoundingClientRect().left"
    tile = browser.evaluate(
        "drawing.tiles.get('head 1.2').tile.getBoundingClientRect().toJSON()"
    )
    assert tile["left"] <= browser.evaluate(tip) <= tile["right"]
    follow(browser)
    bottoms = {}
    for number in (4, 6, 13):
        browser.evaluate(f"goTo({number})")
        bottoms[number] = browser.evaluate(
            "wait(900).then(() => document.querySelectorAll('.product').length > 6 && "
            "$('products').getBoundingClientRect().bottom)"
        )
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)
    assert all(0 < bottom <= high for bottom in bottoms.values()), bottoms


def test_on_a_telephone_the_walk_holds_still_and_shows_its_arcs(telephone, visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    row = (
        "[...document.querySelectorAll('.stage:not(:first-child) .parts')].map((e) => "
        "new Set([...e.children].map((part) => part.offsetTop)).size)"
    )
    assert set(browser.evaluate(row)) == {1}  # no bar wraps alone
    follow(browser)
    tops = "$('trail').getBoundingClientRect().top"
    settled(browser, "scrollY")
    seen = set()
    for number in range(1, SHORT + 1):
        browser.evaluate(f"goTo({number})")
        at, wide = browser.evaluate(
            f"wait(350).then(() => [{tops}, document.documentElement.scrollWidth])"
        )
        seen.add(round(at))
        assert wide <= 390, number
        if number == 5:
            assert sum(browser.evaluate("trail.arcs")) > 0
    assert max(seen) - min(seen) <= 1 and 0 <= min(seen) < 60
    cut = (
        "[...document.querySelectorAll('.player button')].filter((e) => "
        "e.offsetParent && e.scrollWidth > e.clientWidth).map((e) => e.textContent)"
    )
    assert browser.evaluate(cut) == []


def test_the_numbers_of_the_drawing_make_the_logit(visit, gpt):
    with torch.no_grad():
        for block in list(gpt.body)[:-1]:
            block.attention.proj.bias.add_(0.5)
    browser = visit(gpt, prompt=WINDOW, weights="float32")
    with torch.no_grad():
        for block in list(gpt.body)[:-1]:
            block.attention.proj.bias.sub_(0.5)
    browser.evaluate(f"choose(active, {PLACE})")
    chromium.wait(lambda: browser.evaluate("drawing"), "the drawing")
    parts = browser.evaluate(
        "[...$('drawing').querySelectorAll('.share')].map((e) => e.textContent)"
    )
    numbers = [read(re.search(r"[+−]?\d+\.\d+", part)[0]) for part in parts]
    logit = browser.evaluate("$('drawing').lastChild.lastChild.textContent")
    logit = read(re.search(r"logit (−?\d+\.\d+)", logit)[1])
    assert sum(numbers) == pytest.approx(logit, abs=0.005 * len(numbers) + 0.005)
    named = browser.evaluate("$('drawing').lastChild.textContent")
    assert "its biases" in named and "the blocks’ biases" in named


def test_how_much_is_in_view_is_said_as_it_is_drawn(visit, gpt):
    browser = visit(gpt)
    said = call(
        browser,
        "$('seen').querySelector('.count').textContent = '';"
        "showLast(active);"
        "return [$('seen').querySelector('.count').textContent,"
        " active.reading.reader.rows.length];",
    )
    assert said[0].startswith(f"It sees {said[1]} character")


def test_sentences_count_from_one_and_speak_of_this_model(visit, gpt, models):
    browser = visit(gpt, prompt=WINDOW)
    shown(browser, "embedding")
    for at, wanted in (
        (1, f"number {TOKENIZER.encode(WINDOW)[PLACE - 1] + 1} of"),
        (2, f"It is character {PLACE} in view: row {PLACE} of"),
    ):
        browser.evaluate(f"watching.step({at})")
        assert wanted in browser.evaluate("$('says').textContent")
    for model in models.values():
        browser = visit(model, prompt=WINDOW)
        shown(browser, "logits")
        browser.evaluate("watching.step(1)")
        says = browser.evaluate("$('says').textContent")
        assert ("bias" in says) == (model.lm_head.bias is not None)
        assert "normed stream" in says
