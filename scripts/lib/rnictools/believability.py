# SPDX-License-Identifier: Apache-2.0
"""How far to trust what scripts/compare shows of each wire: the validation of the preset it uses."""

from __future__ import annotations

import csv
from pathlib import Path

from .chart import PROTOCOL_NAMES
from .findings import Finding

#: Why nothing measured stands behind a wire.
_UNMEASURED = {
    "rocev1": "no table of RoCEv1 on this device is published; its NIC is RoCEv2's, its headers are "
              "the standard's",
    "iwarp": "no latency or bandwidth table of a hardware iWARP adapter is public; the cost of its TCP "
             "engine follows vendors' prose",
}


def load(path: Path, preset: str) -> dict[str, dict[str, tuple[int, float]]]:
    """Points and mean error of a preset by wire and kind, as scripts/validate wrote them."""
    found: dict[str, dict[str, tuple[int, float]]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["preset"] == preset:
                    found.setdefault(row["protocol"], {})[row["kind"]] = (
                        int(row["points"]), float(row["mean_absolute_error"]))
    except OSError:
        return {}
    return found


def sentence(protocol: str, errors: dict[str, dict[str, tuple[int, float]]]) -> str:
    """What to expect of one wire's lines."""
    name = PROTOCOL_NAMES[protocol]
    mine = errors.get(protocol)
    if mine:
        return f"{name}: " + ", ".join(f"{kind} within {error:.0%} on average ({count} points)"
                                       for kind, (count, error) in sorted(mine.items()))
    reason = _UNMEASURED.get(protocol, "no published figure of this preset is bound to it")
    return f"{name}: not validated ({reason})"


def finding(path: Path, preset: str, protocols: list[str]) -> Finding:
    """The sentences of all wires."""
    errors = load(path, preset)
    return Finding("How believable each line is",
                   f"Preset {preset} against published measurements it was not fitted to. "
                   + "; ".join(sentence(p, errors) for p in protocols) + ".")
