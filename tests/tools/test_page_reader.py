"""The page in the hands of a reader: writing, knobs, parts that are switched off, the
walk, links, keyboard and telephone; and how well one can see it all."""

import json
import re

import chromium
import pytest
from pages import (
    PLACE,
    PROMPT,
    STORY,
    TEXT,
    WINDOW,
    begin,
    do,
    enter,
    open_page,
    press,
    quiet,
    size,
    turn,
    write,
)
from small import CORPUS, TOKENIZER

from minigpt.tools.page import page as page_of

TEXT_OF = "textOf(active.ids)"
STEPS = 15  # of the walk through a GPT of two blocks
SIZES = {  # the last one is a window of 1280 px at 150 %
    "telephone": (390, 844),
    "projector": (1024, 768),
    "laptop": (1280, 800),
    "hall": (1920, 1080),
    "150 %": (853, 533),
}


def said(browser, id):
    return browser.evaluate(f"$('{id}').textContent")


def waiting(browser, script, what):
    chromium.wait(lambda: browser.evaluate(script), what)


# --- writing ---


SHIFTS = """globalThis.jumped = 0;
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) {
    if (!hadRecentInput) jumped += value;
  }
}).observe({ type: "layout-shift", buffered: true });"""


def test_it_writes_by_itself_moves_nothing_and_asks_for_nothing(opened, page):
    source = "Page.addScriptToEvaluateOnNewDocument"
    added = page.call(source, source=SHIFTS)["identifier"]
    open_page(page, opened)
    waiting(page, "active.ids.length > 300 && !isWriting()", "the text")
    assert page.evaluate("jumped") < 0.1
    page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added)
    assert page.evaluate(TEXT_OF).startswith(PROMPT)
    assert [r for r in page.requests if not r.startswith("data:")] == [opened]
    # And it could not: its policy refuses.
    ask = "fetch('data:,x').then(() => 'came', () => 'refused')"
    assert page.evaluate(ask) == "refused"
    page.errors.clear()  # which is told as an error
    assert page.evaluate("watched") == page.evaluate("tellingHead(active)")


def test_a_seed_gives_the_same_text_at_once_and_one_by_one(page):
    first = write(page, 20)
    begin(page, PROMPT)
    for _ in range(20):
        one_by_one = do(page, "await write(1, Infinity); return active.ids;")
    assert one_by_one == first
    turn(page, "count", 20)
    for button, same in (("again", True), ("another", False)):
        page.evaluate(f"$('{button}').click()")
        quiet(page)
        waiting(page, f"active.ids.length === {len(first)}", button)
        assert (page.evaluate("active.ids") == first) == same


def test_writing_can_be_stopped_and_the_panel_shows_one_state_meanwhile(page):
    turn(page, "count", 5000)
    page.evaluate("$('go').click()")
    waiting(page, "active.ids.length > 12", "some text")
    seen = "['says', 'figures', 'waits'].map((id) => $(id).checkVisibility("
    seen += "{ visibilityProperty: true }))"
    assert page.evaluate(seen) == [False, False, True]
    assert said(page, "go") == "Stop"
    page.evaluate("$('one').click()")  # which does nothing now
    assert page.evaluate("active.writing")
    place = int(re.search(r"character (\d+)", said(page, "position"))[1])
    assert place <= page.evaluate("active.ids.length") + 1
    press(page, "Escape")
    assert not page.evaluate("isWriting()") and said(page, "go") == "Go on"
    assert page.evaluate(seen) == [True, True, False]


def test_knobs_move_the_bars_and_no_history(page):
    turn(page, "temperature", 0.5)
    write(page, 1)
    do(page, f"choose(active, {len(PROMPT)}); await showInside();")
    drawn = re.search(r"It was drawn .*", said(page, "position"))[0]
    assert drawn.endswith("at temperature 0.5.")
    bars = said(page, "bars")
    turn(page, "temperature", 2)
    assert said(page, "position").endswith(drawn) and said(page, "bars") != bars
    do(page, "choose(active, 2); await showInside();")
    assert said(page, "position").endswith("nats.")  # the reader typed it
    do(page, "choose(active, 0); await showInside();")
    assert "Nothing comes before" in said(page, "position")


