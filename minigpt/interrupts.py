"""Lesson 06: Ctrl+C, or the ■ of a notebook, as a wish and not as an accident."""

import signal
import threading

LEFT = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """Notes the first Ctrl+C in `asked`, so that no step is cut in two, and so the
    first SIGTERM, with which clusters and `kill` end a program; a second one of its
    kind stops at once. Outside the main thread Python gives no such say, and a
    process that was told to ignore one of them goes on ignoring it.
    """

    def __enter__(self):
        self.asked, self.before = False, {}
        if threading.current_thread() is threading.main_thread():
            for number in LEFT:
                if signal.getsignal(number) != signal.SIG_IGN:
                    before = signal.signal(number, self._note)  # None: not Python's
                    self.before[number] = LEFT[number] if before is None else before
        return self

    def _note(self, number, frame):
        self.asked = True
        signal.signal(number, self.before[number])

    def __exit__(self, *error):
        for number, before in self.before.items():
            signal.signal(number, before)
