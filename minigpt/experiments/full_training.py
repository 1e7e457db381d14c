"""Experiments of notebook 06."""

EXPERIMENTS = {}
