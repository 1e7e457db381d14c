"""The model as a page: its JavaScript beside the Python, and the page in a browser."""

import json
import random
import re
import shutil
from functools import partial
from pathlib import Path

import chromium
import pytest
import torch
from pages import (
    PROMPT,
    QUIET,
    SIZES,
    TEXT,
    after,
    call,
    enter,
    press,
    rounded,
    text,
    turn,
    with_side,
)
from small import CORPUS, DATA, TOKENIZER, TRAIN_SMALL, plan, small_gpt
from strange_texts import drawn, tokenizer_of
from torch.testing import assert_close

from minigpt.checkpoint import Checkpoint, save_checkpoint
from minigpt.data import CharTokenizer
from minigpt.fast.reader import Reader
from minigpt.fast.writing import generate
from minigpt.generation import generate as lesson_06
from minigpt.generation import probabilities
from minigpt.inside.looking import capture, changed, logit_shares
from minigpt.modern.model import ModernConfig
from minigpt.tokens.byte_pairs import learn
from minigpt.tokens.judging import judge
from minigpt.tools.command_line import main
from minigpt.tools.page import Story, learned_text, page
from minigpt.tools.page.packing import WEIGHTS, means
from minigpt.tools.saving import load_any, load_snapshots
from minigpt.training import Run

CHOICES = [  # temperature, top_k, top_p
    (0.8, None, None),
    (1.5, None, 0.6),
    (0.7, 5, 0.9),
]


# --- what is computed ---


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_page_computes_the_logits_of_pytorch(visit, models, weights):
    ids = TOKENIZER.encode("fox jump")
    for name, model in models.items():
        with torch.no_grad():
            right = rounded(model, weights)(torch.tensor([ids]))[0][0]
        got = call(
            visit(model, weights=weights),
            with_side(ids, "return side.reading.after.map((a) => array(a.logits));"),
        )
        close = 1e-3 if weights == "int16" else 1e-4
        assert_close(torch.tensor(got), right, atol=close, rtol=0, msg=name)


def test_what_is_seen_on_the_way_is_that_of_the_lessons(visit, models):
    ids = TOKENIZER.encode("quick br")
    look = (
        "const { model, reader: { rows } } = side.reading, seen = rows.at(-1);"
        "return { maps: rows.map(({ layers }) =>"
        "   layers.map(({ heads }) => heads.map(({ weights }) => array(weights)))),"
        " logits: array(seen.logits), streams: seen.streams.map(array),"
        " shares: array(seen.logits).map((_, id) =>"
        "   Object.fromEntries(model.shares(seen, id))) };"
    )
    for name, model in models.items():
        got = call(visit(model, weights="float32"), with_side(ids, look))
        logits = torch.tensor([sum(shares.values()) for shares in got["shares"]])
        if cap := getattr(model.config, "softcap", None):
            logits = cap * torch.tanh(logits / cap)
        assert_close(logits, torch.tensor(got["logits"]), atol=1e-4, rtol=0, msg=name)
    model = models["GPT"]  # which alone lesson 11 looks into
    got = call(visit(model, weights="float32"), with_side(ids, look))
    flow = capture(model, torch.tensor([ids]))
    for layer, right in enumerate(flow.weights):  # (1, n_head, T, T)
        for t, row in enumerate(got["maps"]):
            here = right[0, :, t, : t + 1]
            assert_close(torch.tensor(row[layer]).float(), here, atol=1e-5, rtol=0)
    for stream, right in zip(got["streams"], flow.stream, strict=True):
        assert_close(torch.tensor(stream), right[0, -1], atol=1e-4, rtol=0)
    for part, right in logit_shares(model, flow).items():
        row = torch.tensor([shares[part] for shares in got["shares"]])
        assert_close(row, right[0, -1], atol=1e-4, rtol=0, msg=part)


