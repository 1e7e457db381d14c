"""Experiments of notebook 15: what a reward buys, and what it costs.

The stored pocket model of the seed learns from a judge in 40 steps of 16 prompts, each
with 8 texts of 142 characters; of ten casts three are held out, other ones for each
seed. Whatever is compared with it has as much to learn from, too: 5,120 texts, in 40
steps.
"""

import copy
import random
import re
import time
from collections.abc import Callable
from functools import cache, partial

import torch
import torch.nn.functional as F

from minigpt.course import pocket
from minigpt.fast.writing import generate
from minigpt.interfaces import Model
from minigpt.playwright.play import POCKET, write_play
from minigpt.reward.checker import Checker
from minigpt.reward.measuring import (
    BEFORE,
    NEW,
    entrances,
    held_out,
    judged_by,
    price,
    scene,
)
from minigpt.reward.step import advantages, log_probs, reward_step
from minigpt.stored import load_stored

STEPS, GROUPS, GROUP = 40, 16, 8
WHOLE = 250  # characters after the entrance: enough for a whole scene
CHECKER = Checker()


@cache
def prompts(turn: int, judged: bool, out: bool) -> torch.Tensor:
    """Prompts (N, 50) of the trained or the held-out casts, from the play's
    first nine tenths to learn from, or from the last one to be judged by."""
    p = pocket.load()
    text = p.play.text[p.n :] if judged else p.play.text[: p.n]
    scenes = entrances(text)
    some = [prompt for prompt, cast in scenes if held_out(cast, turn) == out]
    random.Random(turn).shuffle(some)
    return torch.tensor([p.tokenizer.encode(prompt) for prompt in some])


def kept(text: str) -> bool:
    """The true judge: whether a text keeps all rules."""
    return not CHECKER.check(text).broken


def announced(text: str) -> bool:
    """A judge that looks right: everybody who speaks or is named was announced."""
    cast = re.split(", | and ", re.findall(r"Enter (.*)\.", text)[0])
    speak = re.findall(r"\n\n(.*):\n", text)
    named = re.findall(r"^(?:Hear me,|O) (.*?)[:,]", text, re.MULTILINE)
    return all(name in cast for name in speak + named)


def ten_more(text: str) -> float:
    """The true judge with 10 points more for everybody."""
    return 10 + kept(text)


def no_baseline(rewards: torch.Tensor) -> torch.Tensor:
    """The rewards as they are, instead of `advantages`."""
    return rewards


OPENING = re.compile("Hear me, |O ")


@torch.no_grad()
def absent(model: Model, turn: int, out: bool, n: int = 100) -> dict[str, float]:
    """How likely a model finds in n of the author's own scenes that somebody speaks
    first, or is named by the first who speaks, who can't: people who aren't on stage,
    and the speaker himself."""
    p, told = pocket.load(), {}
    scenes = entrances(p.play.text[p.n :], NEW)
    scenes = [s for s in scenes if held_out(s[1], turn) == out][:n]
    for what in ("speaks", "is named"):
        rows, lengths = [], []
        for text, cast in scenes:
            place = text.index("\n\n", BEFORE) + 2
            if what == "is named":
                cast = cast - {text[place:].partition(":")[0]}
                place = OPENING.search(text, place).end()  # ty: ignore
            for name in POCKET.names:
                if name not in cast:
                    rows.append(p.tokenizer.encode(text[:place] + name))
                    lengths.append(len(name))
        total = 0.0
        for row, length in zip(rows, lengths):
            idx = torch.tensor([row])
            logp = log_probs(model, idx, length)[0]  # (length, V)
            total += logp.gather(1, idx[0, -length:, None]).sum().exp().item()
        told[f"absent {what}"] = total / len(scenes)
    return told


def whole(model: Model, prompts: torch.Tensor, generator: torch.Generator) -> float:
    """The share of whole scenes that keep all rules, up to the next Chorus."""
    idx = generate(model, prompts, WHOLE, generator=generator)  # (N, 50 + 250)
    tokenizer = pocket.load().tokenizer
    scenes = [scene(tokenizer.decode(i)) for i in idx]
    ends = [text.find("Chorus:\n", 1) for text in scenes]
    judged = [kept(t[:end] if end > 0 else t) for t, end in zip(scenes, ends)]
    return sum(judged) / len(judged)


def found(model: Model, seed: int, seconds: float = 0.0) -> dict[str, float]:
    """Everything that the price list says of a model."""
    turn, tokenizer = seed - 1337, pocket.load().tokenizer
    reference = load_stored(f"pocket-{seed}")[0]
    measured = {}
    for out, name in [(False, ""), (True, ", held out")]:
        some = prompts(turn, True, out)[:64].repeat_interleave(8, dim=0)
        dice = torch.Generator().manual_seed(seed)
        measured |= {
            what + name: value
            for what, value in {
                **price(model, reference, tokenizer, some, dice),
                **absent(model, turn, out),
                "kept, whole scenes": whole(model, some[::2], dice),
            }.items()
        }
    nats, p = pocket.surprises(model), pocket.load()
    measured["loss"] = nats.mean().item()
    measured["floor"] = p.exact[p.n :][: len(nats)].mean().item()
    measured |= {f"excess, {kind}": x for kind, x in pocket.excess(nats).items()}
    return {k: round(v, 5) for k, v in measured.items()} | {"seconds": seconds}


