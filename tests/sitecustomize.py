"""Python imports this at each start where PYTHONPATH names this folder."""

import os

if os.environ.get("LAST_BITS"):
    import last_bits  # noqa: F401
