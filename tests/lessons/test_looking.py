"""Looking inside: what is caught adds up, scores are known by hand, cuts heal."""

import copy
from xml.etree import ElementTree

import pytest
import torch
import torch.nn as nn
from torch.testing import assert_close

from minigpt.attention import attention_weights
from minigpt.course import plots
from minigpt.data import CharTokenizer
from minigpt.gpt import GPT, GPTConfig
from minigpt.inside.looking import (
    capture,
    changed,
    contributions,
    hooked,
    logit_shares,
    patched,
)
from minigpt.inside.marks import (
    MARKS,
    by_chance,
    prefix,
    previous,
    same,
    score,
)

V, T, C = 7, 12, 8


@pytest.fixture
def model():
    """A GPT none of whose numbers is special: biases and norms, too, are random."""
    torch.manual_seed(3)
    model = GPT(GPTConfig(V, T, n_layer=3, n_head=2, n_embd=C))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.eval()


@pytest.fixture
def idx():
    return torch.randint(V, (2, 10), generator=torch.Generator().manual_seed(4))


def hooks_of(model):
    found = [(*m._forward_hooks, *m._forward_pre_hooks) for m in model.modules()]
    return sum(map(len, found))


def logits_of(model, idx):
    with torch.no_grad():
        return model(idx)[0]


# Catching


def test_hooks_are_gone_after_use_errors_or_not(model, idx):
    model.train()
    capture(model, idx)
    assert hooks_of(model) == 0 and model.training
    with pytest.raises(ValueError, match="block_size"):
        capture(model, torch.zeros(1, T + 1, dtype=torch.long))
    assert hooks_of(model) == 0
    with pytest.raises(ZeroDivisionError):
        with hooked([(model.lm_head, print), (model.body, print)]):
            assert hooks_of(model) == 2
            raise ZeroDivisionError
    assert hooks_of(model) == 0


