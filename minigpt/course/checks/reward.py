"""The exercises of lesson 15: advantages, the loss of a step, a KL, and a leash."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from minigpt.course.checks.exercise import Wrong, exercise
from minigpt.course.checks.results import describe


@exercise(
    "15.1 Compared with the others",
    cases=[
        (torch.tensor(rewards),)
        for rewards in ([[4.0, 0, 2], [9, 9, 9]], [[1.0, 0], [5, 8]], [[3.0, 0, 0, 0]])
    ],
    fresh=lambda: [(torch.randn(*shape),) for shape in [(3, 5), (4, 4), (5, 2)]],
    hint="In the first case, the text with reward 4 is compared with 0 and 2.",
)
def against_others(rewards: torch.Tensor) -> torch.Tensor:
    """A function of rewards (prompts, texts) that returns (prompts, texts)."""
    n = rewards.shape[1]
    others = (rewards.sum(dim=1, keepdim=True) - rewards) / (n - 1)
    return rewards - others


against_others.mistakes("""
Each text is still part of the mean that you compare it with. Take the mean of the
others alone.
    return rewards - others -> return rewards - rewards.mean(dim=1, keepdim=True)
You compare texts of different prompts, and some prompts are harder than others. A group
is a row: the texts after one prompt.
    n = rewards.shape[1] -> n = rewards.shape[0]
    dim=1 -> dim=0
    or
    return rewards - others -> return rewards - rewards.mean(dim=0, keepdim=True)
""")
check_against_others = against_others.check


def _odds(*rows: list) -> torch.Tensor:
    """Logits from odds: [1, 3] are the probabilities 1/4 and 3/4."""
    return torch.tensor(rows).float().log()


def _with_gradients(loss: Any, *leaves: torch.Tensor) -> Any:
    """The loss and its gradient for each of the leaves, zeros where there is none."""
    if loss is None or loss is ...:
        return loss
    if not isinstance(loss, torch.Tensor) or loss.dim():
        raise Wrong(f"It should return a single number, but it gives {describe(loss)}.")
    if not loss.requires_grad:
        raise Wrong(
            "No gradient arrives at the model, so it can't learn from this number.",
            "Is there one detach, item() or no_grad too many?",
        )
    return loss.detach(), *torch.autograd.grad(loss, leaves, materialize_grads=True)


def _loss(
    written_loss: Callable, logits: Any, idx: Any, new: int, rewards: Any, baseline: Any
) -> Any:
    logits, baseline = (x.clone().requires_grad_() for x in (logits, baseline))
    loss = written_loss(logits, idx, new, rewards, baseline)
    return _with_gradients(loss, logits, baseline)


@exercise(
    "15.2 Only what it wrote",
    cases=[
        (
            _odds([[1, 1], [3, 1], [1, 1]]),
            *(torch.tensor([[1, 0, 1]]), 1),
            *(torch.tensor([3.0]), torch.tensor([1.0])),
        ),
        (
            _odds([[1, 3], [1, 1], [3, 1]], [[1, 1], [3, 1], [1, 1]]),
            *(torch.tensor([[0, 1, 0], [1, 0, 1]]), 2),
            *(torch.tensor([1.0, 0.0]), torch.tensor([0.5, 2.0])),
        ),
    ],
    fresh=lambda: [
        (torch.randn(N, 6, V), torch.randint(V, (N, 6)), new, *torch.randn(2, N))
        for N, V, new in [(3, 4, 2), (2, 3, 5), (4, 5, 1)]
    ],
    work=_loss,
    values=("loss", "gradient", "baseline gradient"),
    hint="In the first case, the last 1 was written, and its probability is 1/4.",
)
def written_loss(
    logits: torch.Tensor,
    idx: torch.Tensor,
    new: int,
    rewards: torch.Tensor,
    baseline: torch.Tensor,
) -> torch.Tensor:
    """A function of logits (N, T, V), idx (N, T), new, rewards (N,) and baseline (N,)
    that returns a number with a gradient."""
    logp = F.log_softmax(logits[:, -new - 1 : -1], dim=-1)  # (N, new, V)
    chosen = idx[:, -new:, None]  # (N, new, 1)
    taken = logp.gather(-1, chosen)[..., 0].sum(dim=1)  # (N,)
    better = rewards - baseline.detach()
    return -(better * taken).mean()


written_loss.mistakes("""
The prompt gets a reward, too, but the model didn't write it. Only the last `new`
characters count.
    logits[:, -new - 1 : -1] -> logits[:, :-1]
    idx[:, -new:, None] -> idx[:, 1:, None]
You're one place off: logits[:, t] is about the character *after* idx[:, t].
    logits[:, -new - 1 : -1] -> logits[:, -new:]
A gradient flows into the baseline. This loss would teach it to rise and rise, because
that makes the loss smaller. Use it as a plain number.
    baseline.detach() -> baseline
