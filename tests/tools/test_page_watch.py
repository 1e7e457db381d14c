"""The page's computation that one can watch: each number beside torch's; and the rest
of its first minute: words, tour, card and film."""

import copy
import json
import re
from functools import partial
from pathlib import Path

import chromium
import pytest
import torch
import torch.nn.functional as F
from beside_torch import (
    IDS,
    beside_torch,
    is_shown,
    queries_keys_values,
    read,
    seen_by_torch,
    shown,
)
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
from small import TOKENIZER, V, small_gpt
from torch.testing import assert_close

from minigpt.generation import probabilities
from minigpt.gpt import GPT
from minigpt.inside.looking import capture
from minigpt.tools.page import page

ROOT = Path(__file__).resolve().parents[2]


# --- each number is torch's ---


def toward(model, seen, row, id):
    """The gradient of the logit of `id` with respect to the stream before the last
    norm, with the norm's scale held as it is: as in logit_shares of lesson 11."""
    norm = model.body[-1]
    stream = seen[norm][0][0][0, row]
    centred = isinstance(norm, torch.nn.LayerNorm)
    mean = stream.mean() if centred else 0.0
    scale = (
        (stream - mean).square().mean() + (1e-5 if centred else model.config.norm_eps)
    ).sqrt()
    way = model.lm_head.weight[id] * norm.weight / scale
    return way - way.mean() if centred else way


def left_of(model, layer):
    """By what the mixtures of later blocks multiply what a layer wrote."""
    mixes = [block.mix for block in list(model.body)[layer + 1 : -1] if has_mix(block)]
    return torch.stack([mix[0] for mix in mixes]).prod() if mixes else 1.0


def has_mix(block):
    return getattr(block, "mix", None) is not None


def test_each_number_that_a_head_shows_is_torchs(visit, models):
    row = PLACE - 1
    for name, model, browser, seen in beside_torch(visit, models):
        way = toward(model, seen, row, IDS[PLACE])
        for layer, block in enumerate(list(model.body)[:-1]):
            attention = block.attention
            inputs = seen[attention][0]
            for head in (0, attention.n_head - 1):
                part = f"head {layer + 1}.{head + 1}"
                columns, labels = shown(browser, part)
                assert "".join(labels) == WINDOW.replace(" ", "␣"), name
                with torch.no_grad():
                    q, k, v = (x[head] for x in queries_keys_values(attention, inputs))
                    dots, root = q[row] @ k.T, q.shape[-1] ** 0.5  # (T,)
                    masked = (dots / root).masked_fill(
                        torch.arange(8) > row, -torch.inf
                    )
                    weights = F.softmax(masked, dim=-1)
                    mine = slice(head * len(q[0]), (head + 1) * len(q[0]))
                    proj = attention.proj.weight[:, mine]  # (C, head_size)
                    adds = weights * (v @ proj.T @ way) * left_of(model, layer)
                powers = (masked - masked.max()).exp()
                wanted = [dots, dots / root, masked, powers, weights, adds]
                for column, right in zip(columns.values(), wanted, strict=True):
                    is_shown(column, right)
                out = f"return Array.from(unfoldHead(sides[0].whole, {rows()}, {row}, "
                out += f"partOf('{part}'), 0)"
                got = torch.tensor(call(browser, out + ".out)"))
                assert_close(got, weights @ v, atol=1e-4, rtol=0, msg=name)
                got = torch.tensor(call(browser, out + ".wrote)"))
                assert_close(got, weights @ v @ proj.T, atol=1e-4, rtol=0, msg=name)


def rows():
    """What was computed for the window, as JavaScript; it is read once more."""
    return (
        "(() => { const r = new Reader(sides[0].whole);"
        "[...r.steps(sides[0].ids, 0, sides[0].ids.length)]; return r.rows; })()"
    )


def test_the_products_that_are_shown_make_the_first_number_of_a_row(visit, gpt):
    browser = visit(gpt, prompt=WINDOW, weights="float32")
    seen = seen_by_torch(gpt, IDS)
    attention = gpt.body[1].attention
    columns, _ = shown(browser, "head 2.1")
    q, k, v = (x[0] for x in queries_keys_values(attention, seen[attention][0]))
    browser.evaluate("watching.step(1), watching.select(2)")
    cells = "[...document.querySelectorAll('.product:not(.legend)')].map((e) => "
    cells += "[...e.children].map((number) => number.textContent))"
    few = [cell[-1] for cell in browser.evaluate(cells)]  # the largest, and the others
    assert len(few) == 7 and browser.evaluate(cells)[-1][:2] == ["2", "others"]
    assert sum(map(read, few)) == pytest.approx(columns["q · k"][2], abs=0.05)
    browser.evaluate("$('all-terms').click()")
    factors = [[read(n) for n in cell] for cell in browser.evaluate(cells)]
    left, right, products = zip(*factors, strict=True)
    is_shown(left, q[PLACE - 1])
    is_shown(right, k[2])
    is_shown(products, q[PLACE - 1] * k[2])
    assert sum(products) == pytest.approx(columns["q · k"][2], abs=0.05)
    browser.evaluate("watching.step(5)")
    left, right, products = zip(
        *([read(n) for n in c] for c in browser.evaluate(cells))
    )
    is_shown(left, v[2])
    is_shown(products, v[2] * columns["weight"][2], digits=1)


