# SPDX-License-Identifier: Apache-2.0
"""Why a point is far off: what the model leaves out, or what the source does not tell."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import score

_Test = Callable[[score.Scored], bool]


def _about(ids: str, extra: _Test = lambda s: True) -> _Test:
    return lambda s: re.match(ids, s.point.id) is not None and extra(s)


_REASONS: list[tuple[_Test, str]] = [
    (lambda s: s.point.metric in ("lat_p99_us", "lat_min_us"),
     "noise of the operating system, which the model leaves out, makes the tail"),
    (_about(r"CX3QDR-09[0-9]"),
     "a queue pair's responder leaves a gap of about 100 ns after each READ, which is not modelled"),
    (_about(r"CX3QDR"),
     "measured rates of one queue pair jump between 5.2 and 7.5 M/s from size to size: the core's "
     "clock, not the NIC"),
    (_about(r"CX3ROCE40"), "a ConnectX-3 Pro in a newer server, simulated as a ConnectX-3 in an old one"),
    (_about(r"CX5EDRGPU|ROCE100GPU|ROCE100A100"),
     "buffers were in GPU memory behind a PCIe switch; here they are in the host's"),
    (_about(r"CX6LOOP"), "a NIC that talks to itself carries both ways over one PCIe link; here two do"),
    (_about(r"CX7GPU"),
     "a GPU's threads share queue pairs and doorbells in ways that the program here does not"),
    (_about(r"CX7QP"), "what a context costs in both roles is a step here, a slope there"),
    (_about(r"DRTMH"), "its clients were the limit: VAL finds 123 M/s on one such NIC"),
    (_about(r"VAL", lambda s: "1 clients" in s.point.other_params),
     "the client's program was the limit at 57 to 66 M/s; the one here posts and polls faster"),
    (_about(r"VAL"), "atomics and small windows of that program cost its cores more than here"),
    (_about(r"RBENCH", lambda s: "workers" in s.point.other_params
            or "window 8" in s.point.other_params),
     "with short windows real machines' requests collide and wait; here the symmetric pair keeps step"),
    (_about(r"RBENCH|FASST16|FARM14-0[4-7]|HERD14-01[45]"),
     "contexts that do not fit: the real decline with queue pairs is less steep than LRU's or begins "
     "earlier"),
    (_about(r"DG16-0(5|6)"), "READ and WRITE windows, read off a plot; short windows flow too well here"),
    (_about(r"DG16|HERD14"), "limits of one pipeline are shared differently between stages"),
    (_about(r"ERPC-00[3-9]"), "two ports of 40GbE and an all-to-all program, simulated as one pair"),
    (_about(r"ERPC-03"), "software go-back-N whose timers and windows are eRPC's own"),
    (_about(r"ERPC"), "depth 1 goodput, read off a plot"),
    (_about(r"FARM14|LITE17"), "translation and key caches: size and miss cost of one device, read off plots"),
    (_about(r"AVATAR|XSTORE|HUSKY"), "a lock that threads contend for, in one figure"),
    (_about(r"PCIE"), "one row of a host that a single preset does not bend for"),
    (_about(r"REGBULK"), "registration of 8 KiB on a host whose cost of a call is not known"),
    (_about(r"TULIPS|SOCC20|RDATOM"), "host or program of the source differ from the preset's"),
]
UNEXPLAINED = "not explained"


def of(scored: score.Scored) -> str:
    """The explanation of a point."""
    return next((reason for test, reason in _REASONS if test(scored)), UNEXPLAINED)
