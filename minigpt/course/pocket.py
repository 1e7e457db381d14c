"""The pocket play of lessons 07 and 11: its text as ids, the author's own surprise, and
the windows of it where a word is said again or a speaker has to answer."""

from bisect import bisect_left
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minigpt.data import CharTokenizer, train_val_split
from minigpt.inside.looking import capture
from minigpt.interfaces import Model
from minigpt.playwright.play import POCKET, Play, write_play

CONTEXT, FRESH = 192, 50
KINDS = ["agreement", "answer", "on stage", "rhyme", "repeat"]
WATCHED = 10_000  # characters that are judged again and again during a training


class PocketPlay(NamedTuple):
    """The play, its ids (N,), where the last tenth begins, and the author's nats."""

    play: Play
    tokenizer: CharTokenizer
    ids: torch.Tensor
    n: int
    exact: torch.Tensor


@cache
def load() -> PocketPlay:
    """The PocketPlay of lessons 07 and 11."""
    play = write_play(1_000_000, lexicon=POCKET)
    tokenizer = CharTokenizer(play.text)
    ids = torch.tensor(tokenizer.encode(play.text))
    n = len(train_val_split(ids)[0])
    return PocketPlay(play, tokenizer, ids, n, torch.tensor(play.surprise))


@torch.no_grad()
def surprises(model: Model, stop: int = WATCHED) -> torch.Tensor:
    """Nats at ids[n : n + stop], each with a past of 143 characters or more."""
    p, before = load(), CONTEXT - FRESH + 1
    data = p.ids[p.n - before : p.n + stop]
    windows = data.unfold(0, CONTEXT + 1, FRESH)  # (number, T + 1)
    rows = []
    for w in windows.split(128):
        logits = model(w[:, :-1])[0].transpose(1, 2)  # (B, V, T)
        rows.append(F.cross_entropy(logits, w[:, 1:], reduction="none"))
    return torch.cat(rows)[:, -FRESH:].flatten()


def excess(nats: torch.Tensor) -> dict[str, float]:
    """{kind: nats above the playwright for each place of that kind}."""
    p = load()
    extra = nats - p.exact[p.n : p.n + len(nats)]
    paid = {kind: [] for kind in KINDS}
    for start, stop, kind in p.play.spans:
        if p.n <= start and stop <= p.n + len(nats):
            paid[kind].append(extra[start - p.n : stop - p.n].sum())
    return {kind: torch.stack(found).mean().item() for kind, found in paid.items()}


@cache
def copies(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows (B, T) of the play, each of which ends where a word is to be said again;
    and masks (B, T), True where the same word stands in the window: on its letters, and
    on what follows them in its slot, as the blank that ends it.

    kind: of what makes it come again, one of KINDS.
    """
    p = load()
    starts = [start for start, _ in p.play.choices]
    text, windows, before = p.play.text, [], []
    for start, stop, what in p.play.spans:
        if what == kind and p.n <= start and stop <= p.n + WATCHED:
            said = text.rindex(text[start:stop], 0, start)
            at = bisect_left(starts, said)
            for first, last in zip(starts[at:], starts[at + 1 :]):
                if first >= said + stop - start:
                    break
                if p.exact[first] > 0:  # a word was chosen, not given
                    begin = start + first - said - CONTEXT
                    windows.append(p.ids[begin : begin + CONTEXT])
                    mask = torch.zeros(CONTEXT, dtype=torch.bool)
                    mask[first - begin : last - begin] = True
                    before.append(mask)
    return torch.stack(windows), torch.stack(before)


def copying(model: Model, kind: str) -> torch.Tensor:
    """Attention to the earlier word, where its first letter is due: (layers, heads)."""
    windows, before = copies(kind)
    last = torch.stack([w[:, :, -1] for w in capture(model, windows).weights])
    return (last * before[:, None]).sum(dim=-1).mean(dim=1)  # (n_layer, B, n_head, T)


@cache
def named(
    pair: tuple[str, str] = ("Nan", "Hob"),
) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """Windows (B, T) of the pocket play that end where `pair[0]` has to answer; the
    same ones with the other name in the speech before; where that name begins in the
    first ones. A longer name in the double pushes the oldest characters out."""
    p, T = load(), CONTEXT
    longer = len(max(pair, key=len))
    windows, others, places = [], [], []
    for start, stop, kind in p.play.spans:
        if kind != "answer" or start < p.n or p.play.text[start:stop] != pair[0]:
            continue
        text = p.play.text[start - T - longer : start]
        told, scene = text.rindex(pair[0]), text.rfind("Chorus:\n")
        enter = text[scene:].partition("Enter ")[2].partition(".")[0]
        speaker = text[: text.rindex(":\n")].rpartition("\n")[2]
        begun = scene >= 2 * longer - 3  # in both windows
        if begun and speaker not in pair and all(n in enter for n in pair):
            other = text[:told] + pair[1] + text[told + len(pair[0]) :]
            windows.append(p.tokenizer.encode(text[-T:]))
            others.append(p.tokenizer.encode(other[-T:]))
            places.append(told - longer)
    return torch.tensor(windows), torch.tensor(others), places
