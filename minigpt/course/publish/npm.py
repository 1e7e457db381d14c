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


def read(name, path):
    """One file of a package as bytes: read("reveal.js", "dist/reveal.css").

    Raises FileNotFoundError with the remedy if the package cannot be had.
    """
    return (modules() / name / path).read_bytes()


@functools.cache
def modules():
    """Folder with the packages, in the cache; npm installs it if it is not there.

    Raises FileNotFoundError with the remedy if npm is missing or fails.
    """
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = cache / "minigpt" / "npm" / lock[:12]  # another lock, another folder
    if kept.is_dir():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        installed = _install(Path(folder))
        os.rename(installed, kept)  # all of it or nothing
    return kept


def program():
    """Path of npm: that of the extra `publish`, else the user's own, else None."""
    places = [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
    return shutil.which("npm", path=os.pathsep.join(places))


def _install(folder):
    npm = program()
    if npm is None:
        raise _cannot("there is no npm", 'type python -m pip install -e ".[publish]"')
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(HERE / name, folder)
    done = subprocess.run(
        [npm, "ci"], cwd=folder, capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        reason = said[0] if said else f"npm ended with {done.returncode}"
        raise _cannot(reason, "connect to the network once and try again")
    return folder / "node_modules"


def _cannot(reason, remedy):
    return FileNotFoundError(
        f"reveal.js and MathJax could not be installed ({reason}): {remedy}."
    )
