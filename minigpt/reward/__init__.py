"""Lesson 15: training with a reward, where its price can be measured: checker, step,
measuring, in this order."""
