"""The command line and what it needs: reading, keeping, and comparing runs."""
