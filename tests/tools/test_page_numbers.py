"""Each number that the page shows, beside torch's: of lesson 06's GPT, which the page
reads as a ModernGPT with all switched off, and of ModernGPTs with each switch on."""

import re

import pytest
import torch
import torch.nn.functional as F
from beside_torch import (
    IDS,
    is_shown,
    queries_keys_values,
    read,
    seen_by_torch,
    shown,
)
from pages import MODERN, PLACE, TEXT, WINDOW, do, turn, with_side
from small import DATA, TOKENIZER, V
from torch.testing import assert_close

from minigpt.generation import probabilities
from minigpt.inside.looking import capture, changed, logit_shares
from minigpt.tools.page.packing import means

ROW = PLACE - 1  # the character that looks


@pytest.fixture(scope="module", params=["GPT", *MODERN])
def beside(request, visit, models):
    """(model, its page with WINDOW, what torch saw of it)."""
    model = models[request.param]
    browser = visit(model, prompt=WINDOW, weights="float32", text=TEXT)
    return model, browser, seen_by_torch(model, IDS)


# What is shown in the same way, whatever the model: once is enough.
once = pytest.mark.parametrize("beside", ["GPT"], indirect=True)


def evened(norm, x, eps):
    """(x without its mean, where the norm takes that off; its size), for x (C,)."""
    centred = isinstance(norm, torch.nn.LayerNorm)
    mean, eps = (x.mean(), 1e-5) if centred else (0.0, eps)
    return x - mean, ((x - mean).square().mean() + eps).sqrt()


def eps_of(model):
    return getattr(model.config, "norm_eps", None)


def blocks_of(model):
    """[(block, its number)]."""
    return [(block, n) for n, block in enumerate(list(model.body)[:-1], 1)]


def compare(browser, part, wanted):
    """All columns of a sheet of numbers beside some vectors, in their order."""
    columns, labels = shown(browser, part, 1)
    assert labels == [str(i + 1) for i in range(len(wanted[0]))], part
    for (name, column), right in zip(columns.items(), wanted, strict=True):
        try:
            is_shown(column, right)
        except AssertionError as error:
            raise AssertionError(f"{part}, {name}: {error}") from None


def line(browser, row=None):
    """The arithmetic of a row, or of the one that is shown."""
    if row is not None:
        browser.evaluate(f"$('sheet').tBodies[0].rows[{row}].click()")
    return browser.evaluate("$('line').textContent")


def adds_up(told):
    """Whether the sum that a line tells is right: a × b + … (n others) = c."""
    plain = told.replace("−", "-").replace("×", "*")
    terms, total = re.sub(r"\([a-z\d ]+\)", "", plain).split(" = ")[:2]
    total = float(re.match(r"-?\d+\.\d+", total)[0])
    assert eval(terms) == pytest.approx(total, abs=0.02), told
    return total


# --- what is computed ---


def test_logits_maps_and_shares_are_those_of_the_lessons(beside):
    model, browser, seen = beside
    look = (
        "const { model, reader: { rows } } = side.reading, seen = rows.at(-1);"
        "return { maps: rows.map(({ layers }) =>"
        "   layers.map(({ heads }) => heads.map(({ weights }) => array(weights)))),"
        " logits: side.reading.after.map((a) => array(a.logits)),"
        " streams: seen.streams.map(array),"
        " shares: array(seen.logits).map((_, id) =>"
        "   Object.fromEntries(model.shares(seen, id))) };"
    )
    got = do(browser, with_side(IDS.tolist(), look))
    assert_close(torch.tensor(got["logits"]), seen["logits"], atol=1e-4, rtol=0)
    logits = torch.tensor([sum(shares.values()) for shares in got["shares"]])
    if cap := getattr(model.config, "softcap", None):
        logits = cap * torch.tanh(logits / cap)
    assert_close(logits, seen["logits"][-1], atol=1e-4, rtol=0)
    if hasattr(model.config, "rotary"):
        return
    flow = capture(model, IDS[None])  # which lesson 11 writes for the GPT of 06
    for layer, right in enumerate(flow.weights):  # (1, n_head, T, T)
        for t, row in enumerate(got["maps"]):
            here = right[0, :, t, : t + 1]
            assert_close(torch.tensor(row[layer]).float(), here, atol=1e-5, rtol=0)
    for stream, right in zip(got["streams"], flow.stream, strict=True):
        assert_close(torch.tensor(stream), right[0, -1], atol=1e-4, rtol=0)
    for part, right in logit_shares(model, flow).items():
        row = torch.tensor([shares[part] for shares in got["shares"]])
        assert_close(row, right[0, -1], atol=1e-4, rtol=0, msg=part)


