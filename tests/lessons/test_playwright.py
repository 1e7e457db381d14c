"""The playwright's plays, checked by a reader who has not seen it choose."""

import re
from collections import Counter
from dataclasses import replace
from math import exp, fsum, isclose, log

import pytest

from minigpt.data import load_text
from minigpt.playwright.choices import Options
from minigpt.playwright.grammar import ALPHABET
from minigpt.playwright.lexicon import LEXICON
from minigpt.playwright.play import POCKET, write_play

KINDS = ("agreement", "answer", "on stage", "rhyme", "repeat")


# --- An independent reader: it knows the lexicon and the rules, and reads lines. ---


def list_probability(entries, entry):
    """The first entry of a list is three times as common as its last."""
    n = len(entries)
    if n == 1:
        return 1.0
    weights = [3 - 2 * rank / (n - 1) for rank in range(n)]
    return weights[entries.index(entry)] / fsum(weights)


class Reader:
    """Reads a play speech by speech; `nats` grows by -ln p of everything it reads."""

    def __init__(self, lexicon):
        self.lexicon = lexicon
        self.nats = 0.0
        self.patterns = {}
        for templates in lexicon.lines.values():
            for template in templates:
                self.patterns[template] = self.pattern(template)

    def pattern(self, template):
        """A regular expression with a group for each slot, and the slots in order."""
        slots, expression = [], ""
        for part in re.split(r"(\{.*?\})", template):
            slot = part[1:-1]
            if not part.startswith("{"):
                expression += re.escape(part)
            elif slot in self.lexicon.phrases:
                inner, inner_slots = self.pattern(self.lexicon.phrases[slot])
                expression += f"({inner.pattern})"
                slots += [slot, *inner_slots]
            else:
                slots.append(slot)
                words = self.anything(slot)
                expression += (
                    f"({'|'.join(map(re.escape, words))})" if words else "(.+?)"
                )
        return re.compile(expression), slots

    def anything(self, slot):
        if slot in ("name", "enter"):
            return self.lexicon.names
        if slot == "rhyme":
            return [word for group in self.lexicon.rhymes for word in group]
        if slot == "said":
            return None
        return self.lexicon.forms.get(slot) or self.lexicon.words[slot]

    def line_probability(self, template, line, state):
        """p(the line's words | template, state) and the state after it, or None."""
        pattern, slots = self.patterns[template]
        match = pattern.fullmatch(line)
        if not match:
            return None
        state, p = dict(state), 1.0
        for slot, word in zip(slots, match.groups()):
            if slot in self.lexicon.phrases:
                state["said"] = (slot, word)
            elif slot in self.lexicon.forms:
                side = self.lexicon.forms[slot].index(word)
                if state["side"] is None:
                    p *= (3 / 4, 1 / 4)[side]
                elif state["side"] != side:
                    return None
                state["side"] = side
            elif slot == "name":
                others = set(state["stage"]) - {state["speaker"]}
                if word not in others:
                    return None
                p /= len(others)
                state["named"] = word
            elif slot == "enter":
                p /= len(self.lexicon.names) - len(state["stage"])
                if word in state["stage"]:
                    return None
                state["stage"] = [*state["stage"], word]
            elif slot == "said":
                if word != state["heard"]:
                    return None
            elif slot == "rhyme" and "rhyme" in state:
                first = state.pop("rhyme")
                group = next(group for group in self.lexicon.rhymes if first in group)
                mates = [mate for mate in group if mate != first]
                if word not in mates:
                    return None
                p *= list_probability(mates, word)
            elif slot == "rhyme":
                p *= list_probability(self.anything(slot), word)
                state["rhyme"] = word
            else:
                p *= list_probability(self.lexicon.words[slot], word)
        return p, state

    def read_line(self, line, situation, state):
        """Read a line that must fit exactly one template; return the state after it."""
        readings = []
        for name, share in self.lexicon.situations[situation].items():
            for template in self.lexicon.lines[name]:
                reading = self.line_probability(template, line, state)
                if reading:
                    common = list_probability(self.lexicon.lines[name], template)
                    readings.append((share * common * reading[0], reading[1]))
        assert len(readings) == 1, (line, situation, readings)
        self.nats -= log(readings[0][0])
        return readings[0][1]

    def read(self, text):
        """-ln p(text), for a text that ends with a whole speech."""
        assert text.endswith("\n\n")
        state = {"rhyme": "a couplet has closed the scene"}
        for speech in text[:-2].split("\n\n"):
            label, *lines = speech.split("\n")
            speaker = label.removesuffix(":")
            if "rhyme" in state:
                assert speaker == self.lexicon.announcer
                state = {"stage": [], "speaker": None, "named": None, "side": None}
                state["said"] = ("scene", "")
                state = self.read_line(lines[0], "scene", state)
                state = self.read_line(lines[1], "couplet first", state)
                state = self.read_line(lines[2], "couplet second", state)
                assert len(lines) == 3
            else:
                state = self.read_speech(speaker, lines, state)
        return self.nats

    def read_speech(self, speaker, lines, state):
        others = [name for name in state["stage"] if name != state["speaker"]]
        if state["named"]:
            assert speaker == state["named"]
        else:
            assert speaker in others
            self.nats += log(len(others))
        kind, heard = state["said"]
        state |= {"speaker": speaker, "named": None, "side": None, "heard": heard}
        state["said"] = ("nothing", "")
        state = self.read_line(lines[0], f"after {kind}", state)
        for line in lines[1:]:
            if "rhyme" in state:
                state = self.read_line(line, "couplet second", state)
                assert line is lines[-1]
                return {"rhyme": "a couplet has closed the scene"}
            situation = "somebody named" if state["named"] else "nobody named"
            state = self.read_line(line, situation, state)
        situation = "somebody named" if state["named"] else "nobody named"
        return self.read_line("", situation, state)


