"""Answers to notebook 11's exercises."""

from exercises import edited, exercises_of

EXERCISES = exercises_of("11")


def names():
    return {}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def previous(body):
    return defined("previous_score(weights)", f"return {body}")


def mean(body, *before):
    return defined(
        "mean_ablated(heads, head, head_size)",
        "mine = slice(head * head_size, (head + 1) * head_size)",
        "x = heads.clone()",
        *before,
        f"x[..., mine] = {body}",
        "return x",
    )


def prefix(*edits):
    return edited(EXERCISES["11.3"].solution, *edits)


def silenced(*lines):
    return defined(
        "silenced(module, x)",
        "def silence(module, inputs, output):",
        "    return torch.zeros_like(output)",
        *lines,
    )


HUNG = "hook = module.register_forward_hook(silence)"

# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "11.1": {
        "You divide by T": previous(
            "weights.diagonal(-1, -2, -1).sum(-1) / weights.shape[-1]"
        ),
        "is a sum, but it should be a mean": previous(
            "weights.diagonal(-1, -2, -1).sum(-1)"
        ),
        "You add up the attention to all earlier": (
            "def previous_score(weights):\n"
            "    T = weights.shape[-1]\n"
            "    before = torch.ones(T, T).tril(-1)\n"
            "    return (weights * before).sum(dim=(-2, -1)) / (T - 1)\n"
        ),
    },
    "11.2": {
        "changes its input `heads`": mean("x[..., mine].mean((0, 1))", "x = heads"),
    },
    "11.3": {
        "`sum(found)` still has to be divided": prefix((" / len(found)", "")),
        "You count queries that have nothing to find": prefix(
            ("        if seen:\n            found", "        found")
        ),
    },
    "11.4": {
        "The bug is still there": silenced(HUNG, "return module(x)"),
        "Either your hook wasn't there": silenced(
            HUNG, "hook.remove()", "return module(x)"
        ),
        "or it returned nothing": silenced(
            HUNG, "out = module(x)", "hook.remove()", "return out"
        ).replace("return torch", "torch"),
        "gives something else than before": silenced(
            "old = module.forward",
            "module.forward = lambda x: torch.zeros_like(old(x))",
            "return module(x)",
        ),
        "You change the module's weights": silenced(
            "with torch.no_grad():",
            "    for p in module.parameters():",
            "        p.zero_()",
            "return module(x)",
        ),
        "zeros in the shape of the module": silenced("return torch.zeros_like(x)"),
        "changes its input `x`": silenced(
            "hook = module.register_forward_hook(lambda m, i, out: out.data.zero_())",
            "out = module(x)",
            "hook.remove()",
            "return out",
        ),
        "there was no hook while": silenced("return 0 * module(x)"),
    },
}

RIGHT = {
    "11.1": {
        "by index": defined(
            "previous_score(weights)",
            "t = torch.arange(1, weights.shape[-1])",
            "return weights[..., t, t - 1].mean(-1)",
        ),
    },
    "11.2": {
        "in a copy": mean("x[..., mine].mean((0, 1))"),
    },
    "11.3": {
        "with marks": defined(
            "prefix_score(weights, ids, n=2)",
            "from minigpt.inside.marks import prefix, score",
            "return score(weights[None, None], prefix(ids[None], n=n)).item()",
        ),
    },
    "11.4": {
        "try and finally": silenced(
            HUNG, "try:", "    return module(x)", "finally:", "    hook.remove()"
        ),
    },
}