def test_a_part_is_switched_off_and_the_text_pays(page):
    bars = said(page, "bars")
    page.evaluate("document.querySelectorAll('#drawing [type=checkbox]')[2].click()")
    waiting(page, "$('cut').textContent.includes('surprised')", "the surprise")
    told = said(page, "cut")
    assert told.startswith("Off: feed-forward 1. The text now surprises it by ")
    now, whole = map(float, re.findall(r"(?<=by )\d+\.\d+", told))
    assert now == pytest.approx(page.evaluate("active.reading.mean(0)"), abs=0.006)
    assert whole == pytest.approx(page.evaluate("active.intact.mean(0)"), abs=0.006)
    assert said(page, "bars") != bars
    write(page, 60)
    do(page, "begin(active.ids.slice(0, active.given)); await write(60, Infinity);")
    own, whole = map(float, re.findall(r": (\d+\.\d+)", said(page, "cut")))
    assert "It wrote this text itself, so it finds it easy" in said(page, "cut")
    given = "mean(active.given)"
    assert own == pytest.approx(page.evaluate(f"active.reading.{given}"), abs=0.006)
    assert whole == pytest.approx(page.evaluate(f"active.intact.{given}"), abs=0.006)
    page.evaluate("$('whole').click()")
    waiting(page, "$('cut').textContent.startsWith('Click')", "the whole model")


def test_a_link_repeats_what_one_saw(opened, page):
    see = "[textOf(active.ids), active.given, stepNumber(), watched, walking,"
    see += " ...['cut', 'position', 'says', 'bars'].map((id) => $(id).textContent)]"
    turn(page, "temperature", 1.2)
    do(page, "await switchParts(({ off }) => off.add('head 2.1'));")
    write(page, 25)
    do(page, "choose(active, 14); watch('head 1.2'); goTo(6); setWalking(true);")
    do(page, "await showInside(); remember();")
    before = page.evaluate(see)
    open_page(page, page.evaluate("location.href"))
    assert page.evaluate(see) == before
    # And now what is added was not written as the rest.
    turn(page, "temperature", 0.4)
    write(page, 10)
    page.evaluate("remember()")
    text = page.evaluate(TEXT_OF)
    open_page(page, page.evaluate("location.href"))
    assert page.evaluate(TEXT_OF) == text
    for odd in ("0", "-3", "999", "x"):  # what no page wrote
        open_page(page, f"{opened}#text=dog&walk={odd}&part={odd}&at={odd}&off={odd}")
        assert page.evaluate(TEXT_OF) == "dog"


def test_unknown_characters_are_told_and_mended_with_a_click(page):
    enter(page, "")
    assert "at least one" in said(page, "complaint")
    enter(page, "the\u00a0Ö and—7")
    assert "never seen \u00a0 Ö — 7." in said(page, "complaint")
    # Nothing is shown of the text before, and nothing can be written.
    shown = "['glance', 'parts', 'drawing'].map((id) => $(id).checkVisibility("
    shown += "{ visibilityProperty: true }))"
    pressable = "$('go').getAttribute('aria-disabled') !== 'true'"
    assert page.evaluate(shown) == [False] * 3 and not page.evaluate(pressable)
    page.evaluate("$('again').click()")
    assert page.evaluate(TEXT_OF) == PROMPT  # nothing is done before that is mended
    for mended in ("the Ö and—7", "the  and"):
        page.evaluate("$('complaint').querySelector('button').click()")
        assert page.evaluate("$('prompt').value") == mended
    enter(page, CORPUS[:45] * 250)
    assert "11,250 characters, but this page only reads" in said(page, "complaint")
    enter(page, "dog")
    page.evaluate("$('edit').click()")
    waiting(page, f"{TEXT_OF} === 'dog'", "the new text")
    quiet(page)
    assert not said(page, "complaint") and page.evaluate(shown) == [True] * 3
    assert "dog" in said(page, "position") and page.evaluate(pressable)


# --- the walk ---


