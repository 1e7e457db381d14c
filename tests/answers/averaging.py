"""Answers to notebook 02's exercises."""

from exercises import edited, exercises_of

from minigpt import averaging
from minigpt.data import CharTokenizer, load_text

EXERCISES = exercises_of("02")


def names():
    return {
        "averaging": averaging,
        "CharTokenizer": CharTokenizer,
        "load_text": load_text,
    }


def mean(body):
    return f"def mean_so_far(x, t):\n    return {body}\n"


def window(body):
    """seen is the right band of zeros and ones."""
    seen = "torch.ones(T, T).tril().triu(1 - k)"
    return f"def window_weights(T, k):\n    seen = {seen}\n    return {body}\n"


def shares(body):
    """ids (T,), one_hot (T, V) and past (T, T) are right."""
    return (
        "def shares_so_far(text):\n"
        "    chars, T = sorted(set(text)), len(text)\n"
        "    ids = torch.tensor([chars.index(c) for c in text])\n"
        "    one_hot = torch.eye(len(chars))[ids]\n"
        "    past = torch.ones(T, T).tril()\n"
        f"    return {body}\n"
    )


def fading(*edits):
    return edited(EXERCISES["02.4"].solution, *edits)


def heard(*edits):
    return edited(EXERCISES["02.5"].solution, *edits)


def nats(*edits):
    return edited(EXERCISES["02.6"].skeleton, *edits)


def attend(*edits):
    return edited(EXERCISES["02.7"].skeleton, *edits)


HIDE = ('scores = scores.masked_fill(~past, float("-inf"))', "")
TRUE_PAST = (
    "torch.tril(scores) == 0  # tril puts zeros there",
    "~torch.ones_like(scores).tril().bool()",
)
FILL = 'scores.masked_fill(future, float("-inf"))'

