"""Drawings that stand on slides alone, as large as a lecture hall needs them."""

import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from minigpt.attention import attention
from minigpt.course import record
from minigpt.course.drawings.canvas import FILL
from minigpt.course.drawings.spine import MIDDLE, cells
from minigpt.course.plots import COLORS, STYLES, Picture, Style
from minigpt.course.toys import last_capital
from minigpt.generation import probabilities
from minigpt.optimizer import learning_rate_at
from minigpt.training import preset

LETTERS: Style = {"fontsize": 17}


def relu() -> Picture:
    """The bend between the two layers of a feed-forward layer."""
    fig = Picture(figsize=(9, 4.2), layout="constrained")
    ax = fig.subplots()
    ax.plot([-3, 0, 3], [0, 0, 3], color=COLORS[0], lw=4)
    ax.axhline(0, color="0.6", lw=1)
    ax.axvline(0, color="0.6", lw=1)
    ax.text(-2.9, 0.25, "negative: becomes 0", **LETTERS)
    ax.text(0.35, 2.5, "positive: stays", ha="left", **LETTERS)
    ax.set_xlabel("what comes in, x", **LETTERS)
    ax.set_ylabel("max(0, x)", **LETTERS)
    ax.tick_params(labelsize=15)
    ax.set(xlim=(-3, 3), ylim=(-0.4, 3.1))
    fig.alt = (
        "The ReLU: a line that is flat at 0 left of 0 and from there rises as fast as "
        "its input. Negative numbers become 0, positive ones stay."
    )
    return fig


def schedule() -> Picture:
    """The learning rate over the steps of preset `cpu`: warm-up, then half a cosine."""
    _, recipe = preset("cpu", vocab_size=65)
    steps = range(recipe.steps)
    fig = Picture(figsize=(11, 4.2), layout="constrained")
    ax = fig.subplots()
    rates = [learning_rate_at(step, recipe) for step in steps]
    ax.plot(steps, rates, color=COLORS[0], lw=4)
    ax.axvspan(0, recipe.warmup_steps, color=COLORS[1], alpha=0.18, lw=0)
    top = recipe.learning_rate
    near = (recipe.warmup_steps * 1.6, 0.12 * top)
    ax.text(*near, f"warm-up: {recipe.warmup_steps} steps", color=COLORS[1], **LETTERS)
    ax.text(0.52 * recipe.steps, 0.6 * top, "half a cosine", color=COLORS[0], **LETTERS)
    ax.set_xlabel("step", **LETTERS)
    ax.set_ylabel("learning rate", **LETTERS)
    ax.tick_params(labelsize=15)
    ax.set(xlim=(0, recipe.steps), ylim=(0, 1.08 * top))
    fig.alt = (
        f"The learning rate rises in a straight line to {top} over "
        f"{recipe.warmup_steps} steps, then falls along half a cosine to 0 at step "
        f"{recipe.steps}."
    )
    return fig


def roles() -> Picture:
    """Who asks, by what a letter is found, and what it hands over, in a line of 03."""
    line, asker, found = "strong hat", 5, 4
    fig = Picture(figsize=(12, 2.9), layout="constrained")
    ax = fig.subplots()
    ax.set(xlim=(-3.6, len(line) + 6.4), ylim=(3.3, -1.6))
    ax.set_axis_off()
    cells(ax, 0, 0.9, line, FILL["tensor"], fontsize=18)
    cells(ax, asker, 0.9, line[asker], "#F5A623", fontsize=18)
    cells(ax, found, 0.9, line[found], "#BFE3C8", fontsize=18)
    look: dict = {"arrowstyle": "-|>", "lw": 2.5, "mutation_scale": 22}
    over = look | {"color": COLORS[1], "connectionstyle": "arc3,rad=0.9"}
    ax.annotate("", (found, 0.35), (asker, 0.35), arrowprops=over)
    under = look | {"color": COLORS[2], "connectionstyle": "arc3,rad=0.9"}
    ax.annotate("", (asker, 1.45), (found, 1.45), arrowprops=under)
    style: Style = {"fontsize": 15, "va": "center"}
    ax.text(asker + 0.6, -1.1, "query of g: a vowel before it, and late?", **style)
    ax.text(asker + 0.6, 2.7, "value of n: the letter n", **style)
    ax.text(
        found - 0.6, -1.1, "key of n: a vowel stands before me", ha="right", **style
    )
    fig.alt = (
        "The line 'strong hat'. The g asks with its query: where does a vowel stand "
        "before a letter, and late? The key of the n answers, and its value, the "
        "letter n, goes to the g."
    )
    return fig


