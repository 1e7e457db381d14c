"""The model as a page: its JavaScript beside the Python, and the page in a browser."""

import copy
import json
import re
from pathlib import Path

import chromium
import pytest
import torch
from small import CORPUS, TOKENIZER, V, fit, plan, small_gpt
from torch.testing import assert_close

from minigpt.attention import attention_weights
from minigpt.checkpoint import Checkpoint, save_checkpoint
from minigpt.data import CharTokenizer
from minigpt.fast.quantization import to_int8
from minigpt.fast.reading import Reader
from minigpt.fast.writing import generate
from minigpt.generation import probabilities
from minigpt.modern.model import ModernConfig
from minigpt.tools.command_line import main
from minigpt.tools.page import WEIGHTS, page, write_page
from minigpt.training import Run

SCREENSHOT = Path(__file__).parents[1] / "build" / "screenshots" / "page.jpeg"
PROMPT = "the quick"
SIZES = {"block_size": 8, "n_layer": 3, "n_head": 4, "n_embd": 16}
OFF = dict.fromkeys(("rms_norm", "rotary", "qk_norm"), False)
MODERN = {
    "as it comes": {},
    "grouped": {"n_kv_head": 2, "value_residual": True, "activation": "swiglu"},
    "one key head": {"n_kv_head": 1, "qk_norm": False, "embedding_mix": True},
    "capped": {"softcap": 3.0, "bias": True, "rms_norm": False, "value_residual": True},
    "all off": {**OFF, "activation": "relu", "bias": True},
}
CHOICES = [  # temperature, top_k, top_p
    (0, None, None),
    (0.8, None, None),
    (1.0, 3, None),
    (1.5, None, 0.6),
    (0.7, 5, 0.9),
]


def modern(**changes):
    """A ModernGPT none of whose parameters is at its start, where many are 0 or 1."""
    torch.manual_seed(1)
    model = ModernConfig(V, **SIZES, **changes).build()
    for p in model.parameters():
        torch.nn.init.normal_(p, mean=0.5 if p.dim() == 1 else 0.0, std=0.4)
    return model


@pytest.fixture(scope="module")
def trained():
    model = small_gpt()
    fit(model, plan(steps=120))
    return model.eval()


@pytest.fixture(scope="module")
def models(trained):
    return {"GPT": trained} | {name: modern(**c) for name, c in MODERN.items()}


@pytest.fixture
def visit(browser, tmp_path):
    """A function that writes the page of a model and opens it."""

    def visit(model, tokenizer=TOKENIZER, **options):
        path = tmp_path / "page.html"
        write_page(path, model, tokenizer, **options)
        browser.open(path.as_uri(), "!unread || $('complaint').textContent")
        return browser

    return visit


def call(browser, body):
    """What a JavaScript function with this body returns."""
    return browser.evaluate(f"(() => {{ {body} }})()")


def logits(browser, ids):
    """(T, vocab_size): what the page says after each of the ids."""
    rows = call(
        browser,
        f"const ids = {ids}, reader = new Reader(model);"
        "return ids.map((_, i) => Array.from(reader.read(ids, i + 1).logits));",
    )
    return torch.tensor(rows)


def text(browser):
    """What one sees; the vocabulary here has no line break."""
    seen = browser.evaluate("$('text').textContent")
    assert seen.endswith("▮")
    return seen[:-1]


def wait_for_text(browser, length):
    """Until the text is so long and nothing is being written."""
    done = f"!writing && ids.length === {length}"
    chromium.wait(lambda: browser.evaluate(done), f"a text of {length} characters")


def enter(browser, prompt):
    """Type a prompt over the one that is there."""
    browser.evaluate(f"$('prompt').value = {json.dumps(prompt)}")
    browser.evaluate("$('prompt').dispatchEvent(new Event('input'))")


