"""Lesson 06: Ctrl+C, or the ■ of a notebook, as a wish and not as an accident."""

import signal
import threading


class Interrupts:
    """Notes the first Ctrl+C in `asked`, so that no step is cut in two; a second
    one stops at once. Outside the main thread Python gives no such say, and a
    process that was told to ignore Ctrl+C goes on ignoring it."""

    def __enter__(self):
        self.asked = False
        main = threading.current_thread() is threading.main_thread()
        self.mine = main and signal.getsignal(signal.SIGINT) != signal.SIG_IGN
        if self.mine:
            before = signal.signal(signal.SIGINT, self._note)  # None: not Python's
            self.before = signal.default_int_handler if before is None else before
        return self

    def _note(self, number, frame):
        self.asked = True
        signal.signal(signal.SIGINT, self.before)

    def __exit__(self, *error):
        if self.mine:
            signal.signal(signal.SIGINT, self.before)