def test_what_is_caught_is_what_the_model_computed(model, idx):
    flow = capture(model, idx)
    x = model.token_embedding(idx) + model.position_embedding.weight[:10]
    assert_close(flow.token + flow.position, x)
    for layer, block in enumerate(model.body[:-1]):
        assert_close(flow.stream[layer], x)
        a = block.attention
        qkv = a.qkv(block.norm1(x)).view(2, 10, 3, a.n_head, a.head_size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        weights = attention_weights(q, k)
        assert_close(flow.weights[layer], weights)
        side_by_side = (weights @ v).transpose(1, 2).flatten(2)
        assert_close(flow.heads[layer], side_by_side)
        x = x + a(block.norm1(x))
        hidden = block.feed_forward.expand(block.norm2(x)).relu()
        assert_close(flow.neurons[layer], hidden)
        assert_close(flow.computed[layer], block.feed_forward(block.norm2(x)))
        x = x + flow.computed[layer]
    assert_close(flow.stream[-1], x)
    assert not flow.stream[-1].requires_grad and not flow.stream[-1].is_inference()


def test_the_parts_add_up_to_the_stream_and_their_shares_to_the_logits(model, idx):
    flow = capture(model, idx)
    parts = contributions(model, flow)
    first = "token, position, head 1.1, head 1.2, bias 1, feed-forward 1"
    assert list(parts)[:6] == first.split(", ") and len(parts) == 2 + 3 * (2 + 1 + 1)
    assert_close(sum(parts.values()), flow.stream[-1])
    shares = logit_shares(model, flow)
    assert list(shares) == [*parts, "last biases"]
    assert_close(sum(shares.values()), logits_of(model, idx), atol=1e-4, rtol=1e-4)


# Cutting and exchanging


def cut_by_hand(model, layer, part):
    """A copy whose part is silenced in its weights."""
    model = copy.deepcopy(model)
    block = model.body[layer - 1]
    with torch.no_grad():
        if part in (1, 2):
            block.attention.proj.weight[:, (part - 1) * 4 : part * 4] = 0
        else:
            proj = {"attention": block.attention, "feed-forward": block.feed_forward}
            for parameter in proj[part].proj.parameters():
                parameter.zero_()
    return model


@pytest.mark.parametrize("layer", [1, 3])
@pytest.mark.parametrize("part", [1, 2, "attention", "feed-forward"])
def test_zeros_are_what_zeroed_weights_give_and_the_model_heals(
    model, idx, layer, part
):
    before = logits_of(model, idx)
    with changed(model, layer, part):
        cut = logits_of(model, idx)
    assert_close(cut, logits_of(cut_by_hand(model, layer, part), idx))
    assert not torch.allclose(cut, before)
    assert torch.equal(logits_of(model, idx), before) and hooks_of(model) == 0


def test_a_mean_or_another_texts_output_takes_the_place_of_a_heads(model, idx):
    a, heads = model.body[1].attention, capture(model, idx).heads[1]
    own, mean = heads[..., :4], heads[..., 4:].mean(dim=(0, 1))
    other = heads[..., 4:].flip(0)  # of the other window
    for value in (mean, other):
        with changed(model, 2, 2, value):
            flow = capture(model, idx)
        side_by_side = torch.cat([own, value.expand_as(own)], dim=-1)
        wanted = flow.stream[1] + a.proj(side_by_side) + flow.computed[1]
        assert_close(flow.stream[2], wanted, atol=1e-5, rtol=1e-4)
    with changed(model, 2, "feed-forward", torch.arange(8.0)):
        assert torch.equal(capture(model, idx).computed[1][1, 9], torch.arange(8.0))


@pytest.mark.parametrize(
    "layer, part, says",
    [
        (0, 1, "layer is 0; give a number from 1 to 3"),
        (1, 3, "no part 3: give a head from 1 to 2"),
        (1, "mlp", "no part 'mlp': give a head from 1 to 2, 'attention' or 'feed-"),
    ],
)
def test_a_part_that_the_model_does_not_have_is_named(model, layer, part, says):
    with pytest.raises(ValueError, match=says):
        with changed(model, layer, part):
            pass


def test_patching_all_positions_gives_the_other_texts_logits(model, idx):
    one, other = idx[:1], idx[1:]
    stream = capture(model, one).stream
    for layer in (1, 2, 4):
        with patched(model, layer, slice(None), stream[layer - 1][0]):
            assert_close(logits_of(model, other), logits_of(model, one))
    before = logits_of(model, other)
    with patched(model, 1, 6, stream[0][0, 6]):
        after = logits_of(model, other)
    assert torch.equal(after[:, :6], before[:, :6])  # the past does not hear of it
    assert not torch.allclose(after[:, 6:], before[:, 6:])
    assert hooks_of(model) == 0
    with pytest.raises(ValueError, match="from 1 to 4"):
        with patched(model, 5, 0, stream[0][0, 0]):
            pass


# Marks and scores


def where(marks):
    """The pairs (t, s) that are marked in the first window."""
    return [tuple(pair) for pair in marks[0].nonzero().tolist()]


def read(text):
    return torch.tensor([CharTokenizer(text).encode(text)])


def test_marks_are_where_one_finds_them_by_hand():
    idx = read("abcab")
    assert where(previous(idx)) == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert where(previous(idx, n=3)) == [(3, 0), (4, 1)] == where(same(idx))
    assert where(MARKS["two back"](idx)) == [(2, 0), (3, 1), (4, 2)]
    assert where(prefix(idx, n=1)) == [(3, 1), (4, 2)]
    assert where(prefix(idx, n=2)) == [(4, 2)]
    assert where(prefix(idx, n=3)) == []


@pytest.mark.parametrize("n", [1, 2, 3])
def test_prefix_matching_equals_its_definition(n):
    idx = torch.randint(2, (3, 14), generator=torch.Generator().manual_seed(n))
    marks = prefix(idx, n=n)
    for row, ids in zip(marks, idx):
        for t in range(14):
            for s in range(14):
                alike = s >= n and t >= n - 1 and s <= t
                alike = alike and torch.equal(ids[s - n : s], ids[t - n + 1 : t + 1])
                assert row[t, s] == alike


@pytest.mark.parametrize("kind", MARKS)
def test_no_mark_lies_in_the_future(kind):
    text = "He:\nI see,\nI see.\n\nShe:\nI see it,\nand I see.\n\nHe:\nSo."
    marks = MARKS[kind](read(text))
    assert marks.shape == (1, len(text), len(text)) and marks.any()
    assert not marks.triu(1).any()


def test_scores_of_maps_made_by_hand():
    weights = torch.tensor([[1, 0, 0], [0.3, 0.7, 0], [0.5, 0.4, 0.1]])
    always = torch.eye(3).roll(1, 0).tril(-1)  # looks one back
    always[0, 0] = 1
    marks = previous(torch.zeros(1, 3))
    both = torch.stack([weights, always])[None]
    assert_close(score(both, marks), torch.tensor([(0.3 + 0.4) / 2, 1.0]))
    assert by_chance(marks) == pytest.approx((1 / 2 + 1 / 3) / 2)
    some = torch.zeros(1, 3, 3, dtype=torch.bool)
    some[0, 2, :2] = True  # one query, two marks; the others do not count
    assert_close(score(both, some), torch.tensor([0.9, 1.0]))
    assert by_chance(some) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="No query has a mark"):
        score(both, torch.zeros_like(some))


# What is shown


def test_a_figure_is_told_where_notebooks_read_it_out(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *c, **k: shown.append((c, k)))
    plots.show(plots.plt.figure(), 'it falls "fast" & far')
    ((content,), options) = shown[0]
    assert content["text/plain"] == 'Figure: it falls "fast" & far'
    assert options["metadata"]["image/png"]["alt"] == 'it falls "fast" & far'
    picture = ElementTree.fromstring(content["text/html"].replace('">', '"/>'))
    assert picture.get("alt") == 'it falls "fast" & far'
    assert picture.get("src") == f"data:image/png;base64,{content['image/png']}"
    with pytest.raises(ValueError, match="Describe"):
        plots.show(plots.plt.figure(), "")


def test_a_text_shaded_by_attention_does_not_need_colour(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *c, **k: shown.append(c[0]))
    plots.reading("a<b\nc", [0.3, 0.15, 0.0, 0.05, 0.5], "what a head reads")
    page = shown[0]["text/html"]
    assert shown[0]["text/plain"] == "Text: what a head reads"
    assert "<ins><strong>a</strong></ins>" in page and "<strong>&lt;</strong>" in page
    assert "<ins><strong>c</strong></ins>" in page and "↵</span>\n" in page
    assert page.count("<ins>") == 2 and page.count("background-color") == 4
    assert "<figcaption>what a head reads</figcaption>" in page
    with pytest.raises(ValueError, match="shorter"):
        plots.reading("ab", [1.0], "two")
