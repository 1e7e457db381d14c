"""Lesson 07: a playwright whose every choice is known, and so the floor of the loss."""
