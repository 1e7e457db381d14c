"""The experiment of notebook 11, what heads look for and what each part costs; below
it the texts that notebook and experiment share."""

from collections import Counter
from functools import cache

import torch

from minigpt.course.experiments import how_low
from minigpt.course.experiments.fit import corpus, fit, preset_gpt
from minigpt.inside.looking import capture, changed
from minigpt.inside.marks import MARKS, by_chance, score

WINDOWS = 200  # over which scores and means are taken


def heads(seed):
    """The GPT of 06: its heads' scores, and what each part costs when it says its mean
    instead ("mean, head 1.1"), or what it says in another window ("resampled, ...")."""
    text = corpus()
    model, recipe = preset_gpt(seed)
    T, found = model.block_size, fit(model, recipe, seed)
    idx = text.val[: WINDOWS * T].view(WINDOWS, T)
    for kind, make in MARKS.items():
        found |= scores(kind, model, idx, make(idx))
    found |= scores("random", model, *twice(text.vocab_size, T // 2))
    n = (len(text.val) - 1) // T * T
    windows = text.val[:n].view(-1, T), text.val[1 : n + 1].view(-1, T)
    found |= costs(model, *windows, text.train[: WINDOWS * T].view(WINDOWS, T))
    return {name: round(value, 5) for name, value in found.items()}


@torch.no_grad()
def costs(model, x, y, usual):
    """{"mean, head 1.1": nats, ...} for x, y (N, T); the means are taken over `usual`
    (M, T), and the other window is the one before, at the same positions."""
    means, costs = written(model, usual), Counter()
    for idx, targets in zip(x.split(128), y.split(128)):
        intact, share = model(idx, targets)[1].item(), len(idx) / len(x)
        for (layer, part), said in written(model, idx).items():
            name = f"head {layer}.{part}" if type(part) is int else f"{part} {layer}"
            mean = means[layer, part].mean(dim=(0, 1))
            for how, instead in ("mean", mean), ("resampled", said.roll(1, dims=0)):
                with changed(model, layer, part, instead):
                    loss = model(idx, targets)[1].item()
                costs[f"{how}, {name}"] += (loss - intact) * share
    return costs


def written(model, idx):
    """What each part writes: {(layer, part): (B, T, head_size) for a head, else
    (B, T, C)}, as `changed` takes it."""
    flow, found = capture(model, idx), {}
    for layer, block in enumerate(model.body[:-1], 1):
        side_by_side = flow.heads[layer - 1]
        for head, said in enumerate(side_by_side.chunk(block.attention.n_head, -1), 1):
            found[layer, head] = said
        found[layer, "attention"] = block.attention.proj(side_by_side)
        found[layer, "feed-forward"] = flow.computed[layer - 1]
    return found


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
    same ones with the other name in the speech before; where that name begins."""
    p, T = how_low.pocket(), how_low.CONTEXT
    windows, others, places = [], [], []
    for start, stop, kind in p.play.spans:
        if kind != "answer" or start < p.n or p.play.text[start:stop] != pair[0]:
            continue
        text = p.play.text[start - T : start]
        told, scene = text.rindex(pair[0]), text.rfind("Chorus:\n")
        enter = text[scene:].partition("Enter ")[2].partition(".")[0]
        speaker = text[: text.rindex(":\n")].rpartition("\n")[2]
        if scene >= 0 and speaker not in pair and all(n in enter for n in pair):
            other = text[:told] + pair[1] + text[told + len(pair[0]) :]
            windows.append(p.tokenizer.encode(text))
            others.append(p.tokenizer.encode(other))
            places.append(told)
    return torch.tensor(windows), torch.tensor(others), places


EXPERIMENTS = {"11-heads": {"GPT": heads}}