def test_the_walk_leads_from_the_character_to_the_draw_and_lights_its_way(page):
    write(page, 30)
    place = len(PROMPT) + 4
    do(page, f"choose(active, {place}); await follow(); await showInside();")
    assert page.evaluate("walking") and said(page, "walk-count") == f"1 of {STEPS}"
    head = page.evaluate("tellingHead(active)")
    titles, lit = (
        [],
        "[...document.querySelectorAll('#drawing .lit')].map((e) => e.title",
    )
    lit += " || e.textContent)"
    for number in range(1, STEPS + 1):
        assert said(page, "walk-count") == f"{number} of {STEPS}"
        why = page.evaluate("document.querySelector('.why').textContent")
        assert said(page, "says").startswith(why) and why[-1] in ".?"
        assert len(said(page, "says").split()) <= 60 and said(page, "line")
        assert page.evaluate(lit), number
        numbers = "[...$('sheet').tBodies[0].rows].filter((tr) => !tr.hidden).length"
        assert page.evaluate(numbers) <= 6  # few numbers at once
        ahead = page.evaluate(
            "document.querySelector('#drawing .stage:last-child .glyph')"
            ".matches('.ahead')"
        )
        assert ahead == (number < STEPS)  # what comes is dark until it's drawn
        titles.append(said(page, "watch-title"))
        if number < STEPS:
            press(page, "ArrowRight" if number % 2 else " ")
    assert f"Head {head[5:]} looks back" in titles[4]
    drawn = page.evaluate(f"active.drawn[{place}].chance")
    low, high = map(float, re.findall(r"\d\.\d+", said(page, "line")))
    assert low - 1e-3 <= drawn <= high + 1e-3
    came = page.evaluate(f"quoted(active.ids[{place}])")
    assert f"which falls on {came}" in said(page, "says")
    assert line_falls(page) == pytest.approx(drawn, abs=0.01)
    press(page, "ArrowLeft")
    assert page.evaluate("stepNumber()[0]") == STEPS - 1 and line_falls(page) is None
    press(page, "Escape")
    assert not page.evaluate("walking")
    press(page, "ArrowLeft")  # the keys no longer belong to the walk
    assert page.evaluate("stepNumber()[0]") == STEPS - 1


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


def test_behind_the_last_step_what_was_drawn_goes_in(page):
    write(page, 2)
    last = len(PROMPT) + 1
    do(page, f"choose(active, {last}); await follow(); goTo({STEPS});")
    came = page.evaluate("quoted(active.ids.at(-1))")
    page.evaluate("$('step-on').click()")
    waiting(
        page,
        f"active.chosen === null && walking && {last + 1} === "
        "positionOf(active) && stepNumber()[0] === 1",
        "the next",
    )
    assert f"{came} becomes" in said(page, "watch-title")
    page.evaluate(f"goTo({STEPS})")  # behind it another one is written
    page.evaluate("$('step-on').click()")
    waiting(page, f"active.ids.length === {last + 2} && walking", "one more")


def test_a_click_on_a_part_takes_it_apart(page):
    do(page, f"choose(active, {PLACE}); await showInside();")
    page.evaluate("document.querySelector('[aria-label*=\"head 2.2\"]').click()")
    assert "Head 2.2 looks back" in said(page, "watch-title")
    assert page.evaluate(
        "[...$('strips').parentElement.children].filter((e) => "
        "e.matches('.figure:not([hidden])')).map((e) => e.id)"
    ) == ["where"]
    page.evaluate("$('step-back').click(), $('step-back').click()")
    assert "Head 2.2 asks on behalf of" in said(page, "watch-title")
    page.evaluate("document.querySelector('[aria-label*=\"forward 1\"]').click()")
    assert "Feed-forward 1 works on" in said(page, "watch-title")
    page.evaluate("$('step-back').click()")
    assert "Block 1: what the heads write" in said(page, "watch-title")


def test_the_rows_of_a_sheet_are_gone_through_by_key(page):
    do(page, f"choose(active, {PLACE}); watch('head 1.1', 2); await showInside();")
    selected = "[...$('sheet').tBodies[0].rows].findIndex((tr) => tr.tabIndex === 0)"
    page.evaluate("$('sheet').querySelector('[tabindex=\"0\"]').focus()")
    press(page, "Home")
    first = page.evaluate(selected)
    press(page, "ArrowDown")
    assert page.evaluate(selected) > first
    assert page.evaluate("document.activeElement.matches('.selected')")


def test_a_telling_character_and_head_are_followed_unless_one_is_chosen(page):
    write(page, 200)
    do(page, "choose(active, Infinity); await follow();")
    at, text = page.evaluate("[active.chosen, textOf(active.ids)]")
    assert text[at - 2 : at + 2].isalpha()
    assert text[at].lower() != text[at - 1].lower()  # what goes in and what comes out
    probs = page.evaluate(
        f"probabilities(active.reading.after[{at - 1}].logits, knobs())"
    )
    assert sum(p > 0.1 for p in probs) > 1  # it had a rival
    habits = page.evaluate(
        """[0, 1].map((index) => { const { rows } = active.reading.reader;
        return Math.max(...[1, 2, 3, 4, 5, 6, 7].map((back) => sum(rows.map((row, t) =>
          row.layers[0].heads[index].weights[t - back] ?? 0)))); })"""
    )
    assert page.evaluate("through") == f"head 1.{1 + habits.index(max(habits))}"


