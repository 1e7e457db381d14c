"""Names for type hints: what every model and every tokenizer can do."""

from typing import Any, Protocol

# An nn.Module: model(idx (B, T), targets=None) -> logits (B, T, vocab_size), and a loss
# or None. It has a block_size. Its parts are modules of the course with fields of their
# own. torch's types can't say that, so a type checker has to trust us.
Model = Any

# An nn.Module: (B, T, C) -> (B, T, C), blocks and a norm. The same holds for its parts.
Body = Any


class Tokenizer(Protocol):
    """What every tokenizer of the course can do; vocab_size is the number of ids.

    Its class can rebuild it from state(), which a checkpoint keeps.
    """

    vocab_size: int

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Any) -> str: ...

    def state(self) -> dict[str, Any]: ...
