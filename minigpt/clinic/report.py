"""The page that the clinic hands out."""

from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

from minigpt.clinic.sentences import EXPLAINS, HONEST, LATER, UNSEEN, say

MARKS = {"✗": "wrong", "?": "wanted?", "✓": "fine"}


@dataclass
class Finding:
    """mark: "fine", "wanted?" or "wrong"; says: a sentence or two; explained_by: the
    key of the finding that may be behind this one, or None."""

    mark: str
    key: str
    says: str
    explained_by: str | None = None


@dataclass
class Report:
    """What was found, in the order of the visit. print() shows the page."""

    findings: list[Finding] = field(default_factory=list)
    picture: str = ""

    def add(self, what: str, /, **blanks: Any) -> None:
        """Add a finding: its mark and its sentence's name, as in "✗ luck"."""
        mark, name = what.split()
        key = name.split(".")[0]
        self.findings.append(Finding(MARKS[mark], key, say(name, **blanks)))

    def has(self, mark: str, *keys: str) -> bool:
        """Whether there's a finding with this mark: any, or one of these keys."""
        return any(
            f.mark == MARKS[mark] and (not keys or f.key in keys) for f in self.findings
        )

    def bad(self, *keys: str) -> bool:
        """Whether something is wrong: at all, or with one of these keys."""
        return self.has("✗", *keys)

    def explain(self) -> None:
        """Put each symptom below the bug that may be behind it."""
        for cause in (f for f in self.findings if f.mark == "wrong"):
            known = ["text", *EXPLAINS.get(cause.key, "").split()]
            for other in self.findings if cause.explained_by is None else ():
                free = other.explained_by is None and other is not cause
                if free and other.key in known and other.mark != "fine":
                    other.explained_by = cause.key

    def __str__(self) -> str:
        def lines(found: list[Finding]) -> list[str]:
            return [
                fill(f"{sign} {f.says}", 88, subsequent_indent="  ")
                for sign, mark in MARKS.items()
                for f in found
                if f.mark == mark
            ]

        page = lines([f for f in self.findings if f.explained_by is None])
        if self.picture:
            page += ["", self.picture]
        if after := lines([f for f in self.findings if f.explained_by]):
            page += ["", LATER, *after]
        page += ["", *([] if self.bad() else [HONEST]), fill(UNSEEN, 88)]
        return "\n".join(page)

    __repr__ = __str__
