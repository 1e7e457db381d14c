"""The playwright's plays, checked by a reader who has not seen it choose."""

import os
import re
import subprocess
import sys
from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from math import exp, fsum, isclose, log, sqrt
from pathlib import Path

import pytest

from minigpt import playwright
from minigpt.playwright import POCKET, Options, first, write_play
from minigpt.playwright_lexicon import ALPHABET, LEXICON, Lexicon

TINY = Lexicon(
    names=("Ann", "Anna", "Bo"),
    words={"noun": ("ham", "hammer"), "adj": ("red",)},
    forms={"thou": ("thou", "you"), "thy": ("thy", "your")},
    phrases={"insult": "{adj} {noun}"},
    rhymes=(("king", "ring", "thing"), ("cat", "hat")),
    lines={
        "entrance": ("Enter {enter} and {enter}.", "See {enter}, {enter} and {enter}."),
        "opening": ("O {name}, {thou} {insult}!",),
        "aside": ("Where is my {noun}?",),
        "reply to insult": (
            "A {said}? Not I, {thou} {noun}.",
            "No {said} sings, {name}.",
        ),
        "middle": ("Eat {thy} {noun} with {thy} {noun}.", "Eat."),
        "couplet first": ("I had a {rhyme},",),
        "couplet second": ("It was no {rhyme}.",),
        "end": ("",),
    },
    situations={
        "scene": {"entrance": 1},
        "after scene": {"opening": 1},
        "after nothing": {"opening": 0.5, "aside": 0.5},
        "after insult": {"reply to insult": 0.7, "aside": 0.3},
        "somebody named": {"end": 0.5, "middle": 0.5},
        "nobody named": {"end": 0.4, "middle": 0.3, "couplet first": 0.3},
        "couplet first": {"couplet first": 1},
        "couplet second": {"couplet second": 1},
    },
    announcer="Bell",
)


GOLDEN = """Bell:
See Ann, Anna and Bo.
I had a thing,
It was no king.

Anna:
O Ann, thou red hammer!
Eat.
Eat thy ham with thy ham.

Ann:
A red hammer? Not I, thou ham.

Anna:
O Ann, thou red ham!

Ann:
Wh"""
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


def speeches(play):
    """The whole speeches of a play: (where it starts, its label, its lines)."""
    start = 0
    for speech in play.text[: play.text.rindex("\n\n")].split("\n\n"):
        label, *lines = speech.split("\n")
        yield start, label.removesuffix(":"), lines
        start += len(speech) + 2


@pytest.fixture(scope="module")
def play():
    return write_play(60_000, seed=11)


# --- The probabilities are exact. ---


@pytest.mark.parametrize("lexicon", [LEXICON, TINY], ids=["ours", "tiny"])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_independent_parser_gives_the_same_probability(lexicon, seed):
    play = write_play(30_000, seed, lexicon)
    end = play.text.rindex("\n\n") + 2
    nats = Reader(lexicon).read(play.text[:end])
    assert isclose(nats, fsum(play.surprise[:end]), rel_tol=1e-9)
    assert isclose(nats / end, play.nats(0, end), rel_tol=1e-9)


def test_the_next_characters_probabilities_sum_to_one_at_every_position(play):
    for position in range(5_000):
        probs = play.next_char_probs(position)
        assert probs.keys() <= ALPHABET
        assert isclose(fsum(probs.values()), 1, abs_tol=1e-12)


def test_the_real_next_character_has_the_probability_that_surprise_says(play):
    for position in [*range(5_000), *range(59_000, 60_000)]:
        p = play.next_char_probs(position)[play.text[position]]
        assert isclose(p, exp(-play.surprise[position]), rel_tol=1e-12)


def test_the_surprise_of_a_choice_adds_up_to_that_of_its_text(play):
    for (start, options), (stop, _) in zip(play.choices, play.choices[1:]):
        text = play.text[start:stop]
        assert text in options.texts
        expected = -log(options.mass[text])
        assert isclose(fsum(play.surprise[start:stop]), expected, abs_tol=1e-12)


def test_a_choice_surprises_where_the_spelling_decides_it():
    the, thee, a = Options(["the ", "thee ", "a "], [1, 3, 4]).surprises
    assert the == pytest.approx([log(2), 0, 0, log(4)])
    assert thee == pytest.approx([log(2), 0, 0, log(4 / 3), 0])
    assert a == pytest.approx([log(2), 0])


