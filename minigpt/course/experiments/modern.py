"""Experiments of notebook 08: each change added to 06's GPT, and taken from today's.

They choose, so they never look at the validation split: they learn from the first
nine tenths of the training text and are judged on the last, the development piece.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import torch
import torch.nn as nn

from minigpt.course.experiments import fit
from minigpt.interfaces import Model
from minigpt.modern import recipe
from minigpt.modern.experts import MixtureOfExperts
from minigpt.modern.model import AS_IN_06, ModernConfig
from minigpt.modern.muon import Muon, Together, orthogonalize
from minigpt.modern.parts import ShortConvolution
from minigpt.training import Run, TrainConfig, train

STEPS = {"steps": 300, "eval_every": 300, "eval_batches": 1}


class AdamTrapezoid(recipe.MuonConfig):
    """A MuonConfig with its schedule, but with the optimizer of lesson 06."""

    make_optimizer = TrainConfig.make_optimizer


class EqualNorm(Muon):
    """Muon's momentum, made as even as ns_steps of the polynomial make it, and then
    always of the norm that it would have if all its axes were 1."""

    @torch.no_grad()
    def step(self, closure: Callable | None = None) -> Any:
        for group in self.param_groups:
            lr, decay = group["lr"] * group["scale"], group["weight_decay"]
            for p in group["params"]:
                average = self.state[p].setdefault("momentum", torch.zeros_like(p))
                average.lerp_(p.grad, 1 - self.momentum)
                ahead = p.grad.lerp(average, self.momentum)
                update = orthogonalize(ahead, self.ns_steps)
                m, n = p.shape
                norm = math.sqrt(min(m, n) * max(1, m / n))
                p.mul_(1 - lr * decay)
                p.sub_(update, alpha=lr * norm / (update.norm().item() + 1e-7))


@dataclass
class EqualNormCosine(recipe.MuonCosine):
    """A MuonCosine whose matrices take steps of EqualNorm."""

    polynomial_steps: int = 3

    def make_optimizer(self, model: Model) -> Together:
        muon, adamw = super().make_optimizer(model).optimizers
        groups: Any = muon.param_groups
        even = EqualNorm(groups, ns_steps=self.polynomial_steps)
        return Together([even, adamw])


class Scaled(torch.optim.AdamW):
    """AdamW at `scale` times the learning rate of its group."""

    def step(self, closure: Callable | None = None) -> Any:
        for group in self.param_groups:
            group["lr"] *= group["scale"]  # train sets it anew before each step
        return super().step(closure)


@dataclass
class OwnTable(recipe.MuonConfig):
    """A MuonConfig whose token embedding has an optimizer and a rate of its own."""

    table: Callable = Muon
    table_rate: float = 0.1

    def make_optimizer(self, model: Model) -> Together:
        muon, adamw = super().make_optimizer(model).optimizers
        own, (group,) = model.token_embedding.weight, adamw.param_groups
        group["params"] = [p for p in group["params"] if p is not own]
        chosen = {"params": [own], "scale": self.table_rate / self.learning_rate}
        table = self.table([chosen], self.learning_rate, weight_decay=0.0)
        return Together([muon, adamw, table])


NEW = {
    "RMSNorm": {"rms_norm": True},
    "rotary": {"rotary": True},
    "query/key norm": {"qk_norm": True},
    "ReLU²": {"activation": "relu2"},
    "no biases": {"bias": False},
    "zero start": {"zero_init": True},
}


def old() -> tuple[ModernConfig, TrainConfig]:
    """06's GPT, and its recipe."""
    config, plan = fit.cpu()
    return ModernConfig(**asdict(config), **AS_IN_06), replace(plan, **STEPS)


def modern() -> tuple[ModernConfig, TrainConfig]:
    """Today's, in half-size steps, for there are many runs."""
    config, plan = recipe.modern_preset(fit.corpus().vocab_size)
    return replace(config, block_size=64), replace(plan, block_size=64, **STEPS)


def convolved(model: Model) -> None:
    """Behind each layer that makes queries, keys and values, a ShortConvolution."""
    for block in list(model.body)[:-1]:
        qkv = block.attention.qkv
        block.attention.qkv = nn.Sequential(qkv, ShortConvolution(qkv.out_features))


