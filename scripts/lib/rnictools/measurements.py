# SPDX-License-Identifier: Apache-2.0
"""Published measurements of real NICs (results/measurements/*.csv) as points for charts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Callable

from . import figures
from .chart import POINTS, Series

#: Neutral colours: no measured point can be taken for a simulated curve.
_COLORS = {"ib": "#222222", "rocev2": "#7A7A7A"}


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One published figure."""

    id: str
    label: str
    source: str
    device: str
    link: str
    protocol: str
    pcie: str
    mtu: str
    setup: str
    op: str
    msg_bytes: int
    parameters: str
    metric: str
    value: float
    latency_definition: str
    confidence: str


def load(path: Path) -> list[Measurement]:
    """Reads one file of measurements."""
    rows = figures.read_csv(path)
    return [Measurement(**{**row, "msg_bytes": int(row["msg_bytes"]),  # type: ignore[arg-type]
                           "value": float(row["value"])}) for row in rows]


def latency_us(all_: list[Measurement], op: str) -> list[Series]:
    """Measured latencies of an operation in µs, a series for each set-up."""
    return _series([m for m in all_ if m.op == op and m.metric.startswith("lat_")],
                   lambda m: m.value)


def throughput_gbps(all_: list[Measurement], op: str) -> list[Series]:
    """Measured payload throughput in Gb/s; message rates count where no bandwidth is stated."""
    stated = {(m.label, m.msg_bytes) for m in all_ if m.op == op and m.metric == "bw_gbps"}
    chosen = [m for m in all_ if m.op == op and (
        m.metric == "bw_gbps"
        or (m.metric == "msgrate_mops" and (m.label, m.msg_bytes) not in stated))]
    return _series(chosen, lambda m: m.value if m.metric == "bw_gbps"
                   else m.value * m.msg_bytes * 8 / 1e3)


def message_rate_mops(all_: list[Measurement], op: str) -> list[Series]:
    """Measured message rates in M/s; derived from bandwidth where no rate is stated."""
    stated = {(m.label, m.msg_bytes) for m in all_ if m.op == op and m.metric == "msgrate_mops"}
    chosen = [m for m in all_ if m.op == op and (
        m.metric == "msgrate_mops"
        or (m.metric == "bw_gbps" and (m.label, m.msg_bytes) not in stated))]
    return _series(chosen, lambda m: m.value if m.metric == "msgrate_mops"
                   else m.value * 1e3 / 8 / m.msg_bytes)


def _series(chosen: list[Measurement], figure: Callable[[Measurement], float]) -> list[Series]:
    groups: dict[str, list[Measurement]] = {}
    for measurement in chosen:
        groups.setdefault(measurement.label, []).append(measurement)
    result = []
    for index, (label, group) in enumerate(groups.items()):
        group.sort(key=lambda m: m.msg_bytes)
        result.append(Series(f"real: {label}", [float(m.msg_bytes) for m in group],
                             [figure(m) for m in group],
                             POINTS, _COLORS.get(group[0].protocol), 3 + index,
                             [f"{m.id}: {m.device}, {m.setup}" for m in group]))
    return result
