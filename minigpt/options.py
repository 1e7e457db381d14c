"""Options of the command line: an ill-formed one is told what is wanted."""

import argparse

from minigpt.arguments import check_seed


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors say where the options are explained."""

    def error(self, message):
        super().error(f"{message} ({self.prog} --help explains the options)")


def whole_number(text):
    """int(text), for argparse."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number, such as 100"
        ) from None


def real_number(text):
    """float(text), for argparse."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number, such as 0.5"
        ) from None


def seed_number(text):
    """A seed of random numbers, for argparse."""
    value = whole_number(text)
    try:
        check_seed(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return value


def file_name(text):
    """A path that is not empty, for argparse."""
    if not text:
        raise argparse.ArgumentTypeError("give the name of a file, such as model.pt")
    return text
