"""Exercise 09.4: weights in eight bits, for a model that's done learning.

A row of a weight matrix w becomes whole numbers from -127 to 127 and one scale:
w ≈ scale * q with scale = max |w| / 127, so no weight moves by more than scale / 2.
Source: Dettmers et al., LLM.int8() (2022), sections 2.1 (absmax) and 3.1 (a scale
for each row).
"""

import torch


def to_int8(
    w: torch.Tensor, dtype: torch.dtype = torch.int8
) -> tuple[torch.Tensor, torch.Tensor]:
    """w (..., n) -> q (..., n) int8, scale (..., 1) float32, such that w ≈ scale * q.

    dtype: another of torch's signed integers; its largest value then replaces 127.
    """
    w, largest = w.float(), torch.iinfo(dtype).max  # in bf16, w / scale can reach 128
    scale = w.abs().amax(dim=-1, keepdim=True) / largest
    scale = scale.masked_fill(scale == 0, 1.0)  # a row of zeros stays zeros
    return (w / scale).round().clamp(-largest, largest).to(dtype), scale