The sign is wrong: when this loss falls, better texts become less likely.
    -(better * taken).mean() -> (better * taken).mean()
""")
check_written_loss = written_loss.check


def _moved(moved: Callable, logits: Any, ref_logits: Any, written: Any) -> Any:
    logits, ref_logits = (x.clone().requires_grad_() for x in (logits, ref_logits))
    return _with_gradients(moved(logits, ref_logits, written), logits, ref_logits)


def _two_models(T: int, V: int, *counts: int) -> tuple:
    """Of each text so many characters were written, after a prompt of one or more."""
    place, N = torch.arange(T), len(counts)
    written = torch.stack([(place > 0) & (place <= n) for n in counts])
    return *torch.randn(2, N, T, V), written


@exercise(
    "15.3 How far has it moved?",
    cases=[
        (
            _odds([[1, 3], [1, 1], [3, 1]]),
            _odds([[1, 1], [1, 3], [3, 1]]),
            torch.tensor([[False, True, True]]),
        ),
        (
            _odds([[1, 3], [1, 1], [2, 1]], [[1, 1], [1, 7], [1, 9]]),
            _odds([[1, 1], [1, 3], [1, 1]], [[2, 1], [1, 1], [1, 1]]),
            torch.tensor([[False, True, True], [False, True, False]]),
        ),
    ],
    fresh=lambda: [_two_models(4, 3, 3, 1), _two_models(5, 4, 2, 4, 3)],
    work=_moved,
    values=("KL", "gradient", "reference gradient"),
    hint="In the first case, the two differ at a single place of the two that count.",
)
def moved(
    logits: torch.Tensor, ref_logits: torch.Tensor, written: torch.Tensor
) -> torch.Tensor:
    """A function of logits, ref_logits (N, T, V) and written (N, T) that returns a
    number with a gradient."""
    logp = F.log_softmax(logits, dim=-1)
    ref = F.log_softmax(ref_logits.detach(), dim=-1)
    kl = (logp.exp() * (logp - ref)).sum(dim=-1)  # (N, T)
    return kl[written].mean()


moved.mistakes("""
This is KL(reference || model), the wrong way around. If you use F.kl_div, its second
argument comes first: F.kl_div(a, b) is KL(b || a).
    logp.exp() * (logp - ref) -> ref.exp() * (ref - logp)
A gradient flows into the reference. It would move toward the model, but it should stay
where it is.
    ref_logits.detach() -> ref_logits
You set the other places to 0, but they still count in the mean. Divide by the number of
places that were written.
    kl[written].mean() -> (kl * written).mean()
You take a mean for each text and then their mean. A place in a short text counts more
that way, but all places should count equally.
    kl[written].mean() -> ((kl * written).sum(dim=1) / written.sum(dim=1)).mean()
""")
check_moved = moved.check

EVEN = torch.tensor([0.5, 0.5]), torch.tensor([1.0, 3.0]).log()
THREE = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([1.0, 1.0, 2.0]).log()


@exercise(
    "15.4 The leash that holds nothing",
    cases=[
        (*EVEN, 1.0, 60),
        (*THREE, 1.0, 60),
        (torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.0, 0.0, 1.0]), 0.5, 3),
    ],
    fresh=lambda: [
        (torch.randn(n).softmax(dim=0), torch.randn(n), leash, steps)
        for n, leash, steps in [(3, 0.5, 10), (4, 2.0, 5)]
    ],
    hint="Print the KL in each step. When should it be 0?",
)
def leashed(
    die: torch.Tensor, reward: torch.Tensor, leash: float, steps: int
) -> torch.Tensor:
    """A function of die (sides,), reward (sides,), leash and steps that returns the
    trained die (sides,)."""
    logits = die.log().requires_grad_()
    reference = logits.detach().clone()
    optimizer = torch.optim.SGD([logits], lr=1.0)
    for _ in range(steps):
        logp = F.log_softmax(logits, dim=0)
        ref = F.log_softmax(reference, dim=0)
        earned = (logp.exp() * reward).sum()
        kl = (logp.exp() * (logp - ref)).sum()
        optimizer.zero_grad()
        (leash * kl - earned).backward()
        optimizer.step()
    return logits.detach().softmax(dim=0)


leashed.mistakes("""
The bug is still there: whatever the leash is, the die learns as if there were none.
    logits.detach().clone() -> logits.detach()
    Hint: Print `reference` before and after a step.
The reference stays where it was, but the gradient flows through it, too. Cut it off:
.detach() as well as .clone().
    logits.detach().clone() -> logits.clone()
This KL is the wrong way around: KL(reference || die). It should be KL(die ||
reference).
    logp.exp() * (logp - ref) -> ref.exp() * (ref - logp)
""")
check_leashed = leashed.check
