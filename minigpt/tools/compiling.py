"""torch.compile, where it works."""

import sys
import warnings

import torch
import torch.nn as nn

from minigpt.device import autocast, random_state, set_random_state


class Compiled(nn.Module):
    """A model that learns through torch.compile, and is judged as it is: each other
    shape of a batch would be compiled anew."""

    def __init__(self, model):
        super().__init__()
        self.model, self.faster = model, torch.compile(model)

    def forward(self, idx, targets=None):
        return (self.faster if self.training else self.model)(idx, targets)


def compiled(model, x, y):
    """Compiled(model), or the model as it is, with a line on stderr why.

    It is tried with one step on windows x, y (B, T), which takes up to a minute; the
    gradients are empty afterwards, the random numbers as before.
    """
    device = x.device
    state = random_state(device)
    model.train()
    try:
        faster = Compiled(model)
        with warnings.catch_warnings(), autocast(device):
            warnings.filterwarnings("ignore", "Torchinductor .* complex operators")
            loss = faster(x, y)[1]
            set_random_state(state, device)
            expected = model(x, y)[1]
        loss.backward()
        # Dropout draws other numbers when it is compiled: the losses differ a little.
        if not torch.isclose(loss, expected, rtol=0.05):
            raise ValueError(f"it makes the loss {loss:.4g}, not {expected:.4g}")
        return faster
    except Exception as error:  # whatever the compiler of this machine may raise
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        print(f"Without torch.compile, which fails here ({reason}).", file=sys.stderr)
        return model
    finally:
        model.zero_grad()
        set_random_state(state, device)