def mixed(model: Model, fixed: bool = False, **options: Any) -> None:
    """Each feed-forward layer as a MixtureOfExperts; fixed: the router never learns."""
    for block in list(model.body)[:-1]:
        n_embd = model.config.n_embd
        block.feed_forward = MixtureOfExperts(block.feed_forward, n_embd, **options)
        block.feed_forward.router.requires_grad_(not fixed)


def unordered(model: Model) -> None:
    """No positions: the table stays zero."""
    nn.init.zeros_(model.position_embedding.weight).requires_grad_(False)


EITHER = {  # what both begin without
    "+ grouped queries": {"n_kv_head": 2},
    "+ value residual": {"value_residual": True},
    "+ embedding mix": {"embedding_mix": True},
    "+ soft cap": {"softcap": 15.0},
    "+ convolution": {"change": convolved},
}
SWIGLU, MUON = {"activation": "swiglu"}, {"kind": recipe.MuonCosine}
ADAMW = {"kind": AdamTrapezoid, "weight_decay": 0.1, "grad_clip": 1.0}  # as 06 has it
LESSON = {
    "norm": {"rms_norm": True},
    "norm of q and k": {"qk_norm": True},
    "position": {"rotary": True},
    "gate": SWIGLU,
    "optimizer": MUON,
}


def lesson(without: str | None = None) -> dict[str, Any]:
    """The changes of all parts of the notebook, but for one."""
    parts = [LESSON[part] for part in LESSON if part != without]
    return {field: value for part in parts for field, value in part.items()}


TAKEN = {"all": lesson(), **{f"- {part}": lesson(part) for part in LESSON}}
PARTS = {"06's GPT": {}, **{f"+ {part}": LESSON[part] for part in LESSON}, **TAKEN}
ADDED = {
    "06's GPT": {},
    **{f"+ {name}": fields for name, fields in NEW.items()},
    **{"+ SwiGLU": SWIGLU, **EITHER, "+ trapezoid": ADAMW, "+ Muon": MUON},
}
REMOVED = {
    "modern": {},
    **{f"- {name}": {f: AS_IN_06[f] for f in fields} for name, fields in NEW.items()},
    **{"ReLU² to SwiGLU": SWIGLU, **EITHER, "- trapezoid": MUON, "- Muon": ADAMW},
}
LONGER = {
    "06's GPT": {},
    "zero start": ADDED["+ zero start"],
    "4 experts": {"change": mixed},
    "4 experts, router fixed": {"change": partial(mixed, fixed=True)},
    "all 4 together": {"change": partial(mixed, top=4)},
}


def ablation(seed: int, base: Callable, **changes: Any) -> dict[str, float]:
    """A variant at the better of two multiples of its rates, after equal steps and
    equal seconds; "cost": seconds of a step as a share of the reference's."""
    judge = partial(fit.run, seed, base, fit.development, **changes)
    losses = {factor: judge(factor=factor)["loss"] for factor in (1.0, 2.0)}
    best = min(losses, key=lambda factor: losses[factor])
    data, made = fit.development()[0], partial(fit.made, seed, base)
    both = [(model, data, plan) for model, plan in (made(), made(**changes))]
    cost = fit.step_cost(*both, rounds=40)
    later = losses[best]
    if abs(cost - 1) >= 0.03:
        later = judge(factor=best, steps=round(300 / cost))["loss"]
    return {"loss": losses[best], "factor": best, "cost": cost, "equal seconds": later}


def cost(seed: int, **changes: Any) -> dict[str, float]:
    """Seconds of a step as a share of 06's."""
    data, made = fit.development()[0], partial(fit.made, seed, old)
    both = [(model, data, plan) for model, plan in (made(), made(**changes))]
    return {"cost": fit.step_cost(*both, rounds=40)}