@pytest.fixture(scope="module")
def play():
    return write_play(60_000, seed=11)


# --- The probabilities are exact. ---


@pytest.mark.parametrize("lexicon", [LEXICON, POCKET], ids=["ours", "pocket"])
def test_an_independent_parser_gives_the_same_probability(lexicon):
    play = write_play(30_000, seed=1, lexicon=lexicon)
    end = play.text.rindex("\n\n") + 2
    nats = Reader(lexicon).read(play.text[:end])
    assert isclose(nats, fsum(play.surprise[:end]), rel_tol=1e-9)
    assert isclose(nats / end, play.nats(0, end), rel_tol=1e-9)


def test_the_next_characters_probabilities_are_those_that_surprise_says(play):
    for position in [*range(3_000), *range(59_000, 60_000)]:
        probs = play.next_char_probs(position)
        assert isclose(fsum(probs.values()), 1, abs_tol=1e-12)
        p = probs[play.text[position]]
        assert isclose(p, exp(-play.surprise[position]), rel_tol=1e-12)


def test_a_choice_surprises_where_the_spelling_decides_it():
    the, thee, a = Options(["the ", "thee ", "a "], [1, 3, 4]).surprises
    assert the == pytest.approx([log(2), 0, 0, log(4)])
    assert thee == pytest.approx([log(2), 0, 0, log(4 / 3), 0])
    assert a == pytest.approx([log(2), 0])


# --- The text. ---


@pytest.mark.parametrize("n_chars", [1, 777])
def test_a_play_has_exactly_the_characters_asked_for(n_chars):
    play = write_play(n_chars)
    assert len(play.text) == len(play.surprise) == n_chars
    assert all(0 <= span.start < span.stop <= n_chars for span in play.spans)
    assert play.next_char_probs(n_chars - 1)[play.text[-1]] > 0
    assert (
        repr(play)
        == f"Play({n_chars} characters, {play.nats():.4f} nats per character)"
    )


def test_a_seed_writes_the_stored_play_on_every_machine():
    play = write_play(1_100_000)
    assert play.text == load_text("playwright")
    assert write_play(500, seed=2).text != play.text[:500]


def test_lines_are_short_and_of_the_65_characters_of_tiny_shakespeare(play):
    assert len(ALPHABET) == 65 and set(play.text) <= ALPHABET
    assert max(map(len, play.text.split("\n"))) <= 80


# --- What a model must look back for; that the rules hold, the reader has checked. ---


