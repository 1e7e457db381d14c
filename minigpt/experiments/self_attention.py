"""Experiments of notebook 03."""

EXPERIMENTS = {}