def uneven(seed: int, at: int = 300) -> dict[str, float]:
    """06's GPT after so many steps of its own recipe: of each matrix of its blocks, the
    largest singular value over the median, of the gradient and of three steps."""
    model, plan = fit.made(seed, fit.cpu, eval_every=at, eval_batches=1)
    data, run = fit.corpus().train, Run(model, plan)
    train(model, data, data, plan, run, on_step=lambda run: run.step == at)
    found = {}
    for name, p in model.body.named_parameters():
        if p.dim() != 2:
            continue
        average, square = (run.optimizer.state[p][k] for k in ("exp_avg", "exp_avg_sq"))
        matrices = {
            "gradient": p.grad,
            "Adam": average / (square.sqrt() + 1e-8),
            "3 steps": orthogonalize(average, 3),
            "5 steps": orthogonalize(average, 5),
        }
        for what, matrix in matrices.items():
            s = torch.linalg.svdvals(matrix)
            found[f"{what}, {name}"] = (s[0] / s.median()).item()
    return found


def at_rates(function: Callable, variants: dict[str, dict]) -> dict[str, Callable]:
    """Each variant at three multiples of its rates: AdamW's at 0.5, 1 and 2, Muon's at
    1, 2 and 4, so that nearly every best one lies within."""
    found = {}
    for name, changes in variants.items():
        factors = [1, 2, 4] if changes.get("kind") is recipe.MuonCosine else [0.5, 1, 2]
        found |= fit.grid(AT_RATE, function, variant={name: changes}, factor=factors)
    return found


@cache
def even(seed: int, steps: int, rate: float) -> float:
    """The loss of the GPT from 06 after 100 steps of EqualNorm for its matrices."""
    changes: dict[str, Any] = {
        "polynomial_steps": steps,
        "muon_rate": rate,
        "steps": 100,
    }
    return shared(seed, kind=EqualNormCosine, **changes)["loss"]


def even_at_best(seed: int, steps: int) -> dict[str, float]:
    """The same at seed 1337's best rate: half of it and twice of it are worse."""
    rate, best = 0.0, 0.02
    while rate != best:
        rate = best
        best = min((rate, rate / 2, 2 * rate), key=lambda r: even(1337, steps, r))
    tried = {f"at {r:g}": even(1337, steps, r) for r in (rate / 2, rate, 2 * rate)}
    return {"loss": even(seed, steps, rate), "rate": rate, **tried}


AT_RATE, AT = "{variant}, rate {factor:g}", [0.25, 0.5, 1, 2]
judged = partial(fit.run, data=fit.development)
longer, today = partial(judged, base=old, steps=1000), partial(judged, base=modern)
shared = partial(judged, base=old)
as_long = partial(judged, base=old, steps=453)  # the seconds of 300 with all parts
added, removed = partial(ablation, base=old), partial(ablation, base=modern)
own_table, OWN = partial(today, kind=OwnTable), "{table}, rate {table_rate:g}"
BY_MUON = {"Muon": {"table": Muon}}
BY_ADAMW = {"AdamW": {"table": partial(Scaled, betas=(0.9, 0.99))}}
BEYOND = {name: PARTS[name] for name in ("+ optimizer", "- gate")}  # best at 4
EXPERIMENTS = {
    "08-parts": at_rates(shared, PARTS)
    | fit.grid(AT_RATE, shared, variant=BEYOND, factor=[8]),
    "08-positions": at_rates(shared, {"no positions": {"change": unordered}}),
    "08-uneven": {"step 300": uneven},
    "08-even": {f"{n} steps": partial(even_at_best, steps=n) for n in (0, 1, 3, 5)},
    "08-parts-equal": at_rates(as_long, {"06's GPT": {}}),
    "08-parts-cost": fit.grid("{variant}", cost, variant=PARTS),
    "08-added": fit.grid("{variant}", added, variant=ADDED),
    "08-removed": fit.grid("{variant}", removed, variant=REMOVED),
    "08-longer": fit.grid(AT_RATE, longer, variant=LONGER, factor=[0.5, 1]),
    "08-adamw": fit.grid(AT_RATE, today, variant={"AdamW": ADAMW}, factor=AT),
    "08-table": fit.grid(OWN, own_table, table=BY_MUON, table_rate=[0.1, 0.3, 1])
    | fit.grid(OWN, own_table, table=BY_ADAMW, table_rate=[8e-3, 0.03, 0.1, 0.3]),
}
