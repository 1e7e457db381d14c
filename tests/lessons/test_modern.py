"""Lesson 08: today's decoder: each change by its property, and all of them off."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from minigpt.gpt import GPT, GPTConfig
from minigpt.modern.experts import MixtureOfExperts
from minigpt.modern.model import ModernBlock, ModernConfig
from minigpt.modern.parts import (
    ModernFeedForward,
    ShortConvolution,
    relu2,
    rms_norm,
    rotary_turns,
    rotate,
)
from minigpt.training import TrainConfig, train

T, C = 12, 24
OFF = dict(
    rms_norm=False,
    rotary=False,
    qk_norm=False,
    activation="relu",
    bias=True,
    zero_init=False,
    value_residual=False,
    embedding_mix=False,
)
SIZES = dict(vocab_size=11, block_size=T, n_layer=3, n_head=4, n_embd=C)
ON = dict(value_residual=True, embedding_mix=True)  # what the default leaves off
SWITCHES = {  # name: what is changed in a model with everything off
    "nothing": {},
    "RMSNorm": {"rms_norm": True},
    "rotary": {"rotary": True},
    "query/key norm": {"qk_norm": True},
    "ReLU squared": {"activation": "relu2"},
    "SwiGLU": {"activation": "swiglu"},
    "no biases": {"bias": False},
    "value residual": {"value_residual": True},
    "embedding mix": {"embedding_mix": True},
    "grouped queries": {"n_kv_head": 2},
    "one key/value head": {"n_kv_head": 1},
    "soft cap": {"softcap": 5.0},
}
MODELS = {name: {**OFF, **switch} for name, switch in SWITCHES.items()}
MODELS["all on"] = {"n_kv_head": 2, "softcap": 5.0}
MODELS["all on, rotary off"] = {**MODELS["all on"], "rotary": False}


def config(**changes):
    """A config with everything on, but for the changes."""
    return ModernConfig(**{**SIZES, **ON, **changes})


def awake(model):
    """The model with numbers in every parameter that starts at 0 or 1."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in model.parameters():
            p += 0.1 * torch.randn(p.shape, generator=generator)
    return model


@pytest.fixture(params=MODELS)
def model(request):
    return awake(config(**MODELS[request.param]).build())


@pytest.fixture
def idx():
    return torch.randint(11, (2, T), generator=torch.Generator().manual_seed(1))


# --- The small parts. ---


