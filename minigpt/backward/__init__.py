"""Lesson 12: the backward pass by hand, and lesson 06's GPT built on it."""
