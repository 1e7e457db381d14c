"""`python -m minigpt.course.experiments`: measure.py explains it."""

from minigpt.course.experiments.measure import main

if __name__ == "__main__":
    main()
