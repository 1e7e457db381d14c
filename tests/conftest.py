import pytest
import torch

from minigpt.data import CharTokenizer, load_text, train_val_split


@pytest.fixture(scope="session")
def text():
    return load_text()


@pytest.fixture(scope="session")
def tokenizer(text):
    return CharTokenizer(text)


@pytest.fixture(scope="session")
def ids(text, tokenizer):
    return torch.tensor(tokenizer.encode(text))


@pytest.fixture(scope="session")
def splits(ids):
    return train_val_split(ids)