def saturation() -> Picture:
    """The weights of 03's five scores times 1, 4 and 8, and how much the largest one
    reacts: its slopes, added up without their signs."""
    row = torch.tensor([0.3, -1.1, 1.0, -0.6, 1.5])
    fig = Picture(figsize=(12, 3.9), layout="constrained")
    axes = fig.subplots(1, 3, sharey=True)
    told = []
    for ax, factor in zip(axes, (1, 4, 8)):
        z = (row * factor).requires_grad_()
        weights = F.softmax(z, dim=-1)
        (slopes,) = torch.autograd.grad(weights[-1], z)
        total = slopes.abs().sum().item()
        shown = weights.tolist()
        ax.bar(range(5), shown, color=COLORS[0])
        for x, weight in enumerate(shown):
            ax.text(x, weight + 0.05, f"{weight:.2f}", fontsize=15, **MIDDLE)
        ax.set_title(f"times {factor}", fontsize=18)
        ax.set_xlabel(f"slopes {total:.2f}", fontsize=18, color=COLORS[1])
        ax.set(ylim=(0, 1.12), xticks=[], yticks=[])
        ax.grid(False)
        numbers = ", ".join(f"{weight:.2f}" for weight in shown)
        told.append(f"times {factor}: {numbers}; slopes {total:.2f}")
    fig.alt = f"Three panels of five weights, {'. '.join(told)}."
    return fig


def grid(ax: Axes, table: list[list[str]], lit: set[tuple[int, int]]) -> None:
    """A table of words as squares; lit: (row, column) of those that stand out."""
    ax.set(xlim=(-0.1, len(table[0]) + 0.1), ylim=(len(table) + 0.1, -0.1))
    ax.set_aspect("equal")
    ax.set_axis_off()
    for y, row in enumerate(table):
        for x, word in enumerate(row):
            fill = "#F5A623" if (y, x) in lit else FILL["tensor"] if word else "white"
            ax.add_patch(Rectangle((x, y), 1, 1, fc=fill, ec="0.35", lw=1.4))
            ax.text(x + 0.5, y + 0.5, word, fontsize=17, **MIDDLE)


def masks() -> Picture:
    """Who may look at whom: with a mask, without one, and from one text at another."""
    fig = Picture(figsize=(12, 3.9), layout="constrained")
    line, other = "roma", "rome"
    panels = (
        ("ours: the past", line, line, lambda y, x: x <= y),
        ("encoder: all", line, line, lambda y, x: True),
        ("cross-attention: another text", line, other, lambda y, x: True),
    )
    for ax, (title, asks, asked, may) in zip(fig.subplots(1, 3), panels):
        rows = [[" " if may(y, x) else "" for x in range(len(asked))] for y in range(4)]
        grid(ax, rows, set())
        for y, letter in enumerate(asks):
            ax.text(-0.4, y + 0.5, letter, fontsize=18, family="monospace", **MIDDLE)
        for x, letter in enumerate(asked):
            ax.text(x + 0.5, -0.4, letter, fontsize=18, family="monospace", **MIDDLE)
        ax.set(xlim=(-0.8, len(asked) + 0.1), ylim=(4.1, -0.8))
        ax.set_title(title, fontsize=18)
    fig.alt = (
        "Three grids, a row for who looks and a column for who is looked at. Ours: the "
        "lower triangle is filled. Encoder: all cells are. Cross-attention: all cells, "
        "and the columns are the letters of another text."
    )
    return fig


def gradients() -> Picture:
    """The gradients of 06's three parameters over some steps: which should move how?"""
    fig = Picture(figsize=(12, 3.4), layout="constrained")
    series = (
        ("always 4", [4.0] * 16),
        ("always 0.04", [0.04] * 16),
        ("4 and −4 in turn", [4.0, -4.0] * 8),
    )
    for ax, (title, values) in zip(fig.subplots(1, 3, sharey=True), series):
        ax.bar(range(16), values, color=COLORS[0])
        ax.axhline(0, color="0.4", lw=1)
        ax.set_title(title, fontsize=18)
        ax.set_xlabel("step", fontsize=17)
        ax.set(ylim=(-5, 5), xticks=[], yticks=[-4, 0, 4])
        ax.tick_params(labelsize=16)
    fig.axes[0].set_ylabel("gradient", fontsize=17)
    fig.alt = (
        "The gradients of three parameters over 16 steps, as bars: always 4, always "
        "0.04, and 4 and −4 in turn."
    )
    return fig


