"""Solutions of notebook 12."""

import numpy as np

from minigpt.backward.tensor import Tensor, total

# 12.1
def affine_backward(g, x, gain):
    dx = g * gain
    dgain = (g * x).reshape(-1, len(gain)).sum(axis=0)
    dshift = g.reshape(-1, len(gain)).sum(axis=0)
    return dx, dgain, dshift
# ✗ gain and shift served every row, so what the rows say is added up: these gradients
# still have the shape of x.
# (g * x).reshape(-1, len(gain)).sum(axis=0) → g * x
# g.reshape(-1, len(gain)).sum(axis=0) → g
# ✗ The gradients of gain and shift are means over the rows: a value that was used many
# times gets the sum.
# sum → mean
# ✗ You multiply two sums; multiply in each row first, then add up.
# (g * x).reshape(-1, len(gain)).sum(axis=0) → g.reshape(-1, len(gain)).sum(
# axis=0) * x.reshape(-1, len(gain)).sum(axis=0)
# ✗ The shift served every row: add up what the rows say, as for gain.
# g.reshape(-1, len(gain)).sum(axis=0) → g
# ✗ The slope of the sum is 1, but what comes back is g times that.
# g.reshape(-1, len(gain)).sum(axis=0) → np.ones_like(g).reshape(-1, len(gain)).sum(axis=0)

# 12.2
def share_backward(g, x):
    s = x.sum(axis=-1, keepdims=True)
    return g / s - (g * x).sum(axis=-1, keepdims=True) / s**2
# ✗ This is the gradient of the numerator alone. Each number of x is in the sum, too.
#  - (g * x).sum(axis=-1, keepdims=True) / s**2 →
# ✗ In the second use each share hears the g of all shares of its row: add them up.
# (g * x).sum(axis=-1, keepdims=True) → (g * x)
# ✗ That is the rule of softmax, with y in front of everything; here only a division is asked.
# return g / s → y = x / s
#     return y * g
# (g * x).sum(axis=-1, keepdims=True) / s**2 → y * (g * y).sum(axis=-1, keepdims=True)
# ✗ In the second use g belongs to the share, and x, too: the sum of g * x, not x times
# the sum of g (the Jacobian from the wrong side).
# (g * x).sum(axis=-1, keepdims=True) → x * g.sum(axis=-1, keepdims=True)

# 12.3
def table_gradient(g, ids, V):
    table = np.zeros((V, g.shape[-1]))
    np.add.at(table, ids, g)
    return table
# ✗ A token that occurs twice keeps only one of its gradients: with a list of rows, `=`
# and `+=` write each row once, and the last one stays.
# np.add.at(table, ids, g) → table[ids] += g
# ✗ A row that was fetched several times gets the sum, and this is the mean.
# return table → return table / np.maximum(np.bincount(ids.ravel(), minlength=V), 1)[:, None]
# ✗ Only the first text of the batch is read: ids has B of them.
# (table, ids, g) → (table, ids[0], g[0])
# ✗ A character that occurs twice in a text keeps the last of its gradients only: `+=` with
# a list of rows writes each of them once.
# np.add.at(table, ids, g) → for b in range(len(ids)): table[ids[b]] += g[b]
# ✗ Your reshape mixes positions and channels: (B, T, C) becomes (-1, C).
# (table, ids, g) → (table, ids, g.reshape(g.shape[-1], -1).T.reshape(g.shape))

# 12.4
def relu(x):
    y = np.maximum(x.data, 0)
    return Tensor(y, (x,), lambda g: (g * (y > 0),))
# ✗ The bug is still there: the gradient passes where nothing came through.
# g * (y > 0) → g
# ? Which numbers of x could move by a hair, and y would not notice?
# ✗ The gradient itself is cut at 0. It may have any sign; what counts is y.
# y > 0 → g > 0
# ✗ The gradient is multiplied by y; the slope of y is 1, wherever y is positive.
# (y > 0) → y
# ✗ np.sign is -1 for negative numbers; the slope there is 0.
# (y > 0) → np.sign(x.data)

# 12.5
def distance(student, teacher):
    fixed = Tensor(teacher.data)
    off = student + fixed * -1.0
    return total(off * off)
# ✗ The bug is still there: the student is cut off, and learns nothing.
# Tensor(teacher.data) → Tensor(student.data)
# student + fixed → fixed + teacher
# ? Tensor(x.data) has the numbers of x and no parents. Who should be it?
# ✗ Nobody is cut off now: the teacher gets a gradient, too, and would learn from the
# student.
# Tensor(teacher.data) → teacher
# ✗ The difference is cut off as a whole, so nobody learns.
# off * off → Tensor(off.data) * Tensor(off.data)
# ✗ One of the two factors is cut off: the gradient is half of what it should be.
# off * off → off * Tensor(off.data)
# ✗ One of the two factors is cut off, and the teacher is not.
# Tensor(teacher.data) → teacher
# off * off → off * Tensor(off.data)