def test_switched_off_parts_cost_what_the_lessons_cut_costs(beside):
    model, browser, _ = beside
    said, names, wanted = means(model, DATA), [], []
    for block, n in blocks_of(model):
        heads = said[f"body.{n - 1}.attention.mean"].split(block.attention.head_size)
        parts = {f"head {n}.{i}": (i, mean) for i, mean in enumerate(heads, 1)}
        mean = said[f"body.{n - 1}.feed_forward.mean"]
        parts[f"feed-forward {n}"] = "feed-forward", mean
        for name, (part, mean) in parts.items():
            for zero, value in enumerate((mean, 0.0)):
                with changed(model, n, part, value), torch.no_grad():
                    loss = model(IDS[None, :-1], IDS[None, 1:])[1].item()
                names.append([name, bool(zero)])
                wanted.append(loss)
    body = (
        f"return {names!r}.map(([name, zero]) => {{ side.off = new Set([name]);"
        "side.zero = zero; side.forget(); array(side.read());"
        "return side.reading.mean(0); });"
    ).replace("True", "true")
    got = do(browser, with_side(IDS.tolist(), body.replace("False", "false")))
    assert got == pytest.approx(wanted, abs=1e-3)


# --- what is shown on the way ---


def test_each_number_between_a_character_and_the_first_block(beside):
    model, browser, _ = beside
    terms = [model.token_embedding.weight[IDS[ROW]]]
    if model.position_embedding is not None:
        terms.append(model.position_embedding.weight[ROW])
    compare(browser, "embedding", [*terms, sum(terms)])
    says = browser.evaluate("$('says').textContent")
    assert f"number {IDS[ROW] + 1} of {V} characters" in says
    assert (f"row {PLACE} of a second table" in says) == (len(terms) == 2)


def test_each_number_that_a_norm_shows(beside):
    model, browser, seen = beside
    for block, n in blocks_of(model):
        (inputs, *_), output = seen[block.norm1]
        x, out = inputs[0, ROW], output[0, ROW]
        centred, size = evened(block.norm1, x, eps_of(model))
        compare(browser, f"norm {n}", [x, centred / size, out])


def test_each_number_of_a_query_a_key_and_a_value(beside):
    model, browser, seen = beside
    for block, n in blocks_of(model):
        attention = block.attention
        with torch.no_grad():
            qkv = queries_keys_values(attention, seen[attention][0])
        raw = seen[attention.qkv][1][0, ROW]
        for h in (0, attention.n_head - 1):
            q, k, v = (x[h, ROW] for x in qkv)
            made = raw[h * len(q) : (h + 1) * len(q)]
            changed = [] if torch.allclose(made, q) else [made]
            compare(browser, f"query {n}.{h + 1}", [*changed, q, k, v])
            for row in (0, 1):
                told = line(browser, row).split(": ")[1]
                assert adds_up(told) == pytest.approx(made[row].item(), abs=2e-3)


def toward(model, seen, id):
    """The gradient of the logit of `id` with respect to the stream before the last
    norm, with the norm's scale held as it is: as in logit_shares of lesson 11."""
    norm = model.body[-1]
    _, size = evened(norm, seen[norm][0][0][0, ROW], eps_of(model))
    way = model.lm_head.weight[id] * norm.weight / size
    return way - way.mean() if isinstance(norm, torch.nn.LayerNorm) else way


def left_of(model, layer):
    """By what the mixtures of later blocks multiply what a layer wrote."""
    mixes = [getattr(block, "mix", None) for block in list(model.body)[layer + 1 : -1]]
    mixes = [mix[0] for mix in mixes if mix is not None]
    return torch.stack(mixes).prod() if mixes else 1.0


