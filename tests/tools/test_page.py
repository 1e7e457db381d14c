"""The model as a page: what its JavaScript computes and writes beside the Python, and
the command that writes it."""

import json
import random
import re
import shutil
from pathlib import Path

import chromium
import pytest
import torch
from pages import (
    PROMPT,
    QUIET,
    SIZES,
    STORY,
    TEXT,
    do,
    rounded,
    turn,
    with_side,
    write,
)
from small import CORPUS, TOKENIZER, TRAIN_SMALL, plan, small_gpt
from strange_texts import drawn, tokenizer_of
from torch.testing import assert_close

from minigpt.checkpoint import Checkpoint, save_checkpoint
from minigpt.data import CharTokenizer
from minigpt.fast.reader import Reader
from minigpt.fast.writing import generate
from minigpt.generation import probabilities
from minigpt.modern.model import ModernConfig
from minigpt.stored import FOLDER
from minigpt.tokens.byte_pairs import learn
from minigpt.tokens.judging import judge
from minigpt.tools.command_line import main
from minigpt.tools.page import Story, learned_text, names_of, page, with_story
from minigpt.tools.saving import load_any, load_snapshots
from minigpt.training import Run

CHOICES = [  # temperature, top_k, top_p
    (0.8, None, None),
    (1.5, None, 0.6),
    (0.7, 5, 0.9),
]


# --- what is computed ---


@pytest.mark.parametrize("weights", ["int16", "int8"])
def test_the_page_computes_the_logits_of_pytorch(visit, models, weights):
    ids = TOKENIZER.encode("fox jump")
    for name in ("GPT", "grouped"):
        with torch.no_grad():
            right = rounded(models[name], weights)(torch.tensor([ids]))[0][0]
        got = do(
            visit(models[name], weights=weights),
            with_side(ids, "return side.reading.after.map((a) => array(a.logits));"),
        )
        close = 1e-3 if weights == "int16" else 1e-4
        assert_close(torch.tensor(got), right, atol=close, rtol=0, msg=name)


# --- what is written ---


def mulberry32(seed):
    """The page's random numbers, written a second time."""
    while True:
        seed = (seed + 0x6D2B79F5) % 2**32
        t = (seed ^ seed >> 15) * (seed | 1) % 2**32
        t ^= (t + (t ^ t >> 7) * (t | 61)) % 2**32
        yield (t ^ t >> 14) / 2**32


