"""Answers to notebook 14's exercises."""

from exercises import exercises_of

EXERCISES = exercises_of("14")


def names():
    return {}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def linear(condition):
    return defined(
        "as_linear(tensors, shapes)",
        "ours = {}",
        "for name, tensor in tensors.items():",
        f"    ours[name] = tensor.T if {condition} else tensor",
        "return ours",
    )


def fold(*lines):
    return defined("fold(W, b, s)", *lines)


def cropped(rows, mask):
    return defined(
        "cropped(p, T)",
        "short = dict(p)",
        f"short['wpe.weight'] = p['wpe.weight']{rows}",
        "for name in p:",
        "    if name.endswith('.attn.bias'):",
        f"        short[name] = p[name]{mask}",
        "return short",
    )


def ours(*lines):
    return defined("ours(do_sample, temperature, top_k, top_p)", *lines)


ALL = "dict(temperature=temperature, top_k=top_k or None, top_p=top_p)"
WRONG = {
    "14.1": {
        "The bug is still there": linear("tensor.shape != shapes[name]"),
        "a table of embeddings can be square": linear(
            "tensor.dim() == 2 and (tensor.shape != shapes[name] "
            "or tensor.shape[0] == tensor.shape[1])"
        ),
    },
    "14.2": {
        "You've lost W @ s": fold("return torch.linalg.pinv(W) @ b"),
        "You subtract the bias": fold("return s - torch.linalg.pinv(W) @ b"),
        "W Wᵀ b": fold("return s + W.mT @ b"),
    },
    "14.3": {
        "The bug is still there": cropped("[-T:]", "[:, :, :T, :T]"),
        "as large as before": cropped("[:T]", ""),
        "You cut the channels": cropped("[:, :T]", "[..., :T, :T]"),
    },
    "14.4": {
        "whatever the other three say": ours(f"return {ALL}"),
        "You lose top_k": ours(
            "if not do_sample:",
            "    return {'temperature': 0}",
            "return dict(temperature=temperature, top_p=top_p)",
        ),
        "divide the logits by the temperature": ours(
            "if not do_sample:",
            "    return {'temperature': 0}",
            f"return {ALL} | {{'temperature': 1 / temperature}}",
        ),
        "our generation raises": ours(
            "if not do_sample:",
            "    return {'temperature': 0}",
            "return dict(temperature=temperature, top_k=top_k, top_p=top_p)",
        ),
    },
}

RIGHT = {
    "14.1": {
        "by parts": linear("name.split('.')[-2][:2] == 'c_' and 'weight' in name")
    },
    "14.2": {"by the pseudo-inverse": fold("return s + torch.linalg.pinv(W) @ b")},
    "14.3": {"with dots": cropped("[:T]", "[..., :T, :T]")},
    "14.4": {
        "in one": ours(f"return {ALL} if do_sample else dict(temperature=0)"),
        "the greedy one by top_k": ours(
            f"return {ALL} if do_sample else dict(top_k=1)"
        ),
    },
}