def test_each_kind_of_span_marks_words_that_the_past_has_settled(play):
    forms = {form for both in LEXICON.forms.values() for form in both}
    rhymes = {word for group in LEXICON.rhymes for word in group}
    for start, stop, kind in play.spans:
        text = play.text[start:stop]
        if kind == "agreement":
            assert text in forms
        elif kind == "answer":
            assert text in LEXICON.names and play.text[stop] == ":"
            assert play.text[start - 2 : start] == "\n\n"
            assert text in play.text[:start].split("\n\n")[-2]
        elif kind == "on stage":
            assert text in LEXICON.names
            assert text in play.text[:start].split("Chorus:\n")[-1]
        elif kind == "rhyme":
            assert text in rhymes and play.text[stop] in ".!"
        else:
            assert kind == "repeat"
            assert text in play.text[:start].split("\n\n")[-2]
    kinds = Counter(span.kind for span in play.spans)
    assert min(kinds[k] for k in KINDS) > 30 and set(kinds) == set(KINDS)


def test_spans_stand_in_order_and_what_is_fully_settled_costs_nothing(play):
    assert all(a.stop <= b.start for a, b in zip(play.spans, play.spans[1:]))
    for span in play.spans:
        if span.kind in ("agreement", "answer", "repeat"):
            assert fsum(play.surprise[span.start : span.stop]) == 0


# --- The pocket edition. ---


def test_the_pocket_edition_has_a_known_floor_and_nothing_depends_on_what_is_far():
    play = write_play(200_000, lexicon=POCKET)
    assert round(play.nats(), 3) == 0.137
    assert {span.kind for span in play.spans} == set(KINDS)
    told = {"on stage": "Enter", "rhyme": ",\n", "agreement": ":\n"}
    for start, stop, kind in play.spans:
        before = play.text.rindex(told.get(kind, play.text[start:stop]), 0, start)
        assert start - before < 120


# --- A lexicon of one's own, and what to say of a bad one. ---


def with_words(**lists):
    return replace(LEXICON, words=LEXICON.words | lists)


def with_lines(**lists):
    return replace(LEXICON, lines=LEXICON.lines | lists)


def with_situations(**shares):
    return replace(LEXICON, situations=LEXICON.situations | shares)


def test_a_cast_of_your_own_speaks_the_play_in_lists_or_tuples():
    mine = replace(LEXICON, names=["Ada", "Alan", "Grace", "Kurt"])
    text = write_play(6_000, seed=7, lexicon=mine).text
    assert set(re.findall("^(.*):$", text, flags=re.M)) == {"Chorus", *mine.names}
    write_play(1_000, lexicon=with_words(noun=["ham", "hammer"]))


BAD = {
    "'noun' is (): make it": lambda: with_words(noun=()),
    "'names' is 'Ada': make it": lambda: replace(LEXICON, names="Ada"),
    "at most 2 times, because there are that many names": lambda: replace(
        LEXICON, names=("Hob", "Nan")
    ),
    "rhyme group ('month',) has one": lambda: replace(LEXICON, rhymes=(("month",),)),
    "not ['\u00e9']": lambda: with_words(noun=("caf\u00e9",)),
    "not ['fruit']": lambda: with_lines(middle=("I eat {fruit}.",)),
    "must have {rhyme} exactly once": lambda: with_lines(
        **{"couplet first": ("I eat,",)}
    ),
    "is {'prologue': 1}: give shares": lambda: with_situations(scene={"prologue": 1}),
    "'scene' is None: give shares": lambda: replace(LEXICON, situations={}),
}
CLASH = {
    "a word that begins another": with_words(noun=("ham", "ham or")),
    "lines that begin alike": with_lines(middle=("I {verb}.", "I am {adj}.")),
}


@pytest.mark.parametrize("message", BAD)
def test_what_no_play_can_be_made_of_is_refused_with_the_remedy(message):
    with pytest.raises(ValueError, match=re.escape(message)):
        BAD[message]()


@pytest.mark.parametrize("lexicon", CLASH.values(), ids=CLASH)
def test_texts_that_a_reader_could_not_tell_apart_are_refused(lexicon):
    with pytest.raises(ValueError, match="reword or remove one of them"):
        write_play(10_000, lexicon=lexicon)
