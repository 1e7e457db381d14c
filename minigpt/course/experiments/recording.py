"""Writing the record that `minigpt.course.record` reads."""

import json
import platform
from collections.abc import Collection
from datetime import date
from pathlib import Path

import torch

from minigpt.course import record
from minigpt.course.record import Variant
from minigpt.files import write_whole


def save(
    experiment: str,
    variants: dict[str, Variant],
    measured: Collection[tuple[str, int]] | None = None,
) -> None:
    """Write a record: date, machine and torch beside {name: Variant}.

    measured: the (name, seed) pairs that were measured now; all of them if None. The
    other runs keep the date, machine and torch that the record has for them, in its
    list "also". Raises ValueError for a number that is not finite: a run that failed.
    """
    now = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "torch": torch.__version__.split("+")[0],
    }
    path = record.FOLDER / f"{experiment}.json"
    stamp_of = {} if measured is None else stamps(path)
    stamp_of |= dict.fromkeys(measured or (), now)
    others = {}  # stamp -> {name: seeds}
    for name, variant in variants.items():
        for seed in variant.runs:
            stamp = stamp_of.get((name, seed), now)
            if stamp != now:
                runs = others.setdefault(tuple(stamp.items()), {})
                runs.setdefault(name, []).append(seed)
    also = [dict(stamp) | {"runs": runs} for stamp, runs in others.items()]
    runs = {name: variant.runs for name, variant in variants.items()}
    content = now | ({"also": also} if also else {}) | {"variants": runs}
    write_whole(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def stamps(path: Path) -> dict[tuple[str, int], dict[str, str]]:
    """{(name, seed): its "date", "machine" and "torch"} of a record, {} without one."""
    if not path.is_file():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))
    found = {}
    for part in [{"runs": content["variants"], **content}, *content.get("also", [])]:
        stamp = {key: part[key] for key in ("date", "machine", "torch") if key in part}
        for name, seeds in part["runs"].items():
            found |= {(name, int(seed)): stamp for seed in seeds}
    return found


def machine() -> str:
    """The processor and the number of threads, in a few words."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name}, {torch.get_num_threads()} threads"
