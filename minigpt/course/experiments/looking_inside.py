"""The experiment of notebook 11, what heads look for; below it the texts that notebook
and experiment share."""

from functools import cache

import torch

from minigpt.course.experiments import how_low
from minigpt.course.experiments.fit import corpus, cpu, fit, made
from minigpt.inside.looking import capture
from minigpt.inside.marks import MARKS, by_chance, score


def heads(seed):
    """The GPT of 06, and its heads' scores over 200 windows."""
    text = corpus()
    model, recipe = made(seed, cpu)
    T, found = model.block_size, fit(model, recipe)
    idx = text.val[: 200 * T].view(200, T)
    for kind, make in MARKS.items():
        found |= scores(kind, model, idx, make(idx))
    found |= scores("random", model, *twice(text.vocab_size, T // 2))
    return {name: round(value, 5) for name, value in found.items()}


def scores(kind, model, idx, marks):
    """{"previous, head 1.1": score, ...}, and what chance would give."""
    found = {f"{kind}, by chance": by_chance(marks)}
    for layer, weights in enumerate(capture(model, idx).weights, 1):
        for head, value in enumerate(score(weights, marks).tolist(), 1):
            found[f"{kind}, head {layer}.{head}"] = value
    return found


def twice(vocab_size, length):
    """Random characters, said twice (32, 2 * length), and marks of what to copy: the
    character after the earlier occurrence (Olsson et al., 2022)."""
    generator = torch.Generator().manual_seed(0)
    once = torch.randint(vocab_size, (32, length), generator=generator)
    marks = torch.zeros(32, 2 * length, 2 * length, dtype=torch.bool)
    here = torch.arange(length, 2 * length - 1)
    marks[:, here, here - length + 1] = True
    return torch.cat([once, once], dim=1), marks


@cache
def named(pair=("Nan", "Hob")):
    """Windows (B, T) of the pocket play that end where `pair[0]` has to answer; the
    same ones with the other name in the speech before; where that name begins in the
    first ones. A longer name in the double pushes the oldest characters out."""
    p, T = how_low.pocket(), how_low.CONTEXT
    longer = len(max(pair, key=len))
    windows, others, places = [], [], []
    for start, stop, kind in p.play.spans:
        if kind != "answer" or start < p.n or p.play.text[start:stop] != pair[0]:
            continue
        text = p.play.text[start - T - longer : start]
        told, scene = text.rindex(pair[0]), text.rfind("Chorus:\n")
        enter = text[scene:].partition("Enter ")[2].partition(".")[0]
        speaker = text[: text.rindex(":\n")].rpartition("\n")[2]
        begun = scene >= 2 * longer - 3  # in both windows
        if begun and speaker not in pair and all(n in enter for n in pair):
            other = text[:told] + pair[1] + text[told + len(pair[0]) :]
            windows.append(p.tokenizer.encode(text[-T:]))
            others.append(p.tokenizer.encode(other[-T:]))
            places.append(told - longer)
    return torch.tensor(windows), torch.tensor(others), places


EXPERIMENTS = {"11-heads": {"GPT": heads}}
