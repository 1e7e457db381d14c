"""Lesson 11: looking inside a trained GPT: scores, cuts and exchanges."""
