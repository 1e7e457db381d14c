"""A trained model as one HTML file, which opens in any browser without a network.

    python -m minigpt page --checkpoint model.pt --out page.html

The file holds the parameters, the vocabulary, and the forward pass as JavaScript:
`forward.js` and `generation.js` mirror the lessons' modules, `unfold.js` takes apart
what they compute, and the other modules show it; `page.js` imports them. The file
doesn't request anything from anywhere. Its own security policy forbids it.
"""

import base64
import json
import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn as nn

from minigpt.data import CharTokenizer, find_text, train_val_split
from minigpt.files import write_whole
from minigpt.interfaces import Model, Tokenizer
from minigpt.require import require
from minigpt.stored import FOLDER as STORED
from minigpt.stored import load_stored
from minigpt.tools.corpus import read_ids, read_tokens
from minigpt.tools.page.packing import (
    Text,
    import_map,
    judged,
    pack,
    page_config,
)
from minigpt.tools.saving import load_any, load_or_stored, load_snapshots
from minigpt.training import Progress

FOLDER = Path(__file__).resolve().parent
EXAMPLES = ["ROMEO:", "To be, or not to be", "Once upon a time"]  # to start from
READ = {"tinyshakespeare": "Shakespeare", "playwright": "a made-up play"}  # by --data
BARS = 6  # like ROWS in bars.js: how many of the likeliest are shown, before "others"
DOCTYPE = b"<!DOCTYPE html>"  # how a page begins; we replace no other file
SLOT = re.compile(r"\{\{(\w+)\}\}")


class Story(NamedTuple):
    """How a model was made: in how many steps and seconds of training."""

    steps: int
    seconds: float
    history: list  # of Progress
    read: str | None = None  # what the text is called, if that's known


def write_page(
    path: Path | str, models: Any, tokenizer: Tokenizer, **options: Any
) -> int:
    """Write a `page` to `path` -> its size in bytes. Also raises OSError if nothing can
    be written there, or if `path` is a file that isn't a page."""
    if Path(path).exists():
        with open(path, "rb") as file:
            if file.read(len(DOCTYPE)) != DOCTYPE:
                raise FileExistsError(f"{path} isn't a page: give another name.")
    html = page(models, tokenizer, **options).encode("utf-8")
    write_whole(path, html)
    return len(html)


def page(
    models: Any,
    tokenizer: Tokenizer,
    weights: str = "int16",
    prompt: str | None = None,
    text: Text | None = None,
    stories: Sequence[Story] = (),
) -> str:
    """The page as a string.

    models: a GPT or ModernGPT; or {name: {step: model}} for several side by side, each
    with the stages of its training, the last of which, "end", is the finished model.
    weights: how its linear layers are stored, one of WEIGHTS: as numbers, or as whole
    numbers with a scale for each row, as in lesson 09. Earlier stages are int8, and
    everything else is float32. prompt: the text it starts with. text: the Text that the
    models learned from, for the means of their parts and the losses of their stages.
    Without it, a part that's switched off gives zeros. stories: a Story for each model.
    Raises TypeError for other models, ValueError for a prompt with unknown characters.
    """
    if isinstance(models, nn.Module):
        models = {"": {"end": models}}
    story_of = dict(zip(models, stories))
    examples = [begin for begin in EXAMPLES if knows(tokenizer, begin)]
    begins = [*EXAMPLES, *(tokenizer.decode([i]) for i in range(tokenizer.vocab_size))]
    prompt = prompt or next((b for b in begins if knows(tokenizer, b)), begins[0])
    tokenizer.encode(prompt)  # or this says which characters it doesn't know
    described, lines = [], []
    for name, stages in models.items():
        *_, finished = stages.values()
        config = page_config(finished)
        snapshots = []
        for step, model in stages.items():
            tensors, data = pack(model, weights if model is finished else "int8", text)
            loss = text and len(stages) > 1 and round(judged(model, text.val), 4)
            snapshots.append({"step": step, "loss": loss or None, "tensors": tensors})
            lines.append(base64.b64encode(data).decode("ascii"))
        shape = {**asdict(config), "n_kv_head": config.n_kv_head or config.n_head}
        known = {"name": name, "config": shape, "story": told(story_of.get(name))}
        described.append({**known, "snapshots": snapshots})
    content = {
        **vocabulary(tokenizer),
        "length": len(text.train) if text else None,
        "prompt": prompt,
        "examples": list(dict.fromkeys([prompt, *examples])),
        "models": described,
    }
    parts = {
        **face(content),
        "unit": content["unit"],
        "style": read("page.css"),
        "modules": json.dumps(import_map(FOLDER)),
        "content": json.dumps(content).replace("<", r"\u003c"),  # no </script> in it
        "weights": "\n".join(lines),
    }
    return SLOT.sub(lambda slot: str(parts[slot[1]]), read("page.html"))


