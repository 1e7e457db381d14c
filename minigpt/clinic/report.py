"""The page that the clinic hands out: findings, and which follow from others."""

from dataclasses import dataclass, field
from textwrap import fill

SIGNS = {"wrong": "✗", "wanted?": "?", "fine": "✓"}

# One bug has several symptoms: a symptom, and what may be behind it.
EXPLAINS = {
    "state": "luck neighbors future first order past through loss",
    "unregistered": "luck alike future gradient order past through unused",
    "luck": "first loss",
    "axis": "neighbors future past order own loss first through gradient",
    "neighbors": "future past order through",
    "probabilities": "loss first through gradient unused",
    "range": "gradient first",
    "targets": "future first",
    "future": "past order own through first",
    "cut": "gradient",
    "unused": "past order own gradient through alike",
    "drops": "gradient",
    "order": "unused",
    "past": "order gradient through",
    "own": "past order through",
    "through": "gradient first",
    "relu": "gradient",
}
UNSEEN = (
    "What nobody can see from outside: attention scores that aren't divided by the "
    "root of head_size, one layer used twice, your learning rate, your precision, how "
    "you split the text, your tokenizer."
)
HONEST = "Your model is honest. Look at the split, the shift, the learning rate."
LATER = "This may follow from the above. Look again once that's repaired:"


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

    def add(self, mark: str, key: str, says: str) -> None:
        """Add a finding; a worse one says by itself what may be behind it."""
        self.findings.append(Finding(mark, key, " ".join(says.split())))

    def bad(self, *keys: str) -> bool:
        """Whether something is wrong: at all, or with one of these keys."""
        return any(
            f.mark == "wrong" and (not keys or f.key in keys) for f in self.findings
        )

    def explain(self) -> None:
        """Put each symptom below the bug that may be behind it."""
        for cause in (f for f in self.findings if f.mark == "wrong"):
            for other in self.findings:
                known = ["text", *EXPLAINS.get(cause.key, "").split()]
                follows = other.key in known
                free = other.explained_by is None and cause.explained_by is None
                if follows and free and other.mark != "fine" and other is not cause:
                    other.explained_by = cause.key

    def __str__(self) -> str:
        def lines(found: list[Finding]) -> list[str]:
            return [
                fill(f"{SIGNS[f.mark]} {f.says}", 88, subsequent_indent="  ")
                for mark in SIGNS
                for f in found
                if f.mark == mark
            ]

        page = lines([f for f in self.findings if f.explained_by is None])
        if self.picture:
            page += ["", self.picture]
        if after := lines([f for f in self.findings if f.explained_by]):
            page += ["", LATER, *after]
        if self.bad():
            page += ["", fill(UNSEEN, 88)]
        else:
            page += ["", HONEST, fill(UNSEEN, 88)]
        return "\n".join(page)

    __repr__ = __str__
