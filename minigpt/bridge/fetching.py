"""Lesson 14: OpenAI's GPT-2, fetched once: 549 MB, in the four files of its folder.

OpenAI published it in 2019 under a modified MIT licence (github.com/openai/gpt-2); the
files are those of huggingface.co/openai-community/gpt2, one version of them.
"""

import socket
from pathlib import Path

import torch

ADDRESS = (
    "https://huggingface.co/openai-community/gpt2/resolve/"
    "607a30d783dfa663caf39e06633721c8d4cfcd7e/"
)
FILES = {  # and the SHA-256 of each
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
    """Download GPT-2's files into a folder, those that are not there yet, each whole or
    not at all; returns the folder, which `load_gpt2` reads.

    Raises FileNotFoundError if that fails.
    """
    folder = Path(folder)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(15)  # seconds without a byte
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, sha256 in files.items():
            path = folder / name
            if not path.is_file():
                torch.hub.download_url_to_file(address + name, str(path), sha256)
    except (OSError, RuntimeError) as error:  # no network, no room, or another file
        raise FileNotFoundError(
            f"GPT-2 could not be fetched ({error}). Connect to the network, or put the "
            f"files {', '.join(files)} of {address} into {folder}."
        ) from None
    finally:
        socket.setdefaulttimeout(before)
    return folder
