"""Solutions of notebook 14."""

import torch

# 14.1
def as_linear(tensors, shapes):
    ours = {}
    for name, tensor in tensors.items():
        if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            tensor = tensor.T
        assert tensor.shape == shapes[name], name
        ours[name] = tensor
    return ours
# ✗ The bug is still there: a square matrix has the right shape as it is and turned.
# name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) → tensor.shape != shapes[name]
# ? Which matrix of the file has the same shape when it is turned?
# ✗ All square matrices are turned now, but a table of embeddings can be square, too.
# name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) → tensor.shape != shapes[name] or len(set(shapes[name])) == 1 < len(shapes[name])

# 14.2
def fold(W, b, s):
    more = torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution
    return s + more[:, 0]
# ✗ The old shift is lost: what you add does the work of b, and s has its own.
# return s + more[:, 0] → return more[:, 0]
# ✗ The bias is taken away in place of added.
# return s + more[:, 0] → return s - more[:, 0]
# ✗ Wᵀ b has the right shape, but W times it is W Wᵀ b, and not b.
# torch.linalg.lstsq(W, b[:, None], driver="gelsd").solution → (W.T @ b)[:, None]

# 14.3
def cropped(p, T):
    short = dict(p)
    for name, tensor in p.items():
        if name == "wpe.weight":
            short[name] = tensor[:T]
        if name.endswith(".attn.bias"):
            short[name] = tensor[:, :, :T, :T]
    return short
# ✗ The bug is still there: the first character of a text finds the vector of a late
# position.
# tensor[:T] → tensor[-T:]
# ? Which row of the table does the first character of a text take?
# ✗ The masks are as large as before: rows and columns of the last two dimensions.
# tensor[:, :, :T, :T] → tensor
# ✗ Only one side of the masks is cut.
# tensor[:, :, :T, :T] → tensor[:, :, :T]
# ✗ You cut the channels: positions are the rows.
# tensor[:T] → tensor[:, :T]

# 14.4
def ours(do_sample, temperature, top_k, top_p):
    if not do_sample:
        return {"temperature": 0}
    return {
        "temperature": temperature,
        "top_k": top_k or None,
        "top_p": top_p,
    }
# ✗ With do_sample=False nothing is drawn, whatever the other three say: the likeliest
# token is taken.
# if not do_sample → if False
# ✗ With do_sample=True it is the likeliest token, and with False it is drawn: the wrong
# way round.
# if not do_sample → if do_sample
# ✗ top_k is lost: all tokens can be drawn.
# "top_k": top_k or None → "top_k": None
# ✗ top_p is lost: unlikely tokens can be drawn.
# "top_p": top_p → "top_p": None
# ✗ The temperature is lost: 1 leaves the logits as they are.
# "temperature": temperature → "temperature": 1.0
# ✗ The temperature divides the logits in both libraries; you multiply by it.
# "temperature": temperature → "temperature": 1 / temperature
