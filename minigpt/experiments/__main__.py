"""Measure experiments over several seeds and write the record.

python -m minigpt.experiments              lists them
python -m minigpt.experiments ladder       measures one (or several, by name)
python -m minigpt.experiments --missing    measures what the record does not have
python -m minigpt.experiments --all        measures everything anew
"""

import argparse
import sys

from minigpt.experiments.measure import experiments, measure, missing

SEEDS = [1337, 1338, 1339]


def main(argv=None):
    """The command line; see above."""
    parser = argparse.ArgumentParser(
        prog="python -m minigpt.experiments", description="Measure for the record."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="an experiment")
    parser.add_argument(
        "--missing", action="store_true", help="only what the record does not have"
    )
    parser.add_argument("--all", action="store_true", help="all of them, anew")
    parser.add_argument("--variant", action="append", help="only this one (repeatable)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument(
        "--jobs", type=int, default=1, help="trainings at once; seconds need 1"
    )
    options = parser.parse_args(argv)
    known = experiments()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no experiment {unknown[0]!r}; there are: {', '.join(known)}")
    names = options.names or list(known) * (options.missing or options.all)
    if not names:
        print("\n".join(known))
    for name in names:
        pairs = [(v, s) for v in known[name] for s in options.seeds]
        if options.missing:
            pairs = missing(name, known[name], options.seeds)
        if options.variant:
            pairs = [pair for pair in pairs if pair[0] in options.variant]
        if pairs:
            measure(name, pairs, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
