"""Lesson 14: OpenAI's GPT-2, downloaded once: 549 MB, in four files.

OpenAI published it in 2019 under a modified MIT license (github.com/openai/gpt-2). The
files are one fixed version of those at huggingface.co/openai-community/gpt2.
"""

import socket
from pathlib import Path

import torch

ADDRESS = (
    "https://huggingface.co/openai-community/gpt2/resolve/"
    "607a30d783dfa663caf39e06633721c8d4cfcd7e/"
)
FILES = {  # and each file's SHA-256
    "config.json": "0daed7749b4f02b8f76240d5444551d7b08712dab4d0adb8239c56ba823bb7b4",
    "vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "merges.txt": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "model.safetensors": (
        "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"
    ),
}


def fetch_gpt2(
    folder: Path | str, address: str = ADDRESS, files: dict[str, str] = FILES
) -> Path:
    """Download the GPT-2 files that a folder doesn't have yet, each whole or not at
    all. Returns the folder, for `load_gpt2`.

    Raises FileNotFoundError if that fails.
    """
    folder = Path(folder)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(15)  # seconds without a single byte
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, sha256 in files.items():
            path = folder / name
            if not path.is_file():
                torch.hub.download_url_to_file(address + name, str(path), sha256)
    except (OSError, RuntimeError) as error:  # no network, no room, or another file
        raise FileNotFoundError(
            f"GPT-2 couldn't be downloaded ({error}). Connect to the network, or put "
            f"the files {', '.join(files)} of {address} into {folder}."
        ) from None
    finally:
        socket.setdefaulttimeout(before)
    return folder
