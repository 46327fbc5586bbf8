# SPDX-License-Identifier: Apache-2.0
"""The headline findings of scripts/compare: sentences computed from the results, nothing fixed."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from . import scenarios
from .chart import PROTOCOL_NAMES
from .compare_charts import expected_efficiency, inline_limit, link_gbps, stages
from .measurements import Measurement
from .quantities import format_bytes, format_ns
from .scenarios import OPS, PROTOCOLS, Results

Result = dict[str, Any]


@dataclasses.dataclass
class Finding:
    """A heading and a sentence or two."""

    title: str
    text: str


def _name(protocol: str) -> str:
    return PROTOCOL_NAMES[protocol]


def _p50(result: Optional[Result]) -> Optional[float]:
    return float(result["latency_ns"]["p50"]) if result else None


def _list(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def small_messages(results: Results) -> Optional[Finding]:
    """Latency of the smallest WRITE, and what makes the difference."""
    size = 64
    values = {p: _p50(results.latency("write", p, size)) for p in PROTOCOLS}
    known = {p: v for p, v in values.items() if v is not None}
    if "ib" not in known or len(known) < 2:
        return None
    text = f"A {size} B WRITE takes " + _list(
        [f"{format_ns(v)} on {_name(p)}" for p, v in known.items()]) + "."
    slowest = max(known, key=lambda p: known[p])
    extra = known[slowest] - known["ib"]
    if slowest != "ib" and extra > 0:
        text += f" {_name(slowest)} needs {format_ns(extra)} more than InfiniBand"
        text += _where(results.latency("write", "ib", size),
                       results.latency("write", slowest, size)) + "."
    return Finding("Small messages", text)


def _where(base: Optional[Result], other: Optional[Result]) -> str:
    if not base or not other:
        return ""
    before, after = stages(base), stages(other)
    growth = {name: value - before.get(name, 0.0) for name, value in after.items()}
    largest = sorted(growth.items(), key=lambda item: -item[1])[:2]
    parts = [f"{name.replace('_', ' ')} (+{format_ns(v)})" for name, v in largest if v > 1.0]
    return ", mostly in " + _list(parts) if parts else ""


def read_against_write(results: Results) -> Optional[Finding]:
    """Ratio of READ to WRITE at both ends of the size range."""
    sizes = results.sizes()
    if not sizes:
        return None
    parts = []
    for protocol in PROTOCOLS:
        ratios = []
        for size in (sizes[0], sizes[-1]):
            read, write = (_p50(results.latency(op, protocol, size)) for op in ("read", "write"))
            if read and write:
                ratios.append(f"{read / write:.2f} at {format_bytes(size)}")
        if ratios:
            parts.append(f"{_name(protocol)} {' and '.join(ratios)}")
    if not parts:
        return None
    return Finding("READ against WRITE", "READ latency (post to completion) over WRITE latency "
                   "(half a round trip): " + "; ".join(parts) + ".")


def inline_step(results: Results) -> Optional[Finding]:
    """The step where the payload no longer travels inside the work request."""
    sizes = results.sizes()
    limit = inline_limit(results.latency("write", "ib", sizes[0])) if sizes else 0
    below = max((s for s in sizes if s <= limit), default=0)
    above = min((s for s in sizes if s > limit), default=0)
    if not below or not above:
        return None
    parts = []
    for protocol in PROTOCOLS:
        small, large = (_p50(results.latency("write", protocol, s)) for s in (below, above))
        if small and large:
            parts.append((protocol, large - small))
    if not parts:
        return None
    low, high = min(v for _, v in parts), max(v for _, v in parts)
    span = format_ns(low) if format_ns(low) == format_ns(high) else \
        f"{format_ns(low)} to {format_ns(high)}"
    text = f"A WRITE of {above} B takes {span} more than one of {below} B"
    fetch = [stages(r).get("payload_fetch", 0.0) for p, _ in parts
             if (r := results.latency("write", p, above))]
    if fetch and min(fetch) > 0.3 * low > 0:
        text += (f": above the inline limit of {limit} B the NIC fetches the payload over PCIe, "
                 f"which takes {format_ns(min(fetch))} or more")
    return Finding("Inline payload", text + ".")


def large_messages(results: Results) -> Optional[Finding]:
    """Peak throughput of one QP against the closed form."""
    sizes = results.sizes("bandwidth")
    if not sizes:
        return None
    size, parts = sizes[-1], []
    for protocol in PROTOCOLS:
        result = results.bandwidth("write", protocol, size)
        if result:
            bound = link_gbps(result) * expected_efficiency(result, protocol,
                                                            scenarios.MTU[protocol], size)
            parts.append(f"{_name(protocol)} {result['throughput_gbps']:.1f} Gb/s (headers alone "
                         f"allow {bound:.1f})")
    if not parts:
        return None
    return Finding("Large messages", f"One QP writing {format_bytes(size)} messages reaches "
                   + _list(parts) + ".")


def half_peak(results: Results) -> Optional[Finding]:
    """The smallest size that reaches half of the peak throughput."""
    parts = []
    for op in OPS:
        for protocol in ("ib", "iwarp"):
            curve = [(s, results.bandwidth(op, protocol, s)) for s in results.sizes("bandwidth")]
            known = [(s, r["throughput_gbps"]) for s, r in curve if r]
            if len(known) < 2:
                continue
            peak = max(value for _, value in known)
            size = next(s for s, value in known if value >= peak / 2)
            parts.append(f"{op.upper()} on {_name(protocol)} at {format_bytes(size)}")
    if not parts:
        return None
    return Finding("Where bandwidth begins", "Half of the peak throughput of one QP is first "
                   "reached, among the sizes simulated, by " + _list(parts) + ".")


def message_rates(results: Results) -> Optional[Finding]:
    """Message rate of one and of many QPs, and what limits it."""
    counts = results.qp_counts()
    if not counts:
        return None
    parts = []
    for protocol in PROTOCOLS:
        runs = [results.qps("write", protocol, 64, n) for n in (counts[0], counts[-1])]
        if runs[0] and runs[-1]:
            few, many = (r["message_rate_mops"] for r in runs if r)
            limit = (runs[-1].get("bottleneck") or {}).get("unit")
            parts.append(f"{_name(protocol)} {few:.1f} to {many:.1f} million/s"
                         + (f" (limited by {limit})" if limit else ""))
    if not parts:
        return None
    return Finding("Message rate", f"64 B WRITEs from {counts[0]} to {counts[-1]} QPs, a core each "
                   f"({scenarios.CORES} at most): " + "; ".join(parts) + ".")


def wire_overhead(results: Results) -> Optional[Finding]:
    """Cost of headers at the smallest and largest MTU, distance to the closed form."""
    parts, gaps = [], []
    for protocol in PROTOCOLS:
        shares = []
        for mtu in results.mtus(protocol):
            result = results.mtu(protocol, mtu)
            if result:
                share = result["throughput_gbps"] / link_gbps(result)
                shares.append((mtu, share))
                gaps.append(abs(share / expected_efficiency(result, protocol, mtu,
                                                            scenarios.MTU_SIZE) - 1.0))
        if shares:
            ends = dict.fromkeys([shares[0], shares[-1]])
            parts.append(f"{_name(protocol)} " + ", ".join(
                f"{100 * share:.1f} % at {mtu} B" for mtu, share in ends))
    if not parts:
        return None
    return Finding("Headers and MTU", "Payload share of the link rate: " + "; ".join(parts)
                   + f". The simulation stays within {100 * max(gaps):.1f} % of what header sizes "
                   "alone give.")


def against_measurements(results: Results, real: list[Measurement]) -> Optional[Finding]:
    """How far the published latencies of real NICs lie from the simulated curves."""
    deviations: dict[str, list[float]] = {}
    for measurement in real:
        if not measurement.metric.startswith("lat_"):
            continue
        result = results.latency(measurement.op, measurement.protocol, measurement.msg_bytes)
        value = _p50(result)
        if value:
            deviations.setdefault(measurement.label, []).append(
                100.0 * (value / 1e3 / measurement.value - 1.0))
    if not deviations:
        return None
    parts = []
    for label, values in deviations.items():
        span = f"{min(values):+.0f} %" if len(values) == 1 else \
            f"{min(values):+.0f} to {max(values):+.0f} %"
        parts.append(f"{label}: {span} ({len(values)} size{'s' if len(values) > 1 else ''})")
    return Finding("Against published latencies", "Simulated minus published, relative: "
                   + "; ".join(parts) + ". Hosts, switches, memory and NICs differ from the "
                   "simulated back-to-back system, so this is a plausibility check and no "
                   "validation of a device.")


def all_findings(results: Results, real: list[Measurement]) -> list[Finding]:
    """Every finding that the results at hand support."""
    found = [small_messages(results), read_against_write(results), inline_step(results),
             large_messages(results), half_peak(results), message_rates(results),
             wire_overhead(results), against_measurements(results, real)]
    return [finding for finding in found if finding]


def summary_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the small table on stdout and at the top of the report."""
    bandwidth = results.sizes("bandwidth")
    top, counts = (bandwidth[-1] if bandwidth else 0), results.qp_counts()
    many = counts[-1] if counts else 1
    heading = ["", "WRITE 64 B", "READ 64 B", "SEND 64 B", f"WRITE {format_bytes(top)}",
               f"READ {format_bytes(top)}", "64 B, 1 QP", f"64 B, {many} QPs"]
    units = ["", "ns", "ns", "ns", "Gb/s", "Gb/s", "M/s", "M/s"]
    rows = [units]
    for protocol in PROTOCOLS:
        row = [_name(protocol)]
        for op in ("write", "read", "send"):
            value = _p50(results.latency(op, protocol, 64))
            row.append("-" if value is None else f"{value:.0f}")
        for op in ("write", "read"):
            result = results.bandwidth(op, protocol, top)
            row.append(f"{result['throughput_gbps']:.1f}" if result else "-")
        for count in (1, many):
            result = results.qps("write", protocol, 64, count)
            row.append(f"{result['message_rate_mops']:.2f}" if result else "-")
        rows.append(row)
    return heading, rows
