"""Ctrl+C and SIGTERM, which both ask a program to stop, at a moment that suits it."""

import signal
from types import FrameType

LEFT = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Inside this block, the first Ctrl+C or SIGTERM only sets `asked`, so no step is
    cut in two. A second one of the same kind stops at once. If a process was told to
    ignore one of them, it still does.
    """

    def __enter__(self) -> "Interrupts":
        self.asked, self.before = False, {}
        for number in LEFT:
            if signal.getsignal(number) != signal.SIG_IGN:
                before = signal.signal(number, self._note)  # None: not Python's
                self.before[number] = LEFT[number] if before is None else before
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, self.before[number])

    def __exit__(self, *error: object) -> None:
        for number, before in self.before.items():
            signal.signal(number, before)
