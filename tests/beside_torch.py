"""What the page shows of a small model, beside what torch computes."""

import torch
from pages import PLACE, WINDOW, do
from small import TOKENIZER
from torch.testing import assert_close

from minigpt.inside.looking import hooked

IDS = torch.tensor(TOKENIZER.encode(WINDOW))


def seen_by_torch(model, ids):
    """{module: its inputs and its output} of one forward pass over ids (T,)."""
    seen = {}

    def keep(module, inputs, output):
        seen[module] = inputs, output

    with hooked([(m, keep) for m in model.modules()]), torch.no_grad():
        seen["logits"] = model(ids[None])[0][0]
    return seen


def queries_keys_values(attention, inputs):
    """Each (n_head, T, head_size), from what went into a layer's attention."""
    if hasattr(attention, "queries_keys_values"):  # lesson 08's; groups share keys
        *qkv, _ = attention.queries_keys_values(*inputs)
        group = attention.n_head // attention.n_kv_head
        return [qkv[0][0], *(x[0].repeat_interleave(group, dim=0) for x in qkv[1:])]
    (x,) = inputs
    heads = attention.qkv(x).view(x.shape[1], 3, attention.n_head, -1)
    return heads.permute(1, 2, 0, 3)


def shown(browser, part, step):
    """What the table of a part says at a step: {column: [numbers]}, its rows' names."""
    names, labels, rows = do(
        browser,
        f"choose(active, {PLACE}); watch('{part}', {step}); await showInside();"
        "const told = (e) => e.textContent, [head] = $('sheet').tHead.rows;"
        "const rows = [...$('sheet').tBodies[0].rows];"
        "return [[...head.cells].slice(1).map(told),"
        " rows.map((tr) => tr.firstChild.firstChild.textContent),"
        " rows.map((tr) => [...tr.cells].slice(1).map(told))];",
    )
    columns = {
        name: [read(cell) for cell in column]
        for name, column in zip(names, zip(*rows), strict=True)
    }
    return columns, labels


def read(text):
    """The number that a reader sees in some text."""
    return float(text.replace("−∞", "-inf").replace("−", "-") or "nan")


def is_shown(numbers, right, digits=2):
    """Whether what is shown is `right`, rounded."""
    numbers = torch.tensor(numbers, dtype=torch.float32)
    right = torch.as_tensor(right, dtype=torch.float32)
    close = 0.5 * 10**-digits + 2e-4
    assert_close(numbers, right.detach(), atol=close, rtol=0, equal_nan=True)
