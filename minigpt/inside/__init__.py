"""Lesson 11: look inside a trained GPT with scores, cuts and exchanges."""
