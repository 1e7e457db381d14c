"""Experiments of notebook 07."""

EXPERIMENTS = {}
