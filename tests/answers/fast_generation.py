"""Answers to notebook 09's exercises."""

from exercises import edited, exercises_of

from minigpt.attention import attention

EXERCISES = exercises_of("09")


def names():
    return {"attention": attention}


def defined(head, *lines):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)


def size_in_bytes(body):
    return defined("cache_bytes(L, h, d, T, B, s)", f"return {body}")


def step(*edits, out=None):
    code = edited(EXERCISES["09.2"].solution, *edits)
    end = "F.softmax(scores, dim=-1) @ values, keys, values"
    return edited(code, (end, out)) if out else code


def padded(*edits):
    return edited(EXERCISES["09.3"].solution, *edits)


OWN, MASK = " | own", "past & real[:, None] | own"


def draft(kept="torch.minimum(p, q)", refused="(p - q).clamp(min=0)"):
    return defined("one_draft(p, q)", f"kept = {kept}", f"return kept, {refused}")


LACKING = "(p - q).clamp(min=0) / (p - q).clamp(min=0).sum()"


def int8(*edits):
    return edited(EXERCISES["09.5"].solution, *edits)


SCALE = "largest.clamp(min=1e-12) / 127"
ROUNDED = "(weight / scale).round().to(torch.int8)"


def keys_of(*edits):
    return edited(EXERCISES["09.6"].solution, *edits)


PLACE = "places[len(read) - 1]"


def read_on(mask=None, *edits):
    given = [("torch.ones(T, n + T).tril(n).bool()", mask)] if mask else []
    return edited(EXERCISES["09.7"].solution, *given, *edits)


def remembering(init="self.kept = []", body=None, head="class Memory:\n"):
    body = body or "self.kept.append(key)\nreturn torch.stack(self.kept)"
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        f"{head}    def __init__(self):\n        {init}\n"
        f"    def read(self, key):\n{lines}"
    )


def cleared(*edits, clear="self.length = 0"):
    code = EXERCISES["09.9"].solution
    start, end = code.split("        self.length = 0\n")
    return edited(f"{start}        {clear}\n{end}", *edits)


LENGTH = ("        self.clear()\n", "        self.length = 0\n")
LOOK = "self.keys[:n] @ q", "weights @ self.values[:n]"

# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "09.1": {
        "only the keys": size_in_bytes("L * h * d * T * B * s"),
        "the queries too": size_in_bytes("3 * L * h * d * T * B * s"),
        "of a single layer": size_in_bytes("2 * h * d * T * B * s"),
        "of a single head": size_in_bytes("2 * L * d * T * B * s"),
        "of a single text": size_in_bytes("2 * L * h * d * T * s"),
        "of a single character": size_in_bytes("2 * L * h * d * B * s"),
        "numbers, not yet bytes": size_in_bytes("2 * L * h * d * T * B"),
        "These are bits": size_in_bytes("16 * L * h * d * T * B * s"),
        "every pair of characters": size_in_bytes("2 * L * h * d * T * T * B * s"),
        "weights that make keys and values": size_in_bytes("2 * L * (h * d) ** 2 * s"),
        "megabytes": [
            size_in_bytes("2 * L * h * d * T * B * s / 1e6"),
            size_in_bytes("2 * L * h * d * T * B * s / 2**20"),
        ],
        "head_size is missing": size_in_bytes("2 * L * h * T * B * s"),
    },
    "09.2": {
        "does not see itself": step(
            (
                "scores = q @ keys.mT / q.shape[-1] ** 0.5",
                "scores = q @ keys[:, :, :-1].mT / q.shape[-1] ** 0.5",
            ),
            out="F.softmax(scores, -1) @ values[:, :, :-1], keys, values",
        ),
        "The caches do not grow": step(
            out="F.softmax(scores, -1) @ values, keys[:, :, :-1], values[:, :, :-1]"
        ),
        "sees only itself": step(out="v, keys, values"),
        "not divided by √d": step((" / q.shape[-1] ** 0.5", "")),
        "by d, not by its root": step((" ** 0.5", "")),
        "sees only the first character": step(
            out="F.scaled_dot_product_attention(q, keys, values, is_causal=True),"
            " keys, values"
        ),
        "in front of the old ones": step(
            ("torch.cat([keys, k], dim=2)", "torch.cat([k, keys], dim=2)"),
            ("torch.cat([values, v], dim=2)", "torch.cat([v, values], dim=2)"),
        ),
        "new value stands at the end, its key in front": step(
            ("torch.cat([keys, k], dim=2)", "torch.cat([k, keys], dim=2)"),
        ),
        "Keys and values have changed places": step(
            out="F.softmax(scores, dim=-1) @ values, values, keys"
        ),
        "softmax runs over": step(
            out="F.softmax(scores, dim=2) @ values, keys, values"
        ),
        "no softmax": step(out="scores @ values, keys, values"),
        "oldest character is forgotten": step(
            ("torch.cat([keys, k], dim=2)", "torch.cat([keys, k], dim=2)[:, :, 1:]"),
            (
                "torch.cat([values, v], dim=2)",
                "torch.cat([values, v], dim=2)[:, :, 1:]",
            ),
        ),
        "three things": step(out="F.softmax(scores, dim=-1) @ values"),
        "key and value alone": step(out="F.softmax(scores, dim=-1) @ values, k, v"),
        "do not fit together": [
            step(("keys.mT", "keys")),
            step(("torch.cat([keys, k], dim=2)", "torch.cat([keys, k], dim=1)")),
        ],
    },
    "09.3": {
        "would follow the padding": padded(
            ("[0] * (T - len(prompt)) + prompt", "prompt + [0] * (T - len(prompt))")
        ),
        "and so does your mask": padded(
            ("[0] * (T - len(prompt)) + prompt", "prompt + [0] * (T - len(prompt))"),
            (">= pads[:, None]", "< T - pads[:, None]"),
        ),
        "the mask belongs to padding on the right": padded(
            (">= pads[:, None]", "< T - pads[:, None]")
        ),
        "may look at the future": padded((MASK, "real[:, None] | own")),
        "may look at padding": [
            padded((MASK, "past.expand(len(prompts), T, T)")),
            padded(("real[:, None]", "real[:, :, None]")),
        ],
        "A padded column sees nothing": padded((OWN, "")),
        "True where nobody may look": padded((MASK, "~(past & real[:, None] | own)")),
        "may be a character, too": padded(
            (
                "real = torch.arange(T) >= pads[:, None]",
                "real = torch.tensor(rows) != 0",
            )
        ),
        "also the last column of padding": padded(
            (">= pads[:, None]", ">= pads[:, None] - 1")
        ),
        "first real character is hidden": padded(
            (">= pads[:, None]", "> pads[:, None]")
        ),
        "cut to the shortest": padded(("max(len", "min(len"))
        .replace("[0] * (T - len(prompt)) + prompt", "prompt[-T:]")
        .replace("T - len(prompt) for", "0 for"),
        "a number to add": padded(
            (MASK, "torch.zeros(1).masked_fill(~(past & real[:, None] | own), -1e9)")
        ),
        "for each pair of columns": padded((MASK, "real")),
        "does not see itself": padded((".tril()", ".tril(-1)"), (OWN, "")),
        "the other way round in time": padded((".tril()", ".triu()")),
        "two things": padded((f", {MASK}", "")),
    },
    "09.4": {
        "Everything is kept": draft("q", "torch.zeros_like(p)"),
        "draws of their own agree": draft("p * q"),
        "given that it was drafted": draft("(p / q).clamp(max=1).nan_to_num()"),
        "the other way up": draft("q * (q / p).clamp(max=1).nan_to_num()"),
        "given a refusal": draft(refused=LACKING),
        "drawn from p": draft(refused="(1 - kept.sum()) * p"),
        "drawn from q again": draft(refused="(1 - kept.sum()) * q"),
        "both ways": draft(refused="(p - q).abs()"),
        "wanted is what it lacks": draft(refused="(q - p).clamp(min=0)"),
        "below zero": draft(refused="p - q"),
        "0 / 0": [
            draft(refused=f"(1 - kept.sum()) * ({LACKING})"),
            draft("q * (p / q).clamp(max=1)"),
        ],
        "have changed places": (
            "def one_draft(p, q):\n"
            "    return (p - q).clamp(min=0), torch.minimum(p, q)\n"
        ),
        "the draft is not used": draft("p", "torch.zeros_like(p)"),
        "what comes out at all": draft(refused="p"),
        "the sums": draft("torch.minimum(p, q).sum()", "(p - q).clamp(min=0).sum()"),
    },
    "09.5": {
        "One scale for the whole matrix": int8(
            ("weight.abs().amax(dim=1, keepdim=True)", "weight.abs().max()"),
            (SCALE, f"({SCALE}).expand(len(weight), 1)"),
        ),
        "one scale for each column": int8(
            ("dim=1, keepdim=True", "dim=0, keepdim=True")
        ),
        "cut off behind the point": int8((".round()", "")),
        "128 is no int8": int8(("/ 127", "/ 128")),
        "the largest number, not the largest absolute": int8(
            ("weight.abs().amax", "weight.amax")
        ),
        "row of zeros": [
            int8((".clamp(min=1e-12)", "")),
            int8((".clamp(min=1e-12)", ""), (".round()", ".nan_to_num().round()")),
        ],
        "not whole numbers yet": int8((".round().to(torch.int8)", "")),
        "whole numbers, but not bytes": [
            int8((".to(torch.int8)", "")),
            int8(("torch.int8)", "torch.int32)")),
        ],
        "You multiply by the scale": int8(("weight / scale", "weight * scale")),
        "one over it": int8(("torch.int8), scale", "torch.int8), 1 / scale")),
        "only seven bits": int8(("/ 127", "/ 63")),
        "The sign is lost": int8(("weight / scale", "weight.abs() / scale")),
        "mean absolute value": int8(
            ("weight.abs().amax(", "weight.abs().mean("),
            (ROUNDED, "(weight / scale).round().clamp(-127, 127).to(torch.int8)"),
        ),
        "On the way back: divided": int8(("numbers * scale", "numbers / scale")),
        "On the way back: the scale is missing": int8(
            ("numbers * scale", "numbers.float()")
        ),
        "On the way back: the product is made of whole numbers": int8(
            ("numbers * scale", "numbers * scale.to(torch.int8)")
        ),
        "On the way back: 127 once more": int8(
            ("numbers * scale", "numbers / 127 * scale")
        ),
        "two things": int8((f"{ROUNDED}, scale", ROUNDED)),
    },
    "09.6": {
        "The bug is still there": keys_of((PLACE, "places[n + 1]")),
        "one place too early": keys_of((PLACE, "places[n - 1]")),
        "Every step stands at place 0": keys_of((PLACE, "places[0]")),
        "counted from the prompt": keys_of((PLACE, "places[n - prompt]")),
        "do not advance": keys_of((PLACE, "places[prompt]")),
        "have no place": keys_of((f" + {PLACE}", "")),
        "character before": keys_of(
            ("read = text[: n + 1]", "read = text[: n]"), (PLACE, "places[n]")
        ),
        "Now the prompt is late as well": keys_of(
            (PLACE, "places[len(read)]"), ("places[:prompt]", "places[1 : prompt + 1]")
        ),
        "Only the keys of the prompt": keys_of(
            ("range(prompt, len(text))", "range(prompt, prompt)")
        ),
        "last character is missing": keys_of(("len(text))", "len(text) - 1)")),
        "in front": keys_of(("[keys, new[None]]", "[new[None], keys]")),
        "The first character stands at place 1": keys_of(
            ("places[:prompt]", "places[1 : prompt + 1]")
        ),
    },
    "09.7": {
        "The bug is still there": [
            read_on("torch.ones(T, n + T).tril().bool()"),
            read_on("torch.arange(n + T) <= torch.arange(T)[:, None]"),
        ],
        "Nothing is masked": read_on("torch.ones(T, n + T).bool()"),
        "one character of the future": read_on(
            "torch.ones(T, n + T).tril(n + 1).bool()"
        ),
        "does not see itself": [
            read_on("torch.ones(T, n + T).tril(n - 1).bool()"),
        ],
        "do not see each other": [
            read_on("torch.arange(n + T).expand(T, -1) < n"),
            defined(
                "read_on(q, k, v, keys, values)",
                "return attention(q, keys, values, causal=False)[0]",
            ),
        ],
        "What was kept is not looked at": read_on(
            "torch.cat([torch.zeros(T, n), torch.ones(T, T).tril()], 1).bool()"
        ),
        "the wrong way round": read_on("torch.ones(T, n + T).triu(n + 1).bool()"),
        "in front of the old ones": read_on(
            None,
            ("[keys, k]", "[k, keys]"),
            ("[values, v]", "[v, values]"),
        ),
        "the oldest drop out": read_on("torch.ones(T, n + T).tril(n).triu(1).bool()"),
        "each new character sees itself only": read_on(
            "torch.ones(T, n + T).tril(n).triu(n).bool()"
        ),
        "not divided by √d": read_on(
            None, ("attn_mask=mask", "attn_mask=mask, scale=1.0")
        ),
        "the triangle is upside down": read_on(
            "torch.cat([torch.ones(T, n), torch.ones(T, T).triu()], 1).bool()"
        ),
    },
    "09.8": {
        "The bug is still there": [
            remembering("pass", head="class Memory:\n    kept = []\n"),
            (
                "class Memory:\n"
                "    def __init__(self, kept=[]):\n"
                "        self.kept = kept\n"
                "    def read(self, key):\n"
                "        self.kept.append(key)\n"
                "        return torch.stack(self.kept)\n"
            ),
        ],
        "wipes the memory of the others": [
            remembering("Memory.kept = []"),
            remembering("self.kept.clear()", head="class Memory:\n    kept = []\n"),
        ],
        "Only the newest key": [
            remembering(body="self.kept = [key]\nreturn torch.stack(self.kept)"),
            remembering(body="return torch.stack(self.kept + [key])"),
        ],
        "one key late": remembering(
            body="old = list(self.kept)\nself.kept.append(key)\n"
            "return torch.stack(old) if old else key.new_zeros(0, len(key))"
        ),
        "newest first": remembering(
            body="self.kept.insert(0, key)\nreturn torch.stack(self.kept)"
        ),
        "added up": remembering(
            body="self.kept.append(key)\nreturn torch.stack(self.kept).sum(0)"
        ),
        "mean of the keys": remembering(
            body="self.kept.append(key)\nreturn torch.stack(self.kept).mean(0)"
        ),
        "kept twice": remembering(
            body="self.kept += [key, key]\nreturn torch.stack(self.kept)"
        ),
        "side by side": remembering(
            body="self.kept.append(key)\nreturn torch.cat(self.kept)"
        ),
        "The oldest key goes": remembering(
            body="self.kept = (self.kept + [key])[-2:]\nreturn torch.stack(self.kept)"
        ),
    },
    "09.9": {
        "The bug is still there": [
            cleared(LENGTH, clear="self.keys.zero_(); self.values.zero_()"),
            cleared(
                LENGTH, clear="self.keys, self.values = self.keys * 0, self.values * 0"
            ),
        ],
        "Nothing is cleared": cleared(LENGTH, clear="pass"),
        "empty places": cleared(
            (LOOK[0], "self.keys @ q"),
            (LOOK[1], "weights @ self.values"),
            clear="self.length = 0; self.keys *= 0; self.values *= 0",
        ),
        "of the prompt before are looked at": cleared(
            (LOOK[0], "self.keys @ q"), (LOOK[1], "weights @ self.values")
        ),
        "One character of the last prompt stays": [
            cleared(LENGTH, clear="self.length = min(self.length, 1)"),
        ],
        "forgets only its last": cleared(
            LENGTH, clear="self.length = max(self.length - 1, 0)"
        ),
        "Only the keys are emptied": cleared(LENGTH, clear="self.keys.zero_()"),
        "Only the values are emptied": cleared(LENGTH, clear="self.values.zero_()"),
        "Infinite keys": cleared(
            LENGTH, clear="self.keys.fill_(-torch.inf); self.values.zero_()"
        ),
        "before every step": cleared(
            (
                "        self.keys[self.length]",
                "        self.clear()\n        self.keys[self.length]",
            )
        ),
        "newest character is not looked at": cleared(
            ("n = self.length", "n = max(self.length - 1, 1)")
        ),
        "Every second place": cleared(("self.length += 1", "self.length += 2")),
        "IndexError": cleared(
            LENGTH,
            ("self.length = 0", "self.start = self.length = 0"),
            ("self.keys[:n]", "self.keys[self.start : n]"),
            ("self.values[:n]", "self.values[self.start : n]"),
            clear="self.start = self.length",
        ),
    },
}

