"""The speed run's table of records: each entry changes one thing (see CHANGES there).

A recipe here is what a reader's file would hold, and runs under the same function.
"""

from dataclasses import replace
from functools import partial

import torch

from minigpt import speedrun
from minigpt.counting import ContextCounts, CountingGPT, CountsAlone, fit_smoothing
from minigpt.evaluation import evaluate
from minigpt.modern import ModernConfig
from minigpt.training import preset, train

# The settings, all in one place. STEPS: what fits into the time on the machine of the
# record. ORDER: the longest context that is counted beside a GPT, whose gate weighs
# them all; ALONE, without one, is the best of "speedrun-order".
ORDER, ALONE, FIT_STEPS = 8, 5, 100
STEPS = {
    "the demo's recipe, our GPT": 2000,
    "GPT of 06": 2900,
    "+ Muon, trapezoid": 2050,
    "+ today's block": 1950,
    "+ context 128, third block": 1150,
    "counts alone": FIT_STEPS,
    "+ counts": 1480,
    "+ counts, 10 seconds": 170,
}
COUNTED = {"block_size": 256, "n_layer": 2, "n_head": 3, "n_embd": 96}


def shapes_and_plans(vocab_size):
    """{entry: (its model's config, its TrainConfig)}, for the entries that train."""
    gpt, adamw = preset("cpu", vocab_size)
    shape, plan = preset("modern", vocab_size)  # its optimizer, schedule and rates
    short = replace(plan, batch_size=16, block_size=64)
    block = ModernConfig(vocab_size, 64, gpt.n_layer, gpt.n_head, gpt.n_embd)
    narrow = replace(shape, **COUNTED)  # counts know much: a smaller GPT will do
    long = replace(plan, batch_size=4, block_size=256, learning_rate=4e-3)
    found = {
        "the demo's recipe, our GPT": speedrun.demo(vocab_size),
        "GPT of 06": (gpt, adamw),
        "+ Muon, trapezoid": (gpt, short),
        "+ today's block": (block, short),
        "+ context 128, third block": (shape, plan),
        "+ counts": (narrow, long),
        "+ counts, 10 seconds": (narrow, long),
    }
    return {name: (s, until(p, STEPS[name])) for name, (s, p) in found.items()}


def until(plan, steps):
    """The plan for so many steps; what `train` would report is not needed."""
    return replace(plan, steps=steps, eval_every=steps, eval_batches=1)


def neural(name, train_ids, vocab_size, seed):
    """A recipe: the entry's model, trained by its plan."""
    shape, plan = shapes_and_plans(vocab_size)[name]
    torch.manual_seed(seed)
    model = shape.build()
    learn(model, train_ids, replace(plan, seed=seed))
    return model


def learn(model, train_ids, plan, draw=None):
    """Train to the end: half a training is no measurement."""
    history = train(model, train_ids, train_ids, plan, draw=draw)
    if history[-1].step < plan.steps:
        raise KeyboardInterrupt


def counted(train_ids, vocab_size, seed, order=None):
    """A recipe: counts alone; only their discounts are fitted."""
    plan = replace(shapes_and_plans(vocab_size)["+ counts"][1], seed=seed)
    counts = ContextCounts(train_ids, vocab_size, order or ORDER)
    smoothing = fit_smoothing(counts, train_ids, plan, FIT_STEPS)
    return CountsAlone(counts, smoothing, plan.block_size)


def both(name, train_ids, vocab_size, seed):
    """A recipe: the counts, and a ModernGPT that adds what they cannot know."""
    shape, plan = shapes_and_plans(vocab_size)[name]
    plan = replace(plan, seed=seed)
    counts = counted(train_ids, vocab_size, seed)
    torch.manual_seed(seed)
    model = CountingGPT(shape, counts.counts, counts.smoothing)
    learn(model, train_ids, plan, draw=model.draw(train_ids, plan))
    return model


RECIPES = {
    "the demo's recipe, our GPT": partial(neural, "the demo's recipe, our GPT"),
    "GPT of 06": partial(neural, "GPT of 06"),
    "+ Muon, trapezoid": partial(neural, "+ Muon, trapezoid"),
    "+ today's block": partial(neural, "+ today's block"),
    "+ context 128, third block": partial(neural, "+ context 128, third block"),
    "counts alone": partial(counted, order=ALONE),
    "+ counts": partial(both, "+ counts"),
    "+ counts, 10 seconds": partial(both, "+ counts, 10 seconds"),
}


def entry(name, source, seed):
    """One seed of an entry: what speedrun.run measures, the steps, the machine's
    speed at that time; and for the playwright's text the floor."""
    text = speedrun.open_text(source)
    speed = speedrun.demo_speed()
    found = speedrun.run(RECIPES[name], text, seed)
    found |= {"steps": STEPS[name], "demo steps per second": round(speed, 2)}
    if text.floor is not None:
        found["floor"] = text.floor
    return found


def development(order, seed):
    """Counts of contexts of `order` characters, judged on a piece cut from the end of
    the training text: the validation split has no say in what is chosen."""
    text = speedrun.open_text()
    n = len(text.train) - len(text.val)
    model = counted(text.train[:n], text.vocab_size, seed, order)
    return {"loss": evaluate(model, text.train[n:], model.block_size)}


def entries(source, names=None):
    """{entry: function(seed)} on a text; names: some of them (None: all)."""
    return {name: partial(entry, name, source) for name in names or RECIPES}


KNOWN_FLOOR = ["counts alone", "+ counts"]
EXPERIMENTS = {
    "speedrun": entries("tinyshakespeare"),
    "speedrun-playwright": entries("playwright", KNOWN_FLOOR),
    "speedrun-order": {
        f"{order} characters": partial(development, order) for order in range(3, 9)
    },
}
