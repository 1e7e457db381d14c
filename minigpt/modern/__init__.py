"""Lesson 08: what came after GPT-2, and counts beside a GPT."""