# --- what one sees ---


@pytest.mark.parametrize("name", SIZES)
def test_the_page_is_whole_at_every_size(page, name):
    wide, high = SIZES[name]
    size(page, wide, high, touched=name == "telephone")
    begin(page, WINDOW)
    do(page, f"choose(active, {PLACE}); await follow();")
    see = """(() => {
    const wide = document.documentElement.clientWidth, out = [];
    for (const e of document.querySelectorAll("body *")) {
      if (e.closest(".unseen, #meaning") || !e.checkVisibility()) continue;
      const { left, right, width } = e.getBoundingClientRect();
      if (width && (left < -1 || right > wide + 1)) out.push(e.id || e.className);
    }
    const box = $("sheet").parentElement;
    if ($("sheet").offsetWidth > box.clientWidth + 1) out.push("table");
    if (box.scrollHeight > box.clientHeight + 1) out.push("rows");
    return [document.documentElement.scrollWidth - wide, out]; })()"""
    for number in range(1, STEPS + 1):
        do(page, f"goTo({number}); await showInside();")
        assert page.evaluate(see) == [0, []], number
    letters = page.evaluate("parseFloat(getComputedStyle($('says')).fontSize)")
    assert letters == (pytest.approx(22, abs=0.3) if name == "hall" else 16)
    if name in ("laptop", "hall"):  # drawing and numbers are on one screen
        page.evaluate("scrollTo(0, $('model').getBoundingClientRect().top + scrollY)")
        box = page.evaluate("$('watch').getBoundingClientRect().bottom")
        assert box <= high
        left = page.evaluate("$('watch').getBoundingClientRect().left")
        assert left < wide * 0.06  # the width is used
    size(page, 1280, 900)


def test_what_is_touched_is_as_large_as_a_finger(telephone, page):
    telephone()
    begin(page, WINDOW)
    page.evaluate("document.querySelector('.writing details').open = true")
    do(page, "await switchParts(({ off }) => off.add('head 1.1'));")
    small = page.evaluate(
        "[...document.querySelectorAll('button, summary, input, .switch, .tick')]"
        ".filter((e) => e.checkVisibility() && !e.matches('.word, #all-rows')"
        " && !e.closest('.square') && e.type !== 'checkbox')"
        ".filter((e) => e.getBoundingClientRect().height < 44).map((e) => e.outerHTML)"
    )
    assert small == []


def test_the_line_at_the_top_shows_what_the_model_sees(page):
    inked = """(() => { const { width, height } = $("glance");
      const { data } = $("glance").getContext("2d").getImageData(0, 0, width, height);
      return data.reduce((sum, v, i) => sum + (i % 4 === 3 && v > 0), 0); })()"""
    assert page.evaluate(inked) > 500
    label = page.evaluate("$('glance').getAttribute('aria-label')")
    assert f"From “{PROMPT[-1]}” arcs lead" in label
    begin(page, CORPUS[:30])
    for position in (30, 12, 3):
        do(page, f"choose(active, {position}); await showInside();")
        start = page.evaluate(f"active.startOf({position} - 1)")
        assert page.evaluate("document.querySelectorAll('.beyond').length") == start
        assert said(page, "seen").startswith(f"It sees {position - start} character")
        assert "8 at most, then it forgets the older half" in said(page, "seen")
    do(page, "choose(active, 0); await showInside();")  # nothing comes before it
    assert page.evaluate(inked) == 0


def test_a_keyboard_is_enough(page):
    turn(page, "count", 10)
    page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    focused, order = "document.activeElement.id || document.activeElement.role", []
    while "follow" not in order and len(order) < 120:
        press(page, "Tab")
        order.append(page.evaluate(focused))
        if order[-1] == "edit":
            page.evaluate("document.querySelector('.writing details').open = true")
    wanted = ["option", "go", "one", "again", "another", "edit", "link", "follow"]
    assert [name for name in order if name in wanted] == wanted
    press(page, "Enter", modifiers=2)  # Ctrl: nothing is followed, but written
    waiting(page, f"!isWriting() && active.ids.length === {len(PROMPT) + 10}", "text")
    page.evaluate("document.querySelector('.side [aria-selected=true]').focus()")
    page.evaluate("document.querySelector('.side .text').style.width = '15ch'")
    for key in ("ArrowLeft", "ArrowUp", "ArrowDown", "Home"):
        before = page.evaluate("positionOf(active)")
        press(page, key)
        assert page.evaluate("document.activeElement.ariaSelected") == "true"
        now = page.evaluate("active.chosen")
        assert key != "ArrowUp" or now < before - 4  # a line, and not a character
    assert now == 0
    page.evaluate("document.querySelector('.side .text').style.width = ''")
    press(page, "Enter")
    assert page.evaluate("document.activeElement.id") == "prompt"
    page.call("Input.insertText", text="the fox")
    assert page.evaluate("$('prompt').value") == "the fox"  # in place of all
    press(page, "Escape")
    waiting(page, "$('prompt').hidden", "the text")


