"""The command line, and what it needs to read, keep and compare runs."""
