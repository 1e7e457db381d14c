"""Links to a heading, as Jupyter writes them, lead to the same heading in the book."""


def as_jupyter(heading: str) -> str:
    """The anchor of a heading: "Turning and cutting" has `#Turning-and-cutting`."""
    return heading.replace(" ", "-")
