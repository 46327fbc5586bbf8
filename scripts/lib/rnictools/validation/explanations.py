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
    (_about(r"CX3QDR-11[1-8]"),
     "the receiver's program posts a RECV for each SEND, which seems to take it 195 ns; here less"),
    (_about(r"CX3QDR"),
     "measured rates of one queue pair jump between 5.2 and 7.5 M/s from size to size: the core's "
     "clock, not the NIC"),
    (_about(r"CX3ROCE40"), "a ConnectX-3 Pro, simulated as a ConnectX-3"),
    (_about(r"CX5EDRGPU|ROCE100GPU|ROCE100A100"),
     "buffers were in GPU memory, of which nothing but that is told; here behind a PCIe switch that "
     "NIC and GPU share"),
    (_about(r"CX6LOOP"), "half of what two queue pairs move is taken for the rate of one"),
    (_about(r"CX7GPU"),
     "a GPU's threads share queue pairs and doorbells in ways that the program here does not"),
    (_about(r"CX7QP-011"), "at most 0.1 by the source, which has 0.31 for 4,096 queue pairs elsewhere; here 0.29 for both"),
    (_about(r"CX7QP"), "contexts in both roles: a GPU's and a host's program differ as much as this"),
    (_about(r"VAL"), "windows that are posted and waited for: threads here keep more in step"),
    (_about(r"RBENCH-003"),
     "2,500 queue pairs: here half of a context is read for each miss, there more, it seems"),
    (_about(r"RBENCH-(05[5-8]|082)"),
     "at the knee of ConnectX-3's contexts: that cluster has lost a third with 88 queue pairs, here nothing is "
     "lost, as nothing is in FARM14 with 128"),
    (_about(r"RBENCH-(04[39]|132)"),
     "windows of 32 and more of 14 threads: WQEs that fell out cost a quarter of the rate there, little here"),
    (_about(r"RBENCH", lambda s: "workers" in s.point.other_params
            or "window 8" in s.point.other_params),
     "with short windows real machines' requests collide and wait; one pair stands for all here"),
    (_about(r"FASST16-013"), "50 queue pairs of one thread, where the core's own caches begin to miss"),
    (_about(r"FARM14-0(5[6-9]|6\d|7\d)", lambda s: "1 threads" not in s.point.other_params),
     "locks of shared queue pairs: one time for which a lock is held stands for all crowds"),
    (_about(r"FARM14-00"), "cluster of 20 machines that share queue pairs under locks, simulated as one pair"),
    (_about(r"RBENCH|FASST16|FARM14-0[4-7]|HERD14-01[45]"),
     "contexts that do not fit: a knee between FARM14's and RBENCH's, fetches of 256 B each, one at a time"),
    (_about(r"DG16-0(5[4-6]|6[0-3])"),
     "WQEs that fell out: as many lines are read again as there, but they cost more there"),
    (_about(r"DCT"),
     "14 threads with 32 READs each: more WQEs than are held here, which that program does not seem to feel"),
    (_about(r"DG16-059"),
     "by a plot, half of what larger windows reach; here WQEs that fell out cost the same with all of them"),
    (_about(r"DG16-0(5|6)"), "READ and WRITE windows, read off a plot; short windows flow too well here"),
    (_about(r"DG16|HERD14"), "limits of one pipeline are shared differently between stages"),
    (_about(r"ERPC-00[3-9]"), "two ports of 40GbE and an all-to-all program, simulated as one pair"),
    (_about(r"ERPC-03"), "software go-back-N whose timers and windows are eRPC's own"),
    (_about(r"ERPC"), "depth 1 goodput, read off a plot"),
    (_about(r"LITE17-01[4-7]"),
     "pages that miss at both ends cost a WRITE 0.6 us there; here 0.4, as READs of FARM14, which they are fitted to"),
    (_about(r"FARM14|LITE17"), "translation and key caches: size and miss cost of one device, read off plots"),
    (_about(r"AVATAR|XSTORE|HUSKY"), "a lock that threads contend for, in one figure"),
    (_about(r"SOCC20"), "a READ behind a WRITE, which begins when that is acknowledged: 1.8 us here, 1.4 there"),
    (_about(r"PCIE"), "one row of a host that a single preset does not bend for"),
    (_about(r"REGBULK"), "registration of 8 KiB on a host whose cost of a call is not known"),
    (_about(r"TULIPS|SOCC20|RDATOM"), "host or program of the source differ from the preset's"),
]
UNEXPLAINED = "not explained"


def of(scored: score.Scored) -> str:
    """The explanation of a point."""
    return next((reason for test, reason in _REASONS if test(scored)), UNEXPLAINED)
