"""The models and the play that come with the course, made anew, into minigpt/stored.

    python -m minigpt.course.experiments.stored_models
        all of them: eleven minutes on a core
    python -m minigpt.course.experiments.stored_models pocket-1338
        one of them

    name          what it has learned, and how                  seed     loss
    gpt           Tiny Shakespeare, 06's preset "cpu"           1337   1.6910
    pocket-1337   the pocket play, 07's recipe, 4,000 steps     1337   0.1697
    pocket-1338   the same                                      1338   0.1688
    pocket-1339   the same                                      1339   0.1682
    play          (the text of load_text("playwright"))         1337

                  Tiny Shakespeare, the rungs of the ladder:
    bigram        the table of counts, one added to each count       -   2.4819
    weighted-mean 02's last body, the recipe of 02 to 05        1337   2.3964
    one-head      03's                                          1337   2.3880
    four-heads    04's                                          1337   2.2171
    one-block     05's                                          1337   1.9978
    three-blocks  05's                                          1337   1.9636

The loss is exact, in nats per character of the validation split, and that of the
stored float16 parameters; torch 2.13 on an x86 processor. On another processor a
training takes another path, and its heads may change places: that is why these are
stored.
"""

import lzma
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import torch

from minigpt.bigram import BigramLanguageModel
from minigpt.course import pocket
from minigpt.course.experiments import how_low
from minigpt.course.experiments.all_rungs import counted_table
from minigpt.course.experiments.fit import corpus, cpu, made, small
from minigpt.data import PLAY, CharTokenizer
from minigpt.evaluation import evaluate
from minigpt.files import save_whole, write_whole
from minigpt.interfaces import Model
from minigpt.playwright.play import write_play
from minigpt.stored import FOLDER
from minigpt.stored.rungs import BODIES
from minigpt.training import train


def gpt(name: str) -> None:
    """The GPT of notebook 06."""
    text = corpus()
    model, recipe = made(1337, cpu)
    history = train(model, text.train, text.val, recipe)
    built = {"config": asdict(model.config)}
    store(name, model, history, text.tokenizer, text.val, built)


def bigram(name: str) -> None:
    """The table of counts of notebook 01, as a model."""
    text = corpus()
    model = BigramLanguageModel(text.vocab_size)
    model.token_embedding.weight.data = counted_table().log()
    store(name, model, [], text.tokenizer, text.val, {"rung": name})


def rung(name: str) -> None:
    """A small model of notebooks 02 to 05."""
    torch.set_num_threads(1)
    text, body = corpus(), name.replace("-", " ")
    model, recipe = made(1337, small, body=BODIES[body])
    history = train(model, text.train, text.val, recipe)
    store(name, model, history, text.tokenizer, text.val, {"rung": body})


def pocket_gpt(seed: int, name: str) -> None:
    """The GPT of notebook 07."""
    torch.set_num_threads(1)
    p = pocket.load()
    model, recipe = made(seed, how_low.reader)
    history = train(model, p.ids[: p.n], p.ids[p.n :], recipe)
    built = {"config": asdict(model.config)}
    store(name, model, history, p.tokenizer, p.ids[p.n :], built)


def store(
    name: str,
    model: Model,
    history: list,
    tokenizer: CharTokenizer,
    val_data: torch.Tensor,
    built: dict,
) -> None:
    """Write what load_stored reads; built: of what it builds the model."""
    parameters = {key: value.half() for key, value in model.state_dict().items()}
    model.load_state_dict(parameters)  # to judge what is stored
    content = {
        "model": parameters,
        **built,
        "chars": tokenizer.chars,
        "loss": evaluate(model, val_data, model.block_size),
        "torch": str(torch.__version__),
        "history": [tuple(row) for row in history],
    }
    save_whole(FOLDER / f"{name}.pt", content)
    print(f"{name}: {content['loss']:.4f} nats per character")


def play(name: str) -> None:
    """The text of load_text("playwright"): 1.1 million characters, as many as Tiny
    Shakespeare has."""
    write_whole(PLAY, lzma.compress(write_play(1_100_000).text.encode()))


MADE: dict[str, Callable] = {"gpt": gpt, "play": play}
MADE |= {f"pocket-{seed}": partial(pocket_gpt, seed) for seed in (1337, 1338, 1339)}
MADE |= {"bigram": bigram} | {body.replace(" ", "-"): rung for body in BODIES}


if __name__ == "__main__":
    for name in sys.argv[1:] or MADE:
        if name not in MADE:
            sys.exit(f"no model {name!r}; there are: {', '.join(MADE)}")
        MADE[name](name)
