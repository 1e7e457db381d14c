"""Drawings of how the pieces fit together, one module for the notebooks of a part.

`canvas` holds what they are drawn with; the main line's stand here by name.
"""

from minigpt.course.drawings.spine import attention, block, heads, listeners, way

__all__ = ["attention", "block", "heads", "listeners", "way"]
