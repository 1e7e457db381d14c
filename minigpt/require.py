"""One way to refuse bad input: with a sentence that says what would work."""


def require(condition: object, message: str) -> None:
    """Raise ValueError(message) unless the condition holds."""
    if not condition:
        raise ValueError(message)
