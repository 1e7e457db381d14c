"""All exercises, what is answered to them, and the names in which their cells run.

answers.json is a table of what people have answered: {"exercise", "says", "code"}. It's
wrong, and the check says `says` at once, or the correction if it's told to; where
there is no `says`, it is right.
"""

import ast
import copy
import functools
import importlib
import json
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from exercises import answered, exercises_of
from syllabus import exercises

from minigpt import averaging
from minigpt.attention import Head, attention, attention_weights
from minigpt.backward.tensor import Tensor, backward, total
from minigpt.bigram import BigramLanguageModel
from minigpt.block import Block
from minigpt.course.checks.exercise import Exercise
from minigpt.data import CharTokenizer, load_text, train_val_split
from minigpt.language_model import LanguageModel
from minigpt.modern.parts import rms_norm
from minigpt.multi_head import CausalSelfAttention
from minigpt.tokens.byte_pairs import learn

MODULES = {
    number: importlib.import_module(f"minigpt.course.checks.{name}")
    for number, name in exercises().items()
}
EXERCISES = {k: e for number in MODULES for k, e in exercises_of(number).items()}
ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text("utf-8"))


def shakespeare():
    text = load_text()  # also without a network, like the notebook
    tokenizer = CharTokenizer(text)
    train_data, val_data = train_val_split(torch.tensor(tokenizer.encode(text)))
    return {
        **{"tokenizer": tokenizer, "V": tokenizer.vocab_size},
        **{"train_data": train_data[:200_000], "val_data": val_data},
        "model": BigramLanguageModel(tokenizer.vocab_size),
    }


def blocks():
    body = nn.Sequential(*[Block(8, 2) for _ in range(3)], nn.LayerNorm(8))
    model = LanguageModel(11, 6, 8, body).eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    return {"my_model": model, "my_x": torch.randint(11, (4, 6))}


OWN = {  # what a notebook has defined above its exercises
    "01": shakespeare,
    "02": lambda: {"averaging": averaging, "CharTokenizer": CharTokenizer},
    "03": lambda: {
        **{"Head": Head, "attention": attention},
        "attention_weights": attention_weights,
        "model": LanguageModel(11, 32, 16, Head(16, 16)),
        "val_data": torch.randint(11, (32 * 5 + 1,)),
    },
    "04": lambda: {
        **{"Head": Head, "attention": attention},
        "model": LanguageModel(65, 8, 12, CausalSelfAttention(12, 4)),
        "val_data": torch.randint(65, (200,)),
    },
    "05": blocks,
    "08": lambda: {"attention": attention, "rms_norm": rms_norm},
    "09": lambda: {"attention": attention},
    "12": lambda: {"np": np, "Tensor": Tensor, "backward": backward, "total": total},
    "13": lambda: {"learn": learn},
}


@functools.cache
def names(notebook):
    """The names in which the cells of a notebook run."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        found = OWN.get(notebook, dict)()
    module = vars(MODULES[notebook])
    found |= {name: f for name, f in module.items() if name.startswith("check_")}
    return {
        "__name__": "__main__",
        **{"copy": copy, "math": math, "torch": torch, "nn": nn, "F": F},
        **found,
    }


def exercise_of(number):
    """The Exercise with a number."""
    found = (e for e in vars(MODULES[number[:2]]).values() if isinstance(e, Exercise))
    return next(e for e in found if e.number == number)


@functools.cache
def given(number):
    """What the solution's author would hand to the check: the answers, and the rest."""
    learner = answered(EXERCISES[number], names(number[:2]), EXERCISES[number].solution)
    call = ast.parse(EXERCISES[number].check).body[-1].value
    count = len(exercise_of(number).solution)
    values = [eval(ast.unparse(argument), learner) for argument in call.args]
    return values[:count], values[count:]
