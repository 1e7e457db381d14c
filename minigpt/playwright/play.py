"""A playwright whose choices we know, so we know exactly how low a loss can get.

A play is a chain of choices. Each choice has a few texts with known probabilities, and
none of them is the beginning of another. So the letters tell you which one was chosen,
and the probability of a play is the product of its choices. This is what a model has to
look back for, and how far (from the first letter of a word to the first letter of the
nearest word that gives it away, in our own lexicon):

    kind       what is settled by what came before      characters back: 5%, median, 95%
    agreement  a speech says "thou" or "you", once and for all              11,  39, 116
    answer     whoever a speech names speaks next                           13,  88, 308
    on stage   only those whom the Chorus brought on speak or are named     78, 139, 408
    rhyme      a couplet's last word rhymes with the line before            50,  56,  62
    repeat     an oath, insult or deed is thrown back word for word         35,  81, 268
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from random import Random

from minigpt.playwright.choices import Options, Play, Span
from minigpt.playwright.grammar import Lexicon, parse
from minigpt.playwright.lexicon import LEXICON, read_lexicon

# A smaller lexicon, for small models.
POCKET = read_lexicon(Path(__file__).with_name("pocket.ini"))


def commonness(entries: Sequence[str]) -> list[int]:
    """The weights of a list: its first entry is three times as common as its last."""
    last = max(1, len(entries) - 1)
    return [3 * last - 2 * rank for rank in range(len(entries))]


@lru_cache(maxsize=20_000)
def word_options(words: Sequence[str], tail: str, alike: bool = False) -> Options:
    """Options for a slot's words, each with the `tail` that follows it."""
    weights = [1] * len(words) if alike else commonness(words)
    return Options([word + tail for word in words], weights)


def line_options(lexicon: Lexicon, shares: dict[str, float]) -> tuple:
    """Options for a line's first words, and the slots that follow each of them."""
    lines, weights = [], []
    for name, share in shares.items():
        common = commonness(lexicon.lines[name])
        weights += [share * weight / sum(common) for weight in common]
        lines += [parse(template + "\n") for template in lexicon.lines[name]]
    return Options([head for head, _ in lines], weights), [slots for _, slots in lines]


class Playwright:
    """Writes scene after scene. now[slot]: which words may fill it, and why."""

    def __init__(self, lexicon: Lexicon, rng: Random) -> None:
        self.lexicon, self.rng = lexicon, rng
        self.texts, self.surprise, self.spans, self.choices = [], [], [], []
        self.position, lines = 0, lexicon.situations.items()
        self.lines = {where: line_options(lexicon, shares) for where, shares in lines}

    def choose(self, options: Options, why: str | None = "", tail: str = "") -> int:
        draw = bisect_right(options.cumulative, self.rng.random())
        index = min(draw, len(options.texts) - 1)  # rounding can leave the sum below 1
        start, text = self.position, options.texts[index]
        self.position += len(text)
        if why:
            self.spans.append(Span(start, self.position - len(tail), why))
        self.choices.append((start, options))
        self.surprise += options.surprises[index]
        self.texts.append(text)
        return index

    def write(self, template: str) -> None:
        head, slots = parse(template)
        if head:
            self.choose(word_options((head,), ""))
        for slot, tail in slots:
            self.fill(slot, tail)

    def fill(self, slot: str, tail: str) -> None:
        if slot in self.lexicon.phrases:
            first = len(self.texts)
            self.write(self.lexicon.phrases[slot] + tail)
            self.said = slot, "".join(self.texts[first:]).removesuffix(tail)
        else:
            words, why = self.now[slot]
            alike = slot in ("enter", "speaker", "name")
            index = self.choose(word_options(tuple(words), tail, alike), why, tail)
            self.settle(slot, words[index])

    def settle(self, slot: str, word: str) -> None:
        """The slot has its word: narrow down what may come next."""
        now, lexicon = self.now, self.lexicon
        if slot in lexicon.forms:
            side = lexicon.forms[slot].index(word)
            for form, both in lexicon.forms.items():
                now[form] = (both[side],), "agreement"
        elif slot == "enter":
            self.stage += (word,)
            now["enter"] = tuple(n for n in lexicon.names if n not in self.stage), ""
            now["speaker"] = self.stage, "on stage"
        elif slot == "speaker":
            others = tuple(name for name in self.stage if name != word)
            now["speaker"] = now["name"] = others, "on stage"
            now |= {form: (both, "") for form, both in lexicon.forms.items()}
        elif slot == "name":
            now["speaker"] = (word,), "answer"
        elif slot == "rhyme":
            (group,) = [group for group in lexicon.rhymes if word in group]
            now["rhyme"] = tuple(mate for mate in group if mate != word), "rhyme"

    def line(self, situation: str) -> str:
        options, slots = self.lines[situation]
        index = self.choose(options)
        for slot, tail in slots[index]:
            self.fill(slot, tail)
        return options.texts[index]

    def rhyme(self) -> None:
        """The second line of a couplet. It ends a speech."""
        self.line("couplet second")
        self.write("\n")
        self.now["rhyme"] = self.lexicon.fillers["rhyme"], ""

    def scene(self, n_chars: int) -> None:
        """The Chorus brings people on stage. They speak until a couplet closes the
        scene."""
        self.stage: tuple[str, ...] = ()  # who is on stage
        self.said = "scene", ""
        self.now = {slot: (words, "") for slot, words in self.lexicon.fillers.items()}
        self.write(self.lexicon.announcer + ":\n")
        self.line("scene")
        self.line("couplet first")
        self.rhyme()
        begun = "\n"
        while self.position < n_chars:
            if begun == "\n":
                kind, text = self.said
                self.said, self.now["said"] = ("nothing", ""), ((text,), "repeat")
                self.fill("speaker", ":\n")
                self.line(f"after {kind}")
            named = self.now["speaker"][1] == "answer"
            begun = self.line("somebody named" if named else "nobody named")
            if self.now["rhyme"][1]:
                return self.rhyme()


def write_play(n_chars: int, seed: int = 1337, lexicon: Lexicon = LEXICON) -> Play:
    """A Play of exactly n_chars characters. The same seed writes the same play on every
    machine.

    With a cast of your own:
        mine = dataclasses.replace(LEXICON, names=("Ada", "Alan", "Grace", "Kurt"))
        play = write_play(10_000, seed=7, lexicon=mine)
        play.nats()  # nats per character: no model can do better

    Raises ValueError if entries of the lexicon clash.
    """
    writer = Playwright(lexicon, Random(seed))
    while writer.position < n_chars:
        writer.scene(n_chars)
    spans = [span for span in writer.spans if span.start < n_chars]
    return Play(
        "".join(writer.texts)[:n_chars],
        writer.surprise[:n_chars],
        [span._replace(stop=min(span.stop, n_chars)) for span in spans],
        [choice for choice in writer.choices if choice[0] < n_chars],
    )
