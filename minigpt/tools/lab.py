"""Sets up and opens the course, using nothing but Python. `make lab` does the same.

    python minigpt/tools/lab.py            sets up .venv if needed, opens JupyterLab
    python minigpt/tools/lab.py set-up     sets up .venv if needed

With GPU=1 in the environment, Linux gets torch with CUDA.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv"
PYTHON = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
READY = FOLDER / "ready"  # which torch is in there, "cpu" or "gpu"
ASKED = [ROOT / "requirements.txt", ROOT / "pyproject.toml"]
PIP = [PYTHON, "-m", "pip", "install", "--quiet"]
# On Linux, PyPI's torch comes with CUDA and takes 3 GB. The CPU build has an index of
# its own. If that doesn't answer within 15 seconds, we use the usual index.
CPU = ["--no-deps", "--retries", "0", "--timeout", "15"]
CPU += ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
# .jupyter/overrides.json keeps JupyterLab from asking if it may fetch news.
LAB = [PYTHON, "-m", "jupyter", "lab", "--ServerApp.root_dir=."]
LAB += ["--LabApp.app_settings_dir=.jupyter"]
LAB += ["--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb"]
OLD = (
    "minigpt needs Python 3.10 or newer, and this is Python %d.%d. Get a newer one "
    "from python.org, then say which one to use: make lab PYTHON=python3.13, or "
    "without make python3.13 minigpt/tools/lab.py, or on Windows "
    "py -3.13 minigpt\\tools\\lab.py"
)


def set_up(gpu: bool) -> None:
    """Set up .venv, unless it already has what the project needs. It's rebuilt if it
    was never finished, its Python is gone, or it should have CUDA and doesn't."""
    there = READY.is_file() and PYTHON.exists()
    kind = READY.read_text(encoding="utf-8").strip() if there else None
    if kind is None or (gpu and kind == "cpu"):
        if sys.version_info < (3, 10):  # noqa: UP036 - pip hasn't looked yet
            sys.exit(OLD % sys.version_info[:2])
        run([sys.executable, "-m", "venv", "--clear", FOLDER])
        kind = "gpu" if gpu else "cpu"
    elif READY.stat().st_mtime >= max(path.stat().st_mtime for path in ASKED):
        return
    print("This takes a few minutes, but only once: .venv needs 1.4 GB.", flush=True)
    if sys.platform == "linux" and kind == "cpu":
        asked = ASKED[0].read_text(encoding="utf-8").split()
        run(PIP + CPU + [line for line in asked if line.startswith("torch=")], False)
    run(PIP + ["-r", "requirements.txt"])
    run(PIP + ["--no-deps", "--editable", "."])
    READY.write_text(kind + "\n", encoding="utf-8")


def run(command: list, must: bool = True) -> None:
    """Run a command in the project's folder. With `must`, stop if it fails."""
    code = subprocess.call([str(part) for part in command], cwd=str(ROOT))
    if must and code:
        sys.exit(code)


def main(arguments: list) -> None:
    """Set up if needed, then open JupyterLab, which runs until you press Ctrl+C."""
    set_up(gpu=bool(os.environ.get("GPU")))
    if not arguments:
        try:
            run(LAB)
        except KeyboardInterrupt:  # JupyterLab has said so itself
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
