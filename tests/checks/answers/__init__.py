"""Answers to the exercises, right and wrong: a module for each notebook.

EXERCISES: read out of the notebook. names(): what the notebook has defined when its
exercises begin, small and untrained; the checks and the usual imports are added.
WRONG: exercise -> part of the message -> the answer that gets it, or a list of them.
RIGHT: exercise -> how it is written -> the answer.
An answer is code that stands in for the cell; names it leaves out stay the cell's.
"""