def test_each_number_that_a_head_shows(beside):
    model, browser, seen = beside
    way = toward(model, seen, IDS[PLACE])
    for block, n in blocks_of(model):
        attention = block.attention
        for head in (0, attention.n_head - 1):
            columns, labels = shown(browser, f"head {n}.{head + 1}", 4)
            assert "".join(labels) == WINDOW.replace(" ", "␣")
            with torch.no_grad():
                qkv = queries_keys_values(attention, seen[attention][0])
                q, k, v = (x[head] for x in qkv)
                dots = q[ROW] @ k.T  # (T,)
                later = torch.arange(8) > ROW
                scores = (dots / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
                weights = F.softmax(scores, dim=-1)
                mine = slice(head * len(q[0]), (head + 1) * len(q[0]))
                proj = attention.proj.weight[:, mine]  # (C, head_size)
                adds = weights * (v @ proj.T @ way) * left_of(model, n - 1)
            wanted = [dots, scores, weights, adds]
            for column, right in zip(columns.values(), wanted, strict=True):
                is_shown(column, right)
            total = browser.evaluate("$('sheet').tFoot.rows[0].lastChild.textContent")
            is_shown([read(total)], [adds.sum().item()])
            shown(browser, f"head {n}.{head + 1}", 1)
            told = line(browser, 2).split(": ")[1]
            assert adds_up(told) == pytest.approx(dots[2].item(), abs=2e-3)
            shown(browser, f"head {n}.{head + 1}", 2)
            numbers = re.findall(r"−?\d+\.\d+", line(browser, 2))
            _, _, score, _, most, power, total, weight = map(read, numbers)
            assert score == pytest.approx(scores[2].item(), abs=2e-3)
            assert most == pytest.approx(scores.max().item(), abs=2e-3)
            powers = (scores - scores.max()).exp()
            assert power == pytest.approx(powers[2].item(), abs=2e-3)
            assert total == pytest.approx(powers.sum().item(), abs=2e-3)
            assert weight == pytest.approx(weights[2].item(), abs=2e-3)


def test_what_a_head_fetches_and_writes(beside):
    model, browser, seen = beside
    for block, n in blocks_of(model):
        attention = block.attention
        with torch.no_grad():
            qkv = queries_keys_values(attention, seen[attention][0])
            out = seen[attention.proj][0][0][0, ROW]
        for head in (0, attention.n_head - 1):
            shown(browser, f"head {n}.{head + 1}", 3)
            got = do(
                browser,
                "const { rows } = active.reading.reader;"
                f"const u = unfoldHead(active.whole, rows, {ROW},"
                f"  partOf('head {n}.{head + 1}'), 0);"
                "return [u.out, u.wrote, u.values[2]].map((x) => Array.from(x));",
            )
            size = len(qkv[0][head, 0])
            mine = slice(head * size, (head + 1) * size)
            wrote = attention.proj.weight[:, mine] @ out[mine]
            wanted = [out[mine], wrote, qkv[2][head, 2]]
            for numbers, right in zip(got, wanted, strict=True):
                assert_close(torch.tensor(numbers), right.detach(), atol=1e-4, rtol=0)


def test_each_number_that_is_added_to_the_stream(beside):
    model, browser, seen = beside
    for block, n in blocks_of(model):
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
        compare(browser, f"heads {n}.1", [entered, head, heads - head, between])
        compare(browser, f"add {n}", [between, wrote, between + wrote])
        compare(browser, f"block {n}", [entered, heads, wrote, between + wrote])
        *terms, total = map(read, re.findall(r"−?\d+\.\d+", line(browser)))
        assert sum(terms) == pytest.approx(total, abs=2e-3)


def test_each_number_that_a_feed_forward_layer_shows(beside):
    model, browser, seen = beside
    way = toward(model, seen, IDS[PLACE])
    for block, n in blocks_of(model):
        f, count = block.feed_forward, block.feed_forward.proj.in_features
        hidden, bent = seen[f.expand][1][0, ROW], seen[f.proj][0][0][0, ROW]
        adds = bent * (f.proj.weight.T @ way) * left_of(model, n - 1)  # (neurons,)
        columns, labels = shown(browser, f"feed-forward {n}", 2)
        some = [int(label) - 1 for label in labels if label.isdigit()]
        assert len(some) == min(count, 64)
        product = "w · x + b" if f.expand.bias is not None else "w · x"
        wanted = {product: hidden[-count:], "bent": bent, "gate": hidden[:count]}
        for column, numbers in columns.items():
            is_shown(numbers[: len(some)], wanted.get(column, adds)[some])
        total = browser.evaluate("$('sheet').tFoot.rows[0].lastChild.textContent")
        bias = 0.0 if f.proj.bias is None else f.proj.bias @ way * left_of(model, n - 1)
        is_shown([read(total)], [(adds.sum() + bias).item()])
        for everything in (
            False,
            True,
        ):  # what is hidden is summed up
            if everything:
                browser.evaluate("$('all-rows').click()")
            rows = browser.evaluate(
                "[...$('sheet').tBodies[0].rows].filter((tr) => !tr.hidden)"
                ".map((tr) => tr.lastChild.textContent)"
            )
            off = 0.006 * len(rows)
            assert sum(map(read, rows)) == pytest.approx(read(total), abs=off)
        browser.evaluate("$('all-rows').click()")
        shown(browser, f"feed-forward {n}", 1)
        told = line(browser, 0).split(": ")[1]
        assert adds_up(told) == pytest.approx(hidden[-count:][some[0]].item(), abs=2e-3)


@pytest.mark.parametrize("choice", [(0.8, V, 1), (1.5, 5, 0.9), (0, V, 1)])
def test_each_number_of_the_last_layer(beside, choice):
    model, browser, seen = beside
    for knob, value in zip(("temperature", "top-k", "top-p"), choice, strict=True):
        turn(browser, knob, value)
    temperature, k, p = choice
    logits = seen["logits"][ROW]
    columns, labels = shown(browser, "logits", 3)
    order = TOKENIZER.encode("".join(labels).replace("␣", " "))
    assert sorted(order) == list(range(V))
    knobs = temperature, k if k < V else None, p if p < 1 else None
    probs = probabilities(logits[None], *knobs)[0]
    kept = (logits / (temperature or 1)).masked_fill(probs == 0, -torch.inf)
    for column, right in zip(columns.values(), (logits, kept), strict=False):
        is_shown(column, right[order])
    is_shown(columns["probability"], probs[order], digits=3)
    for row in (0, 1):
        low, high = map(read, re.findall(r"\d\.\d+", line(browser, row)))
        is_shown([high], [probs.cumsum(0)[order[row]]], digits=3)
        is_shown([high - low], [probs[order[row]]], digits=2)
    shown(browser, "logits", 1)
    scores = seen[model.lm_head][1][0, ROW]
    told = line(browser, 0).split(": ")[1].split(";")[0]
    assert adds_up(told) == pytest.approx(scores[order[0]].item(), abs=2e-3)
    shares = browser.evaluate(
        "[...$('bars').tBodies[0].rows].map((tr) => [...tr.cells].slice(0, 2)"
        ".map((td) => td.firstChild.data))"
    )
    for name, share in shares[:-1]:
        (id,) = TOKENIZER.encode(name.replace("␣", " "))
        assert float(share) == pytest.approx(probs[id].item(), abs=2e-3)
    assert sum(float(share) for _, share in shares) == pytest.approx(1, abs=0.01)


def test_the_numbers_of_the_drawing_make_the_logit(beside):
    model, browser, seen = beside
    do(browser, f"choose(active, {PLACE}); await showInside();")
    logit = read(
        browser.evaluate(
            "$('drawing').lastChild.lastChild.textContent.match(/−?\\d+\\.\\d+/)[0]"
        )
    )
    assert logit == pytest.approx(seen["logits"][ROW, IDS[PLACE]].item(), abs=6e-3)
    if getattr(model.config, "softcap", None):
        return  # the parts make the score before it is held back
    parts = browser.evaluate(
        "[...$('drawing').querySelectorAll('.share')].filter((e) => e.offsetParent)"
        ".map((e) => e.textContent.match(/[+−]?\\d+\\.\\d+/)[0])"
    )
    assert sum(map(read, parts)) == pytest.approx(logit, abs=0.006 * len(parts))


@once
def test_a_part_that_is_off_shows_what_it_would_say(beside):
    _, browser, _ = beside
    before, _ = shown(browser, "head 2.1", 2)
    do(browser, "await switchParts(({ off }) => off.add('head 2.1'));")
    now, _ = shown(browser, "head 2.1", 2)
    shown(browser, "head 2.1", 1)
    assert "switched off" in browser.evaluate("$('says').textContent")
    do(browser, "await switchParts(({ off }) => off.clear());")
    assert now["weight"] == before["weight"]


# --- pictures ---


def pixels(browser, canvas):
    """The colors of the first row of a canvas, and those that they are mixed from."""
    return do(
        browser,
        f"const canvas = {canvas}, {{ width }} = canvas;"
        "const { data } = canvas.getContext('2d').getImageData(0, 0, width, 1);"
        "return [Array.from({ length: width }, (_, x) =>"
        "  [...data.slice(4 * x, 4 * x + 3)]),"
        " ['paper', 'for', 'against'].map((name) => colours()[name])];",
    )


@once
def test_the_cells_of_a_strip_have_the_colors_of_the_numbers(beside):
    model, browser, seen = beside
    shown(browser, "add 1", 1)
    block = model.body[0]
    (between, *_), _ = seen[block.norm2]
    wrote = seen[block.feed_forward][1]
    vectors = [x[0, ROW] for x in (between, wrote, between + wrote)]
    most = torch.stack(vectors).abs().max()
    for i, vector in enumerate(vectors):
        canvas = f"document.querySelectorAll('#strips canvas')[{i}]"
        cells, colours = pixels(browser, canvas)
        paper, above, below = torch.tensor(colours, dtype=torch.float32)
        depth = (vector.abs() / most).sqrt()[:, None]
        full = torch.where(vector[:, None] < 0, below, above)
        right = paper + depth * (full - paper)
        assert (torch.tensor(cells) - right).abs().max() < 3
