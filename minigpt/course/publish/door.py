"""How the book's first page says a sum of minutes."""


def hours(total: int) -> str:
    """Minutes as a reader says them: "4 hours", "4½ hours"."""
    halves = -(-total // 30)
    half = "½" if halves % 2 else ""
    return f"{halves // 2}{half} hours"
