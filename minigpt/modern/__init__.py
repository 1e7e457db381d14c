"""Lesson 08: what came after GPT-2."""
