"""Notebook 11: heads and their scores, the birth of copying, and what models copy."""

import math
from functools import cache, partial

import torch

from minigpt.attention import Head
from minigpt.bigram import BigramLanguageModel
from minigpt.data import CharTokenizer, load_text
from minigpt.evaluation import evaluate
from minigpt.experiments import how_low
from minigpt.experiments.fit import CONTEXT, SMALL, WIDTH, corpus, fit
from minigpt.experiments.ladder import blocks
from minigpt.generation import generate
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.looking import capture, changed, patched
from minigpt.marks import MARKS, by_chance, prefix, score
from minigpt.multi_head import CausalSelfAttention
from minigpt.originality import longest_copy, share_copied, share_of_words
from minigpt.training import TrainConfig, preset, train

WINDOWS = 200  # over which scores and means are taken
PIECES, LETTERS = 40, 250  # that a model writes, to be looked up in the training text


def parts_of(model):
    """(layer, part, name) of all heads and layers: (1, 2, "head 1.2")."""
    for layer in range(1, model.config.n_layer + 1):
        for head in range(1, model.config.n_head + 1):
            yield layer, head, f"head {layer}.{head}"
        for part in "attention", "feed-forward":
            yield layer, part, f"{part} {layer}"


def mean_written(model, flow, layer, part):
    """What a head or a part of a layer writes on average: (head_size,) or (C,)."""
    a = model.body[layer - 1].attention
    if part == "feed-forward":
        return flow.computed[layer - 1].mean(dim=(0, 1))
    side_by_side = flow.heads[layer - 1].mean(dim=(0, 1))  # (C,)
    if part == "attention":
        return a.proj(side_by_side).detach()  # the mean of a linear map's results
    return side_by_side.view(a.n_head, a.head_size)[part - 1]


def scores(model, idx, marks):
    """{"head 1.1": score}, of one kind of marks."""
    weights = capture(model, idx).weights
    return {
        f"head {layer}.{head}": value
        for layer, each in enumerate(weights, 1)
        for head, value in enumerate(score(each, marks).tolist(), 1)
    }


def twice(vocab_size, length):
    """Random characters, said twice, and where the first ones' followers stand."""
    generator = torch.Generator().manual_seed(0)
    once = torch.randint(vocab_size, (32, length), generator=generator)
    marks = torch.zeros(32, 2 * length, 2 * length, dtype=torch.bool)
    here = torch.arange(length, 2 * length - 1)
    marks[:, here, here - length + 1] = True
    return torch.cat([once, once], dim=1), marks


def on_random(model, vocab_size, length):
    """The scores on random characters, said twice, and what chance would give."""
    random, marks = twice(vocab_size, length)
    found = {f"random, {h}": v for h, v in scores(model, random, marks).items()}
    return {"random, by chance": by_chance(marks), **found}