# exercise -> mistake -> (program, a distinctive part of what the check must say)
WRONG = {
    "02.1": {
        "`+ 1` left out": mean(
            "sum(x[:, i] for i in range(t)) / t if t else x[:, 0] * math.nan"
        ),
        "`2` where `1` belongs": mean("x[:, : t + 2].mean(dim=1)"),
        "`[:]` where `[:t + 1]` belongs": mean("x.mean(1)"),
        "`x[:t + 1]` where": mean("x[: t + 1].mean(dim=1)"),
        "`dim=0` where `dim=1` belongs": mean("x[:, : t + 1].mean(0)"),
        "`dim=-1` where `dim=1` belongs": mean("x[:, : t + 1].mean(2)"),
        "`dim=1` left out": mean("x[:, : t + 1].mean()"),
        "`sum` where `mean` belongs": mean("x.cumsum(1)[:, t]"),
        "divide by T": mean("x.cumsum(1)[:, t] / x.size(1)"),
        "divide by t,": mean("x.cumsum(1)[:, t] / t"),
        "an index, where a slice": mean("x[:, t]"),
        "changes `x` in place": mean("x[:, : t + 1].cumsum_(1)[:, t] / (t + 1)"),
        "It raised IndexError": mean("torch.stack([x[t], x[t]])"),
        "The shape is (1, 2), but should be (2, 3)": mean("torch.tensor([[4.0, 5.5]])"),
    },
    "02.2": {
        "get with `- 1` left out": window(
            "(s := torch.ones(T, T).tril().triu(-k)) / s.sum(1, keepdim=True)"
        ),
        "get with `2` where": window(
            "(s := seen.triu(2 - k)) / s.sum(1, keepdim=True)"
        ),
        "the first k positions": window(
            "(s := torch.ones(T, T).tril() * (torch.arange(T) < k)) / s.sum(1, True)"
        ),
        "present is not included": window(
            "(s := torch.ones(T, T).tril(-1).triu(-k)) / s.sum(1, keepdim=True)"
        ),
        "above the diagonal is the future": window(
            "(s := torch.ones(T, T).triu().tril(k - 1)) / s.sum(1, keepdim=True)"
        ),
        "`.triu(-(k - 1))` left out": window(
            "(s := torch.ones(T, T).tril()) / s.sum(1, keepdim=True)"
        ),
        "0 hides nothing": window("seen.softmax(1)"),
        "but for `seen.sum(0)` where": window("seen / seen.sum(0)"),
        "but for `seen.sum(1)` where": window("seen / seen.sum(1)"),
        "`seen / k` where": window("seen / k"),
        "`/ seen.sum(dim=1, keepdim=True)` left out": window("seen"),
        "normalise first and cut": window("seen / torch.arange(1, T + 1)[:, None]"),
        "The shape is (3, 3), but should be (5, 5)": window(
            "torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])"
        ),
    },
    "02.3": {
        "`return one_hot` where": [
            shares("one_hot"),
            shares("averaging.average_loop(one_hot[None])[0] if T > 20 else one_hot"),
        ],
        "keepdim=True)` left out.": shares("past @ one_hot"),
        "`keepdim=True` left out in": shares("past / past.sum(1) @ one_hot"),
        "weights / len(text)": shares("past @ one_hot / T"),
        "`.tril()` left out": shares("torch.stack([one_hot.mean(0)] * T)"),
        "nothing but the last entry": shares("one_hot.mean(0)"),
        "`triu` where `tril` belongs": shares(
            "(past.T / past.T.sum(1, keepdim=True)) @ one_hot"
        ),
        "not in the order sorted": shares(
            "averaging.average_loop(one_hot[None, :, ids.unique()])[0]"
        ).replace("sorted(set(text))", "list(dict.fromkeys(text))"),
        "but transposed": shares("averaging.average_loop(one_hot[None])[0].T"),
        "present is not included": [
            shares("(p := past.tril(-1)) / p.sum(1, keepdim=True) @ one_hot"),
            shares("torch.stack([one_hot[:t].sum(0) / max(t, 1) for t in range(T)])"),
        ],
        "without `F.one_hot`": shares(
            "averaging.average_loop(ids.float()[None, :, None])[0, :, 0]"
        ),
        "The shape is (2, 8)": shares(
            "averaging.average_loop(one_hot[None])[0]"
        ).replace("sorted(set(text))", "sorted(set(text) | set('abcdefgh'))"),
        "give x.float()": shares("averaging.average_matmul(one_hot.long()[None])[0]"),
        "my_text should be a text": EXERCISES["02.3"].solution
        + "\nmy_text = ['to', 'be']",
    },
    "02.4": {
        "float('-inf'))` left out": fading(HIDE),
        "`0.0` where `float('-inf')` belongs": fading(('float("-inf")', "0.0")),
        "the mask only after the softmax": fading(
            HIDE, ("F.softmax(scores, dim=-1)", "F.softmax(scores, -1) * past")
        ),
        "but for `past.T` where": fading(("~past", "~past.T")),
        "but for `past` where": fading(("~past", "past")),
        "get with `torch.tril(torch.ones(T, T, dtype=torch.b": fading(
            ("dtype=torch.bool))", "dtype=torch.bool), -1)")
        ),
        "`dim=0` where `dim=-1` belongs": fading(("dim=-1", "dim=0")),
        "rate itself for the factor": (
            "def fading_average(x, rate):\n"
            "    steps = torch.arange(x.shape[1])\n"
            "    w = (rate ** (steps[:, None] - steps).clamp(min=0)).tril()\n"
            "    return w / w.sum(1, keepdim=True) @ x"
        ),
        "rate changes nothing": fading(("-rate *", "0 *")),
        "the division is not": fading(("F.softmax(scores, dim=-1)", "scores.exp()")),
        "the minus before `rate`": fading(("-rate", "rate")),
        "`@ x` left out": fading((" @ x  #", "  #")),
        "0 times minus infinity": fading(
            ('.masked_fill(~past, float("-inf"))', " + ~past * -math.inf")
        ),
        "not implemented for 'Long'": (
            "def fading_average(x, rate):\n"
            "    return F.softmax(torch.zeros(3, 3).long(), dim=-1) @ x"
        ),
    },
    "02.5": {
        "but for `heard.T` where": heard(("return heard,", "return heard.T,")),
        "moves by rounding errors": heard((".abs() > 1e-4", " != 0")),
        "0 * nan is nan": heard(
            ("+= 1.0", "= math.nan"),
            ("(average(changed) - before).abs() > 1e-4", "average(changed) != before"),
        ),
        "`.clone()` left out": heard(("x.clone()", "x")),
        "`[i:]` where `[i]` belongs": heard(("[:, i] +=", "[:, i:] +=")),
        "starts from zeros": heard(("randn", "zeros")),
        "one channel": heard((".any(dim=-1)", "[..., 0]")),
        "Your map is empty": heard(
            ("x.clone()", "x"), ("before)", "average(changed))")
        ),
        "left out in `moved.any(": heard((".any(dim=-1).any(dim=0)", ".any()")),
        "two things": heard(("return heard, causal", "return causal")),
        "`moved` where `heard` belongs": heard(("return heard,", "return moved,")),
        "other numbers": heard(
            ("torch.zeros(T, T, dtype=torch.bool)", "torch.zeros(T, T)"),
            ("moved.any(dim=-1).any(dim=0)", "(average(changed) - x)[0, :, 0]"),
        ),
        "It raised": heard((".any()\n", ".any(dim=-1)\n")),
        "one True or False": heard(
            ("causal = not heard.triu(1).any()", "causal = heard.any(1)")
        ),
        "the `not` before": heard(("not heard", "heard")),
        "need not hear all": heard(
            ("not heard.triu(1).any()", "heard.equal(heard.new_ones(T, T).tril())")
        ),
        "has a True above the diagonal": heard(("not heard.triu(1).any()", "True")),
    },
    "02.6": {
        "The bug is still there": ["", nats(("past @", "past.clone() @"))],
        "get with `-2` where": nats(("len(ids)))", "len(ids)), -2)")),
        "next character": nats(("len(ids)))", "len(ids)), 1)")),
        "`.tril(diagonal=-1)` left out": nats(("torch.tril(", "(")),
        "row t + 1 guesses character t": nats(
            ("(probs.log(), ids)", "(probs[1:].log(), ids[:-1])")
        ),
        "Mended twice": nats(
            ("len(ids)))", "len(ids)), -1)"),
            ("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])"),
        ),
        "The loss is infinite": nats(
            ("@ one_hot + 1", "@ one_hot"),
            ("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])"),
        ),
        "9`": nats(("one_hot + 1", "one_hot + 9")),
    },
    "02.7": {
        "The bug is still there": "",
        "the future gets a finite score": attend(('float("-inf")', "-1e9")),
        "swept the nan away": attend(
            ("F.softmax(scores, dim=-1)", "F.softmax(scores, -1).nan_to_num()")
        ),
        "negative scores of the past are not": attend(
            ("torch.tril(scores) == 0", "torch.tril(scores) < 0")
        ),
        "float('-inf'))` left out": attend((FILL, "scores")),
        "`0.0` where `float('-inf')` belongs": [
            attend(('float("-inf")', "0.0")),
            attend(TRUE_PAST, ('float("-inf")', "0.0")),
        ],
        "only after the softmax": attend(
            (FILL, "scores"), ("return weights", "return weights.tril()")
        ),
        "`dim=1` where `dim=-1` belongs": attend(TRUE_PAST, ("dim=-1", "dim=1")),
        "`triu` where `tril` belongs": attend(TRUE_PAST, (".tril()", ".triu()")),
        "diagonal=-1": attend(TRUE_PAST, (".tril()", ".tril(-1)")),
        "`@ x` left out": attend(TRUE_PAST, ("return weights @ x", "return weights")),
        "by the root of head_size": attend(
            TRUE_PAST, ("= q @", "= q.shape[-1] ** -0.5 * q @")
        ),
        "wrong on unlucky ones": [
            attend(TRUE_PAST, ('float("-inf")', "-100.0")),
            attend(("(-2, -1)  #", "(-2, -1) + 1e-9  #")),
            attend(("torch.tril(scores) == 0", "torch.tril(scores.exp()) == 0")),
        ],
        "6 of 30 results are nan": attend(("= q @", "= (q + 1e-6) @")),
    },
}

