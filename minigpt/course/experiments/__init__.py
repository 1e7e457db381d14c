"""Experiments too long for a notebook, a module a lesson; notebooks show the record.

Each module has a table EXPERIMENTS: {experiment: {variant: function}}, where
function(seed) trains or measures and returns {quantity: number}.
"""
