# SPDX-License-Identifier: Apache-2.0
"""result.json as columns of a table, and what each column means."""

from __future__ import annotations

import csv
import os
import uuid
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Union

Value = Union[str, int, float]

LATENCIES = ["min", "mean", "p50", "p90", "p99", "p99.9", "max"]

#: Column pattern, unit, meaning. NAME stands for a unit, stage, cache, ... of the result file.
COLUMNS: list[tuple[str, str, str]] = [
    ("point", "", "directory of the point under points/"),
    ("status", "", "done, or failed: then the figures are empty and `error` says why"),
    ("error", "", "first line of what the program said when it failed"),
    ("throughput_gbps", "Gb/s", "payload delivered in the measured window, all flows together"),
    ("message_rate_mops", "M/s", "messages completed per second, in millions"),
    *[(f"latency.{q}_ns", "ns", f"latency of a message: {q}") for q in LATENCIES],
    ("stage.NAME.mean", "ns", "mean time in the stage; the stages sum to the mean latency"),
    ("stage.NAME.p50", "ns", "median time in the stage"),
    ("stage.NAME.p99", "ns", "99th percentile of the time in the stage"),
    ("bottleneck.unit", "", "the unit that limits the run"),
    ("bottleneck.utilization", "0..1", "how busy that unit is"),
    ("bottleneck.why", "", "the reason in words"),
    ("unit.NAME.utilization", "0..1", "share of time the unit is busy"),
    ("cache.NAME.hit_rate", "0..1", "(hits + joined) / look-ups; empty when the cache was not used"),
    ("cache.NAME.joined", "", "look-ups that waited for a fetch under way, in the measured window"),
    ("cache.NAME.misses", "", "misses in the measured window"),
    ("completions.STATUS", "", "completions with this status"),
    ("pcie.NAME.to_host.FIGURE", "", "tlps, payload_bytes, wire_bytes towards host memory"),
    ("pcie.NAME.to_device.FIGURE", "", "tlps, payload_bytes, wire_bytes towards the NIC"),
    ("link.NAME.FIGURE", "", "packets, payload_bytes, wire_bytes, dropped, paused_ns, ..."),
    ("counters.HOST.NAME", "", "counters under the names that drivers use"),
    ("host.N.FIGURE", "", "cpu_busy, copies_bytes, syscalls, interrupts of host N"),
    ("sim.simulated_ns", "ns", "simulated time"),
    ("sim.kernel_events", "", "delta cycles of the simulation kernel"),
    ("sim.model_events", "", "events of the model's queues"),
    ("sim.data_packets", "", "data packets simulated"),
    ("sim.wall_s", "s", "wall-clock time of the run (differs from run to run)"),
    ("sim.packets_per_s", "1/s", "simulation speed (differs from run to run)"),
    ("sim.peak_rss_bytes", "B", "peak memory of the run (differs from run to run)"),
]

_LABELS = {
    "throughput_gbps": "Throughput (Gb/s)",
    "message_rate_mops": "Message rate (million/s)",
    "workload.msg_size": "Message size",
    "workload.qps": "Queue pairs",
    "workload.depth": "Queue depth",
    "transport.mtu": "MTU",
    "transport.protocol": "Protocol",
    "link.loss_rate": "Loss rate",
    "sim.packets_per_s": "Simulation speed (packets/s)",
    **{f"latency.{q}_ns": f"Latency, {'median' if q == 'p50' else q} (ns)" for q in LATENCIES},
}


def label(column: str) -> str:
    """Axis label of a column, with its unit."""
    if column in _LABELS:
        return _LABELS[column]
    if column.startswith("stage."):
        return f"{column.split('.')[1]} (ns, {column.rsplit('.', 1)[1]})"
    for pattern, unit, _ in COLUMNS:
        if pattern == column and unit:
            return f"{column} ({unit})"
    return column


