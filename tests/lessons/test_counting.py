"""Lesson 08: counts of contexts, their smoothing, and a GPT beside them."""

import math
from collections import Counter
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from small import plan, weights_of
from torch.testing import assert_close

from minigpt import training
from minigpt.modern.counting import (
    RECENT,
    CountingGPT,
    CountsAlone,
    Smoothing,
    fit_smoothing,
    fold_batch,
)
from minigpt.modern.counts import ContextCounts, ContinuationCounts, window_counts
from minigpt.modern.model import ModernConfig

V, ORDER, FOLDS = 3, 4, 5
IDS = torch.randint(V, (207,), generator=torch.Generator().manual_seed(1))
ASKED = torch.randint(V, (2, 9), generator=torch.Generator().manual_seed(2))
PIECES = [i * FOLDS // (len(IDS) - 1) for i in range(len(IDS) - 1)]  # of each pair


def by_dictionary(ids, idx, order, skip=()):
    """What followed each context in ids, one pair after the other; skip: pairs."""
    ids, seen = ids.tolist(), Counter()
    for i in range(len(ids) - 1):
        for n in range(min(order, i + 1) + 1):
            if i not in skip:
                seen[tuple(ids[i + 1 - n : i + 1]), ids[i + 1]] += 1
    out = torch.zeros(*idx.shape, order + 1, V)
    for b, row in enumerate(idx.tolist()):
        for t in range(len(row)):
            for n in range(min(order, t + 1) + 1):
                context = tuple(row[t + 1 - n : t + 1])
                for c in range(V):
                    out[b, t, n, c] = seen[context, c]
    return out


@pytest.fixture
def counts():
    return ContextCounts(IDS, V, ORDER, FOLDS)


# --- Counting. ---


@pytest.mark.parametrize("order", [0, 1, 4, 6])
def test_counts_are_those_of_a_dictionary(order):
    counts = ContextCounts(IDS, V, order, FOLDS)
    assert torch.equal(counts(ASKED), by_dictionary(IDS, ASKED, order))


@pytest.mark.parametrize("T", [1, 2, 5, 8])
def test_a_text_shorter_than_the_longest_context_is_answered(counts, T):
    assert torch.equal(counts(ASKED[:, :T]), counts(ASKED)[:, :T])


@pytest.mark.parametrize("fold", [0, 3, FOLDS - 1])
def test_without_a_fold_counts_are_those_without_its_pairs(counts, fold):
    skip = {i for i, piece in enumerate(PIECES) if piece == fold}
    expected = by_dictionary(IDS, ASKED, ORDER, skip)
    assert torch.equal(counts(ASKED, without=fold), expected)
    assert not torch.equal(expected, counts(ASKED))


def test_an_order_too_large_for_64_bits_is_refused_and_the_largest_is_right():
    ids = torch.tensor([64, 63, 64, 64, 63, 64, 64, 64] * 5)
    with pytest.raises(ValueError, match="9 characters out of 65 .* smaller order"):
        ContextCounts(ids, 65, 9)
    counts = ContextCounts(ids, 65, 8, folds=2)
    row = counts(ids[None, :20])[0, 19, 8]
    follow = [
        ids[i + 1].item()
        for i in range(7, len(ids) - 1)
        if torch.equal(ids[i - 7 : i + 1], ids[12:20])
    ]
    assert row.sum() == len(follow) and row[follow[0]] == len(follow)


def test_an_id_beyond_the_vocabulary_is_refused_where_it_would_be_another_context():
    with pytest.raises(ValueError, match="id 3 is not below vocab_size = 3"):
        ContextCounts(torch.tensor([0, 1, 3, 2, 1]), V, 2)
    with pytest.raises(ValueError, match="id 4"):
        ContextCounts(IDS, V, 2)(torch.tensor([[1, 4]]))


@pytest.mark.parametrize("fold, order", [(None, ORDER), (0, ORDER), (3, 1), (3, 0)])
def test_continuation_counts_are_the_characters_that_stood_before(fold, order):
    """But the longest context in sight keeps its ordinary counts."""
    text, seen = IDS.tolist(), set()
    for i in range(len(text) - 1):
        if PIECES[i] != fold:
            seen |= {
                (*text[i - n : i + 1], text[i + 1]) for n in range(min(i + 1, order))
            }
    got = ContinuationCounts(IDS, V, order, FOLDS)(ASKED, without=fold)
    often = ContextCounts(IDS, V, order, FOLDS)(ASKED, without=fold)
    for b, row in enumerate(ASKED.tolist()):
        for t in range(len(row)):
            longest = min(order, t + 1)
            assert torch.equal(got[b, t, longest:], often[b, t, longest:])
            for n in range(longest):
                pairs = [(*row[t + 1 - n : t + 1], x) for x in range(V)]
                different = [sum((c, *p) in seen for c in range(V)) for p in pairs]
                assert got[b, t, n].tolist() == different


def test_window_counts_are_what_followed_before_in_this_window_alone():
    idx = torch.cat([ASKED, IDS[None, :9]])
    got = window_counts(idx, V, 3)
    for b, row in enumerate(idx.tolist()):
        for t in range(len(row)):
            for n in range(1, 4):
                follow = Counter(
                    row[s + 1]
                    for s in range(n - 1, t)
                    if t >= n - 1 and row[s + 1 - n : s + 1] == row[t + 1 - n : t + 1]
                )
                assert got[b, t, n - 1].tolist() == [follow[c] for c in range(V)]


# --- Smoothing. ---


@pytest.fixture
def smoothing():
    smoothing = Smoothing(ORDER)
    smoothing.discount.data = torch.randn(ORDER + 1, 3)
    return smoothing


def test_smoothed_probabilities_sum_to_one_at_each_order(counts, smoothing):
    p = smoothing(counts(ASKED)).exp()
    assert p.shape == (2, 9, ORDER + 1, V) and p.min() > 0
    assert_close(p.sum(-1), torch.ones(2, 9, ORDER + 1))


def test_an_unseen_context_leans_on_the_shorter_one_alone(counts, smoothing):
    logp = smoothing(counts(ASKED))
    for t in range(ORDER):
        for n in range(t + 2, ORDER + 1):
            assert_close(logp[:, t, n], logp[:, t, t + 1])
    nothing = smoothing(torch.zeros(1, 1, ORDER + 1, V))
    assert_close(nothing, torch.full_like(nothing, -math.log(V)))


def test_smoothing_by_hand():
    """One, two and more are discounted by up to 1, 2 and 3: Chen and Goodman."""
    smoothing = Smoothing(1)
    smoothing.discount.data = torch.tensor([[0.3, -0.2, 0.1], [0.5, 0.0, -0.4]])
    counts = torch.tensor([[4.0, 2.0, 1.0, 7.0], [1.0, 0.0, 3.0, 2.0]])
    p = torch.full((4,), 0.25)
    for n in range(2):
        d1, d2, d3 = torch.sigmoid(smoothing.discount[n]) * torch.tensor([1.0, 2, 3])
        give = {0: 0.0, 1: d1, 2: d2}
        taken = torch.stack(
            [torch.as_tensor(give.get(c, d3)) for c in counts[n].int().tolist()]
        )
        p = (counts[n] - taken + taken.sum() * p) / counts[n].sum()
        assert_close(smoothing(counts[None, None])[0, 0, n], p.log())


def test_discounts_are_learned_for_each_order_from_what_was_left_out(counts):
    ids = torch.tensor([0, 1, 2]).repeat(69)  # after two, nothing is in doubt
    counts, config = ContextCounts(ids, V, 2, FOLDS), plan(block_size=8)
    smoothing = fit_smoothing(counts, ids, config, steps=30)
    before, after = Smoothing(2), smoothing
    x, y = ids[None, :100], ids[None, 1:101]
    losses = [
        F.nll_loss(s(counts(x, without=0))[0, :, -1], y[0]).item()
        for s in (before, after)
    ]
    assert losses[1] < losses[0]
    assert torch.equal(smoothing.discount[0, 0], torch.tensor(1.0))  # no count of 1
    again = fit_smoothing(counts, ids, config, steps=30)
    assert torch.equal(again.discount, smoothing.discount)


# --- The GPT beside the counts. ---


def test_counts_alone_say_what_the_longest_order_says(counts, smoothing):
    logits, loss = CountsAlone(counts, smoothing, 9)(ASKED, ASKED)
    assert torch.equal(logits, smoothing(counts(ASKED))[..., -1, :])
    assert_close(loss, F.cross_entropy(logits.flatten(0, 1), ASKED.flatten()))


def counting_gpt(counts, **changes):
    torch.manual_seed(0)
    config = ModernConfig(V, 9, n_layer=1, n_head=2, n_embd=8, **changes)
    return CountingGPT(config, counts, Smoothing(ORDER))


@pytest.fixture(params=[{}, {"rotary": False}, {"softcap": 3.0}], ids=str)
def model(request, counts):
    model = counting_gpt(counts, **request.param)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.2 * torch.randn(p.shape)
    return model


def test_a_new_model_says_what_the_longest_counts_say(counts):
    model = counting_gpt(counts)
    logits, loss = model(ASKED, ASKED)
    expected = model.smoothing(counts(ASKED))[..., -1, :]
    assert_close(logits, expected)
    assert_close(loss, F.cross_entropy(expected.flatten(0, 1), ASKED.flatten()))
    assert model(ASKED)[1] is None


def test_changing_the_future_changes_nothing_in_the_past(model):
    before = model(ASKED)[0]
    for t in range(1, 9):
        changed = ASKED.clone()
        changed[:, t:] = (changed[:, t:] + 1) % V
        after = model(changed)[0]
        assert_close(after[:, :t], before[:, :t], rtol=0, atol=1e-5)
        assert (after[:, t] - before[:, t]).abs().max() > 1e-4


def test_logits_are_the_gpts_and_a_mixture_of_all_orders_that_it_chooses(model):
    logp = model.smoothing(model.counts(ASKED))
    x = model.token_embedding(ASKED)
    x = x + model.read(logp[..., -1, :] + math.log(V))
    if model.position_embedding is not None:
        x = x + model.position_embedding(torch.arange(9))
    hidden = model.body(model.convolution(x))
    known = *logp.unbind(-2), *(1 + window_counts(ASKED, V, RECENT)).log().unbind(-2)
    mixed = sum(model.gate(hidden)[..., n, None] * said for n, said in enumerate(known))
    assert_close(model(ASKED)[0], model.logits(hidden) + mixed, atol=1e-4, rtol=1e-4)


def test_a_fold_is_left_out_in_training_and_never_in_evaluation(model):
    model.without = 2
    model.eval()
    judged = model(ASKED)[0]
    model.train()
    trained = model(ASKED)[0]
    model.counts.counts = model.counts.counts - model.counts.by_fold[2]
    model.without = None
    assert_close(model(ASKED)[0], trained)
    assert (judged - trained).abs().max() > 1e-4


def test_a_batch_comes_from_the_fold_that_is_left_out(counts):
    model, generator, seen = counting_gpt(counts), torch.Generator(), set()
    text = IDS.tolist()
    for _ in range(20):
        x, y = fold_batch(model, IDS, 4, 8, generator=generator)
        fold = model.without
        seen.add(fold)
        first, last = PIECES.index(fold), len(PIECES) - PIECES[::-1].index(fold)
        piece = text[first : last + 1]
        windows = [piece[i : i + 9] for i in range(len(piece) - 8)]
        for a, b in zip(x.tolist(), y.tolist()):
            assert [*a, b[-1]] in windows and a[1:] == b[:-1]
    assert len(seen) > 2


def test_a_training_beside_counts_draws_its_batches_from_the_folds(counts):
    """One step by hand ends where `train` with draw=fold_batch ends."""
    config = plan(block_size=8, steps=1, eval_batches=1)
    model, twin = counting_gpt(counts), counting_gpt(counts)
    training.train(model, IDS, IDS, config, draw=partial(fold_batch, model))
    batches = torch.Generator().manual_seed(config.seed)
    x, y = fold_batch(twin, IDS, config.batch_size, 8, generator=batches)
    optimizer = config.make_optimizer(twin)
    for group in optimizer.param_groups:
        group["lr"] = config.learning_rate_at(0)
    twin(x, y)[1].backward()
    torch.nn.utils.clip_grad_norm_(twin.parameters(), config.grad_clip)
    optimizer.step()
    torch.testing.assert_close(weights_of(model), weights_of(twin))
    assert (model.smoothing.discount == 1).all()  # stays as it was given


def test_the_gradient_reaches_every_parameter_that_learns(model):
    model(ASKED, ASKED.roll(-1, 1))[1].backward()
    for name, p in model.named_parameters():
        if p.requires_grad:
            assert p.grad is not None and p.grad.abs().sum() > 0, name
    assert not model.smoothing.discount.requires_grad