def heads(seed):
    """The GPT of 06, its heads' scores, and the exact loss without each part."""
    text = corpus()
    config, recipe = preset("cpu", text.vocab_size)
    torch.manual_seed(seed)
    model, T = GPT(config), config.block_size
    found = fit(model, recipe, seed)
    tokenizer = CharTokenizer(load_text(substitute=False))
    idx = text.val[: WINDOWS * T].view(WINDOWS, T)
    for kind, make in MARKS.items():
        marks = make(idx, tokenizer)
        found[f"{kind}, by chance"] = by_chance(marks)
        found |= {f"{kind}, {h}": v for h, v in scores(model, idx, marks).items()}
    found |= on_random(model, text.vocab_size, T // 2)
    flow = capture(model, text.train[: WINDOWS * T].view(WINDOWS, T))
    for layer, part, name in parts_of(model):
        mean = mean_written(model, flow, layer, part)
        for how, value in ("zero", 0.0), ("mean", mean):
            with changed(model, layer, part, value):
                loss = evaluate(model, text.val, T)
            found[f"{how}, {name}"] = loss - found["loss"]
    return {name: round(value, 5) for name, value in found.items()}


STEPS, EVERY = 1200, 50


def pocket_recipe(seed, steps=STEPS):
    """How the pocket play is learned here: with Muon, a third of 07's steps."""
    return TrainConfig(
        steps,
        batch_size=5,
        block_size=how_low.CONTEXT,
        learning_rate=8e-3,
        weight_decay=0.0,
        grad_clip=math.inf,
        optimizer="muon",
        schedule="trapezoid",
        eval_every=EVERY,
        eval_batches=1,
        seed=seed,
    )


def by_step(model, step, found):
    """The excess of each kind, and how much each head looks at the copied word."""
    nats = how_low.surprises(model, how_low.WATCHED)
    for kind, paid in how_low.excess(nats).items():
        found[f"{kind} at {step}"] = paid
    for kind in "answer", "repeat":
        for (layer, head), value in how_low.copying(model, kind).items():
            found[f"{kind}, head {layer + 1}.{head + 1} at {step}"] = value


@cache
def named(pair=("Nan", "Hob")):
    """Windows (B, T) that end where `pair[0]` has to answer; the same ones with the
    other name in the speech before; and where in the window that name begins."""
    p, T = how_low.pocket(), how_low.CONTEXT
    tokenizer = CharTokenizer(p.play.text)
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
            windows.append(tokenizer.encode(text))
            others.append(tokenizer.encode(other))
            places.append(told)
    return torch.tensor(windows), torch.tensor(others), places


def carried(model, most=40):
    """{(stage, where): recovered share} of the difference between the two names'
    logits, when the stream of one text is put into the other there."""
    windows, others, places = named()
    here = [windows[0, places[0]], others[0, places[0]]]  # the names' first letters

    def lead(idx):
        with torch.no_grad():
            logits = model(idx)[0][0, -1]
        return (logits[here[0]] - logits[here[1]]).item()

    total, T = {}, windows.shape[1]
    for one, other, told in list(zip(windows, others, places))[:most]:
        one, other = one[None], other[None]
        stream, high, low = capture(model, one).stream, lead(one), lead(other)
        where = {
            "name": slice(told, told + 3),
            "two after": slice(told + 3, told + 5),
            "between": slice(told + 5, T - 1),
            "last": slice(T - 1, T),
        }
        for stage, before in enumerate(stream, 1):
            for group, at in where.items():
                with patched(model, stage, at, before[0, at]):
                    share = (lead(other) - low) / (high - low)
                total.setdefault((stage, group), []).append(share)
    return {key: sum(shares) / len(shares) for key, shares in total.items()}


def induction(seed):
    """A GPT that learns the pocket play: copying by step, and what cutting brings."""
    torch.set_num_threads(1)
    p, T = how_low.pocket(), how_low.CONTEXT
    torch.manual_seed(seed)
    model = GPT(GPTConfig(p.vocab_size, T, 2, 4, how_low.WIDTH))
    found = {}

    def look(history):
        by_step(model, history[-1].step, found)

    history = train(
        model, p.ids[: p.n], p.ids[p.n :], pocket_recipe(seed), on_eval=look
    )
    found |= how_low.judged(model)
    found["seconds"] = round(history[-1].seconds, 1)
    idx = p.ids[p.n :][: WINDOWS * T].view(WINDOWS, T)
    for n in 1, 3, 8:
        marks = prefix(idx, n=n)
        found[f"prefix of {n}, by chance"] = by_chance(marks)
        for name, value in scores(model, idx, marks).items():
            found[f"prefix of {n}, {name}"] = value
    found |= on_random(model, p.vocab_size, T // 2)
    flow = capture(model, p.ids[: WINDOWS * T].view(WINDOWS, T))
    for layer, part, name in parts_of(model):
        mean = mean_written(model, flow, layer, part)
        for how, value in ("zero", 0.0), ("mean", mean):
            with changed(model, layer, part, value):
                paid = how_low.excess(how_low.surprises(model, how_low.WATCHED))
            found |= {f"{kind}, {how}, {name}": v for kind, v in paid.items()}
    for (stage, group), share in carried(model).items():
        found[f"carried, {group} before {stage}"] = share
    return {name: round(value, 5) for name, value in found.items()}


def written(model, seed):
    """PIECES texts of LETTERS characters, at temperature 1, each after a line break."""
    tokenizer = CharTokenizer(load_text(substitute=False))
    start = torch.tensor([tokenizer.encode("\n")] * PIECES)
    generator = torch.Generator().manual_seed(seed)
    idx = generate(model, start, LETTERS, generator=generator)[:, 1:]
    return [tokenizer.decode(ids) for ids in idx]


def looked_up(pieces):
    """How many of the words exist, and how much is copied, letter by letter."""
    text = load_text(substitute=False)
    source = text[: len(corpus().train)]
    joined = "\n".join(pieces)
    return {
        "words": share_of_words(joined, source),
        "of 8": share_copied(joined, source, 8),
        "of 16": share_copied(joined, source, 16),
        "longest": max(len(longest_copy(piece, source)) for piece in pieces),
    }


def small(make_body, seed):
    """A rung of 03 to 05."""
    torch.manual_seed(seed)
    model = LanguageModel(corpus().vocab_size, CONTEXT, WIDTH, make_body())
    return fit(model, SMALL, seed) | looked_up(written(model, seed))


def bigram(seed):
    """The table of 01, from counts (plus one each)."""
    text = corpus()
    V = text.vocab_size
    pairs = torch.bincount(text.train[:-1] * V + text.train[1:], minlength=V * V)
    table = (pairs.view(V, V) + 1.0).log()
    model = BigramLanguageModel(V)
    with torch.no_grad():
        model.token_embedding.weight.copy_(table)
    return {"loss": evaluate(model, text.val, CONTEXT)} | looked_up(
        written(model, seed)
    )


def gpt(seed):
    """The GPT of 06."""
    config, recipe = preset("cpu", corpus().vocab_size)
    torch.manual_seed(seed)
    model = GPT(config)
    return fit(model, recipe, seed) | looked_up(written(model, seed))


def shakespeare(seed):
    """The validation text itself, as many pieces: what is usual."""
    val = load_text(substitute=False)[len(corpus().train) :]
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(val) - LETTERS, (PIECES,), generator=generator)
    return looked_up([val[s : s + LETTERS] for s in starts.tolist()])


EXPERIMENTS = {
    "11-heads": {"GPT": heads},
    "11-induction": {"GPT": induction},
    "11-cannot": {
        "bigram": bigram,
        "one head": partial(small, partial(Head, WIDTH, WIDTH)),
        "four heads": partial(small, partial(CausalSelfAttention, WIDTH, 4)),
        "one block": partial(small, partial(blocks, 1)),
        "three blocks": partial(small, partial(blocks, 3)),
        "GPT": gpt,
        "Shakespeare": shakespeare,
    },
}
