"""What a notebook builds is what the package holds: the same syntax trees."""

import ast
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = {  # lesson: {module: the names that its notebook builds}
    "01_bigram": {
        "data": "CharTokenizer train_val_split get_batch",
        "bigram": "BigramLanguageModel next_token_loss",
    },
    "evidence/01_bigram_evidence": {"evaluation": "evaluating estimate_loss evaluate"},
    "02_averaging": {
        "averaging": "average_loop average_matmul average_softmax average_attention "
        "hide_future"
    },
    "03_self_attention": {
        "attention": "attention_weights attention Head",
        "language_model": "LanguageModel",
    },
    "evidence/03_self_attention_evidence": {"attention": "SelfAttention"},
    "04_multi_head": {
        "multi_head": "head_width MultiHeadAttention CausalSelfAttention"
    },
    "05_residual_blocks": {"block": "FeedForward Block"},
    "06_full_training": {
        "gpt": "GPT init_weights",
        "optimizer": "make_optimizer learning_rate_at",
        "generation": "generate probabilities keep_top_k",
    },
    "evidence/06_full_training_evidence": {"training": "Run train"},
    "08_modern_gpt": {"modern/muon": "orthogonalize"},
    "evidence/08_modern_gpt_evidence": {
        "modern/parts": "ShortConvolution",
        "modern/experts": "MixtureOfExperts",
    },
    "08b_counts": {
        "modern/counting": "fold_batch",
        "modern/counts": "window_counts",
        "modern/ngrams": "NgramEmbedding",
    },
    "09_fast_generation": {
        "fast/cache": "KVCache past_mask attend gpt_with_cache",
        "fast/speculative": "check speculate",
    },
    "evidence/09_fast_generation_evidence": {"fast/quantization": "to_int8"},
    "12_backward": {
        "backward/tensor": "Tensor order backward receive unbroadcast pair add "
        "multiply matmul power relu reshape transpose pick slopes",
        "backward/layers": "cross_entropy standardize layer_norm attention",
        "backward/steps": "ours",
    },
    "evidence/12_backward_evidence": {"backward/layers": "checkpoint"},
    "13_tokens": {
        "tokens/byte_pairs": "merge BytePairTokenizer learn",
        "tokens/judging": "judge",
    },
    "evidence/13_tokens_evidence": {"tokens/judging": "next_bytes"},
}
LESSON_OF = {
    name: module
    for modules in BUILT.values()
    for module, names in modules.items()
    for name in names.split()
} | {"refuse_knobs": "generation", "keep_top_p": "generation", "require": "require"}


def definitions(source):
    """{name: its syntax tree without docstrings}; of several the last one."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for part in ast.walk(node):
                if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
                    if ast.get_docstring(part) is not None:
                        part.body = part.body[1:] or [ast.Pass()]
            found[node.name] = ast.unparse(node)
    return found


def of_notebook(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    cells = [c.source for c in notebook.cells if c.cell_type == "code"]
    return definitions("\n".join(cells))


def of_module(name):
    return definitions((ROOT / "minigpt" / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lesson", BUILT)
def test_what_a_notebook_builds_is_the_package(lesson):
    built = of_notebook(lesson)
    for module, names in BUILT[lesson].items():
        held = of_module(module)
        for name in names.split():
            assert built.get(name) == held[name], f"{lesson} and {module}.py: {name}"


def test_whole_is_the_sum_of_the_lessons():
    whole = of_module("whole")
    del whole["main"]
    for name, source in whole.items():
        assert source == of_module(LESSON_OF[name])[name]
    assert {"CausalSelfAttention", "Block", "LanguageModel", "GPT", "generate"} <= set(
        whole
    )
