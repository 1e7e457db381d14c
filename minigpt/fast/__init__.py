"""Lesson 09: writing without computing anything twice: cache, text_cache,
reading, writing, speculative, quantization, in this order."""
