"""The course in one table: who adds a lesson, a module or a class adds it here.

From it the tests take the order in which modules may import each other, which names of
the package a notebook builds (their sources are compared), and which notebooks have
exercises. What can be found is found and stands nowhere: notebooks, their checks (the
module in `minigpt/course/checks` with the notebook's name) and the experiments (every
module in `minigpt/course/experiments` with a table EXPERIMENTS).
"""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"


class Lesson(NamedTuple):
    """modules: what the lesson adds to the package, files first to last, or a folder.

    built, by_evidence: {file of the package: names that the lesson's notebook, or its
    evidence, builds with the same source}.
    """

    modules: str
    built: dict = {}
    by_evidence: dict = {}


LESSONS = {
    "01_bigram": Lesson(
        "data bigram evaluation",
        {
            "data": "train_val_split",
            "bigram": "BigramLanguageModel next_token_loss",
        },
        {
            "data": "CharTokenizer get_batch",
            "evaluation": "evaluating estimate_loss evaluate",
        },
    ),
    "02_averaging": Lesson(
        "averaging",
        {
            "averaging": "average_loop average_matmul average_softmax "
            "average_attention hide_future"
        },
    ),
    "03_self_attention": Lesson(
        "attention language_model",
        {
            "attention": "attention_weights attention Head",
            "language_model": "LanguageModel",
        },
        {"attention": "SelfAttention"},
    ),
    "04_multi_head": Lesson(
        "multi_head",
        {"multi_head": "head_width split_heads MultiHeadAttention CausalSelfAttention"},
    ),
    "05_residual_blocks": Lesson("block", {"block": "FeedForward Block"}),
    "06_full_training": Lesson(
        "gpt device optimizer training generation checkpoint whole",
        {
            "gpt": "GPT",
            "generation": "generate",
        },
        {
            "gpt": "init_weights",
            "optimizer": "make_optimizer learning_rate_at",
            "training": "Run take_step train",
            "generation": "probabilities keep_top_k",
        },
    ),
    "07_how_low": Lesson("playwright"),
    "08_modern_gpt": Lesson(
        "modern",
        by_evidence={
            "modern/muon": "orthogonalize",
            "modern/parts": "ShortConvolution",
            "modern/experts": "MixtureOfExperts",
        },
    ),
    "09_fast_generation": Lesson(
        "fast",
        {
            "fast/cache": "causal_mask KVCache attend gpt_with_cache",
            "fast/speculative": "check speculate",
        },
    ),
    "10_many_machines": Lesson("parallel"),
    "11_looking_inside": Lesson("inside"),
    "12_backward": Lesson(
        "backward",
        {
            "backward/tensor": "Tensor order backward receive unbroadcast pair add "
            "multiply matmul relu pick",
            "backward/layers": "cross_entropy attention",
            "backward/steps": "ours",
        },
        {
            "backward/tensor": "reshape transpose",
            "backward/layers": "standardize layer_norm checkpoint",
        },
    ),
    "13_tokens": Lesson(
        "tokens",
        {
            "tokens/byte_pairs": "merge join learn",
            "tokens/judging": "judge",
        },
        {"tokens/judging": "next_bytes"},
    ),
    "14_bridge": Lesson(
        "bridge",
        {
            "bridge/gpt2": "GPT2 zeros",
            "bridge/folder": "names",
            "bridge/by_name": "gpt2",
        },
        {"bridge/tokenizer": "split"},
    ),
    "15_reward": Lesson(
        "reward",
        {"reward/step": "log_probs advantages reward_loss reward_step"},
    ),
}
MAIN_LINE = ["00_start_here", *(name for name in LESSONS if name < "07")]
BELOW = ["require", "files", "interfaces"]  # of all lessons
OF_LESSONS = [name for lesson in LESSONS.values() for name in lesson.modules.split()]
FOLDERS = OF_LESSONS.index("playwright")  # with lesson 07 folders begin
SPINE = OF_LESSONS[:FOLDERS]
LATER = OF_LESSONS[FOLDERS:]
# A module may import what stands before it.
ORDER = [*BELOW, *SPINE, "stored", *LATER, "clinic", "tools", "course"]


def built():
    """{notebook, as "evidence/01_bigram_evidence": {file of the package: names}}."""
    found = {}
    for name, lesson in LESSONS.items():
        found[name] = lesson.built
        found[f"evidence/{name}_evidence"] = lesson.by_evidence
    return {name: names for name, names in found.items() if names}


def exercises():
    """{"01": "bigram"}: lessons with exercises, and the module of their checks."""
    names = [path.stem for path in (NOTEBOOKS / "exercises").glob("*_exercises.ipynb")]
    return {
        name.partition("_")[0]: name.partition("_")[2].removesuffix("_exercises")
        for name in sorted(names)
    }
