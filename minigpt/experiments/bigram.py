"""Experiments of notebook 01."""

EXPERIMENTS = {}
