"""Lesson 14: GPT-2 as a program that only knows the names in its file.

After J. Mody, GPT in 60 Lines of NumPy (2023).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from minigpt.attention import attention


def gpt2(
    p: dict[str, torch.Tensor], idx: torch.Tensor, n_head: int, bend: Callable
) -> torch.Tensor:
    """idx (B, T) -> logits (B, T, V). p: {name without "transformer.": tensor}.

    bend: what the feed-forward layers apply between their matrices, such as F.gelu.
    """

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"])

    def conv1d(x: torch.Tensor, name: str) -> torch.Tensor:
        return x @ p[name + ".weight"] + p[name + ".bias"]

    (B, T), i = idx.shape, 0
    x = p["wte.weight"][idx] + p["wpe.weight"][:T]  # (B, T, C)
    while f"h.{i}.ln_1.weight" in p:
        h, i = f"h.{i}.", i + 1
        qkv = conv1d(norm(x, h + "ln_1"), h + "attn.c_attn")  # (B, T, 3 * C)
        q, k, v = (
            t.view(B, T, n_head, -1).transpose(1, 2) for t in qkv.chunk(3, dim=-1)
        )  # each (B, n_head, T, head_size)
        out = attention(q, k, v)[0].transpose(1, 2).flatten(2)  # (B, T, C)
        x = x + conv1d(out, h + "attn.c_proj")
        hidden = bend(conv1d(norm(x, h + "ln_2"), h + "mlp.c_fc"))  # (B, T, 4 * C)
        x = x + conv1d(hidden, h + "mlp.c_proj")
    head = p.get("lm_head.weight", p["wte.weight"])
    return norm(x, "ln_f") @ head.T  # (B, T, V)
