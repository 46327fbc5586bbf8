# SPDX-License-Identifier: Apache-2.0
"""Progress on stderr: a bar with the remaining time on a terminal, plain lines otherwise."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

from . import quantities


class Progress:
    """Shows how many of `total` pieces of work are done. `already` were done before the start."""

    def __init__(self, total: int, already: int = 0, label: str = "", stream: TextIO = sys.stderr,
                 quiet: bool = False) -> None:
        self._total = total
        self._already = already
        self._label = label
        self._stream = stream
        self._quiet = quiet
        self._terminal = stream.isatty()
        self._started = time.monotonic()
        self._drawn = 0.0
        self._failed = 0
        self._done = already

    def update(self, done: int, failed: int, last: str = "") -> None:
        """`done` counts everything that is over, `failed` the part of it that went wrong."""
        changed = done != self._done or failed != self._failed
        self._done, self._failed = done, failed
        now = time.monotonic()
        if self._quiet or not (changed or self._terminal):
            return
        # A line a second is enough for a log; a terminal is redrawn a few times a second.
        if done < self._total and now - self._drawn < (0.2 if self._terminal else 5.0):
            return
        self._drawn = now
        self._draw(now, last)

    def _remaining(self, now: float) -> str:
        worked = self._done - self._already
        if self._done >= self._total:
            return f"took {quantities.format_seconds(now - self._started)}"
        if worked <= 0:
            return "ETA --"
        left = (now - self._started) / worked * (self._total - self._done)
        return f"ETA {quantities.format_seconds(left)}"

    def _draw(self, now: float, last: str) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        head = f"{self._label + ': ' if self._label else ''}{self._done}/{self._total}{failed}"
        tail = self._remaining(now)
        if not self._terminal:
            print(f"{head}, {tail}", file=self._stream, flush=True)
            return
        columns = shutil.get_terminal_size((80, 24)).columns
        filled = round(24 * self._done / max(1, self._total))
        line = f"{head} [{'#' * filled}{'.' * (24 - filled)}] {tail}  {last}"
        print("\r\x1b[K" + line[:columns - 1], end="", file=self._stream, flush=True)

    def close(self) -> None:
        """Leaves the cursor on a fresh line."""
        if self._terminal and not self._quiet and self._drawn:
            print(file=self._stream, flush=True)
