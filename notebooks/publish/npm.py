"""JavaScript and fonts from npm, by pinned version and hash; needs no Node.

A package of the npm registry is a .tgz behind one HTTPS address, so Python's
urllib fetches it and the hash decides whether it is the right one, wherever it
came from. Where urllib gets no answer (behind a company's mirror, say), npm is
asked, if there is one, because it knows the machine's settings. What was fetched
is kept in the user's cache, so that later builds need no network.
"""

import base64
import functools
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path

from minigpt.data import cache_folder

REGISTRY = "https://registry.npmjs.org"
SECONDS = 60
# The hashes are the registry's own: `npm view reveal.js@5.2.1 dist.integrity`.
PACKAGES = {
    "reveal.js": (
        "5.2.1",
        "r7//6mIM5p34hFiDMvYfXgyjXqGRta+/psd9YtytsgRlrpRzFv4RbH76TXd2qD+7"
        "ZPZEbpBDhdRhJaFgfQ7zNQ==",
    ),
    "mathjax": (
        "3.2.2",
        "Bt+SSVU8eBG27zChVewOicYs7Xsdt40qm4+UpHyX7k0/O9NliPc+x77k1/FEsPsj"
        "KPZGJvtRZM1vO+geW0OhGw==",
    ),
}


@functools.cache
def read(name, path):
    """One file of a package as bytes: read("reveal.js", "dist/reveal.css").

    Raises FileNotFoundError with the remedy if the package cannot be had.
    """
    with tarfile.open(package(name)) as archive:
        return archive.extractfile(f"package/{path}").read()


def package(name):
    """Path of the package's .tgz in the cache, fetched there if need be."""
    version, expected = PACKAGES[name]
    kept = cache_folder() / "npm" / f"{name}-{version}.tgz"
    if kept.is_file() and sha512(kept) == expected:
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    problems = []
    for fetch in (_by_urllib, _by_npm):
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            try:
                fetched = fetch(name, version, Path(folder))
            except OSError as error:
                problems.append(str(error))
                continue
            if sha512(fetched) == expected:
                os.replace(fetched, kept)
                return kept
            problems.append(f"{fetched.name} has another hash than the pinned one")
    raise FileNotFoundError(
        f"{name} {version} is needed for this build and could not be fetched "
        f"({'; '.join(problems)}). Connect to the network once and try again, or "
        f"put {url(name, version)} into {kept.parent} yourself. Behind a mirror, "
        "set NPM_CONFIG_REGISTRY to its address."
    )


def url(name, version):
    """Address of a package's .tgz, at $NPM_CONFIG_REGISTRY if that is set."""
    registry = os.environ.get("NPM_CONFIG_REGISTRY") or REGISTRY
    return f"{registry.rstrip('/')}/{name}/-/{name}-{version}.tgz"


def sha512(path):
    """SHA-512 of a file as npm writes it: base64."""
    return base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


def _by_urllib(name, version, folder):
    target = folder / f"{name}-{version}.tgz"
    with urllib.request.urlopen(url(name, version), timeout=SECONDS) as answer:
        target.write_bytes(answer.read())
    return target


def _by_npm(name, version, folder):
    program = shutil.which("npm")
    if program is None:
        raise FileNotFoundError("there is no npm to ask instead")
    done = subprocess.run(
        [program, "pack", f"{name}@{version}", "--silent"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
    )
    found = list(folder.glob("*.tgz"))
    if done.returncode or not found:
        raise OSError(f"npm pack: {done.stderr.strip()[:200] or 'no answer'}")
    return found[0]
