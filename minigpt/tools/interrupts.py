"""Ctrl+C as a wish and not as an accident, and so SIGTERM, which ends programs."""

import signal
from types import FrameType

LEFT = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """While this lasts, the first Ctrl+C or SIGTERM is noted in `asked`, so that no
    step is cut in two; a second one of its kind stops at once. A process that was
    told to ignore one of them goes on ignoring it.
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
