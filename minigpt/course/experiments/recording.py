"""Writing the record that `minigpt.course.record` reads."""

import json
import platform
from datetime import date
from pathlib import Path

import torch

from minigpt.course import record
from minigpt.course.record import Variant
from minigpt.files import write_whole


def save(experiment: str, variants: dict[str, Variant]) -> None:
    """Write a record: machine, torch and date beside {name: Variant}.

    Raises ValueError for a number that is not finite: a run that failed.
    """
    content = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "torch": torch.__version__.split("+")[0],
        "variants": {name: variant.runs for name, variant in variants.items()},
    }
    written = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_whole(record.FOLDER / f"{experiment}.json", written)


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