def test_words_are_explained_where_they_stand_by_click_and_by_key(page):
    is_open, words = (
        "$('meaning').matches(':popover-open')",
        "[...document.querySelectorAll('.word')].filter((e) => e.matches('button'))",
    )
    asked = set()
    for part in ("norm 1", "query 1.1", "head 1.1", "feed-forward 1", "logits"):
        do(page, f"watch('{part}', 1); await showInside();")
        asked |= set(page.evaluate(f"{words}.map((e) => e.textContent)"))
        told = f"{words}.map((e) => (e.click(), $('meaning').textContent.length))"
        assert min(page.evaluate(told)) > 20
        page.evaluate("hush()")
    wanted = "LayerNorm;normed;query;key;value;bend;q · k;w · x;Temperature;nats;guess"
    assert set(wanted.split(";")) <= asked
    find = f"{words}.find((e) => e.textContent === 'nats')"
    page.evaluate(f"{find}.focus()")
    press(page, "Enter")
    assert page.evaluate(is_open)
    assert "−ln p" in said(page, "meaning")
    box = page.evaluate("$('meaning').getBoundingClientRect().toJSON()")
    at = page.evaluate(f"{find}.getBoundingClientRect().toJSON()")
    beside = min(abs(box["top"] - at["bottom"]), abs(box["bottom"] - at["top"]))
    assert beside < 10
    press(page, "Escape")
    assert not page.evaluate(is_open)


def test_every_field_has_a_name_and_every_live_region_is_polite(page):
    page.evaluate("document.querySelector('.writing details').open = true")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    kinds = "button slider spinbutton radio checkbox option".split()
    nameless = [
        node["role"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") in kinds
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    found = [node["role"]["value"] for node in nodes if "role" in node]
    assert set(kinds) | {"listbox", "table", "main", "status"} <= set(found)
    live = "[...document.querySelectorAll('[aria-live]')].map((e) => e.ariaLive)"
    assert set(page.evaluate(live)) == {"polite"}


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
  const seen = (e) => !e.closest("script, style, noscript, .unseen, textarea")
    && e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const low = [];
  let count = 0;
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement, style = getComputedStyle(e);
    if (!texts.currentNode.data.trim() || !seen(e)) continue;
    let opacity = 1;
    for (let p = e; p; p = p.parentElement) opacity *= getComputedStyle(p).opacity;
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
def test_all_text_can_be_read_against_what_lies_behind_it(page, scheme):
    wants = [{"name": "prefers-color-scheme", "value": scheme}]
    page.call("Emulation.setEmulatedMedia", features=wants)
    page.evaluate("document.querySelector('.writing details').open = true")
    turn(page, "temperature", 1.5)
    write(page, 60)
    do(page, "await switchParts(({ off }) => off.add('head 1.1'));")
    do(page, f"choose(active, {len(PROMPT) + 3}); await showInside();")
    for number in (1, 5, 9, STEPS):
        do(page, f"goTo({number}); await showInside();")
        count, low = page.evaluate(CONTRAST)
        assert count > 150 and low == [], number
    page.call("Emulation.setEmulatedMedia", features=[])


# --- before the model is there ---


def test_the_page_says_what_it_is_before_any_script_has_run(gpt):
    html = page_of(gpt, TOKENIZER, text=TEXT, stories=[STORY])
    seen = html[: html.index("<script")]
    assert "It read a fox. <em>Now it writes, one letter at a time.</em>" in seen
    count = sum(p.numel() for p in gpt.parameters())
    assert f"<title>A GPT with {count:,} parameters</title>" in seen
    assert f" {len(TEXT.train):,} characters in 20 " in seen
    name = "<img src=x onerror=alert(1)>"  # a name is text
    html = page_of({name: {"end": gpt}, "b": {"end": gpt}}, TOKENIZER)
    assert "<img" not in html[: html.index('id="content"')]
    known = json.loads(re.search(r'id="content">(.*?)</script>', html)[1])
    assert known["models"][0]["name"] == name