def test_each_number_that_a_feed_forward_layer_shows_is_torchs(visit, models):
    row = PLACE - 1
    for name, model, browser, seen in beside_torch(visit, models):
        way = toward(model, seen, row, IDS[PLACE])
        for layer, block in enumerate(list(model.body)[:-1]):
            f, n = block.feed_forward, block.feed_forward.proj.in_features
            hidden, bent = seen[f.expand][1][0, row], seen[f.proj][0][0][0, row]
            adds = bent * (f.proj.weight.T @ way) * left_of(model, layer)  # (neurons,)
            columns, labels = shown(browser, f"feed-forward {layer + 1}")
            some = [int(label) - 1 for label in labels if label.isdigit()]
            assert len(some) == min(n, 64), name
            product = "w · x + b" if f.expand.bias is not None else "w · x"
            wanted = {product: hidden[-n:], "bent": bent, "gate": hidden[:n]}
            for column, numbers in columns.items():
                right = wanted.get(column, adds)[some]
                is_shown(numbers[: len(some)], right)  # then the others' sum
            total = "$('sheet').tFoot.rows[0].lastElementChild.firstChild.textContent"
            total = read(browser.evaluate(total))
            bias = f.proj.bias @ way * left_of(model, layer) if model_bias(f) else 0.0
            is_shown([total], [(adds.sum() + bias).item()])


def model_bias(feed_forward):
    return feed_forward.proj.bias is not None


@pytest.mark.parametrize("choice", [(0.8, V, 1), (1.5, 5, 1), (1, V, 0.6), (0, V, 1)])
def test_each_number_of_the_last_layer_is_torchs(visit, models, choice):
    temperature, top_k, top_p = choice
    row = PLACE - 1
    for name, model, browser, seen in beside_torch(visit, models):
        for knob, value in zip(("temperature", "top-k", "top-p"), choice, strict=True):
            turn(browser, knob, value)
        logits = seen["logits"][row]
        columns, labels = shown(browser, "logits")
        order = TOKENIZER.encode("".join(labels).replace("␣", " "))
        assert sorted(order) == list(range(V)), name
        probs = probabilities(
            logits[None],
            temperature,
            top_k if top_k < V else None,
            top_p if top_p < 1 else None,
        )[0]
        cooled = logits / (temperature or 1)
        kept = cooled.masked_fill(probs == 0, -torch.inf)
        wanted = [cooled, kept, (kept - kept.max()).exp()]
        *numbers, last, low, high = columns.values()
        if getattr(model.config, "softcap", None):
            is_shown(numbers.pop(0), seen[model.lm_head][1][0, row][order])
        for column, right in zip(numbers, [logits, *wanted], strict=True):
            is_shown(column, right[order])
        for column, right in (
            (last, probs),
            (low, probs.cumsum(0) - probs),
            (high, probs.cumsum(0)),
        ):
            is_shown(column, right[order], digits=3)


def test_a_part_that_is_off_shows_what_it_would_say(visit, gpt):
    browser = visit(gpt, prompt=WINDOW, weights="float32", text=TEXT)
    before, _ = shown(browser, "head 2.1")
    browser.evaluate("switchParts(({ off }) => off.add('head 2.1'))")
    now, _ = shown(browser, "head 2.1")
    browser.evaluate("watching.step(1)")
    assert "switched off" in browser.evaluate("$('says').textContent")
    assert now["weight"] == before["weight"]


# --- it unfolds ---


