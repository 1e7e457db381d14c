"""Texts of strange characters, and tokenizers that have learned from them."""

from minigpt.tokens.byte_pairs import learn

PLAIN = "Hob's wig, 12 geese --and the king's  OLD wig!\n\n\tWe'll see_it: aaaaaaa.\n"
STRANGE = PLAIN + "Où est le café? 🎭🐝 ½ Ⅷ ٣ ह्ि e\u0301 \x85\x1c\u2028\ufeff\x00\r\n "
CHARS = [*STRANGE, "the", "  ", "\n\n", "aaa", "👩‍👩‍👧", "한국", "\U0010ffff"]
ALIKE = [c for c in CHARS if c not in "½Ⅷ\x1c"]  # what Python calls a digit or a space


def drawn(rng, chars=CHARS, longest=60):
    """A text of fewer than `longest` random pieces; rng: a random.Random."""
    return "".join(rng.choices(chars, k=rng.randrange(longest)))


def tokenizer_of(cut):
    """A BytePairTokenizer of all bytes and 74 merges."""
    return learn(STRANGE * 80 + PLAIN * 30, 330, cut, range(256))