def test_the_play_is_as_surprising_as_its_probabilities_promise(play):
    excess, variance = (
        0.0,
        0.0,
    )  # of surprise over its expectation, character by character
    for position, surprise in enumerate(play.surprise[:20_000]):
        probs = list(play.next_char_probs(position).values())
        expected = fsum(-p * log(p) for p in probs)
        excess += surprise - expected
        variance += fsum(p * (log(p) + expected) ** 2 for p in probs)
    assert abs(excess) < 4 * sqrt(variance)


def test_no_text_is_drawn_oftener_than_its_probability(play):
    places = []  # the middles of the draws' shares of 0 to 1: one half on average
    for (start, options), (stop, _) in zip(play.choices, play.choices[1:]):
        text = play.text[start:stop]
        upper = options.cumulative[options.texts.index(text)]
        places.append(upper - options.mass[text] / 2)
    assert abs(fsum(places) / len(places) - 1 / 2) < 4 * sqrt(1 / 12 / len(places))


def test_the_nats_of_slices_average_to_the_nats_of_the_play(play):
    whole = (play.nats(0, 1_000) * 1_000 + play.nats(1_000) * 59_000) / 60_000
    assert isclose(whole, play.nats(), rel_tol=1e-12)
    assert isclose(play.nats(), fsum(play.surprise) / len(play.text), rel_tol=1e-12)


# --- The text: its length, its letters, its layout, its seed. ---


@pytest.mark.parametrize("n_chars", [1, 2, 777, 4_000])
def test_a_play_has_exactly_the_characters_asked_for(n_chars):
    play = write_play(n_chars)
    assert len(play.text) == len(play.surprise) == n_chars
    assert all(0 <= span.start < span.stop <= n_chars for span in play.spans)
    assert all(0 <= start < n_chars for start, _ in play.choices)
    assert play.next_char_probs(n_chars - 1)[play.text[-1]] > 0


def test_only_characters_of_tiny_shakespeare_occur(play):
    assert len(ALPHABET) == 65
    assert set(play.text) <= ALPHABET


def test_every_speech_is_a_speaker_with_a_colon_and_short_lines(play):
    for _, speaker, lines in speeches(play):
        assert speaker in {"Chorus", *LEXICON.names}
        assert lines and all(0 < len(line) <= 80 for line in lines)


def test_a_longer_play_goes_on_where_a_shorter_one_stops():
    short, long = write_play(1_000, seed=5), write_play(3_000, seed=5)
    assert long.text.startswith(short.text)
    assert long.surprise[:1_000] == short.surprise


def test_another_seed_writes_another_play():
    assert write_play(500, seed=1).text != write_play(500, seed=2).text


def test_a_seed_writes_the_same_play_whatever_the_hash_seed():
    code = "from minigpt.playwright import write_play; print(write_play(3000, 9).text)"
    root = Path(__file__).resolve().parent.parent
    texts = set()
    for hash_seed in "01":
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(run.stdout)
    assert texts == {write_play(3_000, 9).text + "\n"}


def test_a_seed_writes_the_same_play_on_every_machine():
    assert write_play(194, seed=2, lexicon=TINY).text == GOLDEN


# --- What a model must look back for. ---


def test_a_speech_says_thou_or_you_but_never_both(play):
    thou, you = re.compile(r"\b[Tt]h(ou|ee|y)\b"), re.compile(r"\b[Yy]our?\b")
    found = Counter()
    for _, _, lines in speeches(play):
        speech = "\n".join(lines)
        found[bool(thou.search(speech)), bool(you.search(speech))] += 1
    assert found[True, True] == 0
    assert found[True, False] > found[False, True] > 20


def test_whoever_is_named_last_in_a_speech_speaks_next(play):
    names = re.compile(rf"\b({'|'.join(LEXICON.names)})\b")
    told = list(speeches(play))
    n_answers = 0
    for (_, speaker, lines), (_, following, _) in zip(told, told[1:]):
        named = names.findall("\n".join(lines))
        if speaker != "Chorus" and named:
            assert following == named[-1] != speaker
            n_answers += 1
    assert n_answers > 100


def test_only_those_on_stage_speak_or_are_named(play):
    names = re.compile(rf"\b({'|'.join(LEXICON.names)})\b")
    stage = set()
    for _, speaker, lines in speeches(play):
        named = names.findall("\n".join(lines))
        if speaker == "Chorus":
            stage = set(named)
            assert len(stage) == len(named) >= 2
        else:
            assert {speaker, *named} <= stage