def press(browser, key):
    """A key of the keyboard, down and up."""
    how, down = {"key": key, "code": key}, {"type": "rawKeyDown"}
    if key == "Enter":
        down = {"type": "keyDown", "text": "\r", "windowsVirtualKeyCode": 13}
    browser.call("Input.dispatchKeyEvent", **down, **how)
    browser.call("Input.dispatchKeyEvent", type="keyUp", **how)


# --- what is computed ---


def rounded(model, weights):
    """The model whose weights the page should have."""
    model = copy.deepcopy(model)
    for part in model.modules():
        if weights == "float16" and isinstance(part, torch.nn.Linear):
            part.weight.data = part.weight.data.half().float()
        if weights == "int8" and isinstance(part, torch.nn.Linear):
            q, scale = to_int8(part.weight.data)
            part.weight.data = q * scale
    return model


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_page_computes_the_logits_of_pytorch(visit, models, weights):
    ids = TOKENIZER.encode("fox jump")
    for name, model in models.items():
        tiny = torch.tensor([1e-6, -3e-8, 0.0])  # hardly any bits in float16
        with torch.no_grad():
            model.body[0].feed_forward.proj.weight[0, :3] = tiny
            right = rounded(model, weights)(torch.tensor([ids]))[0][0]
        got = logits(visit(model, weights=weights), ids)
        close = 1e-3 if weights == "int16" else 1e-4
        assert_close(got, right, atol=close, rtol=0, msg=name)


def test_the_heads_weights_are_those_of_the_lessons(visit, models):
    model, ids = models["GPT"], TOKENIZER.encode("quick br")
    got = call(
        visit(model, weights="float32"),
        f"const seen = new Reader(model).read({ids});"
        "return seen.attention[0].map((weights) => Array.from(weights));",
    )
    first = model.body[0]
    with torch.no_grad():
        x = model.token_embedding(torch.tensor(ids)) + model.position_embedding.weight
        qkv = first.attention.qkv(first.norm1(x)).view(8, 3, 2, 8)  # T, 3, heads, size
        q, k, _ = qkv.permute(1, 2, 0, 3)
        right = attention_weights(q, k)[:, -1]  # (n_head, T)
    assert_close(torch.tensor(got), right, atol=1e-5, rtol=0)


def test_the_lens_reads_the_stream_after_each_block(visit, models):
    for name in ("GPT", "capped"):
        model, ids = models[name], TOKENIZER.encode("jumps ov")
        got = call(
            visit(model, weights="float32"),
            f"const seen = new Reader(model).read({ids});"
            "return seen.streams.map((x) => Array.from(model.logits(x)));",
        )
        streams, blocks = [], list(model.body)[:-1]

        def keep(block, given, out, streams=streams):
            streams.append(out[0] if isinstance(out, tuple) else out)

        hooks = [block.register_forward_hook(keep) for block in blocks]
        with torch.no_grad():
            model(torch.tensor([ids]))
            to_logits = getattr(model, "logits", model.lm_head)
            right = [to_logits(model.body[-1](x))[0, -1] for x in streams]
        for hook in hooks:
            hook.remove()
        assert len(got) == len(blocks) + 1  # the embedding, too
        assert_close(torch.tensor(got[1:]), torch.stack(right), atol=1e-4, rtol=0)


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
            f"const ids = {ids}, reader = new Reader(model);"
            f"const all = write(reader, ids, 40, {json.dumps(knobs)}, mulberry32(7));"
            "Array.from(all); return ids;",
        )
        numbers, reader = mulberry32(7), Reader(model)
        for place in range(len(ids), len(got)):  # past the context five times
            row = reader(torch.tensor([got[:place]]))[:, -1]
            pile = probabilities(row, temperature, top_k, top_p)[0].double().cumsum(0)
            assert got[place] == int((pile <= next(numbers)).sum()), (name, place)


