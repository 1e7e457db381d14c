"""Below all lessons: what every model and tokenizer can do, as names for type hints."""

from typing import Any, Protocol

# An nn.Module: model(idx (B, T), targets=None) -> logits (B, T, vocab_size), and a loss
# or None. It has a block_size. That its parts are modules of the course, with fields of
# their own, torch's types cannot tell a checker: so it believes us.
Model = Any

# An nn.Module: (B, T, C) -> (B, T, C), blocks and a norm. The same holds for its parts.
Body = Any


class Tokenizer(Protocol):
    """What every tokenizer of the course can do; vocab_size is the number of ids.

    state() is what its class makes it from again. A checkpoint keeps it.
    """

    vocab_size: int

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Any) -> str: ...

    def state(self) -> dict[str, Any]: ...
