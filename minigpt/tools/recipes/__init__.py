"""Recipes for the speed run, one per file: copy one, change it, and race it.

A recipe has two functions. build(train_ids, vocab_size) returns an untrained model:
model(idx, targets=None) -> (logits, loss), with a block_size. train(model, train_ids,
seed) trains it in place. minigpt/course/SPEED.md has a table of how low they get.
"""
