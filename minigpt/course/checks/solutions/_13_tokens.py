"""Solutions of notebook 13."""

import math

import torch

# 13.1
def count_pairs(ids):
    counts, last = {}, None
    for pair in zip(ids, ids[1:]):
        if pair == last:  # its first letter is in the pair before
            last = None
            continue
        counts[pair] = counts.get(pair, 0) + 1
        last = pair
    return counts
# ✗ Overlaps are counted: in `7 7 7` the one in the middle is in both pairs, and only
# one of them can be joined.
# pair == last → False
# ? How many pairs can be joined in `7 7 7`, and how many in `7 7 7 7`?
# ✗ Of a row of equal ids only the first pair is counted; after one that was skipped,
# forget what came before.
# last = None → pass
# ✗ Pairs of two equal ids are left out altogether; one of them can be joined.
# pair == last → pair[0] == pair[1]
# ✗ Only pairs side by side are counted, as in `ab|cd`: `bc` could be joined as well.
# pair == last → last
# ✗ You halve all pairs of a letter at once; each row of equal ids has its own half.
# pair == last → False
# return counts → return {p: (n + 1) // 2 if p[0] == p[1] else n for p, n in counts.items()}

# 13.2
def per_character(nats, tokens):
    text = b"".join(tokens)
    characters = len(text.decode())
    return nats.sum() / characters, nats.sum() / len(text) / math.log(2)
# ✗ This is the loss per token: who has longer tokens has a higher one, and may be
# better all the same.
# nats.sum() / characters, → nats.mean(),
# ✗ Each token is decoded by itself: a character cut in two counts twice.
# len(text.decode()) → sum(len(t.decode("utf-8", "replace")) for t in tokens)
# ✗ These are nats per byte: an é is one character, and two bytes.
# len(text.decode()) → len(text)
# ✗ These are nats; one bit is ln 2 of them.
#  / math.log(2) →
# ✗ The wrong way round: a bit is less than a nat, so there are more of them.
# / math.log(2) → * math.log(2)
# ✗ These are bits per character: the text has more bytes than characters.
# nats.sum() / len(text) → nats.sum() / characters
# ✗ These are bits per token: the loss that the field reports is per byte.
# nats.sum() / len(text) → nats.mean()
# ✗ You average the tokens' own rates: a short token would count as much as a long one.
# nats.sum() / len(text) → (nats / nats.new_tensor([len(t) for t in tokens])).mean()
# ✗ You average the tokens' own rates: add up all nats, then divide once.
# nats.sum() / characters, → (nats / nats.new_tensor([len(t.decode("utf-8", "ignore")) for t in tokens])).mean(),

# 13.3
def encode(word, merges):
    parts = list(word)
    for left, right in merges:
        i = 0
        while i < len(parts) - 1:
            if (parts[i], parts[i + 1]) == (left, right):
                parts[i : i + 2] = [left + right]
            i += 1
    return parts
# ✗ The merges are made from the last to the first: longer pieces wait for shorter ones
# that are not there yet.
# in merges → in merges[::-1]
# ✗ Each merge is made once only; it should be made wherever its pair stands.
# [left + right] → [left + right]; break


# 13.4
def written(tokens):
    return b"".join(tokens).decode("utf-8", "replace")
# ✗ The bug is still there: a character whose bytes are in two tokens is lost.
# return b"".join(tokens).decode("utf-8", "replace") → parts = [token.decode("utf-8", "replace") for token in tokens]
#     return "".join(parts)
# ? Which is whole: the bytes of a token, or the bytes of the text?
# ✗ Each token is still decoded by itself: the halves of a character now vanish.
# b"".join(tokens).decode("utf-8", "replace") → "".join(t.decode("utf-8", "ignore") for t in tokens)
# ✗ Bytes that are no UTF-8 vanish without a trace. "replace" shows a � in their place.
# "replace" → "ignore"
# ✗ That gives each byte a character of its own: two of them for an é.
# "utf-8" → "latin-1"
# ✗ A cut character waits for one more token only; it may need two or three.
# return b"".join(tokens).decode("utf-8", "replace") → out, held = "", b""
#     for token in tokens:
#         got = held + token
#         try:
#             out, held = out + got.decode(), b""
#         except UnicodeDecodeError:
#             out, held = (out + got.decode("utf-8", "replace"), b"") if held else (out, got)
#     return out + held.decode("utf-8", "replace")
# ✗ What was shown is shown again: empty the buffer once it could be decoded.
# return b"".join(tokens).decode("utf-8", "replace") → out, held = "", b""
#     for token in tokens:
#         held += token
#         try:
#             out += held.decode()
#         except UnicodeDecodeError:
#             pass
#     return out
# ✗ Each byte is read by itself, as ASCII would: an é has two of them.
# b"".join(tokens).decode("utf-8", "replace") → "".join(
# bytes([b]).decode("utf-8", "replace") for b in b"".join(tokens))
