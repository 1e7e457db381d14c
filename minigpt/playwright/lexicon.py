"""The playwright's own words and lines: lexicon.ini beside this file, as a Lexicon."""

from configparser import ConfigParser
from pathlib import Path

from minigpt.playwright.grammar import Lexicon


def read_lexicon(path: Path | str) -> Lexicon:
    """The Lexicon in a text file that has the sections of lexicon.ini."""
    file = ConfigParser(delimiters="=", comment_prefixes=";", interpolation=None)
    file.optionxform = lambda optionstr: optionstr  # Thy isn't thy
    file.read_string(Path(path).read_text(encoding="utf-8"))
    return Lexicon(
        names=entries(file["people"]["names"]),
        words={slot: entries(words) for slot, words in file["words"].items()},
        forms={form: entries(both) for form, both in file["forms"].items()},
        phrases=dict(file["phrases"]),
        rhymes=tuple(map(entries, lines(file["rhymes"]["groups"]))),
        lines={name: lines(of_name) for name, of_name in file["lines"].items()},
        situations={where: shares(of) for where, of in file["situations"].items()},
        announcer=file["people"]["announcer"],
    )


def entries(text: str) -> tuple[str, ...]:
    """'ham, hen' -> ('ham', 'hen')."""
    return tuple(entry.strip() for entry in text.split(","))


def lines(text: str) -> tuple[str, ...]:
    """Each line of a text is an entry. An empty text has one empty entry."""
    return tuple(text.strip().split("\n"))


def shares(text: str) -> dict[str, float]:
    """'opening 0.5, aside 0.5' -> {'opening': 0.5, 'aside': 0.5}."""
    parted = (entry.rpartition(" ") for entry in entries(text))
    return {name: float(share) for name, _, share in parted}


LEXICON = read_lexicon(Path(__file__).with_name("lexicon.ini"))