def face(content: dict[str, Any]) -> dict[str, str]:
    """What the page shows before its model has loaded, so that nothing moves later:
    what the models are, with the simplest words first, as {slot: HTML}."""
    models, unit = content["models"], content["unit"]
    counts = [f"{parameters_in(m['snapshots'][-1]['tensors']):,}" for m in models]
    first, many = models[0], len(models) > 1
    who = "They" if many else escape(first["name"]) or "It"
    read = escape((first["story"] or {}).get("read") or "a text")
    piece = "piece of a word" if unit == "token" else "letter"
    writes = "they write" if many else "it writes"
    shown = [example.replace("\n", "↵") for example in content["examples"]]
    row = '<tr><td>&nbsp;</td><td></td><td><i class="bar"></i></td></tr>'
    filmed = any(len(model["snapshots"]) > 1 for model in models)
    return {
        "name": f"{'GPTs' if many else 'A GPT'} with {' and '.join(counts)} parameters",
        "title": f"{who} read {read}. <em>Now {writes}, one {piece} at a time.</em>",
        "intro": "".join(
            made(model, count, content, many) for model, count in zip(models, counts)
        ),
        "examples": "".join(
            f'<button type="button">{escape(e)}</button>' for e in shown
        ),
        "filmed": ' class="filmed"' if filmed else "",
        "rows": row * (BARS + 1),
        "facts": " ".join(shape_of(model, unit) for model in models),
    }


def parameters_in(tensors: list[dict]) -> int:
    """The number of parameters in what `pack` returned, without scales and means."""
    kept = [t for t in tensors if not t["name"].endswith((".scale", ".mean"))]
    return sum(math.prod(tensor["shape"]) for tensor in kept)


def made(model: dict, count: str, content: dict, many: bool) -> str:
    """How a model was made, in a sentence of HTML."""
    name, story, unit = escape(model["name"]), model["story"], content["unit"]
    says = f"{f'{name}: a' if many else 'A small'} GPT with {count} "
    says += '<b data-word="parameters">parameters</b>'
    if story and story["steps"]:
        read = f" from {content['length']:,} {unit}s" if content["length"] else ""
        says += f" that learned{read} in {story['steps']:,} "
        says += '<b data-word="step">steps</b> of training'
        says += f" ({duration(story['seconds'])})" if story["seconds"] else ""
    return f"{says}. "


def shape_of(model: dict, unit: str) -> str:
    """A model's sizes, in a sentence of HTML."""
    name, config = escape(model["name"]), model["config"]
    return (
        f"{f'{name}: ' if name else ''}{config['n_layer']} layers with "
        f"{config['n_head']} heads each, {config['n_embd']} channels, and a context of "
        f"{config['block_size']} {unit}s."
    )


def duration(seconds: float) -> str:
    """A time the way you'd say it."""
    if seconds < 90:
        return f"{seconds} s"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"


def told(story: Story | None) -> dict[str, Any] | None:
    """A Story the way the page keeps it. Of the history, that's [step, train_loss,
    val_loss]."""
    if story is None:
        return None
    rows = [[row.step, *(round(x, 4) for x in row[1:3])] for row in story.history]
    return {**story._asdict(), "seconds": round(story.seconds), "history": rows}


def vocabulary(tokenizer: Any) -> dict[str, Any]:
    """What tokens.js needs: what a token is called, each one's bytes as Latin-1, lesson
    13's merges, and whether a text is cut before merging."""
    if isinstance(tokenizer, CharTokenizer):
        known = {"unit": "character", "merges": [], "cut": False}
        tokens = [char.encode("utf-8") for char in tokenizer.chars]
    else:
        known = {"unit": "token", "merges": tokenizer.merges, "cut": tokenizer.cut}
        tokens = tokenizer.vocabulary
    return known | {"tokens": [token.decode("latin-1") for token in tokens]}


