"""What the notebooks use and the lessons' modules don't need.

`setup`, `watch`, `continued`, `likely` and `open_page` below, `plots`, `drawings`,
`slide` (for the lectures), `measure` (seconds and memory), `record` and `ladder` (which
read what was measured), and `pocket` (the pocket play). Two more rooms: `checks` of the
exercises, and `experiments`, which measure what the record says and which no lesson
imports.
"""

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn as nn

from minigpt.checkpoint import Checkpoint, save_checkpoint
from minigpt.data import CharTokenizer, load_text, train_val_split
from minigpt.device import pick_device
from minigpt.generation import generate
from minigpt.playwright.grammar import ALPHABET
from minigpt.stored import FOLDER as STORED
from minigpt.stored import load_stored
from minigpt.tools.page import learned_text, with_story, write_page
from minigpt.training import Run, TrainConfig

PAGE = Path(__file__).resolve().parents[2] / "build" / "page.html"


class LessonStart(NamedTuple):
    """What `setup` returns; train_data and val_data are ids (N,), on the CPU."""

    text: str
    tokenizer: CharTokenizer
    train_data: torch.Tensor
    val_data: torch.Tensor
    device: torch.device


def setup(seed: int = 1337) -> LessonStart:
    """Load what a lesson needs, and start torch's random numbers from the seed."""
    text = load_text()
    tokenizer = CharTokenizer(ALPHABET | set(text))  # the stored GPT's, too
    ids = torch.tensor(tokenizer.encode(text))  # (N,)
    torch.manual_seed(seed)
    return LessonStart(text, tokenizer, *train_val_split(ids), pick_device())


def watch(
    model: nn.Module,
    tokenizer: CharTokenizer,
    recipe: TrainConfig,
    path: str | Path = "model.pt",
) -> Callable[[Run], None]:
    """What `train` calls with the run so far, as its on_eval.

    Each time, it draws the curve of the losses again and saves the model in `path`.
    """
    from minigpt.course import plots  # only notebooks draw

    curve = plots.LiveCurve(
        "Training and validation loss of the GPT fall below the dotted line of the "
        "counted bigram within 300 steps, then slow down.",
        goal=2.4819,
        goal_label="counted bigram, 2.48",
    )

    def draw_and_save(run: Run) -> None:
        curve.update(run)
        save_checkpoint(path, Checkpoint(model, tokenizer, recipe, run))

    return draw_and_save


def continued(
    prompt: str, n: int = 300, temperature: float = 0.8, seed: int = 1337
) -> str:
    """The prompt, and n characters that the stored GPT of lesson 06 writes after it.

    If the prompt has characters that the GPT has never seen, you get a sentence that
    says which ones.
    """
    model, tokenizer = load_stored("gpt")
    try:
        ids = prompt_ids(prompt, tokenizer)
    except ValueError as error:
        return str(error)
    dice = torch.Generator().manual_seed(seed)
    written = generate(model, ids, n, temperature, generator=dice)  # (1, T + n)
    return tokenizer.decode(written[0])


def likely(prompt: str, k: int = 3) -> list[tuple[str, float]]:
    """The k likeliest next characters after a prompt, each with its probability.

    Raises ValueError if the prompt has characters that the GPT has never seen.
    """
    model, tokenizer = load_stored("gpt")
    ids = prompt_ids(prompt, tokenizer)[:, -model.block_size :]
    with torch.no_grad():
        logits = model(ids)[0][0, -1]  # (vocab_size,)
    best = logits.softmax(dim=-1).topk(k)
    return [(tokenizer.decode([i]), p.item()) for p, i in zip(*best)]


def prompt_ids(prompt: str, tokenizer: CharTokenizer) -> torch.Tensor:
    """The ids (1, T) of a prompt; an empty one starts with a line break.

    Raises ValueError if it has characters that the tokenizer doesn't know.
    """
    prompt = prompt or "\n"
    known = set(tokenizer.chars)
    unknown = [char for char in dict.fromkeys(prompt) if char not in known]
    if unknown:
        raise ValueError(
            f"Sorry, I can't read {', '.join(map(repr, unknown))}. I've only ever seen "
            f"Shakespeare, and I know {len(known)} characters: a space, a line break "
            f"and {''.join(sorted(known)).strip()}\n"
            "Try a prompt like 'To be, or not to be'."
        )
    return torch.tensor([tokenizer.encode(prompt)])


def open_page() -> str:
    """Write the page of the course's GPT and open it in your browser.

    Returns a sentence that says where the file is, in case no browser opens.
    """
    model, tokenizer, story, _ = with_story(STORED / "gpt.pt")
    text, _ = learned_text("tinyshakespeare", tokenizer)
    story = story._replace(read="Shakespeare")
    PAGE.parent.mkdir(exist_ok=True)
    write_page(PAGE, model, tokenizer, text=text, stories=[story])
    webbrowser.open(PAGE.as_uri())
    return (
        "The page opens in your browser. If it doesn't, open the file build/page.html "
        "in the course's folder yourself."
    )
