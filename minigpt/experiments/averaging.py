"""Experiments of notebook 02."""

EXPERIMENTS = {}