def knobs() -> Picture:
    """What temperature and top-k make of 06's four logits."""
    logits = torch.tensor([[2.0, 1.0, 0.5, -1.0]])
    panels: tuple[tuple[str, dict], ...] = (
        ("as they are", {}),
        ("temperature 0.5", {"temperature": 0.5}),
        ("temperature 2", {"temperature": 2.0}),
        ("top-k 2", {"top_k": 2}),
    )
    fig = Picture(figsize=(12, 4), layout="constrained")
    told = []
    for ax, (title, knob) in zip(fig.subplots(1, 4, sharey=True), panels):
        shown = probabilities(logits, **knob)[0].tolist()
        ax.bar(range(4), shown, color=COLORS[0])
        for x, p in enumerate(shown):
            ax.text(x, p + 0.05, f"{p:.3f}", fontsize=15, **MIDDLE)
        ax.set_title(title, fontsize=18)
        ax.set(ylim=(0, 1), xlim=(-0.6, 3.6), yticks=[])
        ax.set_xticks(range(4), ["2", "1", "0.5", "−1"], fontsize=16)
        ax.grid(False)
        told.append(f"{title}: {', '.join(f'{p:.3f}' for p in shown)}")
    fig.supxlabel("logit", fontsize=17)
    fig.alt = f"Probabilities of four characters as bars. {'; '.join(told)}."
    return fig


def dropped() -> Picture:
    """What dropout of a quarter makes of eight ones if it takes a quarter of them, and
    their mean; and that evaluation leaves them."""
    p, count = 0.25, 8
    kept = torch.ones(count)
    kept[[1, 6]] = 0
    training = (kept / (1 - p)).tolist()
    rows = [("training", training), ("evaluation", [1.0] * count)]
    fig = Picture(figsize=(12, 2.9), layout="constrained")
    ax = fig.subplots()
    grid(
        ax,
        [
            [f"{v:.2f}" if v not in (0, 1) else f"{v:.0f}" for v in row]
            for _, row in rows
        ],
        {(0, x) for x, v in enumerate(training) if not v},
    )
    for y, (name, row) in enumerate(rows):
        ax.text(-0.2, y + 0.5, name, fontsize=18, ha="right", va="center")
        mean = sum(row) / count
        ax.text(count + 0.2, y + 0.5, f"mean {mean:.0f}", fontsize=18, va="center")
    ax.set(xlim=(-1.9, count + 1.5))
    fig.alt = (
        f"Eight ones behind dropout with p = {p}. In training: "
        f"{', '.join(f'{v:.2f}' for v in training)}, mean 1. In evaluation all stay 1."
    )
    return fig


def variances() -> Picture:
    """How scores of random queries and keys spread: the more numbers, the wider; and
    what the root makes of the widest."""
    dice = torch.Generator().manual_seed(1337)
    panels = [(f"{size} numbers", size, 1.0) for size in (4, 16, 64)]
    panels.append(("64, divided by 8", 64, 8.0))
    fig = Picture(figsize=(12, 4), layout="constrained")
    for n, (ax, (title, size, root)) in enumerate(zip(fig.subplots(1, 4), panels)):
        keys, queries = torch.randn(2, 100, 8, size, generator=dice)
        scores = (queries @ keys.transpose(-2, -1) / root).flatten()
        color = COLORS[1] if n == 3 else COLORS[0]
        ax.hist(scores.tolist(), bins=torch.arange(-30, 31).tolist(), color=color)
        ax.set_title(title, fontsize=18)
        ax.set_xlabel(f"variance about {size / root**2:.0f}", fontsize=18, color=color)
        ax.set(xlim=(-30, 30), xticks=[-20, 0, 20], yticks=[])
        ax.tick_params(labelsize=16)
        ax.grid(False)
    fig.alt = (
        "Four histograms of scores. With 4, 16 and 64 numbers in a query they get "
        "wider and wider, with a variance of about 4, 16 and 64; divided by the root, "
        "8, the "
        "last ones are as narrow as single numbers, variance 1."
    )
    return fig


