"""Trainings that are killed: python killed_runs.py FOLDER KIND KILLS SEED.

A helper of test_nothing_lost.py, in a process of its own: it has torch imported and
one thread, so that it can fork a training in no time. Each training is killed with
SIGKILL and resumed, and so on, until one is left in peace to its end: KILLS times at
random moments, and nine times where a write stands. Writes report.json into FOLDER.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

import minigpt.__main__ as command_line
from minigpt.gpt import GPTConfig
from minigpt.modern import ModernConfig
from minigpt.recipe import TrainConfig

TEXT = "to be or not to be; " * 100
PLAN = {"steps": 36, "batch_size": 4, "block_size": 8, "learning_rate": 1e-2}
PLAN |= {"eval_every": 3, "eval_batches": 2}


def gpt(name, vocab_size):
    shape = {"n_layer": 1, "n_head": 2, "n_embd": 16, "dropout": 0.2}
    return GPTConfig(vocab_size, 8, **shape), TrainConfig(**PLAN)


def modern(name, vocab_size):
    shape = {"n_layer": 1, "n_head": 2, "n_embd": 16}
    config = TrainConfig(**PLAN, optimizer="muon", schedule="trapezoid")
    return ModernConfig(vocab_size, 8, **shape), config


def stop_myself():
    os.kill(os.getpid(), signal.SIGSTOP)


def stop_in_the_middle_of_a_write(after):
    write = Path.write_bytes

    def half(path, content):
        nonlocal after
        after -= 1
        if after == 0:
            write(path, content[: len(content) // 2])
            stop_myself()
        return write(path, content)

    Path.write_bytes = half


def stop_before_the_move(after):
    move = os.replace

    def waiting(*paths):
        nonlocal after
        after -= 1
        if after == 0:
            stop_myself()
        move(*paths)

    os.replace = waiting


def stop_after_the_move(after):
    move = os.replace

    def waiting(*paths):
        nonlocal after
        after -= 1
        move(*paths)
        if after == 0:
            stop_myself()

    os.replace = waiting


STOPS = [
    stop_in_the_middle_of_a_write,
    stop_before_the_move,
    stop_after_the_move,
]


def training(folder, stop=None, after=0):
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
                stop(after)
            options = ["train", "--data", "../text.txt", "--device", "cpu", "--resume"]
            code = command_line.main(options)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # no cleaning up here of what belongs to the parent


def end_of(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def warm_up():
    """The first optimizer imports half of torch: once here, and not in each child."""
    torch.optim.AdamW([torch.zeros(1, requires_grad=True)]).zero_grad()


def main(folder, kind, kills, seed):
    torch.set_num_threads(1)
    warm_up()
    command_line.preset = {"gpt": gpt, "modern": modern}[kind]
    draw = random.Random(seed)
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")

    whole = folder / "whole"
    whole.mkdir()
    start = time.perf_counter()
    report = {"code": end_of(training(whole)), "kills": [], "ended": []}
    seconds = time.perf_counter() - start

    deck = [None] * kills + STOPS * 3  # at random times, and where a write stands
    draw.shuffle(deck)
    while deck and report["code"] == 0:
        place = folder / f"run_{len(report['ended'])}"
        place.mkdir()
        in_peace = False
        while not in_peace:
            stop = deck[-1]
            process = training(place, stop, after=draw.randint(1, 4))
            if stop:
                state = os.waitpid(process, os.WUNTRACED)[1]
                alive = os.WIFSTOPPED(state)
            else:
                time.sleep(draw.uniform(0, seconds))
                alive = os.waitpid(process, os.WNOHANG)[0] == 0
            if alive:  # else it was quicker: the card is drawn again
                deck.pop()
                os.kill(process, signal.SIGKILL)
                end_of(process)
                kept = folder / f"kept_{len(report['kills'])}.pt"
                if (place / "model.pt").exists():
                    shutil.copy(place / "model.pt", kept)
                report["kills"].append(
                    {
                        "kept": kept.name if kept.exists() else None,
                        "writing": len(list(place.glob("*.tmp"))) > 0,
                        "stop": stop.__name__ if stop else None,
                    }
                )
            in_peace = not alive or not deck or draw.random() < 0.4
        code = end_of(training(place))
        left = sorted(path.name for path in place.iterdir())
        report["ended"].append({"run": place.name, "code": code, "left": left})
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