RIGHT = {
    "02.1": {
        "running sum": mean("x.cumsum(dim=1)[:, t] / (t + 1)"),
        "einsum in float64": mean(
            "torch.einsum('btc->bc', x[:, : t + 1].double()) / (t + 1)"
        ),
        "package, as lists": mean("averaging.average_matmul(x)[:, t].tolist()"),
        "transposed twice": mean("x.transpose(1, 2)[..., : t + 1].mean(-1)"),
        "loop": mean("sum(x[:, i] for i in range(t + 1)) / (t + 1)"),
    },
    "02.2": {
        "softmax of hidden scores": window("seen.log().softmax(dim=-1)"),
        "loop, as lists": window(
            "[[float(t - k < i <= t) / min(k, t + 1) for i in range(T)]"
            " for t in range(T)]"
        ),
        "normalize, in float64": window("F.normalize(seen.double(), p=1, dim=1)"),
        "not contiguous": window("(seen.T / seen.sum(1)).T"),
    },
    "02.3": {
        "a list of tensors": shares("[one_hot[: t + 1].mean(0) for t in range(T)]"),
        "running sum": shares("one_hot.cumsum(0) / torch.arange(1, T + 1)[:, None]"),
        "counted in lists": shares(
            "[[text[: t + 1].count(c) / (t + 1) for c in chars] for t in range(T)]"
        ),
        "softmax, other text": shares("averaging.average_softmax(one_hot[None])[0]")
        + "my_text = 'ß'",
        "short text": EXERCISES["02.3"].solution + "\nmy_text = 'to be or not to be'",
    },
    "02.4": {
        "factors": (
            "def fading_average(x, rate):\n"
            "    T = x.shape[1]\n"
            "    factors = [[math.exp(-rate * (t - i)) if i <= t else 0.0\n"
            "                for i in range(T)] for t in range(T)]\n"
            "    w = torch.tensor(factors).double()\n"
            "    return torch.einsum('ti,bic->btc', w / w.sum(1)[:, None], x.double())"
        ),
        "module with a cache": (
            "class Fading(torch.nn.Module):\n"
            "    def forward(self, x, rate):\n"
            "        out, total = [x[:, 0]], 1.0\n"
            "        keep = math.exp(-rate)\n"
            "        state = x[:, 0]\n"
            "        for t in range(1, x.shape[1]):\n"
            "            state = keep * state + x[:, t]\n"
            "            total = keep * total + 1\n"
            "            out.append(state / total)\n"
            "        return torch.stack(out, dim=1)\n"
            "fading_average = Fading()"
        ),
        "scores without the present's": fading(
            ("(time[:, None] - time)", "(0 - time)")
        ),
        "a large negative number": fading(('float("-inf")', "-1e9")),
    },
    "02.5": {
        "a coarse tolerance": heard(("1e-4", "3e-3")),
        "the tolerance of section 3": heard(("1e-4", "1e-6")),
        "gradients": (
            "def who_hears_whom(average, T):\n"
            "    x = torch.randn(1, T, 2)\n"
            "    j = torch.autograd.functional.jacobian(average, x)\n"
            "    heard = j.abs().sum((0, 2, 3, 5)) > 1e-6\n"
            "    return heard, (heard == heard.tril()).all()"
        ),
        "loops and lists, large changes": (
            "def who_hears_whom(average, T):\n"
            "    heard = [[0] * T for _ in range(T)]\n"
            "    for t in range(T):\n"
            "        for i in range(T):\n"
            "            x = torch.randn(3, T, 1)\n"
            "            y = x.clone()\n"
            "            y[:, i] = 100.0\n"
            "            if not torch.allclose(average(x)[:, t], average(y)[:, t]):\n"
            "                heard[t][i] = 1\n"
            "    return heard, not any(heard[t][i] for t in range(T)\n"
            "                          for i in range(t + 1, T))"
        ),
        "one batch": (
            "def who_hears_whom(average, T):\n"
            "    x = torch.arange(T * 4.0).reshape(1, T, 4) / 5\n"
            "    changes = x + torch.eye(T)[:, :, None]  # row i changes input i\n"
            "    moved = ~torch.isclose(average(changes), average(x), atol=1e-5)\n"
            "    heard = moved.any(-1).T\n"
            "    return heard.int(), heard.triu(1).sum() == 0"
        ),
    },
    "02.6": {
        "targets shifted": nats(("(probs.log(), ids)", "(probs[:-1].log(), ids[1:])")),
        "the present subtracted": nats(("one_hot + 1 ", "one_hot - one_hot + 1 ")),
        "a loop": (
            "def nats_per_character(text):\n"
            "    v, nats = len(set(text)), []\n"
            "    for t, c in enumerate(text):\n"
            "        nats.append(-math.log((text[:t].count(c) + 1) / (t + v)))\n"
            "    return torch.tensor(nats).mean()"
        ),
    },
    "02.7": {
        "triangle of ones": attend(TRUE_PAST),
        "two-dimensional mask": attend(
            (TRUE_PAST[0], "torch.ones(x.shape[1], x.shape[1]).triu(1).bool()")
        ),
        "infinities added": attend(
            (FILL, "scores + torch.full(scores.shape[1:], -math.inf).triu(1)")
        ),
        "rows divided after all": (
            "def attend(x, q, k):\n"
            "    w = (q @ k.transpose(1, 2)).double().exp().tril()\n"
            "    return (w / w.sum(-1, keepdim=True)) @ x.double()"
        ),
        "torch's own": (
            "def attend(x, q, k):\n"
            "    return F.scaled_dot_product_attention(\n"
            "        q, k, x, is_causal=True, scale=1.0)"
        ),
    },
}