@pytest.mark.parametrize("length", [1, 8, 30])
def test_without_chance_it_writes_what_generate_writes(visit, trained, length):
    prompt = CORPUS[:length]
    browser = visit(trained, weights="float32", prompt=prompt)
    browser.evaluate("$('temperature').value = 0, $('count').value = 30")
    browser.evaluate("$('write').click()")
    wait_for_text(browser, length + 30)
    idx = torch.tensor([TOKENIZER.encode(prompt)])
    right = generate(trained, idx, 30, temperature=0)[0].tolist()
    assert browser.evaluate("ids") == right
    # What is shown of the first prediction is what it was drawn from: a whole context.
    start = browser.evaluate(f"after[{length - 1}].start")
    assert start == max(0, length - trained.block_size)


def test_a_seed_gives_the_same_text_at_once_and_one_by_one(visit, trained):
    browser = visit(trained, prompt=PROMPT)
    texts = []
    for seed in (1, 1, 2):
        browser.evaluate(f"$('seed').value = {seed}, $('count').value = 20")
        browser.evaluate("$('write').click()")
        wait_for_text(browser, len(PROMPT) + 20)
        texts.append(text(browser))
    assert texts[0] == texts[1] != texts[2]
    browser.evaluate("$('seed').value = 1, unread = true")
    for n in range(1, 21):
        browser.evaluate("$('one').click()")
        wait_for_text(browser, len(PROMPT) + n)
    assert text(browser) == texts[0]


def test_every_character_has_its_surprise_and_their_mean_is_the_loss(visit, trained):
    prompt = "the lazy"
    browser = visit(trained, weights="float32", prompt=prompt)
    ids = torch.tensor([TOKENIZER.encode(prompt)])
    with torch.no_grad():
        loss = trained(ids[:, :-1], ids[:, 1:])[1].item()
    shown = browser.evaluate("$('surprise').textContent")
    assert shown == f"Your text: {loss:.2f} nats per character"
    labels = browser.evaluate(
        "[...document.querySelectorAll('[data-nats]')].map((e) => e.ariaLabel)"
    )
    assert labels[0] == "t, nothing to predict it from"
    values = [float(re.search(r", ([\d.]+) nats$", label)[1]) for label in labels[1:]]
    assert sum(values) / len(values) == pytest.approx(loss, abs=0.01)
    assert labels[3].startswith("space, ")


def test_a_text_longer_than_the_context_is_read_in_windows(visit, trained):
    ids = TOKENIZER.encode(CORPUS[:21])
    browser = visit(trained, weights="float32", prompt=CORPUS[:21])
    starts = browser.evaluate("after.map((seen) => seen.start)")
    assert starts == [0] * 8 + [4] * 4 + [8] * 4 + [12] * 4 + [16]
    for place in (7, 8, 13, 20):
        with torch.no_grad():
            right = trained(torch.tensor([ids[starts[place] : place + 1]]))[0][0, -1]
        got = browser.evaluate(f"Array.from(after[{place}].logits)")
        assert_close(torch.tensor(got), right, atol=1e-4, rtol=0)


# --- the page in the browser ---


