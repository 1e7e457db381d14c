"""Drawings of how the pieces fit together, one module for each part of the course.

Each function returns a figure that knows its alternative text, for plots.show. `canvas`
has the tools they're drawn with. You can import the main line's from here.
"""

from minigpt.course.drawings.spine import (
    asks,
    attention,
    block,
    cut,
    downhill,
    gpt,
    heads,
    shell,
    valley,
    way,
    windows,
)

__all__ = [
    "asks",
    "attention",
    "block",
    "cut",
    "downhill",
    "gpt",
    "heads",
    "shell",
    "valley",
    "way",
    "windows",
]