@pytest.mark.parametrize("name", ["GPT", "grouped"])
def test_the_page_writes_what_python_would_draw_from_the_same_numbers(
    visit, models, name
):
    model, ids = models[name], TOKENIZER.encode(PROMPT)
    browser = visit(model, weights="float32")
    for temperature, top_k, top_p in CHOICES:
        knobs = {"temperature": temperature, "topK": top_k, "topP": top_p}
        got = do(
            browser,
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
            assert got[position] == drawn, (knobs, position)


@pytest.mark.parametrize("length", [1, 30])
def test_without_chance_it_writes_what_generate_writes(visit, gpt, length):
    browser = visit(gpt, weights="float32", prompt=CORPUS[:length])
    # A long text is read in halves of windows, but its last character, from which is
    # drawn, as `generate` begins: with a whole context.
    starts = browser.evaluate("active.reading.after.map((seen) => seen.start)")
    halves = [max(0, -(-(t - 8) // 4) * 4) for t in range(1, length)]
    assert starts == [*halves, max(0, length - gpt.block_size)]
    turn(browser, "temperature", 0)
    idx = torch.tensor([TOKENIZER.encode(CORPUS[:length])])
    right = generate(gpt, idx, 30, temperature=0)[0].tolist()
    assert write(browser, 30) == right
    assert starts == browser.evaluate(
        f"active.reading.after.map((a) => a.start).slice(0, {length})"
    )


def test_two_models_stand_side_by_side_and_one_shows_its_training(visit, models):
    early, late = small_gpt().eval(), models["GPT"]
    both = {"a": {0: early, "end": late}, "b": {"end": models["grouped"]}}
    browser = visit(both, weights="float32", text=TEXT, stories=[STORY])
    told = "document.querySelector('.stage-told').textContent"
    finished = float(browser.evaluate(told).split("loss ")[1])
    windows = TEXT.val.unfold(0, 9, 1)
    with torch.no_grad():
        loss = late(windows[:, :-1], windows[:, 1:])[1].item()
    assert finished == pytest.approx(loss, abs=0.05)
    write(browser, 20)
    written = "sides.map((side) => textOf(side.ids))"
    before = browser.evaluate(written)
    assert before[0] != before[1] and {t[: len(PROMPT)] for t in before} == {PROMPT}
    do(browser, "choose(sides[1], 12); choose(sides[0], 14);")
    browser.evaluate("train(sides[0], 1), train(sides[0], 1), 0")  # as one drags
    drag = "slider.value = 0; slider.dispatchEvent(new Event('input'));"
    do(browser, f"const slider = document.querySelector('.reel input'); {drag}")
    first = "Training: after 0 steps, loss "
    chromium.wait(lambda: first in browser.evaluate(told), "the first stage")
    done = f"({QUIET}) && active.ids.length === {len(PROMPT) + 20}"
    chromium.wait(lambda: browser.evaluate(done), "what the first stage writes")
    chromium.wait(lambda: browser.evaluate("active.chosen === 14"), "the choice")
    assert browser.evaluate(written)[0] != before[0] and browser.errors == []
    curve = browser.evaluate("document.querySelector('.curve').ariaLabel")
    assert "in 20 steps" in curve
    ids = TOKENIZER.encode("quick br")
    got = "side.stage = 0; side.forget(); array(side.read());"
    got += "return array(side.reading.after.at(-1).logits);"
    with torch.no_grad():
        right = rounded(early, "int8")(torch.tensor([ids]))[0][0, -1]
    got = torch.tensor(do(browser, with_side(ids, got)))
    assert_close(got, right, atol=1e-4, rtol=0)


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
    got = do(browser, f"return {json.dumps(texts)}.map(idsOf)")
    assert got == [tokenizer.encode(text) for text in texts]
    rows = [rng.choices(range(tokenizer.vocab_size), k=9) for _ in range(200)]
    got = do(browser, f"return {json.dumps(rows)}.map(textOf)")
    assert got == [tokenizer.decode(row) for row in rows]
    lengths = do(browser, f"return {json.dumps(texts)}.map(idsOf).map(charactersIn)")
    assert lengths == [len(text) for text in texts]
    assert browser.evaluate("knobs().topK") is None  # of 330 tokens, too


def test_the_surprise_of_tokens_is_told_per_character(visit):
    tokenizer = learn(CORPUS, 60)
    model, prompt = of_tokens(tokenizer), "the lazy dog; the quick"
    browser = visit(model, tokenizer, prompt, weights="float32")
    loss = judge(model, tokenizer, prompt)
    shown = browser.evaluate("document.querySelector('.means').textContent")
    assert f"per character: {loss.per_character:.2f} given" in shown
    options = "document.querySelectorAll('.side [role=option]').length"
    n, length = len(tokenizer.encode(prompt)), len(prompt)
    assert browser.evaluate(options) == n + 1 < length  # and the one to come
    turn(browser, "temperature", 0)
    idx = torch.tensor([tokenizer.encode(prompt)])
    right = generate(model, idx, 30, temperature=0)[0].tolist()
    assert write(browser, 30) == right
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
    assert main(["page", "--prompt", "dog"]) == 0
    html = Path("page.html").read_text(encoding="utf-8")
    assert html == page({"": {"end": gpt}}, TOKENIZER, prompt="dog", stories=stories)
    assert main(["page"]) == 0  # a page makes room for a newer one
    html = Path("page.html").read_text(encoding="utf-8")
    assert html == page(gpt, TOKENIZER, stories=stories)
    assert "page.html: " in capsys.readouterr().out
    for source, why_not in (
        (
            "other.txt",
            "other.txt isn't the text that the model learned from. So a part",
        ),
        ("nowhere.txt", "Can't find nowhere.txt. So a part"),
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
    assert '"step": 5' in html and '"other"' in html and "attention.mean" in html
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
    assert "isn't the text" in learned_text("corpus.txt", tokenizer)[1]
    capsys.readouterr()
    assert "different tokens" in refused(capsys, *line, "--checkpoint", "model.pt")


def test_what_is_wrong_with_a_request_is_said_in_a_sentence(checkpoint, capsys):
    line = refused(capsys, "--checkpoint", "nowhere.pt")
    assert "Train one first: python -m minigpt train" in line
    assert "Not in the vocabulary: ['Ö']" in refused(capsys, "--prompt", "Ö")
    assert "Is a directory" in refused(capsys, "--out", str(checkpoint))
    before = Path("model.pt").read_bytes()
    assert "model.pt isn't a page: give another" in refused(capsys, "--out", "model.pt")
    assert Path("model.pt").read_bytes() == before


def test_another_model_is_refused_with_a_remedy():
    with pytest.raises(TypeError, match="can't become a page.*lesson 06"):
        page(torch.nn.Linear(2, 2), TOKENIZER)


def test_a_page_tells_no_folder_of_its_author(tmp_path, gpt):
    assert names_of([str(tmp_path / "model.pt")]) == [""]
    assert names_of(["here/a.pt", "b.pt"]) == ["a", "b"]
    with pytest.raises(ValueError, match="Two files are called model, .* rename one"):
        names_of(["a/model.pt", "b/model.pt"])
    html = page({"mine": {"end": gpt}}, TOKENIZER, stories=[STORY])
    known = json.loads(re.search(r'id="content">(.*?)</script>', html)[1])
    assert [model["name"] for model in known["models"]] == ["mine"]
    assert str(tmp_path) not in html


def test_a_model_that_comes_with_the_course_becomes_a_page_or_says_why_not():
    _, _, story, _ = with_story(FOLDER / "gpt.pt")
    assert story.steps == 2400 and story.seconds > 0
    with pytest.raises(ValueError, match="Bigram.* can't become a page"):
        with_story(FOLDER / "bigram.pt")
