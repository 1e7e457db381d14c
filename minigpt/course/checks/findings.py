"""What the engine can find out about an answer.

Each finding is a Kind with its details; telling.py makes sentences of them, at the end.
Nothing in the engine reads a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


class Kind(Enum):
    """What is wrong; behind each one, its details."""

    # A person has written the sentence
    WRITTEN = auto()  # says
    KNOWN = auto()  # says; mistake
    AS_KNOWN = auto()  # says; mistake: the results alone are those of a known mistake
    UNTOUCHED = auto()  # says: the bug of a hunt is as it was
    TWO_KNOWN = auto()  # says, other
    # It can be read off the answer's text
    SYNTAX = auto()  # line, text, error
    BEHIND_RETURN = auto()  # text
    NOT_CALLED = auto()  # text
    NOT_KEPT = auto()  # text
    ALWAYS_TRUE = auto()  # text
    RETURN_IN_LOOP = auto()  # text
    NEVER_READ = auto()  # text
    ARGUMENT_UNREAD = auto()  # name
    USED_UP = auto()  # name
    NO_COPY = auto()  # text
    # It shows when the answer runs
    RAISED = auto()  # says
    NOTHING_RETURNED = auto()
    ENDLESS = auto()  # seconds
    KEPT = auto()
    KEPT_IN_DEFAULT = auto()  # text
    INPUT_CHANGED = auto()  # name; right: whether the result is right; first
    MISSING_PART = auto()  # part
    # One place is wrong
    OWN_SLIP = auto()  # mutant, line, text; whole: whether all else is right
    LIKE_SLIP = auto()  # mutant
    AS_BEFORE = auto()
    CHANGED_IN_VAIN = auto()
    # It can be measured
    END_TOO_MANY = auto()  # end
    END_MISSING = auto()  # end
    LENGTH = auto()  # got, expected
    TYPE = auto()  # got, expected
    COMPLEX = auto()
    DTYPE = auto()  # got, expected
    NAN = auto()  # count, of, where
    INFINITE = auto()
    SHAPE = auto()  # got, expected
    SHAPE_ALONE = auto()  # got, expected
    ENTRY_MISSING = auto()  # got, expected, dim
    ENTRY_TOO_MANY = auto()  # got, expected, dim
    MINUS = auto()
    TURNED_MASK = auto()
    BITS = auto()
    UPSIDE_DOWN = auto()
    OFFSET = auto()  # more, offset
    FACTOR = auto()  # factor, size
    EXCHANGED = auto()  # i, j
    ANOTHER_ORDER = auto()
    ROWS_SUM = auto()  # rows, got, expected
    MOVES = auto()  # name, what, at, dim, other
    DOES_NOT_MOVE = auto()  # name, what
    SOME_PLACES = auto()  # along, some, how, last
    CHANGED_PLACES = auto()  # dim, got, expected
    ENTRY = auto()  # key, got, expected
    PIECE_TOO_MANY = auto()  # at, piece
    PIECE_MISSING = auto()  # at, piece
    FIRST_WRONG = auto()  # at, got, expected
    LATER_SHAPE = auto()  # inputs, got, expected
    # Nothing of all that
    SOME_RIGHT = auto()  # right, of
    UNKNOWN = auto()
    NOT_COMPARED = auto()  # wanted, error


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. hint: in place of the kind's own."""

    kind: Kind
    details: Mapping[str, Any] = field(default_factory=dict)
    hint: str = ""

    @property
    def place(self) -> str:
        """Of a Finding with a mutant, where it is: what a second miss must share."""
        return str(self.details.get("line", self.details["mutant"].line))


def found(kind: Kind, hint: str = "", /, **details: Any) -> Finding:
    """A Finding with its details by name."""
    return Finding(kind, details, hint)