def shuffled() -> Picture:
    """What a head without a mask makes of a line and of the same letters in another
    order: the same vectors, in that order."""
    dice = torch.Generator().manual_seed(1337)
    line, order = "strong", [2, 4, 0, 5, 3, 1]
    q, k, v = torch.randn(3, len(line), 4, generator=dice)
    fig = Picture(figsize=(12, 3.6), layout="constrained")
    axes = fig.subplots(1, 2, gridspec_kw={"wspace": 0.12})
    for ax, places in zip(axes, (list(range(len(line))), order)):
        out, _ = attention(q[places], k[places], v[places], causal=False)
        ax.imshow(out.T.numpy(), cmap="cividis", vmin=-1.5, vmax=1.5, aspect="auto")
        letters = [line[place] for place in places]
        ax.set_xticks(range(len(line)), letters, fontsize=24)
        ax.xaxis.tick_top()
        ax.set(yticks=[])
        ax.set_xlabel("a column: what comes out at this letter", fontsize=17)
        ax.tick_params(length=0)
        ax.grid(False)
    fig.alt = (
        "Outputs of attention without a mask, a column of four shades for each letter: "
        "for 'strong', and for the same letters shuffled. Each letter has the same "
        "column in both pictures."
    )
    return fig


def toy() -> Picture:
    """The beginning of 03's toy text; capitals, and the letters behind each ?, stand
    out."""
    text, wide = last_capital(60_000)[:70], 35
    fig = Picture(figsize=(12.3, 1.9), layout="constrained")
    ax = fig.subplots()
    spelled(ax, text, wide)
    fig.alt = (
        f"The first letters of the toy text: {text}. Capitals are orange, and so green "
        "is each letter behind a question mark: the last capital, written small."
    )
    return fig


def line(text: str) -> Picture:
    """A short line of the toy, letter by letter."""
    fig = Picture(figsize=(12, 1.6), layout="constrained")
    spelled(fig.subplots(), text, len(text))
    fig.alt = f"The line {text}, letter by letter; its capitals stand out."
    return fig


def spelled(ax: Axes, text: str, wide: int, asked: bool = False) -> None:
    """A toy text in squares, so many in a row: capitals orange, answers green. asked:
    only where a capital stood before."""
    ax.set_axis_off()
    ax.set(xlim=(-0.1, wide + 0.1), ylim=(1.4 * (len(text) / wide) - 0.2, -0.2))
    for n, letter in enumerate(text):
        answer = text[n - 1 : n] == "?"
        known = not asked or any(c.isupper() for c in text[:n])
        fill = "#F5A623" if letter.isupper() else FILL["tensor"]
        fill = "#8FCFA3" if answer and known else fill
        y, x = divmod(n, wide)
        ax.add_patch(Rectangle((x, 1.4 * y), 1, 1, fc=fill, ec="0.35", lw=1.2))
        weight = "bold" if fill != FILL["tensor"] else "normal"
        ax.text(x + 0.5, 1.4 * y + 0.52, letter, fontsize=18, weight=weight, **MIDDLE)


def asked(share: str, cases: str) -> Picture:
    """A window of new toy text, where a head is asked; share: in how many of these
    cases it is right."""
    text = last_capital(60_000)[50_000:50_025]
    fig = Picture(figsize=(12.3, 4), layout="constrained")
    top, below = fig.subplots(2, 1, height_ratios=[1, 1.9])
    spelled(top, text, len(text), asked=True)
    below.set_axis_off()
    below.set(xlim=(0, 1), ylim=(0, 1))
    large: Style = {"fontsize": 96, "weight": "bold", "color": COLORS[0]}
    below.text(0.5, 0.62, share, **MIDDLE, **large)
    below.text(0.5, 0.06, f"of {cases} such letters are guessed", fontsize=20, **MIDDLE)
    fig.alt = (
        f"A window of new text: {text}. The letters behind a question mark are green: "
        f"the head guesses {share} of {cases} such letters."
    )
    return fig


