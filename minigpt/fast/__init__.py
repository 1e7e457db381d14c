"""Lesson 09: writing without computing anything twice: cache, reader, writing,
speculative, quantization, in this order."""