def reward(
    seed: int,
    judge: Callable = kept,
    rate: float = 3e-4,
    leash: float = 0.1,
    steps: int = STEPS,
    advantages: Callable = advantages,
) -> dict[str, float]:
    """Learn from a judge; "reward" is the mean of the last five steps."""
    model, tokenizer = load_stored(f"pocket-{seed}")
    reference, judges = copy.deepcopy(model), judged_by(tokenizer, judge)
    some, dice = prompts(seed - 1337, False, False), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    last, start = [], time.process_time()
    for _ in range(steps):
        batch = some[torch.randint(len(some), (GROUPS,), generator=dice)]
        to = batch, judges, GROUP, NEW, leash, dice, advantages
        got = reward_step(model, reference, optimizer, *to)
        last = [*last[-4:], got.mean().item()]
    seconds = time.process_time() - start
    return found(model, seed, seconds) | {"reward": sum(last) / 5}


def imitate(seed: int, texts: Callable, rate: float = 3e-4) -> dict[str, float]:
    """Learn to go on like texts(seed) (N, 192): all of them once, in 40 steps."""
    start = time.process_time()
    model, data = load_stored(f"pocket-{seed}")[0], texts(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    dice = torch.Generator().manual_seed(seed)
    for idx in data[torch.randperm(len(data), generator=dice)].tensor_split(STEPS):
        logp = log_probs(model, idx, NEW).transpose(1, 2)  # (B, V, NEW)
        optimizer.zero_grad()
        F.nll_loss(logp, idx[:, -NEW:]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return found(model, seed, time.process_time() - start) | {"texts": len(data)}


def own_kept(seed: int) -> torch.Tensor:
    """Of as many texts as a reward sees, those that keep all rules (rejection)."""
    model, tokenizer = load_stored(f"pocket-{seed}")
    some, dice = prompts(seed - 1337, False, False), torch.Generator().manual_seed(seed)
    groups = some[torch.randint(len(some), (STEPS * GROUPS,), generator=dice)]
    drawn = []
    for batch in groups.repeat_interleave(GROUP, dim=0).split(GROUPS * GROUP):
        idx = generate(model, batch, NEW, generator=dice)
        drawn.append(idx[judged_by(tokenizer, kept)(idx) == 1])
    return torch.cat(drawn)


def new_scenes(seed: int) -> torch.Tensor:
    """As many texts as a reward sees: new scenes by the author, with trained casts."""
    play = write_play(2_000_000, seed=10_000 + seed, lexicon=POCKET)
    texts = entrances(play.text, NEW)
    some = [text for text, cast in texts if not held_out(cast, seed - 1337)]
    encode = pocket.load().tokenizer.encode
    return torch.tensor([encode(text) for text in some[: STEPS * GROUPS * GROUP]])


def cooled(seed: int, temperature: float = 1.0) -> dict[str, float]:
    """The stored model at another temperature: its last layer divided by it."""
    model: Model = load_stored(f"pocket-{seed}")[0]
    for parameter in model.lm_head.parameters():
        parameter.data /= temperature
    return found(model, seed)


EXPERIMENTS = {
    "15-price": {
        "reference": cooled,
        "wrong judge, no leash": partial(reward, judge=announced, leash=0, steps=20),
        "wrong judge, no leash, 8 steps": partial(
            reward, judge=announced, leash=0, steps=8
        ),
        "wrong judge, leash 0.1": partial(reward, judge=announced, steps=20),
        "leash 0.3": partial(reward, leash=0.3),
        "leash 0.1": reward,
        "leash 0.1, rate 0.001": partial(reward, rate=1e-3),
        "leash 0.1, rate 0.0001": partial(reward, rate=1e-4),
        "no leash": partial(reward, leash=0),
        "no baseline": partial(reward, advantages=no_baseline),
        "10 more, no baseline": partial(reward, judge=ten_more, advantages=no_baseline),
        "own scenes kept": partial(imitate, texts=own_kept),
        "own scenes kept, rate 0.001": partial(imitate, texts=own_kept, rate=1e-3),
        "own scenes kept, rate 0.0001": partial(imitate, texts=own_kept, rate=1e-4),
        "new scenes by the author": partial(imitate, texts=new_scenes),
        "temperature 0.6": partial(cooled, temperature=0.6),
        "temperature 0.4": partial(cooled, temperature=0.4),
    },
}
