"""Experiments of notebook 04."""

EXPERIMENTS = {}
