"""python -m minigpt train | sample | export | page | speedrun | bench | doctor."""

import sys

from minigpt.tools.command_line import main

if __name__ == "__main__":
    for end in (sys.stdin, sys.stdout, sys.stderr):
        if not end.isatty():  # a file or a pipe is UTF-8, as every corpus
            end.reconfigure(encoding="utf-8")
    sys.exit(main())
