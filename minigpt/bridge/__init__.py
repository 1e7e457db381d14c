"""Lesson 14: the bridge: a model of the course as GPT-2's files, and back."""
