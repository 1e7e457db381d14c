"""The loss ladder: what each lesson's model reaches, all judged alike.

Every number is the exact loss over the whole validation split of Tiny Shakespeare.
`python -m minigpt.course.experiments ladder` trains each over three seeds and writes
the record; a notebook puts what it has just measured in the place of the recorded.
"""

from typing import NamedTuple

from minigpt.course import record
from minigpt.data import load_text

NAMES = ["uniform guess", "unigram counts", "bigram", "weighted mean", "one head"]
NAMES += ["four heads", "one block", "three blocks", "GPT"]


class Rung(NamedTuple):
    """One model: mean loss (nats per character), largest minus smallest over
    the seeds, parameters, and seconds of training for one seed."""

    name: str
    loss: float
    spread: float
    parameters: int
    seconds: float


def recorded() -> list[Rung]:
    """The published ladder, top to bottom: list of Rung."""
    variants, rungs = record.load("ladder"), []
    for name in NAMES:
        v = variants[name]
        sizes, seconds = v.values("parameters"), v.values("seconds")
        rungs.append(Rung(name, v.mean(), v.spread(), int(sizes[0]), seconds[0]))
    return rungs


def climb(
    name: str,
    losses: dict[int, float],
    parameters: int,
    seconds: float,
    comparable: bool | None = None,
    onto: list[Rung] | None = None,
) -> list[Rung]:
    """Put a result on the ladder; return the rungs from the top down to it.

    losses: {seed: loss in nats per character}; the rung shows their mean, and of
    a single seed it shows the recorded spread. comparable: False for another text
    or a run cut short; then nothing recorded is shown. By default it's True where
    lessons read Tiny Shakespeare, and False where the built-in play stands in.
    onto: the rungs to stand on, as climb returned them (None: the recorded ones).
    Raises ValueError if the ladder has no rung of this name.
    """
    if comparable is None:
        comparable = len(load_text()) == 1_115_394  # characters
    published = {rung.name: rung for rung in recorded()} if comparable else {}
    above = published.values() if onto is None else onto
    values = list(losses.values())
    spread = max(values) - min(values)
    same = published.get(name)
    if len(values) == 1 and same is not None and same.parameters == parameters:
        spread = same.spread
    mine = Rung(name, sum(values) / len(values), spread, parameters, seconds)
    return [r for r in above if NAMES.index(r.name) < NAMES.index(name)] + [mine]


def table(rungs: list[Rung]) -> str:
    """The rungs as lines of text, for print(); without seconds, which vary."""
    lines = [f"{'model':16}{'loss':>8}{'spread':>9}{'parameters':>13}"]
    for rung in rungs:
        spread = f"{rung.spread:.3f}" if rung.spread else "one run"
        if rung.name in NAMES[:2]:  # counted, not trained
            spread = "exact"
        lines.append(f"{rung.name:16}{rung.loss:8.3f}{spread:>9}{rung.parameters:>13,}")
    return "\n".join(lines)