def wirings() -> Picture:
    """Two layers without plus signs, and with them."""
    fig = Picture(figsize=(12.2, 2.5), layout="constrained")
    axes = fig.subplots(1, 2)
    line: Style = {"arrowstyle": "-|>", "mutation_scale": 18, "lw": 2.2}
    line |= {"shrinkA": 0, "shrinkB": 0, "color": "black"}
    for ax, adds in zip(axes, (False, True)):
        ax.set(xlim=(0, 10), ylim=(3.1, 0))
        ax.set_axis_off()
        ax.set_title("add" if adds else "replace", fontsize=20, weight="bold")
        high = 0.75 if adds else 1.9
        for x, name in ((2.7, "attention"), (6.9, "feed-forward")):
            corner = (x - 1.4, high - 0.5)
            look: Style = {"fc": FILL["layer"], "ec": "0.25", "lw": 1.5}
            style = "round,pad=0,rounding_size=0.2"
            ax.add_patch(FancyBboxPatch(corner, 2.8, 1, boxstyle=style, **look))
            ax.text(x, high, name, fontsize=16, **MIDDLE)
        ax.text(0.3, 2.4 if adds else 1.9, "x", fontsize=22, **MIDDLE)
        if not adds:
            for tail, head in ((0.6, 1.3), (4.1, 5.5), (8.3, 9.6)):
                ax.add_patch(FancyArrowPatch((tail, 1.9), (head, 1.9), **line))
            continue
        ax.plot([0.6, 9.4], [2.4, 2.4], color=COLORS[4], lw=9, ls="-", zorder=0.5)
        ax.add_patch(FancyArrowPatch((0.6, 2.4), (9.6, 2.4), **line))
        for x in (2.7, 6.9):
            ax.plot([x - 1.8, x - 1.8, x - 1.4], [2.4, 0.75, 0.75], "k-", lw=2.2)
            ax.plot([x + 1.4, x + 1.7], [0.75, 0.75], "k-", lw=2.2)
            ax.add_patch(FancyArrowPatch((x + 1.7, 0.75), (x + 1.7, 2.1), **line))
            circle = {"boxstyle": "circle,pad=0.1", "fc": "white", "ec": "0.25"}
            ax.text(x + 1.7, 2.4, "+", fontsize=17, bbox=circle, **MIDDLE)
    fig.alt = (
        "Two wirings of attention and feed-forward. Replace: x goes through one and "
        "then through the other. Add: x runs straight on, and what each of them makes "
        "of it on a side road is added to it."
    )
    return fig


def rates(*names: str) -> Picture:
    """The loss of these stacks of 05 after 200 steps against the learning rate."""
    runs = record.load("05-norm")
    fig = Picture(figsize=(11.5, 4.2), layout="constrained")
    ax = fig.subplots()
    known = ("pre-norm", "post-norm", "no norm")
    told = []
    for name in names:
        points = {
            float(key.split("rate ")[1].split(",")[0]): one.mean()
            for key, one in runs.items()
            if key.startswith(name)
        }
        n = known.index(name)
        look: Style = {"color": COLORS[n], "ls": STYLES[n], "marker": "os^"[n]}
        ax.plot(list(points), list(points.values()), lw=3.5, ms=10, **look)
        x, y = list(points.items())[-1]
        label = f"{name} {y:.2f}"
        ax.text(x * 1.04, y, label, color=COLORS[n], va="center", **LETTERS)
        all_told = ", ".join(f"{rate:g}: {loss:.2f}" for rate, loss in points.items())
        told.append(f"{name}: {all_told}")
    ax.set_xscale("log")
    ax.set_xticks([0.001, 0.003, 0.006, 0.01, 0.02])
    ax.set_xticklabels(["0.001", "0.003", "0.006", "0.01", "0.02"])
    ax.minorticks_off()
    ax.set(xlim=(0.0009, 0.034))
    ax.set_xlabel("learning rate", **LETTERS)
    ax.set_ylabel("loss after 200 steps", **LETTERS)
    ax.tick_params(labelsize=15)
    fig.alt = f"Validation loss against the learning rate. {'; '.join(told)}."
    return fig


