"""Our own backward: every rule is what moving by a hair says, the GPT is torch's."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from minigpt.backward import layers
from minigpt.backward.layers import attention, checkpoint, cross_entropy
from minigpt.backward.model import block, copied, forward
from minigpt.backward.steps import losses_of, ours, torchs
from minigpt.backward.tensor import (
    Tensor,
    backward,
    exp,
    log,
    matmul,
    order,
    pick,
    relu,
    reshape,
    slopes,
    total,
    transpose,
)
from minigpt.gpt import GPT, GPTConfig
from minigpt.training import TrainConfig


def shape_of(rng, low=0, high=4):
    return tuple(rng.integers(1, 5, rng.integers(low, high)))


def thinned(rng, shape):
    """A shape that broadcasts to this one: lengths become 1, leading ones vanish."""
    some = tuple(1 if rng.random() < 0.4 else n for n in shape)
    return some[rng.integers(0, len(some) + 1) :]


def two(rng, rule):
    shape = shape_of(rng)
    return [rng.normal(size=thinned(rng, shape)), rng.normal(size=shape)], rule


def product(rng):
    lead, (n, k, m) = shape_of(rng, 0, 3), rng.integers(1, 5, 3)
    sizes = (*thinned(rng, lead), n, k), (*lead, k, m)
    return [rng.normal(size=s) for s in sizes], matmul


def one(rng, rule, positive=False):
    x = rng.normal(size=shape_of(rng))
    return [np.abs(x) + 0.5 if positive else x], rule


def sums(rng):
    x = rng.normal(size=shape_of(rng, 1))
    axis = rng.choice([None, *range(x.ndim)])
    return [x], lambda x: total(x, axis)


def turned(rng):
    x = rng.normal(size=shape_of(rng))
    axes = tuple(rng.permutation(x.ndim))
    return [x], lambda x: transpose(x, axes)


def laid_out(rng):
    x = rng.normal(size=shape_of(rng))
    return [x], lambda x: reshape(x, (1, -1))


def picked(rng):
    x = rng.normal(size=shape_of(rng, 1))
    rows = rng.integers(0, len(x), shape_of(rng, 1, 3))
    index = [rows, slice(0, None, 2), int(rows.flat[0])][rng.integers(3)]
    return [x], lambda x: pick(x, index)


def rows(rng, rule):
    return [rng.normal(size=(*shape_of(rng), rng.integers(2, 6)))], rule


def heads(rng):
    shape = (*shape_of(rng, 0, 3), *rng.integers(1, 5, 2))
    return [rng.normal(size=shape) for _ in range(3)], attention


def surprise(rng):
    logits = rng.normal(size=rng.integers(1, 6, 2))
    targets = rng.integers(0, logits.shape[1], len(logits))
    return [logits], lambda z: cross_entropy(z, targets)


def weighed(rng):
    n, m = rng.integers(1, 5, 2)
    sizes = (*shape_of(rng), n), (m, n), (m,)
    return [rng.normal(size=s) for s in sizes], layers.linear


RULES = {
    "add": lambda rng: two(rng, lambda a, b: a + b),
    "multiply": lambda rng: two(rng, lambda a, b: a * b),
    "matmul": product,
    "exp": lambda rng: one(rng, exp),
    "log": lambda rng: one(rng, log, positive=True),
    "relu": lambda rng: one(rng, relu),
    "total": sums,
    "reshape": laid_out,
    "transpose": turned,
    "pick": picked,
    "linear": weighed,
    "cross_entropy": surprise,
    "standardize": lambda rng: rows(rng, layers.standardize),
    "attention": heads,
    "checkpoint": lambda rng: rows(rng, lambda x: checkpoint(lambda y: y * exp(y), x)),
}


@pytest.mark.parametrize("name", RULES)
def test_each_rule_is_what_moving_by_a_hair_says(name):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        inputs, rule = RULES[name](rng)
        tensors = [Tensor(x) for x in inputs]
        out = rule(*tensors)
        g = rng.normal(size=out.data.shape)
        backward(out, g)
        for place, tensor in enumerate(tensors):

            def moved(x, inputs=inputs, place=place, rule=rule, g=g):
                arrays = [x if i == place else a for i, a in enumerate(inputs)]
                return (rule(*map(Tensor, arrays)).data * g).sum()

            expected = slopes(moved, inputs[place])
            assert tensor.grad.shape == inputs[place].shape
            np.testing.assert_allclose(tensor.grad, expected, rtol=1e-5, atol=1e-7)


def test_a_number_that_stands_for_a_tensor_keeps_the_kind_of_float():
    x = Tensor(np.ones(3, np.float32))
    y = total(x * 2 + 1)
    assert y.data.dtype == np.float32 and y.data == 9
    backward(y)
    assert x.grad.dtype == np.float32 and x.grad.tolist() == [2, 2, 2]


def test_what_is_used_twice_gets_both_gradients():
    x = Tensor(3.0)
    y = x * x
    backward(y * x + y)  # x cubed and x squared
    assert x.grad == 3 * 9 + 2 * 3
    backward(x * 1.0)  # adds up, as torch's does
    assert x.grad == 34


def test_a_tensor_that_two_ways_share_does_not_mix_up_their_gradients():
    a, b = Tensor(np.ones(2)), Tensor(np.ones(2))
    backward(total(a + b + a))
    assert a.grad.tolist() == [2, 2] and b.grad.tolist() == [1, 1]


def test_a_chain_of_thousands_is_no_trouble():
    x = y = Tensor(1.0)
    for _ in range(20_000):
        y = y + 0.0
    backward(y)
    assert x.grad == 1


@pytest.mark.parametrize(
    "f, slope",
    [
        (lambda x: 1 - x, -1),
        (lambda x: -x * 4, -4),
        (lambda x: x * x * x - x, 11),
        (lambda x: np.array(5.0) * x, 5),
    ],
)
def test_operators_follow_from_plus_and_times(f, slope):
    x = Tensor(2.0)
    f(x).backward()
    np.testing.assert_allclose(x.grad, slope)


def test_a_leaf_owns_its_gradient():
    x, y = Tensor(np.ones(2)), Tensor(np.ones(2))
    g = np.ones(2)
    (x + y).backward(g)
    x.grad *= 5
    assert y.grad.tolist() == [1, 1] and g.tolist() == [1, 1]


def test_each_tensor_comes_before_its_parents():
    a, b = Tensor(1.0), Tensor(2.0)
    c = a * b
    d = c + a  # a is used by both, and comes after both
    nodes = order(d * c)
    for node in nodes:
        assert all(nodes.index(node) < nodes.index(p) for p in node.parents)
    assert len(nodes) == 5 and set(nodes[-2:]) == {a, b}


def test_backward_frees_the_graph_on_its_way():
    x = Tensor(np.ones(3))
    middle = exp(x)
    gone = weakref.ref(middle)
    loss = total(middle * middle)
    del middle
    gc.collect()
    assert gone() is not None  # the graph holds it
    backward(loss)
    assert gone() is None  # though loss is still there


SIZES = {
    "one of each": GPTConfig(1, 1, 1, 1, 1),
    "small": GPTConfig(7, 5, n_layer=1, n_head=2, n_embd=8),
    "deep": GPTConfig(11, 12, n_layer=5, n_head=1, n_embd=6),
    "wide": GPTConfig(65, 32, n_layer=2, n_head=8, n_embd=64),
}


def random_ids(high, *shape):
    return torch.randint(high, shape)


def checkpointed(x, *rest):
    return checkpoint(block, x, *rest)


def both(config, dtype, B=3, again=False):
    """(loss, {name: gradient}) of torch, and ours."""
    torch.manual_seed(1337)
    gpt = GPT(config).to(dtype)
    with torch.no_grad():  # at the start all biases are 0 and gains 1
        for p in gpt.parameters():
            p.add_(0.1 * torch.randn_like(p))
    mine = copied(gpt)
    T = max(1, config.block_size - 1)  # a position is left over
    x, y = random_ids(config.vocab_size, B, T), random_ids(config.vocab_size, B, T)
    loss = gpt(x, y)[1]
    loss.backward()
    run = checkpointed if again else block
    same = forward(mine, config, x.numpy(), y.numpy(), run)[1]
    backward(same)
    theirs = {n: p.grad.numpy() for n, p in gpt.named_parameters()}
    mine = {n: p.grad for n, p in mine.items()}
    assert all(g.dtype == same.data.dtype for g in mine.values())
    return (loss.item(), theirs), (same.data.item(), mine)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_loss_and_all_gradients_are_torchs(size, again):
    config = SIZES[size]
    for dtype, near in [(torch.float64, 1e-10), (torch.float32, 2e-5)]:
        (loss, theirs), (same, mine) = both(config, dtype, again=again)
        assert same == pytest.approx(loss, rel=near, abs=near)
        assert theirs.keys() == mine.keys()
        for name, g in theirs.items():
            scale = max(1e-3, np.abs(g).max())
            np.testing.assert_allclose(mine[name], g, rtol=0, atol=near * scale)


def test_a_training_with_our_gradients_is_torchs():
    data, config = random_ids(7, 500), TrainConfig(9, 2, 5, 0.01, warmup_steps=2)
    curves, after = [], []
    for gradients in (torchs, ours):
        torch.manual_seed(0)
        gpt = GPT(SIZES["small"]).double()
        curves.append(losses_of(gradients, gpt, data, config))
        after.append(gpt.lm_head.weight.detach().numpy())
    np.testing.assert_allclose(*curves, atol=1e-8)
    np.testing.assert_allclose(*after, atol=1e-8)


def test_a_training_takes_no_weight_of_the_model_it_began_with():
    gpt = GPT(SIZES["small"])
    before = {n: p.clone() for n, p in gpt.state_dict().items()}
    for p in copied(gpt).values():
        p.data += 1
    assert all(torch.equal(p, before[n]) for n, p in gpt.state_dict().items())


def test_a_model_with_dropout_is_refused():
    with pytest.raises(ValueError, match="dropout is 0.2"):
        copied(GPT(replace(SIZES["small"], dropout=0.2)))
