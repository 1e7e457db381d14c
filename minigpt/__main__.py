"""python -m minigpt train | sample | export | page | speedrun | doctor | clinic."""

import io
import sys

from minigpt.tools.command_line import main

if __name__ == "__main__":
    for end in (sys.stdin, sys.stdout, sys.stderr):
        # A file or a pipe is UTF-8, like every corpus.
        if isinstance(end, io.TextIOWrapper) and not end.isatty():
            end.reconfigure(encoding="utf-8")
    sys.exit(main())