def test_couplets_rhyme_and_close_the_scene(play):
    rhymes = {word: group for group in LEXICON.rhymes for word in group}
    told = list(speeches(play))
    for (_, speaker, lines), (_, following, _) in zip(told, told[1:]):
        if speaker == "Chorus" or following == "Chorus":
            first, second = (re.findall(r"\w+", line)[-1] for line in lines[-2:])
            assert rhymes[first] is rhymes[second] and first != second


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


def test_the_docstring_tells_how_far_back_the_play_depends():
    """From a word's first letter back to that of the nearest word that tells."""
    play = write_play(1_115_394)
    text, distances = play.text, {}
    forms = [m.start() for m in re.finditer(r"\b([Tt]h(ou|ee|y)|[Yy]our?)\b", text)]
    for span in play.spans:
        word = text[span.start : span.stop]
        if span.kind == "agreement":
            told = forms[bisect_left(forms, span.start) - 1]
        elif span.kind == "rhyme":
            line_end = text.rindex("\n", 0, span.start)
            told = text.rindex(" ", 0, line_end) + 1
        else:  # a name that was there before, or what is said once more
            told = text.rindex(word, 0, span.start)
        distances.setdefault(span.kind, []).append(span.start - told)
    for kind, found in distances.items():
        found.sort()
        percentiles = [found[int(q * len(found))] for q in (0.05, 0.5, 0.95)]
        row = re.search(rf"    {kind} .*?(\d+), +(\d+), +(\d+)\n", playwright.__doc__)
        assert [int(number) for number in row.groups()] == percentiles, kind


def test_spans_stand_in_order_and_never_overlap(play):
    assert all(a.stop <= b.start for a, b in zip(play.spans, play.spans[1:]))


def test_what_is_fully_settled_costs_nothing(play):
    for span in play.spans:
        if span.kind in ("agreement", "answer", "repeat"):
            assert fsum(play.surprise[span.start : span.stop]) == 0


# --- The pocket edition. ---


def test_the_pocket_edition_has_a_known_floor_and_all_five_kinds():
    play = write_play(200_000, lexicon=POCKET)
    assert round(play.nats(), 3) == 0.137
    assert {span.kind for span in play.spans} == set(KINDS)
    assert first(2, {"noun": ("ham", "pig", "boot")}) == {"noun": ("ham", "pig")}


def test_every_scene_of_the_pocket_edition_goes_the_same_way():
    play = write_play(20_000, lexicon=POCKET)
    scenes = play.text.split("Chorus:\n")[1:-1]  # the last is cut short
    for scene in scenes:
        assert len(re.findall(r"^\S.*:$", scene, flags=re.M)) == 2
    assert len(scenes) > 50


def test_in_the_pocket_edition_nothing_depends_on_what_is_far_back():
    text, spans = (play := write_play(200_000, lexicon=POCKET)).text, play.spans
    told = {"on stage": "Enter", "rhyme": ",\n", "agreement": ":\n"}
    for start, stop, kind in spans:
        before = text.rindex(told.get(kind, text[start:stop]), 0, start)
        assert start - before < 120


# --- A lexicon of one's own, and what to say of a bad one. ---


def test_ham_and_hammer_may_stand_together_unless_one_text_begins_the_other():
    write_play(1_000, lexicon=with_words(noun=("ham", "hammer")))
    with pytest.raises(ValueError, match="'ham or "):
        write_play(1_000, lexicon=with_words(noun=("ham", "ham or boot")))


def test_a_cast_of_your_own_speaks_the_play():
    mine = replace(LEXICON, names=("Ada", "Alan", "Grace", "Kurt"))
    play = write_play(6_000, seed=7, lexicon=mine)
    assert {who for _, who, _ in speeches(play)} == {"Chorus", *mine.names}


def test_lists_do_as_well_as_tuples():
    names, rhymes = list(LEXICON.names), [list(group) for group in LEXICON.rhymes]
    words = {slot: list(entries) for slot, entries in LEXICON.words.items()}
    lines = {name: list(entries) for name, entries in LEXICON.lines.items()}
    mine = replace(LEXICON, names=names, words=words, rhymes=rhymes, lines=lines)
    assert write_play(5_000, lexicon=mine).text == write_play(5_000).text


