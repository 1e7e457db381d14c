import shutil
import signal
import sys

import chromium
import last_bits
import pytest
import torch
from small import TRAIN_SMALL

from minigpt.data import CharTokenizer, load_text, train_val_split

torch.set_num_threads(1)  # the tests' tensors are tiny: threads would only wait
# The files that take longest. They begin first, so that with several processes none is
# left alone with one of them at the end.
LONG = ["test_page_numbers", "test_page_reader", "test_page", "test_cache"]
# A run in the background is told to ignore Ctrl+C; the tests of interrupts are not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)


def pytest_report_header():
    return f"last bits moved: LAST_BITS={last_bits.SALT}" if last_bits.SALT else None


@pytest.fixture(scope="session")
def text():
    """Tiny Shakespeare; the tests of its numbers are skipped without it."""
    text = load_text()
    if len(text) != 1_115_394:
        pytest.skip(
            "needs Tiny Shakespeare: set MINIGPT_DATA or connect to the network"
        )
    return text


@pytest.fixture(scope="session")
def tokenizer(text):
    return CharTokenizer(text)


@pytest.fixture(scope="session")
def ids(text, tokenizer):
    return torch.tensor(tokenizer.encode(text))


@pytest.fixture(scope="session")
def splits(ids):
    return train_val_split(ids)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with corpus.txt, and model.pt of 12 steps by the command line."""
    from minigpt.tools.command_line import main

    folder = tmp_path_factory.mktemp("trained")
    (folder / "corpus.txt").write_text("to be or not to be; " * 100, encoding="utf-8")
    places = f"--data {folder / 'corpus.txt'} --out {folder / 'model.pt'}"
    assert main(["train", *places.split(), *TRAIN_SMALL]) == 0
    return folder


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    """A copy of it, in which the test runs."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shell(monkeypatch):
    """An IPython with no names yet. A kernel for each notebook takes far longer."""
    from IPython.core.interactiveshell import InteractiveShell

    # It puts a module of its own there.
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, for all pages."""
    if chromium.PROGRAM is None:
        pytest.skip("there is no Chromium on this machine")
    browser = chromium.Chromium(1280, 900)
    yield browser
    browser.close()


@pytest.fixture(autouse=True)
def seed():
    """Every test draws the same random numbers, whichever ran before it."""
    torch.manual_seed(0)
