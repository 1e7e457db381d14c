"""Experiments of notebook 05."""

EXPERIMENTS = {}