def test_switched_off_parts_cost_what_the_lessons_cut_costs(visit, models):
    prompt = "quick br"
    ids = torch.tensor([TOKENIZER.encode(prompt)])
    for name, model in models.items():
        browser, said = visit(model, prompt=prompt, text=TEXT), means(model, DATA)
        for layer, block in enumerate(list(model.body)[:-1], 1):
            heads = said[f"body.{layer - 1}.attention.mean"]
            parts = dict(enumerate(heads.split(block.attention.head_size), 1))
            parts["feed-forward"] = said[f"body.{layer - 1}.feed_forward.mean"]
            for part, mean in parts.items():
                off = f"{part} {layer}" if part == "feed-forward" else None
                off = off or f"head {layer}.{part}"
                for value in (mean, 0.0):
                    with changed(model, layer, part, value), torch.no_grad():
                        right = model(ids[:, :-1], ids[:, 1:])[1].item()
                    got = call(
                        browser,
                        f"const side = sides[0]; side.off = new Set(['{off}']);"
                        f"side.zero = {int(value is not mean)}; side.forget();"
                        "Array.from(side.read()); return side.reading.mean(0);",
                    )
                    assert got == pytest.approx(right, abs=1e-3), (name, off, value)


# --- what is written ---


def mulberry32(seed):
    """The page's random numbers, written a second time."""
    while True:
        seed = (seed + 0x6D2B79F5) % 2**32
        t = (seed ^ seed >> 15) * (seed | 1) % 2**32
        t ^= (t + (t ^ t >> 7) * (t | 61)) % 2**32
        yield (t ^ t >> 14) / 2**32


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_page_writes_what_python_would_draw_from_the_same_numbers(
    visit, models, choice
):
    temperature, top_k, top_p = choice
    knobs = {"temperature": temperature, "topK": top_k, "topP": top_p}
    for name in ("GPT", "grouped"):
        model, ids = models[name], TOKENIZER.encode(PROMPT)
        got = call(
            visit(model, weights="float32"),
            with_side(
                ids,
                f"array(side.write(40, () => ({json.dumps(knobs)}))); return side.ids;",
            ),
        )
        numbers, reader = mulberry32(7), Reader(model)
        for position in range(len(ids), len(got)):  # past the context five times
            row = reader(torch.tensor([got[:position]]))[:, -1]
            pile = probabilities(row, temperature, top_k, top_p)[0].double().cumsum(0)
            drawn = int((pile <= next(numbers)).sum())
            assert got[position] == drawn, (name, position)


