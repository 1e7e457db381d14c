"""Lesson 15: one step of learning from a reward, and what it holds on to.

Sources: Williams, Simple Statistical Gradient-Following Algorithms (1992), for the
gradient; Shao et al., DeepSeekMath (2024), section 4.1, for the group whose mean is the
baseline (GRPO); Stiennon et al., Learning to Summarize from Human Feedback (2020),
section 3.4, for the leash.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from minigpt.fast.writing import generate
from minigpt.interfaces import Model


def log_probs(model: Model, idx: torch.Tensor, new: int) -> torch.Tensor:
    """ln p of every character at the last `new` places: idx (B, T) -> (B, new, V)."""
    logits = model(idx[:, :-1])[0]  # (B, T - 1, V)
    return F.log_softmax(logits[:, -new:], dim=-1)


def advantages(rewards: torch.Tensor) -> torch.Tensor:
    """By how much each text beats the mean of its group: (G, n) -> (G, n)."""
    return rewards - rewards.mean(dim=1, keepdim=True)


def reward_loss(
    logp: torch.Tensor,
    ref: torch.Tensor,
    chosen: torch.Tensor,
    advantage: torch.Tensor,
    leash: float,
) -> torch.Tensor:
    """What a step lowers: it makes better texts likelier, and stays near the reference.

    logp, ref: (N, new, V), the model's ln p and the reference's at each place; chosen:
    (N, new), the characters that were drawn; advantage: (N,), one number for each text.
    The leash pulls at each place alone, as GRPO's does: it doesn't see that an early
    character may lead to places where the two differ more.
    """
    taken = logp.gather(-1, chosen[..., None])[..., 0].sum(dim=1)  # (N,), ln p of texts
    kl = (logp.exp() * (logp - ref)).sum(dim=(1, 2))  # (N,), exact at each place
    return (leash * kl - advantage * taken).mean()


def reward_step(
    model: Model,
    reference: Model,
    optimizer: torch.optim.Optimizer,
    prompts: torch.Tensor,
    judge: Callable[[torch.Tensor], torch.Tensor],
    n: int = 8,
    new: int = 142,
    leash: float = 0.0,
    generator: torch.Generator | None = None,
    advantages: Callable[[torch.Tensor], torch.Tensor] = advantages,
) -> torch.Tensor:
    """Write n texts after each of prompts (G, T), judge them, and learn -> rewards
    (G, n). judge: texts (G * n, T + new) -> rewards (G * n,)."""
    idx = prompts.repeat_interleave(n, dim=0)  # (G * n, T)
    idx = generate(model, idx, new, generator=generator)  # (G * n, T + new)
    rewards = judge(idx).view(-1, n)  # (G, n)
    with torch.no_grad():
        ref = log_probs(reference, idx, new)
    logp, better = log_probs(model, idx, new), advantages(rewards).flatten()
    loss = reward_loss(logp, ref, idx[:, -new:], better, leash)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return rewards
