"""Trained models that come with the course, so that what is said of one holds.

A training takes another path on another processor; these files do not. Each of them
holds float16 parameters, the configuration of a GPT or the name of a smaller model,
the characters, the exact validation loss, the history and torch's version;
`python -m minigpt.course.experiments.stored_models` trains them anew.
"""

from pathlib import Path

import torch

from minigpt.data import CharTokenizer
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.stored.rungs import build_rung

FOLDER = Path(__file__).parent


def load_stored(name: Path | str = "gpt") -> tuple[LanguageModel, CharTokenizer]:
    """(model, tokenizer) of a stored training, ready to be asked.

    "gpt" is 06's on Tiny Shakespeare; "pocket-1337", -1338 and -1339 are 07's on the
    pocket play, from three seeds. The rungs of the ladder below the GPT are "bigram"
    (the table of counts), "weighted-mean", "one-head", "four-heads", "one-block" and
    "three-blocks". Or the path of such a file, which ends in .pt.
    """
    path = Path(name) if Path(name).suffix == ".pt" else FOLDER / f"{name}.pt"
    content = torch.load(path, weights_only=True)
    with torch.random.fork_rng():  # to build a model draws random numbers
        if "rung" in content:
            model = build_rung(content["rung"], len(content["chars"]))
        else:
            model = GPT(GPTConfig(**content["config"]))
    model.load_state_dict(content["model"])  # float16 becomes float32
    return model.eval(), CharTokenizer(content["chars"])
