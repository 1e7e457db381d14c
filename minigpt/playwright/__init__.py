"""Lesson 07: a playwright whose choices we know, so we know how low the loss can
get."""
