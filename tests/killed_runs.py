"""Trainings that are killed: python killed_runs.py FOLDER KIND KILLS SEED.

A helper of test_nothing_lost.py, in a process of its own: it has torch imported and
one thread, so that it can fork a training in no time. Each training is killed with
SIGKILL and resumed, and so on, until it is left in peace to its end: KILLS times at
random moments, and three times where a write stands. Writes report.json into FOLDER.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

import minigpt.tools.command_line as command_line
from minigpt.tools.saving import load_any

TEXT = "to be or not to be; " * 100
OPTIONS = (
    "train --data ../text.txt --device cpu --resume --steps 36 --batch-size 4 "
    "--learning-rate 0.01"
).split()
SHAPE = "--block-size 8 --n-layer 1 --n-head 2 --n-embd 16 --preset".split()
KINDS = {"gpt": ["cpu", "--dropout", "0.2"], "modern": ["modern"]}


def often(shape, config):
    """A preset that is saved every three steps."""
    config.eval_every, config.eval_batches = 3, 2
    return shape, config


def stop_at(where, after):
    """Let this process stand still at its write number `after`: in its middle, before
    the file moves to its place, or after that."""

    def counted(function, place):
        def standing(*args):
            nonlocal after
            after -= 1
            if after > 0:
                return function(*args)
            if place == "after":
                function(*args)
            os.kill(os.getpid(), signal.SIGSTOP)

        return standing

    if where == "middle":  # nothing is on the disk yet for sure
        os.fsync = counted(os.fsync, "before")
    else:
        os.replace = counted(os.replace, where)


def training(folder, options, stop=None, after=0):
    """Begin or resume the training in `folder`; returns the id of its process."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.chdir(folder)
        with open(folder.parent / f"{folder.name}.log", "a") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            if stop:
                stop_at(stop, after)
            begins = [] if Path("model.pt").exists() else options
            code = command_line.main([*OPTIONS, *begins])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # no cleaning up here of what belongs to the parent


def end_of(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(folder, kind, kills, seed):
    torch.set_num_threads(1)
    # The first optimizer imports half of torch: once here, and not in each child.
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)]).zero_grad()
    options, draw = [*SHAPE, *KINDS[kind]], random.Random(seed)
    cpu, modern = command_line.preset, command_line.modern_preset
    command_line.preset = lambda name, V: often(*cpu(name, V))
    command_line.modern_preset = lambda V: often(*modern(V))
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")

    whole = folder / "whole"
    whole.mkdir()
    start = time.perf_counter()
    assert end_of(training(whole, options)) == 0
    seconds = time.perf_counter() - start

    report = {"steps": [], "writing": 0, "ended": {}}
    deck = [None] * kills + ["middle", "before", "after"]
    draw.shuffle(deck)
    while deck:
        place = folder / f"run_{len(report['ended'])}"
        place.mkdir()
        while deck and draw.random() < 0.7:
            stop = deck[-1]
            process = training(place, options, stop, after=draw.randint(1, 3))
            if stop:
                alive = os.WIFSTOPPED(os.waitpid(process, os.WUNTRACED)[1])
            else:
                time.sleep(draw.uniform(0, seconds))
                alive = os.waitpid(process, os.WNOHANG)[0] == 0
            if not alive:  # it was quicker: the card is drawn again, elsewhere
                break
            deck.pop()
            os.kill(process, signal.SIGKILL)
            end_of(process)
            kept = place / "model.pt"
            report["steps"].append(load_any(kept).run.step if kept.exists() else 0)
            report["writing"] += len(list(place.glob("*.tmp"))) > 0
        assert end_of(training(place, options)) == 0
        left = sorted(path.name for path in place.iterdir())
        report["ended"][place.name] = left
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
