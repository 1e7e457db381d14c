"""Lesson 14: the bridge from the course's models to GPT-2's files, and back."""
