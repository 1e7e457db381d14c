"""The publishing tool: slides, book, work sheets and Colab notebooks of the course.

It reads the notebooks beside the package and writes into `build/`. Nothing else in
minigpt imports it. README.md in this folder is its guide.
"""