def test_the_derivative_of_rms_norm_is_the_one_of_its_formula():
    x = torch.randn(3, 5, 6, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(rms_norm, x)
    x = (1e-3 * x).detach().requires_grad_()  # where the tiny number counts
    assert torch.autograd.gradcheck(rms_norm, x, eps=1e-9)


def test_rms_norm_is_torchs_and_leaves_a_mean_square_of_one():
    x = torch.randn(2, 5, C) * 3 + 1
    assert_close(rms_norm(x), F.rms_norm(x, (C,), eps=1e-6))
    assert_close(rms_norm(x).square().mean(-1), torch.ones(2, 5))
    assert not rms_norm(torch.zeros(2, 3)).any()


def test_relu2_is_the_square_of_relu_and_so_is_its_derivative():
    x = torch.linspace(-2, 2, 9, dtype=torch.double, requires_grad=True)
    assert_close(relu2(x), x.clamp(min=0) ** 2)
    assert torch.autograd.gradcheck(relu2, x + 0.1)


def test_a_short_convolution_is_torchs_and_starts_as_the_identity():
    x, layer = torch.randn(2, 5, 3), ShortConvolution(3)
    assert torch.equal(layer(x), x)
    layer.weight.data = torch.randn(3, 1, 3)
    weight = layer.weight[:, 0].T[:, None]  # (C, 1, width)
    expected = F.conv1d(F.pad(x.mT, (2, 0)), weight, groups=3).mT
    assert_close(layer(x), expected)


def test_experts_are_a_choice_among_copies_and_their_load_levels_out():
    torch.manual_seed(0)
    dense = ModernFeedForward(8, "relu")
    x, bend = torch.randn(4, 16, 8), torch.randn(4, 8)
    together = MixtureOfExperts(dense, 8, n_expert=4, top=4)
    assert_close(together(x), dense(x))  # four copies, whose shares sum to one
    layer = MixtureOfExperts(dense, 8, n_expert=4).eval()
    for expert, b in zip(layer.experts, bend):
        expert.proj.weight.data *= b[:, None]
    p, best = torch.softmax(layer.router(x), dim=-1).max(dim=-1)
    assert_close(layer(x), p[..., None] * bend[best] * dense(x))
    layer.router.weight.data *= 10  # sure of itself, and unjust
    uneven = (layer.router(x)).argmax(dim=-1).flatten().bincount(minlength=4)
    for _ in range(400):
        layer.train()(x)
    chosen = torch.softmax(layer.router(x), dim=-1) + layer.bias
    even = chosen.argmax(dim=-1).flatten().bincount(minlength=4)
    assert even.max() - even.min() < uneven.max() - uneven.min()
    assert even.min() >= 10  # of 64 / 4


def turned(x, start=0, base=10_000.0):
    """x (B, T, n_head, head_size) from position `start` on."""
    positions = torch.arange(start, start + x.shape[1])
    return rotate(x, rotary_turns(positions, x.shape[-1], base))


def test_rotary_scores_depend_on_the_distance_only():
    q, k = torch.randn(2, 1, 1, 2, 8).expand(2, 1, 9, 2, 8)  # the same everywhere
    scores = torch.einsum("bihd,bjhd->bhij", turned(q), turned(k))
    later = torch.einsum("bihd,bjhd->bhij", turned(q, 50), turned(k, 50))
    assert_close(scores, later, atol=1e-4, rtol=0)
    for distance in range(-8, 9):
        line = scores.diagonal(distance, -2, -1)
        assert_close(line, line[..., :1].expand_as(line), atol=1e-4, rtol=0)
    assert (scores[..., 1, 0] - scores[..., 0, 0]).abs().min() > 1e-3


def test_a_turn_of_float64_is_exact_to_its_last_digits():
    """By sine and cosine, in float64 from the positions on."""
    x = torch.randn(1, 40, 2, 6, dtype=torch.double)
    turns = rotary_turns(torch.arange(40), 6, dtype=torch.double)
    a, b = x[..., ::2], x[..., 1::2]
    base = torch.tensor(10_000.0, dtype=torch.double)
    t, j = torch.arange(40.0).double()[:, None], torch.arange(3.0).double()
    angles = (t * base ** (-2 * j / 6))[:, None]  # (T, 1, head_size / 2)
    pairs = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    expected = torch.stack(pairs, dim=-1).flatten(-2)
    assert_close(rotate(x, turns), expected, atol=1e-13, rtol=0)


# --- The model and its switches. ---


def test_all_switches_off_leave_the_gpt_of_lesson_06(idx):
    gpt = awake(GPT(GPTConfig(**SIZES)))
    model = config(**OFF).build()
    model.load_state_dict(gpt.state_dict())  # the same names and shapes
    assert_close(model(idx, idx), gpt(idx, idx))
    model(idx, idx)[1].backward()
    gpt(idx, idx)[1].backward()
    grads = {name: p.grad for name, p in gpt.named_parameters()}
    assert_close({name: p.grad for name, p in model.named_parameters()}, grads)


def test_all_switches_off_start_and_train_as_the_gpt_of_lesson_06():
    """From the same seed the same logits, bit for bit."""
    models = []
    for build in (GPT(GPTConfig(**SIZES)).config.build, config(**OFF).build):
        torch.manual_seed(5)
        models.append(build())
    gpt, model = (m.state_dict() for m in models)
    assert gpt.keys() == model.keys()
    assert all(torch.equal(gpt[name], model[name]) for name in gpt)
    ids = torch.randint(11, (300,))
    for m in models:
        train(m, ids, ids, TrainConfig(5, 4, T, 1e-2, eval_batches=1))
    assert torch.equal(models[0](ids[None, :T])[0], models[1](ids[None, :T])[0])


def test_changing_the_future_changes_nothing_in_the_past(model, idx):
    for t in (1, 7, T - 1):
        changed = idx.clone()
        changed[:, t:] = (changed[:, t:] + 1) % 11
        before, after = model(idx)[0], model(changed)[0]
        assert_close(after[:, :t], before[:, :t], rtol=0, atol=1e-5)
        assert (after[:, t] - before[:, t]).abs().max() > 1e-4


def test_every_switch_makes_another_model(idx):
    base = config(**OFF).build()
    weights = awake(base).state_dict()
    before = base(idx)[0]
    for name, switch in SWITCHES.items():
        model = awake(config(**{**OFF, **switch}).build())
        same = {n: p for n, p in model.state_dict().items() if n in weights}
        same = {n: weights[n] for n, p in same.items() if p.shape == weights[n].shape}
        model.load_state_dict(same, strict=False)
        if name != "nothing":
            assert (model(idx)[0] - before).abs().max() > 1e-4, name


def test_logits_have_their_shape_and_the_loss_is_the_cross_entropy(model, idx):
    logits, loss = model(idx, idx)
    assert logits.shape == (2, T, 11) and model(idx)[1] is None
    assert_close(loss, F.cross_entropy(logits.flatten(0, 1), idx.flatten()))


def test_the_gradient_reaches_every_parameter(model, idx):
    model(idx, idx.roll(-1, 1))[1].backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.abs().sum() > 0, name


def test_a_text_longer_than_block_size_is_refused(model):
    with pytest.raises(ValueError, match="T = 13 .* block_size is 12"):
        model(torch.zeros(1, T + 1, dtype=torch.long))


def test_queries_and_keys_are_normalised_so_that_their_size_does_not_matter(idx):
    attention = awake(ModernBlock(config(value_residual=False))).attention
    x, turns = torch.randn(2, T, C), rotary_turns(torch.arange(T), C // 4)
    before = attention(x, None, turns)[0]
    attention.qkv.weight.data[: 2 * C] *= 7  # queries and keys, not values
    assert_close(attention(x, None, turns)[0], before, atol=1e-4, rtol=0)


def test_a_zero_initialised_block_is_the_identity_at_the_start(idx):
    model = config().build()
    x, turns = torch.randn(2, T, C), rotary_turns(torch.arange(T), C // 4)
    values = torch.randn(2, T, 4, C // 4)
    for block in list(model.body)[:-1]:
        assert torch.equal(block(x, torch.randn(2, T, C), values, turns)[0], x)
    assert model(idx, idx)[1].item() == pytest.approx(math.log(11))
    plain = config(zero_init=False).build()
    block = plain.body[0]
    assert (block(x, x, values, turns)[0] - x).abs().max() > 1e-2


def test_a_block_by_hand(idx):
    """Mix, norm, attention, add; norm, feed-forward, add."""
    block = awake(ModernBlock(config()))
    x, e = torch.randn(2, 2, T, C)
    turns = rotary_turns(torch.arange(T), C // 4)
    mixed = block.mix[0] * x + block.mix[1] * e
    values = torch.randn(2, T, 4, C // 4)
    out, _ = block.attention(block.norm1(mixed), values, turns)
    mixed = mixed + out
    expected = mixed + block.feed_forward(block.norm2(mixed))
    assert_close(block(x, e, values, turns)[0], expected)


def test_the_embedding_that_is_mixed_in_is_that_of_the_token(idx):
    model = awake(config(n_layer=2).build())
    first, second, norm = model.body
    x, turns = model.token_embedding(idx), rotary_turns(torch.arange(T), C // 4)
    y, values = first(x, x, None, turns)
    y, _ = second(y, x, values, turns)
    assert_close(model.body(model.embed(idx)), norm(y))


def test_values_are_mixed_with_those_of_block_0_in_every_later_block():
    layer = awake(ModernBlock(config())).attention
    plain = awake(ModernBlock(config(value_residual=False))).attention
    plain.load_state_dict(layer.state_dict(), strict=False)
    x, turns = torch.randn(2, T, C), rotary_turns(torch.arange(T), C // 4)
    alone, own = plain(x, None, turns)

    def mixed(a, b, first):
        layer.value_mix.data = torch.tensor([a, b])
        out, values = layer(x, first, turns)
        assert_close(values, own)  # what is handed on is not mixed
        return out

    other = torch.randn(2, T, 4, C // 4)
    assert_close(mixed(1.0, 0.0, other), alone)
    assert_close(mixed(0.0, 1.0, own.detach()), alone)
    half = 0.3 * mixed(1.0, 0.0, other) + 0.7 * mixed(0.0, 1.0, other)
    assert_close(mixed(0.3, 0.7, other), half)
    assert (half - alone).abs().max() > 1e-2


@pytest.mark.parametrize("n_kv_head", [1, 2])
def test_grouped_queries_equal_full_attention_with_repeated_weights(n_kv_head):
    size, group = C // 4, 4 // n_kv_head
    grouped = awake(ModernBlock(config(n_kv_head=n_kv_head))).attention
    full = awake(ModernBlock(config())).attention
    full.load_state_dict({**grouped.state_dict(), "qkv.weight": full.qkv.weight})
    q, k, v = grouped.qkv.weight.split([C, n_kv_head * size, n_kv_head * size])
    k, v = (
        w.view(n_kv_head, size, C).repeat_interleave(group, 0).flatten(0, 1)
        for w in (k, v)
    )
    full.qkv.weight.data = torch.cat([q, k, v])
    x, turns = torch.randn(2, T, C), rotary_turns(torch.arange(T), size)
    first = torch.randn(2, T, n_kv_head, size)
    got, values = grouped(x, first, turns)
    assert values.shape == (2, T, n_kv_head, size)
    wide = first.repeat_interleave(group, 2)
    assert_close(got, full(x, wide, turns)[0], atol=1e-5, rtol=1e-4)


def test_swiglu_by_hand_with_about_as_many_weights():
    layer, x = ModernFeedForward(C, "swiglu"), torch.randn(2, 5, C)
    gate, hidden = layer.expand(x).chunk(2, -1)
    assert_close(layer(x), layer.proj(gate * gate.sigmoid() * hidden))
    usual = ModernFeedForward(C)
    count = [sum(p.numel() for p in m.parameters()) for m in (layer, usual)]
    assert count[0] == pytest.approx(count[1], rel=0.05)
    assert_close(usual(x), usual.proj(usual.expand(x).clamp(min=0) ** 2))


def test_soft_capped_logits_stay_within_the_cap_and_keep_their_order(idx):
    model = awake(config(softcap=2.0).build())
    model.lm_head.weight.data *= 30
    capped = model(idx)[0]
    plain = config().build()
    plain.load_state_dict(model.state_dict())
    logits = plain(idx)[0]
    assert logits.abs().max() > 4 and capped.abs().max() <= 2
    assert_close(capped, 2 * torch.tanh(logits / 2))
    model.config.softcap = 1e6  # hardly any cap: nothing changes
    assert_close(model(idx)[0], logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "need"),
    [
        ({"dropout": 0.1}, "0: a ModernGPT has none"),
        ({"n_kv_head": 3}, "a divisor of n_head = 4"),
        ({"n_head": 8}, "even n_embd / n_head: rotary turns pairs"),  # heads of 3
        ({"activation": "gelu"}, "one of .*relu.*swiglu"),
        ({"softcap": 0.0}, "above 0"),
    ],
    ids=str,
)
def test_a_shape_that_makes_no_sense_is_refused_with_value_and_remedy(wrong, need):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"^{name} is {value!r}; give .*{need}"):
        config(**wrong)


def test_the_eps_of_the_norms_is_a_field():
    for eps in (1e-6, 1e-2):
        model = config(norm_eps=eps).build()
        x = torch.full((1, T, C), 0.01)
        expected = 0.01 / math.sqrt(1e-4 + eps)
        normed = model.body[0].norm1(x)
        assert_close(normed, torch.full_like(x, expected), rtol=1e-5, atol=0)
    with pytest.raises(ValueError, match="norm_eps is 0; give a finite number above 0"):
        config(norm_eps=0)
