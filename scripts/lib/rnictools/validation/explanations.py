# SPDX-License-Identifier: Apache-2.0
"""Why a point is far off: what the model leaves out, or what the source does not tell."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import score

_Test = Callable[[score.Scored], bool]


def _about(ids: str, extra: _Test = lambda s: True) -> _Test:
    return lambda s: re.match(ids, s.point.id) is not None and extra(s)


#: The first that fits is the explanation.
_REASONS: list[tuple[_Test, str]] = [
    (lambda s: s.point.metric in ("lat_p99_us", "lat_min_us"),
     "noise of the operating system, which the model leaves out, makes the tail"),
    (_about(r"CX3QDR-(07|08|09|11)", lambda s: s.point.metric != "lat_median_us"),
     "measured rates of one queue pair jump between two levels from size to size (core clock)"),
]
UNEXPLAINED = "not explained"


def of(scored: score.Scored) -> str:
    """The explanation of a point."""
    return next((reason for test, reason in _REASONS if test(scored)), UNEXPLAINED)
