"""The drawings of 14: lines between rows that hold the same, and what is counted."""

import torch

from minigpt.bridge.folder import MATRICES, names, tensors_of
from minigpt.bridge.gpt2 import GPT2Config
from minigpt.course.drawings import bridge
from minigpt.gpt import GPT, GPTConfig

GPT_2 = GPT2Config(30, 8, n_layer=3, n_head=2, n_embd=16)


def test_the_tables_are_read_aloud_row_by_row():
    gpt = GPT(GPTConfig(9, 8, n_layer=2, n_head=2, n_embd=8))
    theirs = tensors_of(GPT_2.build())
    alt = bridge.tables(gpt.state_dict(), theirs, names(gpt.config), MATRICES).alt
    assert "body.0.attention.qkv.weight is h.0.attn.c_attn.weight, transposed;" in alt
    assert "body.2.bias is ln_f.bias." in alt  # not a block, for all its number
    alone = "lm_head.weight, lm_head.bias on the left, h.0.attn.c_attn.bias on the"
    assert alone in alt and "body.1." not in alt and "h.1." not in alt


def test_every_parameter_is_counted_once():
    with torch.device("meta"):
        models = [GPT_2.build(), GPT(GPTConfig(9, 8, n_layer=2, n_head=2, n_embd=8))]
    for model in models:
        n = sum(p.numel() for p in model.parameters())
        assert sum(bridge.counts(model).values()) == n
    tied, own = map(bridge.counts, models)
    assert tied["output layer"] == 0 and own["output layer"] == 9 * 8 + 9
    assert own["tokens"] == 9 * 8 and own["norms"] == 2 * 8 * 5
