"""Lessons 01 and 03 to 06: what holds for every model of the course."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.testing import assert_close

from minigpt.attention import Head
from minigpt.bigram import BigramLanguageModel, next_token_loss
from minigpt.block import Block, FeedForward
from minigpt.data import get_batch
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel
from minigpt.multi_head import CausalSelfAttention, MultiHeadAttention, split_heads

V, T, C = 11, 16, 24
CONFIG = GPTConfig(V, T, n_layer=3, n_head=4, n_embd=C)
MODELS = {
    "bigram": lambda: BigramLanguageModel(V),
    "one head": lambda: LanguageModel(V, T, C, Head(C, C)),
    "list of heads": lambda: LanguageModel(V, T, C, MultiHeadAttention(C, 4)),
    "heads at once": lambda: LanguageModel(V, T, C, CausalSelfAttention(C, 4)),
    "block": lambda: LanguageModel(V, T, C, Block(C, 4)),
    "gpt": lambda: GPT(CONFIG),
}


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    return MODELS[request.param]()


@pytest.fixture
def idx():
    return torch.randint(V, (2, T), generator=torch.Generator().manual_seed(1))


def test_every_model_gives_logits_and_the_loss_only_with_targets(model, idx):
    logits, loss = model(idx)
    assert logits.shape == (2, T, V) and loss is None
    again, loss = model(idx, idx)
    assert_close(again, logits)
    assert_close(loss, F.cross_entropy(logits.reshape(-1, V), idx.reshape(-1)))


def test_changing_the_future_changes_nothing_in_the_past(model, idx):
    for t in (1, 7, T - 1):
        changed = idx.clone()
        changed[:, t:] = (changed[:, t:] + 1) % V
        before, after = model(idx)[0], model(changed)[0]
        assert_close(after[:, :t], before[:, :t], rtol=0, atol=1e-6)
        assert (after[:, t] - before[:, t]).abs().max() > 1e-4


def test_the_rows_of_a_batch_never_talk(model, idx):
    assert_close(model(idx[1:])[0], model(idx)[0][1:])


def test_a_shorter_text_gets_the_same_logits(model, idx):
    assert_close(model(idx[:, :5])[0], model(idx)[0][:, :5])


def test_the_gradient_reaches_every_parameter(model, idx):
    model(idx, idx.roll(-1, 1))[1].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_a_model_computes_where_its_weights_are(model, idx):
    """What is made without a device lands on "meta" here, which has no numbers."""
    expected = model(idx)[0]
    with torch.device("meta"):
        assert_close(model(idx)[0], expected)


def test_the_first_bigram_loss_is_the_one_of_the_lecture(splits):
    torch.manual_seed(1337)
    xb, yb = get_batch(splits[0], 4, 8)
    torch.manual_seed(1337)
    loss = BigramLanguageModel(65)(xb, yb)[1].item()
    assert loss == pytest.approx(4.8786, abs=5e-5)


def test_the_loss_of_uniform_logits_is_ln_of_the_vocabulary():
    loss = next_token_loss(torch.zeros(2, 3, 65), torch.zeros(2, 3, dtype=torch.long))
    assert loss.item() == pytest.approx(math.log(65))


def copied(heads, batched):
    """Give CausalSelfAttention the weights of a MultiHeadAttention."""
    with torch.no_grad():
        rows = [
            getattr(head, role).weight
            for role in ("query", "key", "value")
            for head in heads.heads
        ]
        batched.qkv.weight.copy_(torch.cat(rows))
    batched.proj.load_state_dict(heads.proj.state_dict())
    return batched


@pytest.mark.parametrize(("n_embd", "n_head"), [(24, 1), (24, 4), (30, 5)])
def test_heads_in_one_matmul_equal_the_list_of_heads(n_embd, n_head):
    heads = MultiHeadAttention(n_embd, n_head)
    batched = copied(heads, CausalSelfAttention(n_embd, n_head))
    x = torch.randn(3, T, n_embd)
    assert_close(batched(x), heads(x))


def test_a_head_gets_its_own_channels_of_every_position():
    x = torch.randn(2, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    for h in range(3):
        assert torch.equal(heads[:, h], x[:, :, 4 * h : 4 * h + 4])


@pytest.mark.parametrize("layer", [MultiHeadAttention, CausalSelfAttention])
def test_a_width_that_the_heads_cannot_share_says_both_numbers(layer):
    with pytest.raises(ValueError, match="n_head = 5 must divide n_embd = 24"):
        layer(24, 5)


# --- Dropout: each place drops its share in training, and scales the rest up. ---


def shares(values, p):
    """True if the values are 0 or 1 / (1 - p), about the share p of them 0."""
    kept = values[values != 0]
    assert_close(kept, torch.full_like(kept, 1 / (1 - p)))
    return abs((values == 0).float().mean().item() - p) < 0.05


def silence(linear):
    """Make a layer answer 1 to everything."""
    nn.init.zeros_(linear.weight)
    nn.init.ones_(linear.bias)


@pytest.mark.parametrize("layer", [MultiHeadAttention, CausalSelfAttention])
def test_dropout_acts_on_the_weights_of_every_head(layer):
    """A single token attends to itself with weight 1: its value is dropped or not."""
    layer, x = layer(24, 4, dropout=0.5), torch.randn(400, 1, 24)
    layer.dropout.forward = torch.clone  # none in the other place
    layer.proj = nn.Identity()
    values = layer.eval()(x)
    heads = (layer.train()(x) / values).view(-1, 4, 6)
    assert_close(heads, heads[..., :1].expand_as(heads))  # a weight is one number
    assert shares(heads[..., 0], 0.5)
    assert len({tuple(row) for row in (heads[..., 0] == 0).tolist()}) == 16


@pytest.mark.parametrize(
    "layer",
    [
        MultiHeadAttention(24, 4, dropout=0.25),
        CausalSelfAttention(24, 4, dropout=0.25),
        FeedForward(24, dropout=0.25),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_dropout_acts_on_what_a_layer_adds(layer):
    silence(layer.proj)
    out = layer.train()(torch.randn(20, 8, 24))
    assert shares(out, 0.25)
    assert (layer.eval()(torch.randn(20, 8, 24)) == 1).all()


@pytest.mark.parametrize(
    "layer", [MultiHeadAttention, CausalSelfAttention, FeedForward]
)
def test_layers_drop_nothing_unless_told_to(layer):
    layer = layer(24) if layer is FeedForward else layer(24, 4)
    x = torch.randn(2, T, 24)
    assert torch.equal(layer.train()(x), layer.eval()(x))


def test_the_dropout_of_a_gpt_is_that_of_all_its_layers():
    model = GPT(GPTConfig(V, T, n_layer=3, n_head=4, n_embd=C, dropout=0.3))
    found = [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
    assert found == [0.3] * 6


# --- The parts of a block. ---


def test_feed_forward_by_hand():
    layer, x = FeedForward(C), torch.randn(2, 5, C)
    assert layer.expand.out_features == 4 * C
    W1, b1 = layer.expand.weight, layer.expand.bias
    W2, b2 = layer.proj.weight, layer.proj.bias
    assert_close(layer(x), (x @ W1.T + b1).clamp(min=0) @ W2.T + b2)


def test_what_a_block_adds_depends_on_neither_shift_nor_scale_of_its_input():
    """Both parts read through a LayerNorm, and the pathway goes past both."""
    block, x = Block(C, 4).double(), torch.randn(2, T, C, dtype=torch.double) * 9
    nn.init.zeros_(block.feed_forward.proj.weight)
    added = block(x) - x
    assert_close(block(5 * x + 3) - (5 * x + 3), added, atol=1e-4, rtol=0)
    block = Block(C, 4).double()
    nn.init.zeros_(block.attention.proj.weight)
    nn.init.zeros_(block.attention.proj.bias)
    added = block(x) - x
    assert_close(block(5 * x + 3) - (5 * x + 3), added, atol=1e-4, rtol=0)
    assert added.abs().mean() > 0.01


def test_the_feed_forward_layer_reads_what_attention_has_added():
    block, x = Block(C, 4), torch.randn(2, T, C)
    attended = x + block.attention(block.norm1(x))
    assert_close(block(x), attended + block.feed_forward(block.norm2(attended)))


@pytest.mark.parametrize("n_embd", [64, 128, 384])
def test_a_new_gpt_knows_that_it_knows_nothing(n_embd):
    torch.manual_seed(1337)
    model = GPT(GPTConfig(65, 32, n_layer=4, n_head=4, n_embd=n_embd))
    idx = torch.randint(65, (8, 32))
    assert model(idx, idx.roll(-1, 1))[1].item() == pytest.approx(
        math.log(65), abs=0.05
    )


def gpt(n_layer=2, n_embd=128):
    torch.manual_seed(0)
    return GPT(GPTConfig(65, 8, n_layer, 4, n_embd))


@pytest.mark.parametrize("n_embd", [64, 256, 768])
def test_new_layers_pass_on_as_much_at_any_width_as_gpt2s_at_768(n_embd):
    model = gpt(n_embd=n_embd)
    block = model.body[0]
    for layer in (
        model.token_embedding,
        model.position_embedding,
        block.attention.qkv,
        block.feed_forward.expand,
    ):
        gain = layer.weight.std().item() * math.sqrt(n_embd)
        assert gain == pytest.approx(0.02 * math.sqrt(768), rel=0.1)


def test_a_new_gpt_has_no_biases_and_hardly_an_opinion():
    model = gpt()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
    assert model.lm_head.weight.std().item() == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("part", ["attention", "feed_forward"])
def test_residual_projections_start_smaller_the_deeper_the_gpt(part):
    def std(n_layer):
        layers = gpt(n_layer).body[:-1]
        assert len(layers) == n_layer
        return getattr(layers[-1], part).proj.weight.std().item()

    assert std(2) / std(8) == pytest.approx(2, rel=0.05)
    plain = gpt().body[0].attention.qkv.weight.std().item()
    assert plain / std(2) == pytest.approx(math.sqrt(2 * 2), rel=0.05)


def test_the_head_of_a_gpt_reads_numbers_of_mean_0_and_variance_1():
    x = GPT(CONFIG).body(torch.randn(4, 8, C))
    assert_close(x.mean(-1), torch.zeros(4, 8), atol=1e-5, rtol=0)
    assert_close(x.var(-1, unbiased=False), torch.ones(4, 8), atol=1e-2, rtol=0)


def test_a_gpt_has_the_shape_of_its_config():
    config = GPTConfig(V, T, n_layer=3, n_head=4, n_embd=C)
    model = GPT(config)
    assert model.config is config and model.block_size == T
    assert model.token_embedding.weight.shape == (V, C)
    assert model.position_embedding.weight.shape == (T, C)
    assert [block.attention.n_head for block in model.body[:-1]] == [4] * 3
    with pytest.raises(ValueError, match="T = 17 .* block_size is 16"):
        model(torch.zeros(1, 17, dtype=torch.long))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_head": 5}, "n_head = 5 must divide n_embd = 24"),
        ({"n_layer": 0}, "n_layer is 0; give a whole number, at least 1"),
        ({"block_size": 2.5}, "block_size is 2.5"),
        ({"vocab_size": True}, "vocab_size is True"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dropout": math.nan}, "dropout is nan"),
    ],
    ids=str,
)
def test_a_shape_that_cannot_be_built_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **change)
