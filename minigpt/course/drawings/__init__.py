"""Drawings of how the pieces fit together, one module for the notebooks of a part.

Each function returns a figure that knows its alternative text, for plots.show. `canvas`
holds what they are drawn with; the main line's stand here by name.
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
