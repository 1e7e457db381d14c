"""Answers to notebook 09's exercises."""

from exercises import edited, exercises_of

from minigpt.attention import attention

EXERCISES = exercises_of("09")


def names():
    return {"attention": attention}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def step(*edits, out=None):
    code = edited(EXERCISES["09.1"].solution, *edits)
    end = "F.softmax(scores, dim=-1) @ values, keys, values"
    return edited(code, (end, out)) if out else code


def padded(*edits):
    return edited(EXERCISES["09.2"].solution, *edits)


OWN, MASK = " | own", "past & real[:, None] | own"


def draft(kept="torch.minimum(p, q)", refused="(p - q).clamp(min=0)"):
    return defined("one_draft(p, q)", f"kept = {kept}", f"return kept, {refused}")


def int8(*edits):
    return edited(EXERCISES["09.4"].solution, *edits)


SCALE = "largest.clamp(min=1e-12) / 127"


def cleared(*edits, clear="self.length = 0"):
    head = "def clear(self):\n        "
    edits = ((f"{head}self.length = 0", f"{head}{clear}"), *edits)
    return edited(EXERCISES["09.5"].solution, *edits)


# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "09.1": {
        "The caches come back as they were": step(
            out="F.softmax(scores, -1) @ values, keys[:, :, :-1], values[:, :, :-1]"
        ),
        "You don't divide the scores": step(
            (".mT / q.shape[-1] ** 0.5", ".transpose(-2, -1)")
        ),
        "two things are in the wrong order in `keys": step(
            ("torch.cat([keys, k], dim=2)", "torch.cat([k, keys], dim=2)"),
            ("torch.cat([values, v], dim=2)", "torch.cat([v, values], dim=2)"),
        ),
        "dimension -2 is the wrong one": step(("scores, dim=-1", "scores, dim=-2")),
    },
    "09.2": {
        "would follow the padding": padded(
            ("[0] * (T - len(prompt)) + prompt", "prompt + [0] * (T - len(prompt))")
        ),
        "sees those after it": padded((MASK, "real[:, None] | own")),
        "there is too much in `pads[:, None] - 1`": padded(
            (">= pads[:, None]", ">= pads[:, None] - 1")
        ),
        "Make it torch.bool": padded((MASK, f"({MASK}).float()")),
    },
    "09.3": {
        "kept: You get the same results as": draft("q", "torch.zeros_like(p)"),
        "p * q is the probability": draft("p * q"),
        "once it was drafted": draft("(p / q).clamp(max=1).nan_to_num()"),
        "wrong order in `q / p`": draft("q * (q / p).clamp(max=1).nan_to_num()"),
    },
    "09.4": {
        "one scale for the whole matrix": int8(
            ("weight.abs().amax(dim=1, keepdim=True)", "weight.abs().max()"),
            (SCALE, f"({SCALE}).expand(len(weight), 1)"),
        ),
        "Round to the nearest": int8((".round()", "")),
        "should be torch.int8": int8((".round().to(torch.int8)", "")),
        "You return one over the scale": int8(("numbers * scale", "numbers / scale")),
    },
    "09.5": {
        "still holds the last prompt": cleared(clear="pass"),
        "It's right for 3 of 6": cleared(
            ("q) ** 0.5", "q) ** 0.5 + (self.keys[:n] != 0).any(1).float().log()"),
            clear="self.keys.zero_()",
        ),
        "2 is the wrong number": cleared(("self.length += 1", "self.length += 2")),
    },
}

RIGHT = {
    "09.1": {
        "attention of 03": step(out="attention(q, keys, values)[0], keys, values"),
        "torch's": step(
            out="F.scaled_dot_product_attention(q, keys, values), keys, values"
        ),
    },
    "09.2": {
        "padding sees all padding": padded(
            (MASK, "past & (real[:, None] == real[:, :, None])")
        ),
    },
    "09.3": {
        "what is left": draft(refused="p - kept"),
    },
    "09.4": {
        "scale without a column": int8(
            ("torch.int8), scale", "torch.int8), scale[:, 0]")
        ).replace("numbers * scale", "numbers * scale.view(-1, 1)"),
    },
    "09.5": {
        "emptied as well": cleared(
            clear="self.length = 0; self.keys.zero_(); self.values.zero_()"
        ),
        "made anew": cleared(clear="self.__init__(*self.keys.shape)").replace(
            "        self.clear()\n", "        self.length = 0\n"
        ),
    },
}