RIGHT = {
    "09.1": {
        "another order": size_in_bytes("s * B * T * d * h * L * 2"),
        "a tensor's": size_in_bytes(
            "torch.empty(2, L, B, h, T, d, device='meta').numel() * s"
        ),
        "a sum of layers": size_in_bytes(
            "sum(2 * B * T * h * d * s for _ in range(L))"
        ),
    },
    "09.2": {
        "attention of 03": step(out="attention(q, keys, values)[0], keys, values"),
        "torch's": step(
            out="F.scaled_dot_product_attention(q, keys, values), keys, values"
        ),
        "a list": step(out="[F.softmax(scores, dim=-1) @ values, keys, values]"),
        "weighed by hand": defined(
            "cached_step(q, k, v, keys, values)",
            "keys, values = torch.cat([keys, k], -2), torch.cat([values, v], -2)",
            "e = (q.double() * keys / q.shape[-1] ** 0.5).sum(-1, keepdim=True).exp()",
            "return (e * values).sum(2, True) / e.sum(2, True), keys, values",
        ),
    },
    "09.3": {
        "loops": defined(
            "left_pad(prompts)",
            "T = max(map(len, prompts))",
            "idx = torch.zeros(len(prompts), T, dtype=torch.long)",
            "mask = torch.eye(T).bool().repeat(len(prompts), 1, 1)",
            "for b, p in enumerate(prompts):",
            "    idx[b, T - len(p):] = torch.tensor(p)",
            "    for i in range(T - len(p), T):",
            "        mask[b, i, T - len(p):i + 1] = True",
            "return idx, mask",
        ),
        "padding sees all padding": padded(
            (MASK, "past & (real[:, None] == real[:, :, None])")
        ),
        "padding sees everything": padded(
            (MASK, "past & real[:, None] | ~real[..., None]")
        ),
        "pad with another token": padded(
            ("[0] * (T - len(prompt))", "[1] * (T - len(prompt))")
        ),
        "numbers 0 and 1": padded((MASK, "(past & real[:, None] | own).int()")),
    },
    "09.4": {
        "by the text": (
            "def one_draft(p, q):\n"
            "    kept = q * (p / q.clamp(min=1e-30)).clamp(max=1)\n"
            "    lacking = (p - q).clamp(min=0)\n"
            "    total = lacking.sum().clamp(min=1e-30)\n"
            "    return kept, (1 - kept.sum()) * lacking / total\n"
        ),
        "what is left": draft(refused="p - kept"),
        "where": draft("torch.where(p < q, p, q)", "torch.where(p > q, p - q, 0.0)"),
    },
    "09.5": {
        "scale without a column": int8(
            ("torch.int8), scale", "torch.int8), scale[:, 0]")
        ).replace("numbers * scale", "numbers * scale.view(-1, 1)"),
        "numpy's way": int8(
            (
                ROUNDED,
                "torch.round(weight.double() / scale).clamp(-127, 127).char()",
            ),
            ("numbers * scale", "numbers.float() * scale"),
        ),
        "ones for zeros": int8((SCALE, "torch.where(largest > 0, largest, 1) / 127")),
    },
    "09.6": {
        "n": keys_of((PLACE, "places[n]")),
        "the cache's length": keys_of((PLACE, "places[len(keys)]")),
        "at once": defined(
            "keys_of(text, prompt, chars, places)",
            "return chars[text] + places[:len(text)]",
        ),
    },
    "09.7": {
        "attention of 03": defined(
            "read_on(q, k, v, keys, values)",
            "return attention(q, torch.cat([keys, k]), torch.cat([values, v]))[0]",
        ),
        "positions": read_on("torch.arange(n + T) <= torch.arange(n, n + T)[:, None]"),
        "one at a time": defined(
            "read_on(q, k, v, keys, values)",
            "out = []",
            "for one, key, value in zip(q, k, v):",
            "    keys = torch.cat([keys, key[None]])",
            "    values = torch.cat([values, value[None]])",
            "    out.append(attention(one[None], keys, values)[0])",
            "return torch.cat(out)",
        ),
        "numbers to add": read_on("torch.full((T, n + T), -torch.inf).triu(n + 1)"),
    },
    "09.8": {
        "a new list each time": remembering(
            "pass",
            "self.kept = self.kept + [key]\nreturn torch.stack(self.kept)",
            "class Memory:\n    kept = []\n",
        ),
        "None as the default": remembering("self.kept = kept or []").replace(
            "__init__(self)", "__init__(self, kept=None)"
        ),
        "one tensor": remembering(
            "self.kept = None",
            "new = key[None]\n"
            "self.kept = new if self.kept is None else torch.cat([self.kept, new])\n"
            "return self.kept",
        ),
    },
    "09.9": {
        "emptied as well": cleared(
            clear="self.length = 0; self.keys.zero_(); self.values.zero_()"
        ),
        "made anew": cleared(clear="self.__init__(*self.keys.shape)").replace(
            "        self.clear()\n", "        self.length = 0\n"
        ),
        "a mask": cleared(
            (LOOK[0], "self.keys @ q"),
            (LOOK[1], "weights @ self.values"),
            (
                " / len(q) ** 0.5, dim=0)",
                " / len(q) ** 0.5"
                " + torch.where(torch.arange(len(self.keys)) < n, 0.0, -torch.inf)"
                ", dim=0)",
            ),
        ),
    },
}
