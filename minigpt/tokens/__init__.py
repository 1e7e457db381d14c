"""Lesson 13: tokens that are pieces of words, and losses that can be compared."""
