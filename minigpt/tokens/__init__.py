"""Lesson 13: tokens that are pieces of words, and losses you can compare."""
