"""Lessons 01 and 03 to 06: what holds for every model of the course."""

import math

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.testing import assert_close

from minigpt.attention import Head, attention
from minigpt.bigram import BigramLanguageModel
from minigpt.block import Block, FeedForward
from minigpt.gpt import GPT, GPTConfig
from minigpt.language_model import LanguageModel, next_token_loss
from minigpt.multi_head import CausalSelfAttention, MultiHeadAttention

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


def test_printing_a_model_names_its_parts(model):
    assert "Embedding" in repr(model)
    if "CausalSelfAttention" in repr(model):
        assert "n_head=4, head_size=6" in repr(model)


def test_the_first_bigram_loss_is_the_one_of_the_lecture(splits):
    from minigpt.data import get_batch

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


def test_heads_folded_into_the_batch_equal_heads_beside_it():
    q, k, v = torch.randn(3, 2, 4, 9, 5)
    folded = attention(*(z.reshape(8, 9, 5) for z in (q, k, v)))[0]
    assert_close(folded.view(2, 4, 9, 5), attention(q, k, v)[0])


@pytest.mark.parametrize("layer", [MultiHeadAttention, CausalSelfAttention])
def test_a_width_that_the_heads_cannot_share_says_both_numbers(layer):
    for n_head in (5, 0):
        with pytest.raises(ValueError, match=f"n_embd = 24 .*n_head = {n_head}"):
            layer(24, n_head, T)


@pytest.mark.parametrize("layer", [MultiHeadAttention, CausalSelfAttention])
def test_attention_dropout_acts_in_training_only(layer):
    layer, x = layer(24, 4, dropout=0.5), torch.randn(2, T, 24)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_feed_forward_works_on_each_position_alone():
    layer, x = FeedForward(C), torch.randn(2, 5, C)
    assert_close(layer(x[:, 3]), layer(x)[:, 3])
    assert layer.expand.out_features == 4 * C


def test_a_block_adds_to_its_input():
    block, x = Block(C, 4), torch.randn(2, T, C)
    for proj in (block.attention.proj, block.feed_forward.proj):
        nn.init.zeros_(proj.weight)
        nn.init.zeros_(proj.bias)
    assert torch.equal(block(x), x)


def test_layer_norm_by_hand_equals_torchs():
    x, norm = torch.randn(2, 5, C) * 3 + 1, nn.LayerNorm(C)
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, unbiased=False, keepdim=True)
    assert_close((x - mean) / (variance + norm.eps).sqrt(), norm(x))


@pytest.mark.parametrize("n_embd", [64, 128, 384])
def test_a_new_gpt_knows_that_it_knows_nothing(n_embd):
    torch.manual_seed(1337)
    model = GPT(GPTConfig(65, 32, n_layer=4, n_head=4, n_embd=n_embd))
    idx = torch.randint(65, (8, 32))
    assert model(idx, idx.roll(-1, 1))[1].item() == pytest.approx(
        math.log(65), abs=0.05
    )


def test_residual_projections_start_smaller_the_deeper_the_gpt():
    def std(n_layer):
        torch.manual_seed(0)
        model = GPT(GPTConfig(65, 8, n_layer, 4, 128))
        return model.body[0].feed_forward.proj.weight.std().item()

    assert std(2) / std(8) == pytest.approx(2, rel=0.05)