def knows(tokenizer: Tokenizer, text: str) -> bool:
    """Whether a tokenizer knows all the characters of a text."""
    try:
        tokenizer.encode(text)
    except ValueError:
        return False
    return True


def read(name: str) -> str:
    """The text of a file in this folder."""
    return (FOLDER / name).read_text(encoding="utf-8")


def learned_text(
    source: str, tokenizer: Any, known: Any = None
) -> tuple[Text | None, str]:
    """(the Text that a model learned from, ""), or (None, a sentence that says why
    not).

    source: like --data of `train`. known: the hash of its ids, if a checkpoint has it.
    """
    try:
        path = find_text(source)
    except FileNotFoundError:
        return None, f"Can't find {source}."
    other = None, f"{source} isn't the text that the model learned from."
    if isinstance(tokenizer, CharTokenizer):
        knows, ids = read_ids(path)
        if knows.chars != tokenizer.chars:
            return other
        train, val = train_val_split(ids)
    else:
        if set(read_ids(path)[0].chars.encode("utf-8")) != set(tokenizer.alphabet):
            return other
        _, ids, n = read_tokens(path, tokenizer)
        train, val = ids[:n], ids[n:]
    if known not in (None, ids.hash()):
        return other
    return Text(train, val), ""


def as_page_config(model: Model) -> Any:
    """page_config, or a ValueError that the command line shows as a sentence."""
    try:
        return page_config(model)
    except TypeError as error:
        raise ValueError(str(error)) from None


def with_story(path: Path | str) -> tuple:
    """(model, tokenizer, Story, the hash of the text's ids or None) of a checkpoint, or
    of a model that comes with the course."""
    if Path(path).resolve().parent != STORED.resolve():
        c = load_any(path)
        as_page_config(c.model)
        story = Story(c.run.step, c.run.seconds, c.run.history)
        return c.model, c.tokenizer, story, c.text
    model, tokenizer = load_stored(path)
    as_page_config(model)
    content = torch.load(path, weights_only=True)
    history = [Progress(*row) for row in content["history"]]
    step, _, _, seconds = history[-1]
    return model, tokenizer, Story(step, seconds, history), None


def add_options(parser: ArgumentParser) -> None:
    """The options of the command, for argparse."""
    add = parser.add_argument
    known = "a file that `train` saved (default: model.pt); give two to compare them"
    add("--checkpoint", metavar="FILE", action="append", help=known)
    known = "the file to write; it replaces an older one (default: %(default)s)"
    add("--out", metavar="FILE", default="page.html", help=known)
    add("--prompt", help=f"the text it starts with (default: {EXAMPLES[0]})")
    known = "the text it was trained on (default: %(default)s)"
    add("--data", metavar="TEXT", default="tinyshakespeare", help=known)


def names_of(paths: Sequence[str]) -> list[str]:
    """What the page calls the models of some checkpoints: their file names, without the
    folders. A single model needs no name. Raises ValueError if two names are equal."""
    names = [Path(path).stem for path in paths] if len(paths) > 1 else [""]
    require(
        len(set(names)) == len(names),
        f"Two files are called {names[0]}, so the page can't tell them apart: "
        "rename one.",
    )
    return names


def main(options: Namespace) -> int:
    """The command: write the page of one or two checkpoints, and say how large it
    is."""
    paths = options.checkpoint or ["model.pt"]
    models, stories, known, text = {}, [], {}, None
    for name, path in zip(names_of(paths), paths):
        if options.checkpoint is None and not Path(path).exists():
            load_or_stored(None)  # says so
            path = STORED / "gpt.pt"
        model, tokenizer, story, text = with_story(path)
        known[json.dumps(vocabulary(tokenizer))] = tokenizer
        models[name] = {**load_snapshots(path, model.config), "end": model}
        stories.append(story)
    if len(known) > 1:
        raise ValueError(
            "The models know different tokens: give two that learned from the same "
            "text."
        )
    text, why_not = learned_text(options.data, tokenizer, text)
    if text is not None and options.data in READ:
        stories = [story._replace(read=READ[options.data]) for story in stories]
    kind = {"prompt": options.prompt, "text": text, "stories": stories}
    size = write_page(options.out, models, tokenizer, **kind)
    print(f"{options.out}: {size / 1000:,.0f} kB, for any browser, without a network.")
    if text is None:
        print(f"{why_not} So a part that's off gives zeros. Name the text with --data.")
    return 0
