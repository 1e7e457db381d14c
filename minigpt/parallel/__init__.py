"""Lesson 10: many machines as one: meeting, workers, shards, in this order."""