def test_the_page_asks_for_nothing_and_has_no_complaint(visit, trained):
    browser = visit(trained)
    browser.evaluate("$('write').click()")
    wait_for_text(browser, len(browser.evaluate("$('prompt').value")) + 300)
    assert [r for r in browser.requests if not r.startswith("data:")] == [
        browser.evaluate("location.href")
    ]
    assert browser.errors == []
    # And it could not: its policy refuses.
    ask = "fetch('data:,x').then(() => 'came', () => 'refused')"
    assert browser.evaluate(ask) == "refused"
    size = {"width": 320, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 320
    browser.screenshot(SCREENSHOT, quality=70)


def test_a_keyboard_is_enough(visit, trained):
    browser = visit(trained, prompt=PROMPT)
    browser.evaluate("$('count').value = 12, document.activeElement.blur()")
    focused, order = "document.activeElement.id", [None]
    while order[-1] != "write" and len(order) < 20:
        press(browser, "Tab")
        order.append(browser.evaluate(focused))
    assert order[1] == "prompt" and order[-1] == "write"
    press(browser, "Enter")
    wait_for_text(browser, len(PROMPT) + 12)
    assert browser.evaluate(focused) == "write"
    for _ in range(3):
        press(browser, "Tab")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert browser.evaluate(focused) == "the character to come"
    browser.evaluate("writeOn(1)")  # what is focused stays so while the text grows
    wait_for_text(browser, len(PROMPT) + 13)
    assert browser.evaluate(focused) == "the character to come"
    for key, place in (("ArrowLeft", len(PROMPT) + 12), ("Home", 0)):
        press(browser, key)
        assert browser.evaluate("chosen") == place
        assert browser.evaluate("document.activeElement.ariaSelected") == "true"
    assert "no prediction for it" in browser.evaluate("$('place').textContent")


def test_writing_can_be_stopped_and_gone_on_with(visit, trained):
    browser = visit(trained, prompt=PROMPT)
    browser.evaluate("$('count').value = 5000, $('pace').value = '25'")
    browser.evaluate("$('write').click()")
    chromium.wait(lambda: browser.evaluate("ids.length > 12"), "some text")
    assert browser.evaluate("$('write').textContent") == "Stop"
    browser.evaluate("$('write').click()")
    stopped = text(browser)
    assert browser.evaluate("$('write').textContent") == "Write"
    assert len(stopped) < len(PROMPT) + 5000
    browser.evaluate("$('count').value = 30, $('pace').value = 'Infinity'")
    browser.evaluate("$('go-on').click()")
    wait_for_text(browser, len(stopped) + 30)
    whole = text(browser)
    browser.evaluate(f"$('count').value = {len(whole) - len(PROMPT)}")
    browser.evaluate("$('write').click()")  # anew, and the same
    wait_for_text(browser, len(whole))
    assert text(browser) == whole and whole.startswith(stopped)


def test_a_chosen_character_shows_bars_heads_and_layers(visit, models):
    model = models["grouped"]
    browser = visit(model, weights="float32", prompt="the fox")
    browser.evaluate("document.querySelector('[data-place=\"4\"]').click()")
    rows = (
        "[...$('{}').tBodies[0].rows]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    with torch.no_grad():
        right = model(torch.tensor([TOKENIZER.encode("the ")]))[0][0, -1].softmax(-1)
    bars = browser.evaluate(rows.format("bars"))
    (came,) = [row for row in bars if row[0] == "f came"]
    assert float(came[1]) == pytest.approx(
        right[TOKENIZER.encode("f")].item(), abs=6e-4
    )
    assert sum(float(row[1]) for row in bars) == pytest.approx(1, abs=0.01)
    lens = browser.evaluate(rows.format("lens"))
    assert [row[0] for row in lens] == ["embedding", "block 1", "block 2", "block 3"]
    assert lens[-1][2] == came[1]  # the last stage is the model's own answer
    assert browser.evaluate("document.querySelectorAll('#heads input').length") == 12
    weights = browser.evaluate(
        "[...$('attention').children].map((e) => Number(e.title.split(': ')[1]))"
    )
    assert len(weights) == 4 and sum(weights) == pytest.approx(1, abs=0.003)


def test_unknown_characters_are_told_and_known_ones_read_again(visit, trained):
    browser = visit(trained, prompt=PROMPT)
    complaint = "$('complaint').textContent"
    for prompt, said in (("the Ö and 7", "never seen Ö 7."), ("", "at least one")):
        enter(browser, prompt)
        assert said in browser.evaluate(complaint)
        assert browser.evaluate("$('write').disabled")
        assert text(browser) == PROMPT  # it stays, and is said to be the old one
        old = browser.evaluate("$('old-text').textContent")
        assert old == "Below is still the text before."
    enter(browser, "dog")
    wait_for_text(browser, 3)
    assert browser.evaluate(f"{complaint} + $('old-text').textContent").strip() == ""
    assert not browser.evaluate("$('write').disabled")


def test_a_setting_out_of_range_writes_nothing_and_breaks_nothing(visit, trained):
    browser = visit(trained, prompt=PROMPT)
    for field, value in (("temperature", "-1"), ("top-p", "0"), ("count", "")):
        browser.evaluate(f"kept = $('{field}').value, $('{field}').value = '{value}'")
        browser.evaluate(f"$('{field}').dispatchEvent(new Event('input'))")
        browser.evaluate("$('write').click()")
        assert browser.evaluate("!writing && ids.length") == len(PROMPT)
        assert browser.evaluate("document.activeElement.id") == field  # and is told
        assert "NaN" not in browser.evaluate("$('bars').innerText")
        browser.evaluate(f"$('{field}').value = kept")
    assert browser.errors == []


def test_every_field_has_a_name_and_every_live_region_is_polite(visit, trained):
    browser = visit(trained)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    kinds = "button textbox spinbutton combobox radio checkbox option".split()
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
    assert browser.evaluate("content.chars.join('')") == tokenizer.chars
    assert text(browser) == "</script>"
    assert browser.errors == []


# --- the command ---


@pytest.fixture
def checkpoint(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run(trained, plan())
    save_checkpoint("model.pt", Checkpoint(trained, TOKENIZER, plan(), run))
    return tmp_path


def refused(capsys, *options):
    """The one line of an error."""
    assert main(["page", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


def test_the_command_writes_the_page_of_a_checkpoint(checkpoint, capsys, trained):
    assert main(["page", "--weights", "int8", "--prompt", "dog"]) == 0
    assert "page.html: " in capsys.readouterr().out
    html = Path("page.html").read_text(encoding="utf-8")
    assert html == page(trained, TOKENIZER, "int8", "dog")
    assert main(["page"]) == 0  # a page makes room for a newer one
    assert Path("page.html").read_text(encoding="utf-8") == page(trained, TOKENIZER)
    assert sorted(p.name for p in checkpoint.iterdir()) == ["model.pt", "page.html"]


def test_what_is_wrong_with_a_request_is_said_in_a_sentence(checkpoint, capsys):
    line = refused(capsys, "--checkpoint", "nowhere.pt")
    assert "Train one first: python -m minigpt train" in line
    Path("notes.txt").write_text("no model", encoding="utf-8")
    assert "no readable checkpoint" in refused(capsys, "--checkpoint", "notes.txt")
    assert "has no ['Ö']" in refused(capsys, "--prompt", "Ö")
    assert "Is a directory" in refused(capsys, "--out", str(checkpoint))
    assert "notes.txt" in refused(capsys, "--out", "notes.txt/page.html")
    before = Path("model.pt").read_bytes()
    for name in ("model.pt", "notes.txt"):
        assert f"{name} is no page: give another" in refused(capsys, "--out", name)
    assert Path("model.pt").read_bytes() == before
    left = sorted(p.name for p in checkpoint.iterdir())
    assert left == ["model.pt", "notes.txt"]


def test_what_a_page_cannot_hold_is_refused_with_a_remedy(trained):
    with pytest.raises(TypeError, match="cannot become a page.*lesson 06"):
        page(torch.nn.Linear(2, 2), TOKENIZER)
    with pytest.raises(ValueError, match="weights='int8'"):
        other = copy.deepcopy(trained)
        other.lm_head = torch.nn.Sequential(other.lm_head)
        page(other, TOKENIZER)
    with pytest.raises(ValueError, match="trained with"):
        page(trained, CharTokenizer("abc"))
    large = copy.deepcopy(trained)
    with torch.no_grad():
        large.lm_head.weight[0, 0] = 1e6
    with pytest.raises(ValueError, match="do not fit into float16: choose 'int16'"):
        page(large, TOKENIZER, "float16")
    assert page(large, TOKENIZER)