def with_words(**lists):
    return replace(LEXICON, words=LEXICON.words | lists)


def with_lines(**lists):
    return replace(LEXICON, lines=LEXICON.lines | lists)


BAD = {
    "a list without entries": (lambda: with_words(noun=()), "'noun' is empty: give"),
    "no names": (lambda: replace(LEXICON, names=()), "'names' is empty: give"),
    "no rhymes": (lambda: replace(LEXICON, rhymes=()), "'rhymes' is empty: give"),
    "one text for names": (
        lambda: replace(LEXICON, names="Ada"),
        "'names' is one text, 'Ada': make it a tuple",
    ),
    "a cast too small": (
        lambda: replace(LEXICON, names=("Hob", "Nan")),
        "brings 3 on stage, of 2 names: bring two or more, and give at least as many",
    ),
    "a lonely entrance": (
        lambda: with_lines(entrance=("Enter {enter}.",)),
        "brings 1 on",
    ),
    "a lonely rhyme": (
        lambda: replace(LEXICON, rhymes=(*LEXICON.rhymes, ("month",))),
        "rhyme group ('month',) has one word: add another",
    ),
    "a strange letter": (
        lambda: with_words(noun=("ham", "caf\u00e9")),
        "has ['\u00e9'], which Tiny Shakespeare never uses: write it with its 65",
    ),
    "an unknown slot": (
        lambda: with_lines(middle=("I eat {fruit}.",)),
        "slots that nothing fills there: ['fruit']. Use slots among",
    ),
    "a phrase within itself": (
        lambda: replace(LEXICON, phrases={**LEXICON.phrases, "oath": "{oath}, {oath}"}),
        "slots that nothing fills there: ['oath']. Use slots among",
    ),
    "a slot in the wrong place": (
        lambda: with_lines(middle=("I eat {said}.",)),
        "slots that nothing fills there: ['said']. Use slots among",
    ),
    "a couplet without a rhyme": (
        lambda: with_lines(**{"couplet first": ("I eat a {noun},",)}),
        "must hold {rhyme} once",
    ),
    "an unknown list of lines": (
        lambda: replace(
            LEXICON, situations=LEXICON.situations | {"scene": {"prologue": 1}}
        ),
        "situation 'scene' is {'prologue': 1}: give shares above 0 to lists among",
    ),
    "a share of nothing": (
        lambda: replace(LEXICON, situations=LEXICON.situations | {"scene": {"end": 0}}),
        "give shares above 0 to lists among",
    ),
    "a missing situation": (
        lambda: replace(LEXICON, situations={"scene": {"entrance": 1}}),
        "say what comes then",
    ),
    "a word twice": (
        lambda: write_play(10, lexicon=with_words(noun=("ham", "ham"))),
        "'ham.\\n' and 'ham.\\n' can stand in the same place",
    ),
    "a word that begins another": (
        lambda: write_play(10, lexicon=with_words(noun=("ham", "ham or"))),
        "reword or remove one of them",
    ),
    "two names alike": (
        lambda: write_play(10, lexicon=replace(LEXICON, names=("Bo", "Bo", "Al"))),
        "'Bo:\\n' and 'Bo:\\n' can stand in the same place",
    ),
    "a rhyme in two groups": (
        lambda: write_play(
            10, lexicon=replace(LEXICON, rhymes=(("a", "b"), ("b", "c")))
        ),
        "reword or remove one of them",
    ),
    "lines that begin alike": (
        lambda: write_play(10, lexicon=with_lines(middle=("I {verb}.", "I am {adj}."))),
        "'I ' and 'I am ' can stand in the same place",
    ),
    "a play without characters": (
        lambda: write_play(0),
        "n_chars is 0: ask for at least",
    ),
}


@pytest.mark.parametrize("make, message", BAD.values(), ids=BAD.keys())
def test_what_no_play_can_be_made_of_is_refused_with_the_remedy(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_an_empty_slice_or_a_place_outside_the_play_is_refused():
    play = write_play(100)
    with pytest.raises(ValueError, match="is empty: slice within 0:100"):
        play.nats(50, 50)
    for position in (-1, 100):
        with pytest.raises(IndexError, match=f"position {position} is not in 0..99"):
            play.next_char_probs(position)


def test_a_play_introduces_itself_in_one_line(play):
    assert (
        repr(play) == f"Play(60,000 characters, {play.nats():.4f} nats per character)"
    )
