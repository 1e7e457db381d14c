"""The course set up and opened with nothing but Python, where there is no make:

    python minigpt/tools/lab.py

fills .venv with what requirements.txt asks for, unless that is done, and opens
JupyterLab at notebook 00. Another word behind it, as `set-up`, leaves it closed.
"""

from __future__ import annotations  # an old Python, too, reads on to its message

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv"
PYTHON = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
READY = FOLDER / "ready"  # says which torch is there, as for the Makefile
ASKED = [ROOT / "requirements.txt", ROOT / "pyproject.toml"]
PIP = [PYTHON, "-m", "pip", "install", "--quiet"]
# On Linux PyPI has torch with CUDA, 3 GB: the CPU build has an index of its own. If
# that does not answer, the usual index serves.
CPU = ["--no-deps", "--retries", "0", "--timeout", "15"]
CPU += ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
LAB = [PYTHON, "-m", "jupyter", "lab", "--ServerApp.root_dir=."]
LAB += ["--LabApp.app_settings_dir=.jupyter"]
LAB += ["--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb"]
OLD = (
    "minigpt needs Python 3.10 or newer, and this is Python %d.%d. Get a newer one "
    "from python.org, then type its name in place of this one's: py -3.13 "
    "minigpt\\tools\\lab.py, or elsewhere python3.13 minigpt/tools/lab.py"
)


def is_ready() -> bool:
    """Whether .venv has what the project asks for today."""
    if not (READY.is_file() and PYTHON.exists()):
        return False
    return all(READY.stat().st_mtime >= path.stat().st_mtime for path in ASKED)


def set_up() -> None:
    """Fill .venv; one that never became ready, or has no Python, is made anew."""
    if not (READY.is_file() and PYTHON.exists()):
        venv.create(FOLDER, clear=True, with_pip=True)
    print("This takes a few minutes, once: 1.4 GB come into .venv.", flush=True)
    if sys.platform == "linux":
        asked = ASKED[0].read_text(encoding="utf-8").split()
        run([*PIP, *CPU, *(line for line in asked if line.startswith("torch="))], False)
    run([*PIP, "-r", "requirements.txt"])
    run([*PIP, "--no-deps", "--editable", "."])
    READY.write_text("cpu\n", encoding="utf-8")


def run(command: Sequence[object], must: bool = True) -> None:
    """Run a command in the project's folder; an error ends this one, if it must."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT)
    if must and done.returncode:
        sys.exit(done.returncode)


def main(arguments: list[str]) -> None:
    """Set up if need be, then open JupyterLab, which stays until Ctrl+C."""
    if sys.version_info < (3, 10):  # noqa: UP036 - this file runs before pip looks
        sys.exit(OLD % sys.version_info[:2])
    if not is_ready():
        set_up()
    if not arguments:
        try:
            run(LAB)
        except KeyboardInterrupt:  # JupyterLab has said so itself
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