def normed() -> Picture:
    """Four numbers before a LayerNorm and behind it, as in 05."""
    x = torch.tensor([1.0, 2.0, 3.0, 6.0])
    fig = Picture(figsize=(12, 4), layout="constrained")
    told = []
    panels = (("before: mean 3, variance 3.5", x), ("behind: mean 0, variance 1", None))
    for n, (ax, (title, values)) in enumerate(zip(fig.subplots(1, 2), panels)):
        shown = (F.layer_norm(x, (4,)) if values is None else values).tolist()
        ax.bar(range(4), shown, color=COLORS[n])
        ax.axhline(0, color="0.4", lw=1)
        for place, value in enumerate(shown):
            word = f"{value:.2f}" if n else f"{value:.0f}"
            y = value + (0.4 if value >= 0 else -0.5)
            ax.text(place, y, word.replace("-", "−"), fontsize=18, **MIDDLE)
        ax.set_title(title, fontsize=18)
        ax.set(ylim=(-2.2, 7), xticks=[], yticks=[])
        ax.grid(False)
        told.append(f"{title}: {', '.join(f'{value:.2f}' for value in shown)}")
    fig.alt = f"Four numbers as bars. {'; '.join(told)}."
    return fig


def whole() -> Picture:
    """The whole GPT in large letters, with the lesson that built each part."""
    fig = Picture(figsize=(12.3, 4.4))
    fig.set_layout_engine("none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 12.3), ylim=(4.4, 0))
    ax.set_axis_off()
    frame: Style = {"fc": "#F4F4F4", "ec": "0.4", "ls": "--", "zorder": 0}
    style = "round,pad=0,rounding_size=0.15"
    ax.add_patch(FancyBboxPatch((2.6, 0.15), 6.1, 3.55, boxstyle=style, **frame))
    ax.text(5.65, 4.05, "a block; here stand two of them", fontsize=17, **MIDDLE)
    ax.plot([2.3, 9], [3.1, 3.1], color=COLORS[4], lw=9, ls="-", zorder=0.5)
    look: Style = {"arrowstyle": "-|>", "mutation_scale": 18, "lw": 2, "shrinkA": 0}
    look |= {"shrinkB": 0, "color": "black"}

    def arrow(tail: tuple[float, float], head: tuple[float, float]) -> None:
        ax.add_patch(FancyArrowPatch(tail, head, **look))

    def part(
        x: float, y: float, wide: float, name: str, lesson: str, kind: str = "layer"
    ) -> None:
        corner = (x - wide / 2, y - 0.38)
        shape = style if kind == "layer" else "square,pad=0"
        box: Style = {"boxstyle": shape, "fc": FILL[kind], "ec": "0.25", "lw": 1.5}
        ax.add_patch(FancyBboxPatch(corner, wide, 0.76, **box))
        ax.text(x, y, name, fontsize=16, **MIDDLE)
        small: Style = {"fontsize": 14, "color": COLORS[0], "weight": "bold"}
        ax.text(x, y - 0.58, lesson, **MIDDLE, **small)

    part(0.4, 3.1, 0.6, "ids", "01", "tensor")
    part(1.65, 3.1, 1.5, "embeddings", "03")
    for norm, x, wide, name, lesson in (
        (3.2, 4.5, 1.25, "attention", "03, 04"),
        (6.15, 7.65, 1.7, "feed-forward", "05"),
    ):
        part(norm, 1.15, 0.8, "norm", "05")
        part(x, 1.15, wide, name, lesson)
        arrow((norm, 3.1), (norm, 1.53))
        arrow((norm + 0.4, 1.15), (x - wide / 2, 1.15))
        arrow((x, 1.53), (x, 2.82))
        circle = {"boxstyle": "circle,pad=0.12", "fc": "white", "ec": "0.25"}
        ax.text(x, 3.1, "+", fontsize=18, bbox=circle, **MIDDLE)
    for x, wide, name, lesson in (
        (9.4, 0.8, "norm", "05"),
        (10.5, 1.05, "lm_head", "03"),
    ):
        part(x, 3.1, wide, name, lesson)
    part(11.75, 3.1, 0.85, "logits", "01", "tensor")
    for tail, head in ((0.7, 0.9), (2.4, 4.22), (4.78, 7.37), (7.93, 9), (9.8, 9.97)):
        arrow((tail, 3.1), (head, 3.1))
    arrow((11.03, 3.1), (11.32, 3.1))
    fig.alt = (
        "The whole GPT in a row: ids, embeddings, then blocks, each with a norm and "
        "attention and a norm and the feed-forward layer on side roads that are added "
        "to the straight line, then a last norm, lm_head, logits. Above each part "
        "stands its lesson."
    )
    return fig
