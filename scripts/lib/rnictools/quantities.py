# SPDX-License-Identifier: Apache-2.0
"""Quantities with units as the configuration writes them, and back to readable text."""

from __future__ import annotations

import re
from typing import Optional

_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
          "KB": 10**3, "MB": 10**6, "GB": 10**9}
_TIME_NS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_RATE_GBPS = {"bps": 1e-9, "Kbps": 1e-6, "Mbps": 1e-3, "Gbps": 1.0, "Tbps": 1e3}
_CLOCK_GHZ = {"Hz": 1e-9, "kHz": 1e-6, "MHz": 1e-3, "GHz": 1.0}
#: Unit of the plain number that a suffix is turned into, by suffix.
_KINDS = [("B", _BYTES), ("ns", _TIME_NS), ("Gb/s", _RATE_GBPS), ("GHz", _CLOCK_GHZ)]
_PATTERN = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*$")


def parse(text: str) -> Optional[tuple[float, str]]:
    """Number and unit of a text such as "4KiB" (4096, "B"), "1.5us" (1500, "ns"), "100Gbps"
    (100, "Gb/s") or "16" (16, ""); None when it is not a quantity."""
    match = _PATTERN.match(text)
    if not match:
        return None
    number, suffix = float(match.group(1)), match.group(2)
    if not suffix:
        return number, ""
    for unit, factors in _KINDS:
        if suffix in factors:
            return number * factors[suffix], unit
    return None


def parse_number(text: str) -> Optional[float]:
    """The number of a quantity in its base unit (bytes, ns, Gb/s, GHz), or None."""
    quantity = parse(text)
    return None if quantity is None else quantity[0]


def format_bytes(count: float) -> str:
    """2 -> "2 B", 65536 -> "64 KiB"."""
    for suffix, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.4g} {suffix}"
    return f"{count:.4g} B"


def format_ns(nanoseconds: float) -> str:
    """A time in the unit that reads best: "830 ns", "12.4 µs"."""
    if abs(nanoseconds) < 1000:
        return f"{nanoseconds:.3g} ns"
    if abs(nanoseconds) < 1e6:
        return f"{nanoseconds / 1e3:.3g} µs"
    return f"{nanoseconds / 1e6:.3g} ms"


def format_seconds(seconds: float) -> str:
    """A wall-clock duration: "8 s", "3 min 05 s", "2 h 10 min"."""
    whole = int(round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def plain(value: float) -> str:
    """A number without a needless fraction: 4096.0 -> "4096"."""
    return str(int(value)) if value == int(value) else repr(value)