@pytest.mark.parametrize("length", [1, 8, 30])
def test_without_chance_it_writes_what_generate_writes(visit, gpt, length):
    browser = visit(gpt, weights="float32", prompt=CORPUS[:length])
    # A long text is read in halves of windows, but its last character, from which is
    # drawn, as `generate` begins: with a whole context.
    starts = browser.evaluate("active.reading.after.map((seen) => seen.start)")
    halves = [max(0, -(-(t - 8) // 4) * 4) for t in range(1, length)]
    assert starts == [*halves, max(0, length - gpt.block_size)]
    after(browser, "go", length + 30, temperature=0, count=30)
    idx = torch.tensor([TOKENIZER.encode(CORPUS[:length])])
    right = generate(gpt, idx, 30, temperature=0)[0].tolist()
    assert browser.evaluate("active.ids") == right
    assert starts == browser.evaluate(
        f"active.reading.after.map((a) => a.start).slice(0, {length})"
    )


def test_a_seed_gives_the_same_text_at_once_and_one_by_one(visit, gpt):
    browser, length = visit(gpt), len(PROMPT) + 20
    first = after(browser, "again", length, count=20)
    assert after(browser, "again", length) == first
    assert after(browser, "another", length) != first
    turn(browser, "seed", 1337)
    browser.evaluate("begin(active.ids.slice(0, active.given))")
    for n in range(1, 21):
        one_by_one = after(browser, "one", len(PROMPT) + n)
    assert one_by_one == first


# --- the page in the browser ---


def test_the_page_writes_by_itself_and_asks_for_nothing(visit, gpt):
    browser = visit(gpt, address={})
    assert after(browser, None, len(PROMPT) + 300).startswith(PROMPT)
    assert [r for r in browser.requests if not r.startswith("data:")] == [
        browser.evaluate("location.href.split('#')[0]")
    ]
    assert browser.errors == []
    # And it could not: its policy refuses.
    ask = "fetch('data:,x').then(() => 'came', () => 'refused')"
    assert browser.evaluate(ask) == "refused"
    box = browser.evaluate("views[0].text.getBoundingClientRect().toJSON()")
    assert box["bottom"] < 720  # all of it on the first screen
    size = {"width": 320, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_keyboard_is_enough(visit, gpt):
    browser = visit(gpt)
    turn(browser, "count", 40)
    browser.evaluate("document.activeElement.blur()")
    focused, order = "document.activeElement.id || document.activeElement.role", []
    while "link" not in order and len(order) < 30:
        press(browser, "Tab")
        order.append(browser.evaluate(focused))
        if order[-1] == "edit":
            browser.evaluate("document.querySelector('.writing details').open = true")
    wanted = ["tour-again", "option", "go", "one", "again", "another", "edit"]
    assert [name for name in order if name in wanted][:7] == wanted
    press(browser, "Enter", modifiers=2)  # Ctrl: the link is not copied, but written
    after(browser, None, len(PROMPT) + 40)
    browser.evaluate("views[0].list.selected.focus()")
    browser.evaluate("views[0].text.style.width = '15ch'")
    for key in ("ArrowLeft", "ArrowUp", "ArrowDown", "Home"):
        before = browser.evaluate("active.chosen")
        press(browser, key)
        assert browser.evaluate("document.activeElement.ariaSelected") == "true"
        now = browser.evaluate("active.chosen")
        assert key != "ArrowUp" or now < before - 4  # a line, and not a character
    assert now == 0
    said = "$('spoken').textContent"  # what a screen reader is told
    chromium.wait(lambda: "Nothing comes before" in browser.evaluate(said), "a word")
    press(browser, "Enter")
    assert browser.evaluate("document.activeElement.id") == "prompt"
    browser.call("Input.insertText", text="the fox")
    assert browser.evaluate("$('prompt').value") == "the fox"  # in place of all
    press(browser, "Escape")
    assert browser.evaluate("$('prompt').hidden")


def test_writing_can_be_stopped_and_gone_on_with(visit, gpt):
    browser = visit(gpt)
    turn(browser, "count", 5000)
    turn(browser, "pace", "25")
    browser.evaluate("$('again').click()")
    chromium.wait(lambda: browser.evaluate("active.ids.length > 12"), "some text")
    assert browser.evaluate("$('go').textContent") == "Stop"
    browser.evaluate("$('one').click()")  # which does nothing now
    assert browser.evaluate("active.writing")
    press(browser, "Escape")
    assert browser.evaluate("!active.writing && $('go').textContent") == "Go on"
    stopped = text(browser)
    n = len(stopped) + 30
    whole = after(browser, "go", n, count=30, pace="Infinity")
    assert after(browser, "again", n, count=n - len(PROMPT)) == whole  # anew, the same
    assert whole.startswith(stopped)


def bars(browser):
    """[[character, with the knobs, its bar, of the model], ...] as they stand there."""
    return browser.evaluate(
        "[...$('bars').tBodies[0].rows]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )


def test_the_knobs_move_the_bars_and_no_history(visit, gpt):
    browser = visit(gpt)
    after(browser, "one", len(PROMPT) + 1, temperature=0.5)
    browser.evaluate(f"choose(active, {len(PROMPT)})")
    told = "$('position').textContent.match(/It was drawn .*/)[0]"
    before, row = (
        browser.evaluate(told),
        torch.tensor([TOKENIZER.encode(PROMPT)])[:, -8:],
    )
    assert before.endswith("at temperature 0.5.")
    for knobs in ({"temperature": 2}, {"top-k": 3}, {"temperature": 1, "top-p": 0.5}):
        for field, value in knobs.items():
            turn(browser, field, value)
        t, k, p = browser.evaluate("Object.values(knobs())")
        with torch.no_grad():
            right = probabilities(gpt(row)[0][:, -1], t, k, p)[0]
        shown = bars(browser)
        for name, share, *_ in shown[:-1]:
            share, id = float(share), TOKENIZER.encode(name[0].replace("␣", " "))[0]
            assert share == pytest.approx(right[id].item(), abs=2e-3)
        assert sum(float(line[1]) for line in shown) == pytest.approx(1, abs=0.01)
        assert browser.evaluate(told) == before
    browser.evaluate("choose(active, 2)")
    said = browser.evaluate("$('position').textContent")
    assert said.endswith("nats.")  # and no more: the reader typed it


def test_a_part_is_switched_off_and_the_text_pays(visit, gpt):
    browser = visit(gpt, text=TEXT)
    before = bars(browser)
    browser.evaluate("document.querySelectorAll('#drawing [type=checkbox]')[2].click()")
    chromium.wait(
        lambda: "surprised" in browser.evaluate(f"({QUIET}) && $('cut').textContent"),
        "the surprise",
    )
    said = browser.evaluate("$('cut').textContent")
    assert said.startswith("Off: feed-forward 1. It is now surprised by ")
    now, whole = map(float, re.findall(r"(?<=by )\d+\.\d+", said))
    assert now == pytest.approx(browser.evaluate("active.reading.mean(0)"), abs=0.006)
    assert whole == pytest.approx(browser.evaluate("active.intact.mean(0)"), abs=0.006)
    assert bars(browser) != before
    browser.evaluate("$('whole').click()")
    chromium.wait(lambda: bars(browser) == before, "the whole model")


def test_what_a_cut_model_wrote_is_easy_for_itself(visit, gpt):
    browser = visit(gpt, text=TEXT)
    browser.evaluate("switchParts(({ off }) => off.add('feed-forward 1'))")
    after(browser, "rewrite", len(PROMPT) + 60, count=60)
    done = "!/again …$/.test($('cut').textContent)"
    chromium.wait(lambda: browser.evaluate(done), "both surprises")
    said = browser.evaluate("$('cut').textContent")
    own, whole = map(float, re.findall(r": (\d+\.\d+)", said))
    assert said == (
        "Off: feed-forward 1. It wrote this text itself, so it finds it easy: "
        f"{own:.2f} nats per character; the whole model is more surprised: {whole:.2f}."
    )
    given = "mean(active.given)"
    assert own == pytest.approx(browser.evaluate(f"active.reading.{given}"), abs=0.006)
    assert whole == pytest.approx(browser.evaluate(f"active.intact.{given}"), abs=0.006)
    browser.evaluate("switchParts(({ off }) => off.add('head 1.1'))")  # another now
    chromium.wait(
        lambda: "now surprised" in browser.evaluate("$('cut').textContent"), "another"
    )


def test_an_address_repeats_what_one_saw(visit, gpt):
    browser = visit(gpt, text=TEXT)
    seen = "[$('cut').textContent, $('position').textContent, $('temperature').value]"
    browser.evaluate("active.off.add('head 2.1') && switchParts(() => {})")
    whole = after(browser, "again", len(PROMPT) + 25, temperature=1.2, count=25)
    browser.evaluate("choose(active, 14)")
    before = browser.evaluate(seen)
    address = browser.evaluate("location.href")
    browser.open(address, QUIET)
    chromium.wait(lambda: browser.evaluate(seen) == before, "the same page")
    assert text(browser) == whole and browser.evaluate("active.given") == len(PROMPT)
    # And now what is added was not written as the rest.
    whole = after(browser, "go", len(PROMPT) + 50, temperature=0.4, count=25)
    browser.open(browser.evaluate("location.href"), QUIET)
    assert text(browser) == whole


def test_two_models_stand_side_by_side_and_one_shows_its_training(visit, models):
    early, late = small_gpt().eval(), models["GPT"]
    both = {"a": {0: early, "end": late}, "b": {"end": models["grouped"]}}
    browser = visit(both, weights="float32")
    after(browser, "again", len(PROMPT) + 20, count=20)
    texts = browser.evaluate("sides.map((side) => textOf(side.ids))")
    assert texts[0] != texts[1] and {t[: len(PROMPT)] for t in texts} == {PROMPT}
    browser.evaluate("choose(sides[1], 12), choose(sides[0], 14)")
    browser.evaluate("train(sides[0], 1), train(sides[0], 1), 0")  # as one drags
    drag = "{ slider } = views[0].film; slider.value = 0;"  # before it is drawn again
    drag += "slider.dispatchEvent(new Event('input'));"
    call(browser, f"const {drag}")
    length = len(PROMPT) + 20
    other = lambda: after(browser, None, length) != texts[0]  # noqa: E731
    chromium.wait(other, "what the first step writes")
    assert "Training: after 0 steps" in browser.evaluate("views[0].box.textContent")
    ids = TOKENIZER.encode("quick br")
    assert browser.evaluate("active.chosen") == 14 and browser.errors == []
    got = "side.stage = 0; side.forget(); array(side.read());"
    got += "return array(side.reading.after.at(-1).logits);"
    with torch.no_grad():
        right = rounded(early, "int8")(torch.tensor([ids]))[0][0, -1]
    got = torch.tensor(call(browser, with_side(ids, got)))
    assert_close(got, right, atol=1e-4, rtol=0)


def test_a_look_that_takes_long_ends_when_the_text_is_read_anew(visit, gpt):
    browser = visit(gpt)
    after(browser, "go", len(PROMPT) + 30, count=30)
    browser.evaluate(
        """(async () => {
        const look = active.look; // as it is, but it takes long enough for a pause
        active.look = function* (position) {
          const work = look.call(this, position);
          let step = work.next();
          yield;
          for (const end = performance.now() + 2 * SLICE; performance.now() < end;);
          yield;
          while (!step.done) step = work.next();
          return step.value;
        };
        active.chosen = 3;
        const seen = showInside();
        active.forget();
        delete active.look;
        await seen;
        })()"""
    )
    assert browser.errors == []


def test_work_that_took_no_pause_is_not_taken_for_what_was_begun_behind_it(visit, gpt):
    begun = "Promise.all([sides[0].run([], () => {}), sides[0].run([], () => {})])"
    assert visit(gpt).evaluate(begun) == [False, True]


def test_unknown_characters_are_told_and_mended_with_a_click(visit, gpt):
    browser = visit(gpt)
    complaint = "$('complaint').textContent"
    enter(browser, "")
    assert "at least one" in browser.evaluate(complaint)
    enter(browser, "the\u00a0Ö and—7")
    assert "never seen \u00a0 Ö — 7." in browser.evaluate(complaint)
    # Nothing is shown of the text before, and nothing can be written.
    shown = "['glance', 'parts', 'drawing'].map((id) => $(id).checkVisibility("
    shown += "{ visibilityProperty: true }))"
    pressable = "$('go').getAttribute('aria-disabled') !== 'true'"
    assert browser.evaluate(shown) == [False] * 3 and not browser.evaluate(pressable)
    browser.evaluate("$('again').click()")
    assert text(browser) == PROMPT  # nothing is done before that is mended
    for mended in ("the Ö and—7", "the  and"):
        browser.evaluate("$('complaint').querySelector('button').click()")
        assert browser.evaluate("$('prompt').value") == mended
    enter(browser, CORPUS[:45] * 250)
    assert "11,250 characters; this page reads 10,000" in browser.evaluate(complaint)
    enter(browser, "dog")
    assert after(browser, "edit", 3) == "dog" and not browser.evaluate(complaint)
    assert browser.evaluate(shown) == [True] * 3 and browser.evaluate(pressable)
    assert "dog" in browser.evaluate("$('position').textContent")


def test_every_field_has_a_name_and_every_live_region_is_polite(visit, gpt):
    browser = visit(gpt)
    browser.evaluate("document.querySelector('.writing details').open = true")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    kinds = "button slider spinbutton combobox radio checkbox option".split()
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
    assert set(browser.evaluate(live)) == {"polite"}


def test_any_vocabulary_survives_the_way_into_the_page(visit):
    strange = "</script><!--&amp;{{page}}\\u003c\"'é😀\u2028\x00\t\n "
    tokenizer = CharTokenizer(strange)
    model = ModernConfig(tokenizer.vocab_size, **SIZES).build()
    browser = visit(model, tokenizer, prompt="</script>")
    assert browser.evaluate("texts.join('')") == tokenizer.chars
    assert browser.evaluate("textOf(active.ids)") == "</script>"
    assert browser.errors == []


# --- tokens ---


def of_tokens(tokenizer):
    """A model that reads the tokens of a tokenizer, with weights of its own."""
    torch.manual_seed(1)
    return ModernConfig(tokenizer.vocab_size, **SIZES, zero_init=False).build()


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "whole"])
def test_a_text_has_the_tokens_of_python_and_tokens_have_its_text(visit, cut):
    tokenizer, rng = tokenizer_of(cut), random.Random(3)
    browser = visit(of_tokens(tokenizer), tokenizer)
    texts = ["", *(drawn(rng) for _ in range(200))]
    got = call(browser, f"return {json.dumps(texts)}.map(idsOf)")
    assert got == [tokenizer.encode(text) for text in texts]
    rows = [rng.choices(range(tokenizer.vocab_size), k=9) for _ in range(200)]
    got = call(browser, f"return {json.dumps(rows)}.map(textOf)")
    assert got == [tokenizer.decode(row) for row in rows]
    lengths = call(browser, f"return {json.dumps(texts)}.map(idsOf).map(charactersIn)")
    assert lengths == [len(text) for text in texts]
    assert browser.evaluate("knobs().topK") is None  # of 330 tokens, too


def test_the_surprise_of_tokens_is_told_per_character(visit):
    tokenizer = learn(CORPUS, 60)
    model, prompt = of_tokens(tokenizer), "the lazy dog; the quick"
    browser = visit(model, tokenizer, prompt, weights="float32")
    loss = judge(model, tokenizer, prompt)
    shown = browser.evaluate("document.querySelector('.means').textContent")
    assert f"per character: {loss.per_character:.2f} given" in shown
    said = browser.evaluate("views[0].list.spans.map((e) => e.dataset.nats)")
    n, length = len(tokenizer.encode(prompt)), len(prompt)
    assert len(said) == n < length
    after(browser, "go", n + 30, temperature=0, count=30)
    idx = torch.tensor([tokenizer.encode(prompt)])
    right = generate(model, idx, 30, temperature=0)[0].tolist()
    assert browser.evaluate("active.ids") == right
    assert browser.evaluate("textOf(active.ids)") == tokenizer.decode(right)
    assert "One token" in browser.evaluate("$('one').textContent")


# --- the command ---


@pytest.fixture
def checkpoint(gpt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run(gpt, plan())
    save_checkpoint("model.pt", Checkpoint(gpt, TOKENIZER, plan(), run))
    return tmp_path


def refused(capsys, *options):
    """The one line of an error."""
    assert main(["page", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


def test_the_command_writes_the_page_of_a_checkpoint(checkpoint, capsys, gpt):
    Path("other.txt").write_text("Ö", encoding="utf-8")
    known = load_any("model.pt").run
    stories = [Story(known.step, known.seconds, known.history)]
    assert main(["page", "--weights", "int8", "--prompt", "dog"]) == 0
    html = Path("page.html").read_text(encoding="utf-8")
    assert html == page({"": {"end": gpt}}, TOKENIZER, "int8", "dog", stories=stories)
    assert main(["page"]) == 0  # a page makes room for a newer one
    html = Path("page.html").read_text(encoding="utf-8")
    assert html == page(gpt, TOKENIZER, stories=stories)
    assert "page.html: " in capsys.readouterr().out
    for source, why_not in (
        ("other.txt", "other.txt is not the text that it learned from. So a part"),
        ("nowhere.txt", "nowhere.txt was not found here. So a part"),
    ):
        assert main(["page", "--data", source]) == 0
        assert why_not in capsys.readouterr().out
    Path("other.txt").unlink()
    assert sorted(p.name for p in checkpoint.iterdir()) == ["model.pt", "page.html"]


def test_a_training_keeps_what_the_page_shows(folder, capsys):
    fresh = ["train", "--data", "corpus.txt", "--overwrite", *TRAIN_SMALL]
    assert main([*fresh, "--keep", "0,5,12"]) == 0
    kept = load_snapshots("model.pt", load_any("model.pt").model.config)
    assert list(kept) == [0, 5, 12]
    for name, last in load_any("model.pt").model.state_dict().items():
        assert_close(kept[12].state_dict()[name], last.half().float())
    two = ["page", "--data", "corpus.txt", "--checkpoint", "model.pt"]
    shutil.copy("model.pt", "other.pt")
    assert main([*two, "--checkpoint", "other.pt"]) == 0
    html = Path("page.html").read_text(encoding="utf-8")
    assert '"step": 5' in html and "other.pt" in html and "attention.mean" in html
    assert main(fresh) == 0  # another run: what the old one kept goes with it
    assert load_snapshots("model.pt", load_any("model.pt").model.config) == {}


def test_the_command_writes_the_page_of_a_model_of_tokens(folder, capsys):
    line = "--data corpus.txt --out tokens.pt --tokens 14 --keep 5".split()
    assert main(["train", *line, *TRAIN_SMALL]) == 0
    line = ["--data", "corpus.txt", "--checkpoint", "tokens.pt"]
    assert main(["page", *line]) == 0
    html = Path("page.html").read_text(encoding="utf-8")
    assert '"step": 5' in html and "attention.mean" in html and '"token"' in html
    tokenizer, text = load_any("tokens.pt").tokenizer, Path("corpus.txt").read_text()
    learned = learned_text("corpus.txt", tokenizer)[0].train[:].ids.tolist()
    assert learned == tokenizer.encode(text[: int(0.9 * len(text))])
    known = load_any("tokens.pt").text
    assert learned_text("corpus.txt", tokenizer, known)[0] is not None
    Path("corpus.txt").write_text(text[::-1], encoding="utf-8")
    assert learned_text("corpus.txt", tokenizer)[0] is not None  # the same characters
    assert learned_text("corpus.txt", tokenizer, known)[0] is None
    Path("corpus.txt").write_text(text + "!", encoding="utf-8")
    assert "is not the text" in learned_text("corpus.txt", tokenizer)[1]
    capsys.readouterr()
    assert "other tokens" in refused(capsys, *line, "--checkpoint", "model.pt")


def test_what_is_wrong_with_a_request_is_said_in_a_sentence(checkpoint, capsys):
    line = refused(capsys, "--checkpoint", "nowhere.pt")
    assert "Train one first: python -m minigpt train" in line
    assert "has no ['Ö']" in refused(capsys, "--prompt", "Ö")
    assert "Is a directory" in refused(capsys, "--out", str(checkpoint))
    before = Path("model.pt").read_bytes()
    assert "model.pt is no page: give another" in refused(capsys, "--out", "model.pt")
    assert Path("model.pt").read_bytes() == before


def test_another_model_is_refused_with_a_remedy():
    with pytest.raises(TypeError, match="cannot become a page.*lesson 06"):
        page(torch.nn.Linear(2, 2), TOKENIZER)


# --- beyond the context ---


@pytest.mark.parametrize("length", [1, 8, 30])
def test_a_window_that_slides_writes_what_lesson_06_writes(visit, gpt, length):
    browser = visit(gpt, weights="float32", prompt=CORPUS[:length])
    browser.evaluate("$('slide').click()")
    after(browser, "go", length + 30, temperature=0, count=30)
    idx = torch.tensor([TOKENIZER.encode(CORPUS[:length])])
    right = lesson_06(gpt, idx, 30, temperature=0)[0].tolist()
    assert browser.evaluate("active.ids") == right
    starts = browser.evaluate("active.reading.after.map((seen) => seen.start)")
    assert starts == [max(0, t - gpt.block_size) for t in range(1, length + 31)]
    logits = browser.evaluate("Array.from(active.reading.after.at(-1).logits)")
    with torch.no_grad():
        last = gpt(torch.tensor([right[-gpt.block_size :]]))[0][0, -1]
    assert_close(torch.tensor(logits), last, atol=1e-4, rtol=0)
    assert "slide=1" in browser.evaluate("location.hash")


def test_what_a_model_no_longer_sees_is_marked_in_the_text(visit, gpt):
    browser = visit(gpt, prompt=CORPUS[:30])
    beyond = "views[0].list.spans.filter((e) => e.matches('.beyond')).length"
    for position in (30, 12, 3):
        browser.evaluate(f"choose(active, {position})")
        start = browser.evaluate(f"active.startOf({position} - 1)")
        done = f"views[0].faded.start === {start} && {beyond} === {start}"
        chromium.wait(partial(browser.evaluate, done), f"{position}: {start} beyond")
        says = browser.evaluate("$('seen').querySelector('.count').textContent")
        assert says.startswith(f"It sees {position - start} character")
        assert "8 at most, then the older half goes" in says
