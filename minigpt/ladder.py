"""The loss ladder: what each lesson's model reaches, all judged alike.

Every number is the exact loss over the whole validation split of Tiny Shakespeare.
The record beside this file holds what the notebooks measured when they were last
published (`make notebooks`, which trains the GPT with two more seeds for its spread);
a notebook that you run puts its own results in the place of the recorded ones, for
itself. `python -m minigpt.ladder` shows the GPT's spread on your machine.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

RECORD = Path(__file__).with_name("ladder.json")
NAMES = [
    "uniform guess",
    "unigram counts",
    "bigram",
    "one head",
    "four heads",
    "one block",
    "three blocks",
    "GPT",
]
measured = {}  # by this process: name -> entry like those of the record


class Rung(NamedTuple):
    """One model: mean loss (nats per character), largest minus smallest over
    the seeds, parameters, and seconds of training for one seed."""

    name: str
    loss: float
    spread: float
    parameters: int
    seconds: float


def climb(name, losses, parameters, seconds, comparable=True):
    """Put a result on the ladder; return the rungs from the top down to it.

    losses: {seed: loss in nats per character}. Seeds that were not run now keep
    their recorded loss, so one run of a long training shows beside the spread.
    comparable: False for another text or a run cut short; then the recorded
    losses are left out, and only what was measured here is shown.
    Raises ValueError if the ladder has no rung of this name.
    """
    if name not in NAMES:
        raise ValueError(f"The ladder has no rung {name!r}; it has {NAMES}.")
    record = {}
    if comparable and RECORD.exists():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    old = record.get(name, {})
    kept = old.get("losses", {}) if old.get("parameters") == parameters else {}
    new = {str(seed): float(loss) for seed, loss in losses.items()}
    measured[name] = {
        "losses": {**kept, **new},
        "parameters": parameters,
        "seconds": round(seconds, 1),
    }
    record |= measured
    if comparable and os.environ.get("MINIGPT_RECORD"):  # set by `make notebooks`
        unfinished = RECORD.with_suffix(".tmp")
        unfinished.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        os.replace(unfinished, RECORD)
    so_far = NAMES[: NAMES.index(name) + 1]
    return [_rung(n, record[n]) for n in so_far if n in record]


def recorded():
    """The published ladder, top to bottom: list of Rung."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    return [_rung(name, record[name]) for name in NAMES if name in record]


def falls(rungs):
    """True if each rung is below the one before by more than both spreads."""
    return all(
        low.loss + max(low.spread, high.spread) < high.loss
        for high, low in zip(rungs, rungs[1:])
    )


def table(rungs):
    """The rungs as lines of text, for print()."""
    lines = [f"{'model':16}{'loss':>8}{'spread':>9}{'parameters':>13}{'seconds':>10}"]
    for rung in rungs:
        spread = f"{rung.spread:.3f}" if rung.spread else "one run"
        if rung.name in NAMES[:2]:  # counted, not trained
            spread = "exact"
        lines.append(
            f"{rung.name:16}{rung.loss:8.4f}{spread:>9}"
            f"{rung.parameters:>13,}{rung.seconds:>10.1f}"
        )
    return "\n".join(lines)


def _rung(name, entry):
    losses = list(entry["losses"].values())
    mean, spread = sum(losses) / len(losses), max(losses) - min(losses)
    return Rung(name, mean, spread, entry["parameters"], entry["seconds"])


def main(seeds=(1337, 1338, 1339)):
    """Train the GPT of notebook 06 once for each seed, and print the spread."""
    import torch

    from minigpt.data import CharTokenizer, load_text, train_val_split
    from minigpt.gpt import GPT
    from minigpt.training import evaluate, preset, train

    text = load_text()
    tokenizer = CharTokenizer(text)
    train_data, val_data = train_val_split(torch.tensor(tokenizer.encode(text)))
    losses = {}
    for seed in seeds:
        model_config, config = preset("cpu", tokenizer.vocab_size)
        config.seed = seed
        torch.manual_seed(seed)
        model = GPT(model_config)
        history = train(model, train_data, val_data, config)
        losses[seed] = evaluate(model, val_data, config.block_size)
        parameters = sum(p.numel() for p in model.parameters())
        seconds = history[-1].seconds
        print(f"seed {seed}: {losses[seed]:.4f} nats, {seconds:.0f} s", flush=True)
    print(table(climb("GPT", losses, parameters, seconds)[-1:]))


if __name__ == "__main__":
    main()
