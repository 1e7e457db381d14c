"""Lesson 10: many machines as one: workers, and where they meet."""
