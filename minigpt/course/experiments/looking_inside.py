"""Experiments of notebook 11: what heads look for, and what models copy. Below them
stand the texts that notebook and experiments share."""

import re
from functools import cache, partial

import torch

from minigpt.bigram import BigramLanguageModel
from minigpt.course.experiments import how_low
from minigpt.course.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
from minigpt.course.experiments.ladder import BODIES
from minigpt.evaluation import evaluate
from minigpt.generation import generate
from minigpt.inside.looking import capture, changed
from minigpt.inside.marks import MARKS, by_chance, score
from minigpt.language_model import LanguageModel
from minigpt.training import preset

WINDOWS = 200  # over which scores and means are taken
PIECES, LETTERS = 40, 250  # that a model writes, to be looked up in the training text


def heads(seed):
    """The GPT of 06, its heads' scores, and what each part costs, cut to its mean."""
    text = corpus()
    config, recipe = preset("cpu", text.vocab_size)
    torch.manual_seed(seed)
    model, T = config.build(), config.block_size
    found = fit(model, recipe, seed)
    idx = text.val[: WINDOWS * T].view(WINDOWS, T)
    for kind, make in MARKS.items():
        found |= scores(kind, model, idx, make(idx, text.tokenizer))
    found |= scores("random", model, *twice(text.vocab_size, T // 2))
    flow = capture(model, text.train[: WINDOWS * T].view(WINDOWS, T))
    for layer in range(1, config.n_layer + 1):
        for part in [*range(1, config.n_head + 1), "attention", "feed-forward"]:
            name = f"head {layer}.{part}" if type(part) is int else f"{part} {layer}"
            with changed(model, layer, part, mean_written(model, flow, layer, part)):
                found[f"mean, {name}"] = evaluate(model, text.val, T) - found["loss"]
    return {name: round(value, 5) for name, value in found.items()}


def scores(kind, model, idx, marks):
    """{"previous, head 1.1": score, ...}, and what chance would give."""
    found = {f"{kind}, by chance": by_chance(marks)}
    for layer, weights in enumerate(capture(model, idx).weights, 1):
        for head, value in enumerate(score(weights, marks).tolist(), 1):
            found[f"{kind}, head {layer}.{head}"] = value
    return found


@torch.no_grad()
def mean_written(model, flow, layer, part):
    """What a head or a part of a layer writes on average: (head_size,) or (C,)."""
    a = model.body[layer - 1].attention
    if part == "feed-forward":
        return flow.computed[layer - 1].mean(dim=(0, 1))
    side_by_side = flow.heads[layer - 1].mean(dim=(0, 1))  # (C,)
    if part == "attention":
        return a.proj(side_by_side)  # the mean of a linear map's results
    return side_by_side.view(a.n_head, a.head_size)[part - 1]


def bigram(seed):
    """The table of 01, from counts (plus one each)."""
    text = corpus()
    V = text.vocab_size
    pairs = torch.bincount(text.train[:-1] * V + text.train[1:], minlength=V * V)
    model = BigramLanguageModel(V)
    model.token_embedding.weight.data = (pairs.view(V, V) + 1.0).log()
    loss = evaluate(model, text.val, CONTEXT)
    return {"loss": loss} | looked_up(written(model, seed))


def rung(name, seed):
    """A rung of 03 to 06, trained, and what it writes."""
    torch.manual_seed(seed)
    if name == "GPT":
        config, recipe = preset("cpu", corpus().vocab_size)
        model = config.build()
    else:
        model = LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, BODIES[name]())
        recipe = SMALL
    return fit(model, recipe, seed) | looked_up(written(model, seed))


def shakespeare(seed):
    """The validation text itself, as many pieces: what is usual."""
    val, decode = corpus().val, corpus().tokenizer.decode
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(val) - LETTERS, (PIECES,), generator=generator)
    return looked_up([decode(val[s : s + LETTERS]) for s in starts])


def written(model, seed):
    """PIECES texts of LETTERS characters, at temperature 1, each after a line break."""
    tokenizer = corpus().tokenizer
    start = torch.tensor([tokenizer.encode("\n")] * PIECES)
    generator = torch.Generator().manual_seed(seed)
    idx = generate(model, start, LETTERS, generator=generator)[:, 1:]
    return [tokenizer.decode(ids) for ids in idx]


def looked_up(pieces):
    """How many of the words exist, and how much is copied, letter by letter."""
    source = corpus().tokenizer.decode(corpus().train.tolist())
    text = "\n".join(pieces)
    known, words = (re.findall(r"[A-Za-z']+", t) for t in (source, text))
    known = set(known)
    return {
        "words": sum(word in known for word in words) / len(words),
        "of 8": share_copied(text, source, 8),
        "of 16": share_copied(text, source, 16),
        "longest": max(len(longest_copy(piece, source)) for piece in pieces),
    }


def share_copied(text, source, n):
    """The share of the stretches of n characters of `text` that `source` has, too."""
    known = {source[i : i + n] for i in range(len(source) - n + 1)}
    starts = range(len(text) - n + 1)
    return sum(text[i : i + n] in known for i in starts) / len(starts)


def longest_copy(text, source):
    """The longest stretch of `text` that stands in `source`: the first, if several."""
    best = ""
    for start in range(len(text)):
        longer = text[start : start + len(best) + 1]
        while len(longer) > len(best) and longer in source:
            best = longer
            longer = text[start : start + len(best) + 1]
    return best


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


EXPERIMENTS = {
    "11-heads": {"GPT": heads},
    "11-cannot": {
        "bigram": bigram,
        **{name: partial(rung, name) for name in [*BODIES, "GPT"]},
        "Shakespeare": shakespeare,
    },
}