def test_a_head_that_is_clicked_computes_step_by_step(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    browser.evaluate("document.querySelector('[aria-label*=\"head 1.2\"]').click()")
    chromium.wait(lambda: browser.evaluate("watching.playing"), "the first step")
    assert "head 1.2" in browser.evaluate("$('watch-title').textContent")
    opacity = "(step) => Number(getComputedStyle(document.querySelector("
    opacity += "'#sheet thead .s' + step)).opacity)"
    see = f"[watching.at, ...[1, 2, 6].map({opacity})]"
    seen = []
    while not seen or seen[-1][0] < 3:
        seen.append(browser.evaluate(see))
    steps = dict((at, visible) for at, *visible in seen)  # as each step ends
    assert steps[1] == [1, 0, 0] and steps[2] == [1, 1, 0]
    press(browser, "Escape")
    assert not browser.evaluate("watching.playing")
    browser.evaluate("$('steps').lastElementChild.firstChild.click()")
    chromium.wait(lambda: browser.evaluate(see)[3] == 1, "the last column")
    current = "document.querySelector('#steps [aria-current=step]').textContent"
    assert browser.evaluate(current) == "add"


def test_a_computation_holds_its_telling_rows_and_can_be_paused(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    weights = shown(browser, "head 2.1")[0]["weight"]
    # What is seen of it, at each picture.
    browser.evaluate(
        "globalThis.seen = []; globalThis.noted = setInterval(() => seen.push(["
        "watching.at, watching.row, $('products').textContent, performance.now(), "
        "Number($('products').style.getPropertyValue('--seen') || 999), "
        "$('line').textContent, Number(getComputedStyle(watching.trs[watching.row]"
        ".querySelector('td:not(.strip)')).opacity), getComputedStyle("
        "windowText.spans[watching.sheet.telling[0]]).backgroundColor]), 30)"
    )
    browser.evaluate("$('play').click()")
    chromium.wait(lambda: browser.evaluate("watching.at === 2"), "the second step")
    browser.evaluate("$('play').click()")
    seen = browser.evaluate("clearInterval(noted), seen")
    rows = list(dict.fromkeys(row for at, row, *_ in seen if at == 1))
    assert rows == browser.evaluate("watching.sheet.telling") and len(rows) == 3
    assert [weights[row] for row in rows] == sorted(weights, reverse=True)[:3]
    for row in rows:  # long enough to read, and nothing else in between
        times = [when for at, now, _, when, *_ in seen if (at, now) == (1, row)]
        assert times[-1] - times[0] > 700
    assert len({products for at, _, products, *_ in seen if at == 1}) == 3
    # Product after product is added up, and only then the sum stands in its row.
    terms = browser.evaluate(
        f"(({{ left, right }}) => [...left].map((v, i) => v * right[i]))("
        f"watching.sheet.products({rows[0]}, 1))"
    )
    counts, began = [], seen[0][3]
    for at, row, _, when, count, line, opacity, shade in seen:
        if at == 1:  # nothing tells the weights before softmax
            assert shade.endswith("/ 0)") or shade.endswith(", 0)"), shade
        if (at, row) != (1, rows[0]) or counts[-1:] == [len(terms)]:
            continue
        counts.append(count)
        if count < len(terms):
            total = read(line.split(" = ")[1])
            assert total == pytest.approx(sum(terms[:count]), abs=1e-3)
            assert opacity < 0.1 or when - began < 400
    assert counts == sorted(counts) and len(set(counts)) > 4
    # It pauses where it is, and goes on from there.
    button = "$('play').textContent"
    assert not browser.evaluate("watching.playing")
    assert browser.evaluate(button) == "▶ Go on"
    assert browser.evaluate("wait(1500).then(() => watching.at)") == 2
    browser.evaluate("$('play').click()")
    assert browser.evaluate("watching.playing && watching.at === 2")
    press(browser, "Escape")
    assert browser.evaluate(button) == "▶ Watch it"


def test_what_later_layers_make_of_a_head_is_torchs_and_told_where_it_is_more(
    visit, gpt
):
    browser = visit(gpt, prompt=WINDOW, weights="float32")
    ids = torch.tensor(TOKENIZER.encode(WINDOW))
    with torch.no_grad():
        whole = gpt(ids[None, :PLACE])[0][0, -1, ids[PLACE]]
    for name in ("head 1.1", "head 1.2", "head 2.1", "head 2.2"):
        layer, index = (int(n) - 1 for n in name[5:].split("."))
        without = copy.deepcopy(gpt)
        proj = without.body[layer].attention.proj.weight.data
        size = proj.shape[1] // gpt.config.n_head
        proj[:, index * size : (index + 1) * size] = 0
        with torch.no_grad():
            right = (whole - without(ids[None, :PLACE])[0][0, -1, ids[PLACE]]).item()
        shown(browser, name)
        effect, share, says = browser.evaluate(
            f"(() => {{ const seen = sheetKey.seen, id = active.ids[{PLACE}]; return ["
            f"effectOf(active, '{name}', {PLACE}, 0, seen, id), "
            f"drawing.shares.get('{name}'), $('says').textContent]; }})()"
        )
        assert effect == pytest.approx(right, abs=1e-3)
        told = (
            f"the score would be {abs(right):.2f} {'lower' if right > 0 else 'higher'}."
        )
        assert (told in says) == (abs(right) > abs(share) + 0.05), name
    more = [browser.evaluate(f"effectSays({e}, 0.5)") for e in (-2, 0.5)]
    said = " Later layers read it, too: without this head the score would be "
    assert more == [f"{said}2.00 higher.", ""]


def test_any_head_computes_within_twenty_seconds_and_at_any_pace(visit, gpt, models):
    for model in models.values():
        browser = visit(model, prompt=WINDOW)
        shown(browser, "head 1.1")
        heads = [name for name in browser.evaluate("partsOf(active)") if "head" in name]
        for name in heads:
            plan = browser.evaluate(
                f"(() => {{ const {{ start, rows }} = active.reading.reader, sheet = "
                f"sheetOf('{name}', active, {PLACE}, start, rows, 0); return ["
                "lastingAll(sheet), "
                "sheet.steps.map((_, i) => tellingOf(sheet, i + 1).length)]; })()"
            )
            assert 8000 < plan[0] <= 20000 and plan[1] == [3, 0, 0, 1, 1, 1], name
    assert browser.evaluate("$('walk-pace').checkVisibility() && !walking")
    turn(browser, "walk-pace", "2.5")
    assert browser.evaluate("pace()") == 2.5


def test_the_sum_is_named_once_there_is_one(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    shown(browser, "head 1.1")
    name = "Number(getComputedStyle(document.querySelector('.of-sum')).opacity)"
    for step, visible in ((3, 0), (4, 1)):
        browser.evaluate(f"watching.step({step})")
        chromium.wait(partial(browser.evaluate, f"{name} === {visible}"), f"{step}")


def test_the_page_rests_at_the_end_and_follows_where_there_is_something_to_see(
    visit, gpt
):
    browser = visit(gpt, address={})
    rests = f"({QUIET}) && active.ids.length > 300 && watched === sharpest(active)"
    chromium.wait(lambda: browser.evaluate(rests), "the rest")
    assert browser.evaluate("active.chosen") is None  # line and text end alike
    sharpness = dict(
        browser.evaluate(
            "[...habits(active)].map(([n, s]) => [n, Math.max(...s.slice(1))])"
        )
    )
    watched = browser.evaluate("watched")
    assert sharpness[watched] == max(sharpness.values())
    browser.evaluate("void document.querySelector('.follow').click()")
    chromium.wait(lambda: browser.evaluate("walking && watching.sheet"), "the walk")
    press(browser, "Escape")
    chromium.wait(lambda: browser.evaluate("!walking"), "the end")
    at, text = browser.evaluate("[active.chosen, textOf(active.ids)]")
    assert text[at - 2 : at + 2].isalpha()
    assert text[at].lower() != text[at - 1].lower()  # what goes in and what comes out
    # Of those that were contested and likely, the one for which a head does most.
    contest = """(() => {
    const { ids, reading: { after } } = active, found = [];
    ids.forEach((id, i) => {
      const letters = /^\\p{L}{4}$/u.test(textOf(ids.slice(i - 2, i + 2)));
      if (i < 2 || !letters || id === ids[i - 1]) return;
      const { logits } = after[i - 1], probs = probabilities(logits, knobs());
      const contested = probs[id] > .1 && probs.filter((p) => p > .1).length > 1;
      const reader = new Reader(sides[0].whole), start = active.startOf(i - 1);
      [...reader.steps(ids, start, i)];
      const shares = [...sides[0].whole.shares(reader.rows.at(-1), id)];
      const most = Math.max(...shares.filter(([name]) => name.startsWith("head"))
        .map(([, share]) => share));
      found.push([i, [contested && ranked(logits).indexOf(id) < 2, most]]);
    });
    return found; })()"""
    places = dict(browser.evaluate(contest))
    assert any(fits for fits, _ in places.values())
    fits, most = max(places.values())
    assert places[at][0] == fits and places[at][1] == pytest.approx(most, abs=1e-4)


def test_the_rows_of_a_sheet_are_gone_through_by_key(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    shown(browser, "head 1.1")
    browser.evaluate("watching.step(2); watching.trs[watching.row].focus()")
    press(browser, "Home")
    press(browser, "ArrowDown")
    assert browser.evaluate("watching.row") == 1
    assert browser.evaluate("document.activeElement === watching.trs[1]")
    line = browser.evaluate("$('line').textContent")
    dot, root, score = map(read, re.findall(r"−?\d+\.\d+", line))
    assert dot / root == pytest.approx(score, abs=2e-3)


def test_an_address_repeats_what_is_watched(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    browser.evaluate("watch('feed-forward 2')")
    address = browser.evaluate("location.href")
    assert "part=feed-forward+2" in address
    browser.open(address, QUIET)
    title = "$('watch-title').textContent"
    there = lambda: "feed-forward 2" in browser.evaluate(title)  # noqa: E731
    chromium.wait(there, "the same part")
    assert browser.errors == []


# --- the first minute ---


def test_the_page_says_what_it_is(visit, gpt):
    browser = visit(gpt, text=TEXT, stories=[STORY])
    said = browser.evaluate("document.querySelector('header').innerText")
    assert "It read a fox. Now it writes, one letter at a time." in said
    count = sum(p.numel() for p in gpt.parameters())
    assert f"{count:,} parameters that learned from " in said
    assert f" {len(TEXT.train):,} characters in 20 steps of training: 61 s. " in said


def test_words_are_explained_where_they_stand_by_click_and_by_key(visit, gpt):
    browser = visit(gpt)
    is_open = "$('meaning').matches(':popover-open')"
    words = "[...document.querySelectorAll('.word:not(.plain)')]"
    named = set(browser.evaluate(f"{words}.map((e) => e.textContent.toLowerCase())"))
    wanted = "temperature top-k top-p nats logit head say seed parameters probability"
    assert set(wanted.split()) <= named
    find = f"{words}.find((e) => e.textContent === 'nats')"
    browser.evaluate(f"{find}.focus()")
    press(browser, "Enter")
    assert browser.evaluate(is_open)
    assert "−ln p" in browser.evaluate("$('meaning').textContent")
    box = browser.evaluate("$('meaning').getBoundingClientRect().toJSON()")
    at = browser.evaluate(f"{find}.getBoundingClientRect().toJSON()")
    beside = min(abs(box["top"] - at["bottom"]), abs(box["bottom"] - at["top"]))
    assert beside < 10
    press(browser, "Escape")
    assert not browser.evaluate(is_open)
    for _ in range(2):  # a click opens it, one more closes it
        browser.evaluate(f"{find}.click()")
    assert not browser.evaluate(is_open)
    meanings = browser.evaluate(f"{words}.map((e) => (e.click(), meaning.textContent))")
    assert all(len(text) > 20 for text in meanings)


def test_a_tour_leads_through_four_questions_until_one_key_ends_it_for_good(visit, gpt):
    browser = visit(gpt)
    browser.evaluate("localStorage.clear()")
    hidden, here = "$('tour').hidden", browser.evaluate("location.href.split('#')[0]")
    assert browser.evaluate(hidden)  # the link said so
    browser.open(here, "sides[0].ids.length")
    assert not browser.evaluate(hidden)
    size = {"width": 1280, "height": 800, "deviceScaleFactor": 1}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)
    titles = []
    for _ in range(4):
        browser.evaluate("$('tour-next').click()")
        titles.append(browser.evaluate("$('tour-title').textContent"))
        if len(titles) == 1:  # what it asks to drag is in view
            box = (
                "(({ top, bottom }) => [top, bottom])($('{}').getBoundingClientRect())"
            )
            places = [box.replace("{}", i) for i in ("tour", "temperature", "top-p")]
            rows = settled(browser, f"[{', '.join(places)}]")
            assert all(0 <= top and bottom <= 800 for top, bottom in rows), rows
    assert titles == [
        "1 of 4: Who decides?",
        "2 of 4: Where does it look?",
        "3 of 4: What does it need?",
        "4 of 4: What does it write without it?",
    ]
    guide = (ROOT / "notebooks/lectures/README.md").read_text(encoding="utf-8")
    asked = [f"{title.replace(' of 4: ', '. **')}**" for title in titles]
    places = [guide.index(f"\n{question} (") for question in asked]
    assert places == sorted(places)
    press(browser, "Escape")
    chromium.wait(lambda: browser.evaluate(hidden), "the end of the tour")
    size |= {"height": 900}
    browser.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)
    assert "tour=off" in browser.evaluate("location.hash")
    browser.open(here, "sides[0].ids.length")
    assert browser.evaluate(hidden)
    browser.evaluate("$('tour-again').click()")
    assert not browser.evaluate(hidden)
    browser.evaluate("localStorage.clear()")


def test_the_answers_of_the_tour_are_measured_on_the_text(visit, gpt):
    browser, said = visit(gpt, prompt=WINDOW, text=TEXT), {}
    for stop in range(4):
        browser.evaluate(f"$('tour-answer').open = false, showTour({stop})")
        browser.evaluate("$('tour-answer').open = true")
        says = "$('tour-answer').lastElementChild.textContent"
        done = f"/[.]$/.test({says}) && {says}"
        chromium.wait(partial(browser.evaluate, done), f"answer {stop + 1}")
        said[stop] = browser.evaluate(says)
    high = browser.evaluate("$('asked').offsetHeight")
    costs = dict(re.findall(r"((?:head|feed-forward) [\d.]+): (\d\.\d\d)", said[2]))
    assert len(costs) == gpt.config.n_layer * (gpt.config.n_head + 1)
    for part in ("head 1.2", "feed-forward 1"):
        browser.evaluate(f"switchParts(({{ off }}) => off.add('{part}'))")
        chromium.wait(lambda: browser.evaluate(QUIET), part)
        now = browser.evaluate("active.reading.mean(0, active.ids.length)")
        assert float(costs[part]) == pytest.approx(now, abs=0.006)
        assert browser.evaluate("$('asked').offsetHeight") == high  # nothing is pushed
        browser.evaluate("switchParts(({ off }) => off.clear())")
        chromium.wait(lambda: browser.evaluate(QUIET), part)
    dearest = max(costs, key=lambda part: float(costs[part]))
    assert f"It needs {dearest} most" in said[2]
    head = max((c for c in costs if "head" in c), key=lambda part: float(costs[part]))
    assert f"Of the heads, the text needs {head} most" in said[3]
    assert f"the surprise is {costs[head]} nats" in said[3]
    weights = capture(gpt, torch.tensor([TOKENIZER.encode(WINDOW)])).weights[0][0, 1]
    shares = [weights.diagonal(-n).sum().item() / len(WINDOW) for n in range(8)]
    here = browser.evaluate("habits(active).get('head 1.2')")
    assert here[:8] == pytest.approx(shares, abs=1e-3)
    told = re.search(r"head 1.2 looks mostly at .*? \(([\d.]+) of", said[1])
    assert (told is None) == (max(shares) < 0.25)
    if told:
        assert float(told[1]) == pytest.approx(max(shares), abs=0.006)
    assert said[0].startswith("Temperature 0, and top-k 1")


def test_what_a_text_costs_the_whole_model_is_read_at_once(visit, gpt):
    browser = visit(gpt)
    browser.evaluate("switchParts(({ off }) => off.add('head 1.1'))")
    browser.evaluate(
        "globalThis.saids = new Set(); new MutationObserver(() => "
        "saids.add($('cut').textContent)).observe($('cut'), { childList: true })"
    )
    after(browser, "rewrite", len(PROMPT) + 200, count=200)
    ends = "!/without …|Reading/.test($('cut').textContent)"
    chromium.wait(lambda: browser.evaluate(ends), "what it costs")
    said = browser.evaluate("[...saids]")
    assert any("It writes without …" in one for one in said)
    # Nothing is drawn while it reads the text as the whole model does.
    drawn = browser.evaluate(
        "(async () => { let drawn = 0; const was = show; show = (side) => { drawn++; "
        "was(side); }; active.intact = new Reading(active, active.whole); "
        "await account(active); show = was; return drawn; })()"
    )
    assert drawn == 1


def test_the_line_at_the_top_shows_what_the_model_sees(visit, gpt):
    browser = visit(gpt)
    inked = """(() => { const { width, height } = $("glance");
      const { data } = $("glance").getContext("2d").getImageData(0, 0, width, height);
      return data.reduce((sum, v, i) => sum + (i % 4 === 3 && v > 0), 0); })()"""
    assert browser.evaluate(inked) > 500
    label = browser.evaluate("$('glance').getAttribute('aria-label')")
    assert f"From “{PROMPT[-1]}” arcs lead" in label
    # A text begins on the left and moves on to the right, whatever of it is in view.
    ends = browser.evaluate("[1, 5, 8, 9, 200].map((n) => tape(active, n).right)")
    assert ends == sorted(ends) and ends[0] < 40 < ends[1]
    browser.evaluate("choose(active, 0)")  # nothing comes before it
    assert browser.evaluate(inked) == 0


def test_on_a_telephone_the_answer_stands_beside_what_was_tapped(telephone, visit, gpt):
    browser = visit(gpt)
    browser.evaluate(f"views[0].list.spans[{PLACE}].click()")
    there = "!$('card').hidden"
    chromium.wait(lambda: browser.evaluate(there), "the card")
    card = browser.evaluate("$('card').getBoundingClientRect().toJSON()")
    span = f"views[0].list.spans[{PLACE}].getBoundingClientRect().toJSON()"
    span = browser.evaluate(span)
    assert 0 <= card["top"] - span["bottom"] < 20
    assert 0 <= card["left"] < span["left"] and card["right"] <= 390
    with torch.no_grad():
        row = gpt(torch.tensor([TOKENIZER.encode(PROMPT[:PLACE])]))[0][0, -1]
    # With the knobs, as in the line at the top.
    p = probabilities(row[None], 0.8)[0][TOKENIZER.encode(PROMPT[PLACE])].item()
    came = "document.querySelector('#card .came span').textContent"
    assert read(browser.evaluate(came)) == pytest.approx(p, abs=2e-3)
    browser.evaluate("$('card-after').click()")
    chromium.wait(
        lambda: browser.evaluate(f"active.chosen === {PLACE + 1}"), "the next"
    )
    press(browser, "Escape")
    assert not browser.evaluate(there)


def test_the_card_goes_when_the_text_that_it_speaks_of_goes(telephone, visit, gpt):
    browser = visit(gpt)
    turn(browser, "count", 5)
    begin = "document.querySelector('#examples button').click()"
    changes = [f"$('{name}').click()" for name in ("again", "another", "rewrite", "go")]
    for change in [*changes, begin, "$('edit').click()"]:
        browser.evaluate(f"views[0].list.spans[{PLACE}].click()")
        chromium.wait(lambda: browser.evaluate("!$('card').hidden"), "the card")
        browser.evaluate(change)
        chromium.wait(lambda: browser.evaluate(QUIET), change)
        assert browser.evaluate("$('card').hidden"), change


def test_what_is_touched_is_as_large_as_a_finger(telephone, visit, gpt):
    browser = visit({"": {0: small_gpt().eval(), "end": gpt}}, address={"text": PROMPT})
    browser.evaluate("document.querySelector('.writing details').open = true")
    browser.evaluate("showTour(3); switchParts(({ off }) => off.add('head 1.1'))")
    small = browser.evaluate(
        "[...document.querySelectorAll('button, select, summary, input, .switch, .tick,"
        " #sheet tbody tr')].filter((e) => e.offsetParent && !e.matches('.word')"
        " && !e.closest('.square') && !(e.type === 'checkbox'))"
        ".filter((e) => e.getBoundingClientRect().height < 44).map((e) => e.outerHTML)"
    )
    assert small == []
    word = "getComputedStyle(document.querySelector('.word'), '::after').height"
    assert float(browser.evaluate(word).removesuffix("px")) >= 40
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def test_while_it_writes_the_text_marks_what_the_right_side_describes(visit, gpt):
    browser = visit(gpt)
    turn(browser, "count", 5000)
    turn(browser, "pace", "25")
    browser.evaluate(
        "globalThis.paints = paintGlance; paintGlance = (side, position, looked) => {"
        "globalThis.drawnAt = position; paints(side, position, looked); }"
    )
    browser.evaluate("$('again').click()")
    see = (
        "({ top: drawnAt, writing: active.writing, "
        "said: $('position').textContent, marked: "
        "views[0].list.spans.indexOf(views[0].list.selected), n: active.ids.length })"
    )
    described = set()

    def five_are_described():
        at = browser.evaluate(see)
        if at["writing"] and "It is writing" in at["said"]:
            place = int(re.search(r"character (\d+)", at["said"])[1]) - 1
            assert at["top"] == place  # and so does the line at the top
            to_come = place == at["n"]
            assert at["marked"] == (-1 if to_come else place)
            described.add(place)
        return len(described) == 5

    chromium.wait(five_are_described, "five characters")
    press(browser, "Escape")


def test_what_is_read_again_is_not_shown_as_what_is_written(visit, gpt):
    browser = visit(gpt)
    shown = """((start, rows) => {
      let drawn = 0;
      const [reading, paint, bars] = [active.reading, paintGlance, showBars];
      paintGlance = showBars = () => drawn++;
      active.reading = { reader: { start, rows: reading.reader.rows.slice(0, rows) } };
      showLast(active);
      [active.reading, paintGlance, showBars] = [reading, paint, bars];
      return drawn; })"""
    count = browser.evaluate("active.ids.length")
    assert count > 6
    assert browser.evaluate(f"{shown}(2, 2)") == 0  # the older half has just gone
    assert browser.evaluate(f"{shown}(2, {count - 3})") == 2  # all is read again
    assert browser.evaluate(f"{shown}(0, 2)") == 2  # a text is read for the first time


def test_zero_has_no_sign_and_no_colour(visit, gpt):
    browser = visit(gpt)
    assert browser.evaluate("[-0.004, 0.004, -0.006].map((v) => signed(v))") == [
        *("0.00", "0.00", "−0.01")
    ]
    browser.evaluate(
        "drawing.update({ shares: new Map([...drawing.tiles.keys()].map((name) => "
        "[name, name === 'head 1.1' ? -0.004 : -2])), off: new Set(), "
        "guesses: drawing.stations.slice(1).map(() => []), "
        "watched, from: '', to: '', logit: 0, probability: 0 })"
    )
    tile = "drawing.tiles.get('{}').tile.matches('.against')"
    assert not browser.evaluate(tile.format("head 1.1"))
    assert browser.evaluate(tile.format("head 1.2"))


def test_no_choice_is_cut(visit, gpt):
    browser = visit(gpt)
    browser.evaluate("document.querySelector('.writing details').open = true")
    needs = (
        "(() => { const e = $('pace'), free = e.cloneNode(true); e.after(free);"
        "free.style.cssText = 'width: max-content; display: inline-block';"
        "const width = free.offsetWidth; free.remove(); return width; })()"
    )
    assert browser.evaluate("$('pace').offsetWidth") >= browser.evaluate(needs)


# --- the film ---


def test_a_training_plays_like_a_film(visit, gpt):
    middle = copy.deepcopy(gpt)
    for p in middle.parameters():
        p.data *= 0.7
    stages = {0: small_gpt().eval(), 10: middle, "end": gpt}
    browser = visit({"": stages}, text=TEXT, stories=[STORY])
    after(browser, "again", len(PROMPT) + 20, count=20)
    browser.evaluate("document.querySelector('.reel button').click()")
    now = (
        "[sides[0].stage, views[0].film.told.textContent, sides[0].writing, "
        "[...document.querySelectorAll('.stage-dot')].findIndex((e) => "
        "e.matches('.now')), textOf(sides[0].ids), $('drawing').querySelector("
        "'label.square canvas').toDataURL()]"
    )
    frames = {}

    def at_its_end():
        stage, told, writing, dot, written, map = browser.evaluate(now)
        assert dot == stage
        if not writing and len(written) == len(PROMPT) + 20:
            frames[stage] = told, written, map
        return browser.evaluate("sides[0].stage === 2 && !views[0].film.playing")

    chromium.wait(at_its_end, "the film")
    assert list(frames) == [0, 1, 2]
    for part in zip(*frames.values(), strict=True):  # all move: losses, text and heads
        assert len(set(part)) == 3
    told = [told for told, *_ in frames.values()]
    assert told[0].startswith("Training: after 0 steps, loss ")
    losses = [float(line.split("loss ")[1]) for line in told]
    with torch.no_grad():
        windows = TEXT.val.unfold(0, 9, 1)
        loss = gpt(windows[:, :-1], windows[:, 1:])[1].item()
    assert losses[0] > losses[2] == pytest.approx(loss, abs=0.05)
    label = browser.evaluate("document.querySelector('.curve').ariaLabel")
    assert "in 20 steps" in label and browser.errors == []


def test_a_film_stops_where_one_wants_it(visit, gpt):
    browser = visit({"": {0: small_gpt().eval(), 10: gpt, "end": gpt}})
    play = "document.querySelector('.reel button').click()"
    browser.evaluate(play)
    chromium.wait(lambda: browser.evaluate("views[0].film.playing"), "the film")
    browser.evaluate(play)
    stage = browser.evaluate("sides[0].stage")
    assert not browser.evaluate("views[0].film.playing")
    assert browser.evaluate("wait(FRAME + 300).then(() => sides[0].stage)") == stage


# --- what a page tells of its author ---


def test_a_page_tells_no_folder_of_its_author(tmp_path, gpt):
    from minigpt.tools.page import names_of

    one, two = tmp_path / "a" / "model.pt", tmp_path / "b" / "model.pt"
    assert names_of([str(one)], None) == [""]
    assert names_of(["here/a.pt", "b.pt"], None) == ["a.pt", "b.pt"]
    assert names_of([str(one), str(two)], ["mine", "yours"]) == ["mine", "yours"]
    for paths, names, wanted in (
        ([str(one), str(two)], None, "Both are called model.pt: give --name"),
        (["a.pt", "./a.pt"], None, "is given twice: give two different"),
        (["a.pt", "b.pt"], ["mine"], "2 checkpoints and 1 names"),
    ):
        with pytest.raises(ValueError, match=wanted):
            names_of(paths, names)
    html = page({"mine": {"end": gpt}}, TOKENIZER, stories=[STORY])
    known = json.loads(re.search(r'id="content">(.*?)</script>', html)[1])
    assert [model["name"] for model in known["models"]] == ["mine"]
    assert isinstance(gpt, GPT) and str(tmp_path) not in html


def test_a_model_that_comes_with_the_course_becomes_a_page_or_says_why_not():
    from minigpt.stored import FOLDER
    from minigpt.tools.page import with_story

    _, _, story, _ = with_story(FOLDER / "gpt.pt")
    assert story.steps == 2400 and story.seconds > 0
    with pytest.raises(ValueError, match="Bigram.* cannot become a page"):
        with_story(FOLDER / "bigram.pt")
