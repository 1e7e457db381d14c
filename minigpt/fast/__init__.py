"""Lesson 09: write without computing anything twice. Read cache, reader, writing,
speculative and quantization, in this order."""
