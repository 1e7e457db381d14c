"""What each of several processes does in test_parallel: python several.py OUT.

Every kind of training of the same small models, each with the workers of this job;
each writes what it saw to the folder OUT. They compute in float64: in float32 a ReLU
at its corner makes 1e-4 of a rounding now and then.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch
from small import DATA, TOKENIZER, V, plan, small_gpt, weights_of

from minigpt.checkpoint import load_checkpoint, saver
from minigpt.evaluation import evaluate
from minigpt.modern import ModernConfig
from minigpt.parallel import Shards, joined
from minigpt.training import train

ODD = DATA[:-3]  # the last window is shorter, and the number of windows odd


def small_modern():
    torch.manual_seed(0)
    return ModernConfig(V, 8, n_layer=2, n_head=2, n_embd=16).build()


def each_step(steps, **changes):
    return plan(steps=steps, batch_size=7, eval_every=1, eval_batches=1, **changes)


RUNS = {  # name: (model, plan)
    "adamw": (small_gpt, each_step(50)),
    "muon": (small_modern, each_step(12, optimizer="muon")),
    "accumulate": (small_gpt, each_step(12, accumulate=2)),
    "more evaluations": (small_gpt, replace(each_step(6), eval_batches=5)),
}


def losses(model, config, workers, **options):
    """[training, validation] loss after each step, and the exact one in the end."""
    history = train(model, DATA, ODD, config, workers=workers, **options)
    exact = evaluate(model, ODD, 8, batch_size=16, workers=workers)
    rows = [[row.train_loss, row.val_loss] for row in history]
    return {"rows": rows, "exact": exact}


def main(out):
    torch.set_default_dtype(torch.float64)
    found = {}
    with joined() as workers:
        for name, (make, config) in RUNS.items():
            found[name] = losses(make(), config, workers)
        found["rows"] = [workers.rows(7).start, workers.rows(7).stop]
        found["sum"] = workers.sum(workers.rank + 0.5)
        dropout = small_gpt(dropout=0.2)
        losses(dropout, plan(batch_size=6), workers)
        found["with dropout"] = weights_of(dropout).tolist()
        found["noise"] = torch.rand(3).tolist()
        if workers.size > 1:
            shards = Shards()
            for name, (make, config) in RUNS.items():
                if workers.size == 2 or name == "accumulate":  # three take their time
                    found["sharded " + name] = losses(make(), config, shards)
            kept(out, shards, found)
        (out / f"{workers.rank}.json").write_text(json.dumps(found), encoding="utf-8")


class EndOfRun(Exception):
    pass


def kept(out, shards, found):
    """Save a sharded run half way, and go on with it: sharded, and as a whole."""
    for name in ("accumulate", "muon") if shards.size == 2 else ("muon",):
        make, config = RUNS[name]
        model, place = make(), out / name
        half = replace(config, eval_every=config.steps // 2)
        save = saver(place, model, TOKENIZER, half, shards)

        def keep(state, save=save, config=config):
            save(state)
            if state.step < config.steps:
                raise EndOfRun

        try:
            train(model, DATA, ODD, half, workers=shards, save=keep)
        except EndOfRun:
            pass
        again = load_checkpoint(place)
        rest = losses(again.model, config, shards, resume=again.state)
        rest["rows"] = rest["rows"][1:]  # the first is that of the half before
        found["sharded and resumed " + name] = rest


if __name__ == "__main__":
    main(Path(sys.argv[1]))
