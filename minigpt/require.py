"""One way to refuse what cannot work: a sentence that says what to give instead."""


def require(condition: object, message: str) -> None:
    """Raise ValueError(message) unless the condition holds."""
    if not condition:
        raise ValueError(message)
