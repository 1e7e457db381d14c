"""Answers to notebook 13's exercises."""

from exercises import exercises_of

from minigpt.tokens.byte_pairs import learn

EXERCISES = exercises_of("13")


def names():
    return {"learn": learn}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def pairs(*lines):
    return defined("count_pairs(ids)", *lines)


def loss(characters, bits):
    return defined("per_character(nats, tokens)", f"return {characters}, {bits}")


def encode(*lines):
    return defined("encode(word, merges)", *lines)


def written(line):
    return defined("written(tokens)", f"return {line}")


TEXT = "b''.join(tokens)"
CHARACTERS = f"nats.sum() / len({TEXT}.decode())"
BITS = f"nats.sum() / len({TEXT}) / math.log(2)"
WRONG = {
    "13.1": {
        "You count overlapping pairs": pairs(
            "from collections import Counter", "return dict(Counter(zip(ids, ids[1:])))"
        ),
        "You leave out all pairs of two equal": pairs(
            "from collections import Counter",
            "return dict(Counter(p for p in zip(ids, ids[1:]) if p[0] != p[1]))",
        ),
        "You only count pairs side by side": pairs(
            "found = {}",
            "for pair in zip(ids[::2], ids[1::2]):",
            "    found[pair] = found.get(pair, 0) + 1",
            "return found",
        ),
    },
    "13.2": {
        "This is the loss per token": loss("nats.mean()", BITS),
        "These are nats per byte": loss(f"nats.sum() / len({TEXT})", BITS),
        "These are nats. One bit": loss(CHARACTERS, f"nats.sum() / len({TEXT})"),
        "bits per character": loss(CHARACTERS, f"{CHARACTERS} / math.log(2)"),
        "bits per token": loss(CHARACTERS, "nats.mean() / math.log(2)"),
    },
    "13.3": {
        "The bug is still there": encode(
            "parts = list(word)",
            "while True:",
            "    can = [i for i in range(len(parts) - 1)",
            "           if (parts[i], parts[i + 1]) in merges]",
            "    if not can:",
            "        return parts",
            "    i = can[0]",
            "    parts[i : i + 2] = [parts[i] + parts[i + 1]]",
        ),
        "tokenizer, WordPiece": encode(
            "known, parts = {a + b for a, b in merges}, []",
            "while word:",
            "    n = len(word)",
            "    while n > 1 and word[:n] not in known:",
            "        n -= 1",
            "    parts, word = [*parts, word[:n]], word[n:]",
            "return parts",
        ),
        "It returns 3 values": (
            "def encode(word, merges):\n"
            "    parts = list(word)\n"
            "    for merge in merges:\n"
            "        parts = [*parts]\n"
            "        return parts\n"
            "    return parts\n"
        ),
    },
    "13.4": {
        "The bug is still there": written(
            "''.join(token.decode('utf-8', 'replace') for token in tokens)"
        ),
        "vanish without a trace": written(f"{TEXT}.decode('utf-8', 'ignore')"),
        "turns each byte into a character": written(f"{TEXT}.decode('latin-1')"),
        "UnicodeDecodeError": written(f"{TEXT}.decode()"),
    },
}

RIGHT = {
    "13.1": {
        "by joining": pairs(
            "found, i = {}, 0",
            "for pair in set(zip(ids, ids[1:])):",
            "    i = n = 0",
            "    while i < len(ids) - 1:",
            "        hit = (ids[i], ids[i + 1]) == pair",
            "        i, n = i + 1 + hit, n + hit",
            "    found[pair] = n",
            "return found",
        )
    },
    "13.2": {"numbers": loss(f"({CHARACTERS}).item()", f"{BITS} * 1.0")},
    "13.3": {
        "by rank": encode(
            "parts, rank = list(word), {pair: r for r, pair in enumerate(merges)}",
            "while True:",
            "    can = [(rank[p], i) for i, p in enumerate(zip(parts, parts[1:]))",
            "           if p in rank]",
            "    if not can:",
            "        return parts",
            "    i = min(can)[1]",
            "    parts[i : i + 2] = [parts[i] + parts[i + 1]]",
        )
    },
    "13.4": {
        "added up": written(
            "bytes(b for t in tokens for b in t).decode(errors='replace')"
        )
    },
}