def columns_of(result: Mapping[str, Any]) -> dict[str, Value]:
    """The figures of one result, in the order of COLUMNS."""
    row: dict[str, Value] = {}
    for key in ("throughput_gbps", "message_rate_mops"):
        _put(row, key, result.get(key))
    latency = result.get("latency_ns") or {}
    for quantile in LATENCIES:
        _put(row, f"latency.{quantile}_ns", latency.get(quantile))
    for stage in result.get("breakdown_ns") or []:
        for figure in ("mean", "p50", "p99"):
            _put(row, f"stage.{stage['stage']}.{figure}", stage.get(figure))
    bottleneck = result.get("bottleneck") or {}
    for figure in ("unit", "utilization", "why"):
        _put(row, f"bottleneck.{figure}", bottleneck.get(figure))
    for unit in result.get("units") or []:
        _put(row, f"unit.{unit['name']}.utilization", unit.get("utilization"))
    for cache in result.get("caches") or []:
        joined, misses = cache.get("joined", 0), cache.get("misses", 0)
        hits = cache.get("hits", 0) + joined
        if hits + misses:
            row[f"cache.{cache['name']}.hit_rate"] = hits / (hits + misses)
        _put(row, f"cache.{cache['name']}.joined", joined)
        _put(row, f"cache.{cache['name']}.misses", misses)
    _put_all(row, "completions", result.get("completions"))
    _traffic(row, result)
    _put_all(row, "sim", result.get("sim"))
    return row


def _traffic(row: dict[str, Value], result: Mapping[str, Any]) -> None:
    for link in result.get("pcie") or []:
        for direction in ("to_host", "to_device"):
            _put_all(row, f"pcie.{link['name']}.{direction}", link.get(direction))
    for link in result.get("link") or []:
        _put_all(row, f"link.{link['name']}", {k: v for k, v in link.items() if k != "name"})
    for host, counters in (result.get("counters") or {}).items():
        _put_all(row, f"counters.{host}", counters)
    for index, host in enumerate(result.get("host") or []):
        _put_all(row, f"host.{index}", host)


def _put(row: dict[str, Value], column: str, value: Any) -> None:
    if isinstance(value, bool):
        row[column] = int(value)
    elif isinstance(value, (int, float, str)):
        row[column] = value


def _put_all(row: dict[str, Value], prefix: str, values: Optional[Mapping[str, Any]]) -> None:
    for key, value in (values or {}).items():
        _put(row, f"{prefix}.{key}", value)


def write_csv(path: Path, rows: Iterable[Mapping[str, Value]], leading: list[str] = []) -> None:
    """Writes rows atomically: `leading` columns first, then all others in order of appearance,
    those of one kind side by side."""
    rows = list(rows)
    order = {column: index for index, column in enumerate(leading)}
    for row in rows:
        for column in row:
            order.setdefault(column, len(order))
    columns = sorted(order, key=lambda c: (c not in leading, _kind(c), order[c]))
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with open(scratch, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(scratch, path)


_KINDS = ["throughput_gbps", "message_rate_mops", "latency", "stage", "bottleneck", "unit", "cache",
          "completions", "pcie", "link", "counters", "host", "sim"]


def _kind(column: str) -> int:
    head = column.split(".", 1)[0]
    return _KINDS.index(head) if head in _KINDS else -1


def read_csv(path: Path) -> list[dict[str, str]]:
    """All rows of a table."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def describe_columns(swept: Iterable[str]) -> str:
    """The text of results.columns.md."""
    lines = ["# Columns of results.csv", "",
             "One row a point. Names in capitals stand for the names found in the results.", "",
             "| column | unit | meaning |", "|---|---|---|"]
    lines += [f"| `{key}` | | varied by the sweep |" for key in swept]
    lines += [f"| `{name}` | {unit} | {meaning} |" for name, unit, meaning in COLUMNS]
    return "\n".join(lines) + "\n"
