"""Answers to notebook 15's exercises."""

from exercises import exercises_of

EXERCISES = exercises_of("15")


def names():
    return {}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def against(*lines):
    return defined("against_others(rewards)", *lines)


def loss(*lines):
    return defined("written_loss(logits, idx, new, rewards, baseline)", *lines)


def by_cross_entropy(places, chosen, baseline, result):
    return loss(
        f"lost = F.cross_entropy(logits[:, {places}].mT, idx[:, {chosen}], "
        "reduction='none').sum(dim=1)",
        f"better = rewards - {baseline}",
        f"return {result}",
    )


def moved(*lines):
    return defined("moved(logits, ref_logits, written)", *lines)


def by_kl_div(first, second):
    return moved(
        "with torch.no_grad():",
        "    ref = ref_logits.log_softmax(dim=-1)",
        "logp = logits.log_softmax(dim=-1)",
        f"kl = F.kl_div({first}, {second}, log_target=True, reduction='none')",
        "return kl[written].sum() / written.sum()",
    )


def leashed(reference, kl="(logp.exp() * (logp - ref)).sum()", inside="pass"):
    return defined(
        "leashed(die, reward, leash, steps)",
        "logits = die.log().requires_grad_()",
        f"reference = {reference}",
        "for _ in range(steps):",
        "    logp = logits.log_softmax(dim=0)",
        f"    {inside}",
        "    ref = reference.log_softmax(dim=0)",
        f"    loss = leash * {kl} - logp.exp() @ reward",
        "    slope, = torch.autograd.grad(loss, logits)",
        "    with torch.no_grad():",
        "        logits -= slope",
        "return logits.softmax(dim=0).detach()",
    )


WRONG = {
    "15.1": {
        "still part of the mean": against(
            "return rewards - rewards.mean(1)[:, None]",
        ),
        "You compare texts of different prompts": against(
            "others = rewards.sum(0) - rewards",
            "return rewards - others / (len(rewards) - 1)",
        ),
        "is one too large": against(
            "total = rewards.sum(dim=1, keepdim=True)",
            "return rewards - (total - rewards) / rewards.shape[1]",
        ),
    },
    "15.2": {
        "The prompt gets a reward, too": by_cross_entropy(
            ":-1", "1:", "baseline.detach()", "(better * lost).mean()"
        ),
        "You're one place off": by_cross_entropy(
            "-new:", "-new:", "baseline.detach()", "(better * lost).mean()"
        ),
        "A gradient flows into the baseline": by_cross_entropy(
            "-new - 1:-1", "-new:", "baseline", "(better * lost).mean()"
        ),
        "The sign is wrong": by_cross_entropy(
            "-new - 1:-1", "-new:", "baseline.detach()", "-(better * lost).mean()"
        ),
        "It should return a single number": by_cross_entropy(
            "-new - 1:-1", "-new:", "baseline.detach()", "better * lost"
        ),
        "No gradient arrives at the model": by_cross_entropy(
            "-new - 1:-1", "-new:", "baseline", "(better * lost.detach()).mean().item()"
        ).replace(".item()", ".detach()"),
    },
    "15.3": {
        "the wrong way round": by_kl_div("logp", "ref"),
        "A gradient flows into the reference": moved(
            "logp, ref = logits.log_softmax(-1), ref_logits.log_softmax(-1)",
            "return (logp.exp() * (logp - ref)).sum(-1)[written].mean()",
        ),
        "they still count in the mean": moved(
            "logp, ref = logits.log_softmax(-1), ref_logits.log_softmax(-1).detach()",
            "return ((logp.exp() * (logp - ref)).sum(-1) * written).mean()",
        ),
    },
    "15.4": {
        "The bug is still there": [
            leashed("logits.detach()"),
            leashed("logits"),
            leashed("None", inside="reference = logits.detach().clone()"),
        ],
        "the gradient flows through it": leashed("logits.clone()"),
        "This KL is the wrong way round": leashed(
            "die.log()", kl="(ref.exp() * (ref - logp)).sum()"
        ),
    },
}

RIGHT = {
    "15.1": {
        "the lesson's, times a factor": against(
            "n = rewards.shape[1]",
            "better = rewards - rewards.mean(dim=1, keepdim=True)",
            "return better * n / (n - 1)",
        ),
        "a loop": against(
            "out = torch.empty_like(rewards)",
            "for g, row in enumerate(rewards):",
            "    for i, r in enumerate(row):",
            "        out[g, i] = r - torch.cat([row[:i], row[i + 1:]]).mean()",
            "return out",
        ),
    },
    "15.2": {
        "by cross_entropy": by_cross_entropy(
            "-new - 1:-1", "-new:", "baseline.detach()", "(better * lost).mean()"
        ),
        "without a gradient for both": loss(
            "with torch.no_grad():",
            "    better = rewards - baseline",
            "logp = F.log_softmax(logits[:, :-1], dim=-1)",
            "taken = logp.gather(-1, idx[:, 1:, None])[:, -new:, 0]",
            "return -(better[:, None] * taken).sum() / len(idx)",
        ),
    },
    "15.3": {"by kl_div": by_kl_div("ref", "logp")},
    "15.4": {
        "from the die": leashed("die.log()"),
        "cloned, then cut off": leashed("logits.clone().detach()"),
    },
}
