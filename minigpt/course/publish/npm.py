"""reveal.js and MathJax, installed once by npm from package-lock.json beside this file.

npm checks each package against the lock's hash. What it installed is kept in the
user's cache folder, so that later builds need neither npm nor a network.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def read(name: str, path: str) -> bytes:
    """One file of a package as bytes: read("reveal.js", "dist/reveal.css").

    Raises FileNotFoundError with the remedy if the package cannot be had.
    """
    return (modules() / name / path).read_bytes()


@functools.cache
def modules() -> Path:
    """Folder with the packages, in the cache; npm installs it if it is not there.

    Raises FileNotFoundError with the remedy if npm is missing or fails.
    """
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = cache / "minigpt" / "npm" / lock[:12]  # another lock, another folder
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            install(folder)
            os.rename(f"{folder}/node_modules", kept)  # all of it or nothing
    return kept


def program() -> str | None:
    """Path of npm: that of the extra `publish`, else the user's own, else None."""
    places = [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
    return shutil.which("npm", path=os.pathsep.join(places))


def install(folder: Path | str) -> None:
    """Let npm install the packages below a folder; what it says is not kept back."""
    npm, lacking = program(), "reveal.js and MathJax are not installed"
    if npm is None:
        raise FileNotFoundError(
            f'{lacking}: there is no npm: type python -m pip install -e ".[publish]".'
        )
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(HERE / name, folder)
    if subprocess.run([npm, "ci", "--loglevel=error"], cwd=folder).returncode:
        raise FileNotFoundError(
            f"{lacking}: connect to the network once and try again."
        )
