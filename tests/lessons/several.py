"""What each of several processes does in test_parallel: the same small trainings.

They compute in float64: in float32 a ReLU at its corner makes 1e-4 of a rounding.
"""

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout

import torch
from small import DATA, TOKENIZER, V, plan, small_gpt, weights_of

from minigpt.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from minigpt.device import set_random_state
from minigpt.evaluation import evaluate
from minigpt.gpt import GPTConfig
from minigpt.modern.model import ModernConfig
from minigpt.modern.recipe import MuonConfig
from minigpt.parallel.meeting import joined
from minigpt.parallel.workers import Worker, first
from minigpt.tools.command_line import main
from minigpt.training import Run, TrainConfig, train

ODD = DATA[:-3]  # the last window is shorter, and stands alone in its batch
PLAN = plan(steps=8, batch_size=7, eval_every=1, eval_batches=1)
MUON = MuonConfig(8, 7, 8, 1e-2, eval_every=1, eval_batches=1)
KINDS = GPTConfig, TrainConfig, ModernConfig, MuonConfig
CPU = torch.device("cpu")


def small_modern():
    torch.manual_seed(0)
    return ModernConfig(V, 8, n_layer=2, n_head=2, n_embd=16).build()


def losses(worker, config, run=None, **options):
    """[training, validation] loss after each step, and the exact one in the end."""
    history = train(worker, DATA, ODD, config, run, **options)
    rows = [list(row[1:3]) for row in history]
    return [*rows, [evaluate(worker, ODD, 8, batch_size=32)] * 2]


def resumed(path, config):
    """Go on with the run in a file: (losses, model)."""
    kept = load_checkpoint(path, kinds=KINDS)
    set_random_state(kept.random, CPU)
    return losses(Worker(kept.model), config, kept.run), kept.model


def in_two_halves(path, model, config):
    """Save after half of the steps, and go on from the file: (losses, model)."""
    half = config.steps // 2
    checkpoint = Checkpoint(model, TOKENIZER, config, Run(model, config))

    def keep(run):
        if run.step == half:
            first(lambda: save_checkpoint(path, checkpoint))

    def stop(run):
        return run.step == half

    stops = {"on_eval": keep, "on_step": stop}
    losses(Worker(model), config, checkpoint.run, **stops)
    return resumed(path, config)


def work(rank, ports, out, folder, command):
    """Be worker `rank` of two, as torchrun would start it: first of a command in a
    folder, then of the other trainings."""
    torch.set_num_threads(1)
    os.environ.update(RANK=f"{rank}", LOCAL_RANK=f"{rank}", MASTER_ADDR="127.0.0.1")
    os.environ.update(WORLD_SIZE="2", TORCHELASTIC_RUN_ID="1")
    os.environ["MASTER_PORT"] = f"{ports[0]}"
    said, told = io.StringIO(), io.StringIO()
    os.chdir(folder)
    with redirect_stdout(said), redirect_stderr(told):
        code = main(command)
    os.environ["MASTER_PORT"] = f"{ports[1]}"
    torch.set_default_dtype(torch.float64)
    with joined():
        found = of_two(out)
    found["command"] = code, said.getvalue(), told.getvalue()
    (out / f"{rank}.json").write_text(json.dumps(found), encoding="utf-8")


def of_two(out):
    modern, dropping = small_modern(), small_gpt(dropout=0.2)
    found = {
        "AdamW": losses(Worker(small_gpt()), PLAN),
        "Muon": losses(Worker(modern, 3), MUON, Run(modern, MUON)),
        "dropout": losses(Worker(dropping), PLAN),
        "dropped": weights_of(dropping).tolist(),
    }
    for name, model, config in (
        ("Muon, resumed", small_modern(), MUON),
        ("dropout, resumed", small_gpt(dropout=0.2), PLAN),
    ):
        found[name], model = in_two_halves(out / f"{name}.pt", model, config)
    with Worker(model).own_numbers(CPU):
        found["own numbers"] = torch.rand(3).tolist()
    found["common numbers"] = torch.rand(3).tolist()
    return found
