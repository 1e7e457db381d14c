"""Vectors as strips: the colours of their cells, how they come to their places, and how
few rows and terms are seen at first."""

import chromium
import pytest
import torch
from beside_torch import IDS, read, seen_by_torch, shown
from pages import PLACE, TEXT, WINDOW, call, press

ROW = PLACE - 1  # the character that is looked at

# What is seen of the sheet: {column: numbers} of the rows that are not hidden.
VISIBLE = """(() => {
  const rows = watching.trs.filter((tr) => tr.checkVisibility());
  const columns = watching.sheet.columns.filter((c) => c.values);
  const names = columns.map((c) => c.head.join(""));
  return [names, rows.map((tr) => [...tr.querySelectorAll("td:not(.strip)")]
    .map((td) => td.textContent))]; })()"""


def test_the_cells_of_a_strip_have_the_colours_of_the_numbers_of_torch(visit, gpt):
    browser = visit(gpt, prompt=WINDOW, weights="float32")
    shown(browser, "add 1")
    pixels, colours = call(
        browser,
        """return [watching.boxes.map((box) => {
          const canvas = box.firstChild, { width } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, 1);
          return Array.from({ length: width }, (_, x) =>
            [...data.slice(4 * x, 4 * x + 3)]);
        }), ["paper", "for", "against"].map((name) => colours()[name])];""",
    )
    block, seen = gpt.body[0], seen_by_torch(gpt, IDS)
    (between, *_), _ = seen[block.norm2]
    wrote = seen[block.feed_forward][1]
    vectors = [x[0, ROW] for x in (between, wrote, between + wrote)]
    most = torch.stack(vectors).abs().max()
    paper, above, below = torch.tensor(colours, dtype=torch.float32)
    for cells, vector in zip(pixels, vectors, strict=True):
        depth = (vector.abs() / most).sqrt()[:, None]
        full = torch.where(vector[:, None] < 0, below, above)
        right = paper + depth * (full - paper)
        assert (torch.tensor(cells) - right).abs().max() < 3


def test_a_small_weight_is_pale_and_so_is_what_it_makes_of_a_value(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    shown(browser, "head 1.1")
    weights = browser.evaluate("watching.sheet.columns.find((c) => c.bar).values")
    most = browser.evaluate("watching.sheet.products(0, 5).scale")
    paper, full = browser.evaluate("[colours().paper, colours().for]")
    pixel = "getContext('2d').getImageData(0, 0, 1, 1).data.slice(0, 3)"
    strip = "$('products').querySelector('.right canvas')"
    for row, weight in enumerate(weights):
        browser.evaluate(f"watching.step(5); watching.select({row})")
        depth = (abs(weight) / most) ** 0.5
        right = [p + depth * (f - p) for p, f in zip(paper, full, strict=True)]
        assert browser.evaluate(f"Array.from({strip}.{pixel})") == pytest.approx(
            right, abs=3
        )
        bar = f"watching.trs[{row}].querySelector('.barred').style"
        share = float(browser.evaluate(f"{bar}.getPropertyValue('--share')"))
        assert share == pytest.approx(weight)  # of one whole, in every sheet


def test_strips_come_to_their_places_and_stay_there(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    browser.evaluate(f"choose(active, {PLACE})")
    browser.evaluate("startWalk()")
    ghosts = "document.querySelectorAll('.ghost').length"
    coming = "document.querySelectorAll('.coming').length"
    browser.evaluate("goTo(8), 0")
    chromium.wait(lambda: browser.evaluate(ghosts) > 0, "a strip on its way")
    assert browser.evaluate(coming) > 0  # what is not there yet is not seen
    chromium.wait(lambda: browser.evaluate(f"!({coming}) && !({ghosts})"), "all")
    press(browser, "ArrowRight")  # whoever goes on leaves nothing behind
    press(browser, "Escape")
    chromium.wait(lambda: browser.evaluate(f"!walking && !({coming})"), "the end")
    assert browser.evaluate(ghosts) == 0 and browser.errors == []


def test_who_wants_no_motion_sees_all_strips_at_once(visit, browser, gpt):
    still = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.call("Emulation.setEmulatedMedia", features=still)
    visit(gpt, prompt=WINDOW)
    browser.evaluate("startWalk()")
    browser.evaluate("goTo(8)")
    there = "document.querySelectorAll('.ghost, .coming').length"
    assert browser.evaluate(there) == 0
    browser.call("Emulation.setEmulatedMedia", features=[])


@pytest.mark.parametrize("part", ["head 2.1", "logits", "add 1", "feed-forward 1"])
def test_few_rows_are_seen_at_first_and_all_at_a_click(visit, gpt, part):
    browser = visit(gpt, prompt=WINDOW)
    shown(browser, part)
    few = browser.evaluate(VISIBLE)[1]
    assert len(few) <= 7
    browser.evaluate("$('all-rows').click()")
    many = browser.evaluate(VISIBLE)[1]
    hidden = "watching.trs.filter((tr) => tr.matches('.spare')).length"
    assert len(many) > len(few) and browser.evaluate(hidden) <= 1  # the others' sum
    browser.evaluate("$('all-rows').click()")
    assert browser.evaluate(VISIBLE)[1] == few


def test_the_bend_shows_what_becomes_zero_and_the_rows_make_the_sum(visit, gpt):
    browser = visit(gpt, prompt=WINDOW, text=TEXT)
    for block in ("1", "2"):
        shown(browser, f"feed-forward {block}")
        for _ in range(2):  # of few rows, and of all
            names, rows = browser.evaluate(VISIBLE)
            before, after, adds = (
                [read(row[names.index(name)]) for row in rows]
                for name in (names[0], "bent", names[-1])
            )
            assert any(b < 0 and a == 0 for b, a in zip(before, after, strict=True))
            foot = "$('sheet').tFoot.rows[0].lastElementChild.firstChild.textContent"
            total = read(browser.evaluate(foot))
            assert sum(adds) == pytest.approx(total, abs=0.006 * len(rows))
            browser.evaluate("$('all-rows').click()")


def test_titles_and_columns_can_be_asked(visit, gpt):
    browser = visit(gpt, prompt=WINDOW)
    words = "[...document.querySelectorAll('#watch-title .word, #sheet .word')]"
    asked = set()
    for part in ("norm 1", "query 1.1", "head 1.1", "feed-forward 1", "logits"):
        shown(browser, part)
        asked |= set(browser.evaluate(f"{words}.map((e) => e.textContent)"))
        told = f"{words}.map((e) => (e.click(), meaning.textContent.length))"
        assert min(browser.evaluate(told)) > 20
    wanted = "LayerNorm normed query key value head masked e^ weight feed-forward bent"
    assert set(wanted.split()) <= asked and {"q · k", "w · x", "logit"} <= asked
