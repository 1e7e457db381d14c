"""Lesson 12: the backward pass by hand, and the GPT of lesson 06 on it."""
