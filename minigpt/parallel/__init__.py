"""Lesson 10: many machines train as one: the workers, and where they meet."""
