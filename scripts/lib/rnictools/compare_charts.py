# SPDX-License-Identifier: Apache-2.0
"""Charts and tables of scripts/compare."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import figures, measurements, quantities, scenarios, wire
from .chart import (PROTOCOL_COLORS, PROTOCOL_NAMES, REFERENCE, BarChart, Chart, Series, XYChart)
from .measurements import Measurement
from .scenarios import OPS, PROTOCOLS, Results

Result = dict[str, Any]
_LATENCY_NOTE = {"write": "half a ping-pong round trip", "send": "half a ping-pong round trip",
                 "read": "post to completion"}


def link_gbps(result: Result) -> float:
    """Data rate of the link of a run in Gb/s."""
    value = result.get("config", {}).get("link.rate", 100)
    if isinstance(value, str):
        return quantities.parse_number(value) or 100.0
    # A bare number may be in Gb/s or in bit/s.
    return float(value) / 1e9 if value > 1e6 else float(value)


def flag(result: Result, key: str, default: bool) -> bool:
    """A boolean of the resolved configuration."""
    value = result.get("config", {}).get(key, default)
    return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "on", "yes")


def inline_limit(result: Optional[Result]) -> int:
    """Longest payload in bytes that travels inside a work request; 0 when unknown."""
    config = (result or {}).get("config", {})
    value = config.get("workload.inline_max", config.get("nic.max_inline", 0))
    return int(quantities.parse_number(str(value)) or 0)


def stages(result: Result) -> dict[str, float]:
    """Mean time of each stage in ns."""
    return {entry["stage"]: float(entry["mean"]) for entry in result.get("breakdown_ns") or []}


def expected_efficiency(result: Optional[Result], protocol: str, mtu: int, size: int) -> float:
    """Closed-form wire efficiency under the run's own TCP and MPA options."""
    return wire.efficiency(protocol, mtu, size, flag(result or {}, "tcp.timestamps", True),
                           flag(result or {}, "tcp.mpa_markers", False))


def _curves(results: Results, group: str, op: str,
            figure: Callable[[Result, str, int], Optional[float]]) -> list[Series]:
    lookup = results.latency if group == "latency" else results.bandwidth
    curves = []
    for index, protocol in enumerate(PROTOCOLS):
        points = []
        for size in results.sizes(group):
            result = lookup(op, protocol, size)
            value = figure(result, protocol, size) if result else None
            if value is not None:
                points.append((float(size), value))
        if points:
            curves.append(Series(PROTOCOL_NAMES[protocol], [p[0] for p in points],
                                 [p[1] for p in points], colour=PROTOCOL_COLORS[protocol],
                                 marker=index))
    return curves


def latency_charts(results: Results, op: str, real: list[Measurement]) -> dict[str, Chart]:
    """Latency against size, absolute and relative to InfiniBand."""
    def relative(result: Result, _: str, size: int) -> Optional[float]:
        base = results.latency(op, "ib", size)
        if not base:
            return None
        return 100.0 * (result["latency_ns"]["p50"] / base["latency_ns"]["p50"] - 1.0)

    absolute = _curves(results, "latency", op, lambda r, p, s: r["latency_ns"]["p50"] / 1e3)
    charts: dict[str, Chart] = {f"latency_{op}": XYChart(
        f"{op.upper()} latency, median ({_LATENCY_NOTE[op]})", "Message size", "Latency (µs)",
        absolute + measurements.latency_us(real, op), x_log=True, y_log=True, x_bytes=True)}
    charts[f"latency_{op}_relative"] = XYChart(
        f"{op.upper()} latency relative to InfiniBand", "Message size",
        "Longer than InfiniBand (%)", _curves(results, "latency", op, relative), x_log=True,
        x_bytes=True)
    return charts


def bandwidth_charts(results: Results, op: str, real: list[Measurement]) -> dict[str, Chart]:
    """Throughput and message rate of one QP against size."""
    throughput = _curves(results, "bandwidth", op, lambda r, p, s: r["throughput_gbps"])
    rate = _curves(results, "bandwidth", op, lambda r, p, s: r["message_rate_mops"])
    return {
        f"throughput_{op}": XYChart(
            f"{op.upper()} throughput, 1 QP", "Message size", "Payload throughput (Gb/s)",
            throughput + measurements.throughput_gbps(real, op), x_log=True, x_bytes=True,
            y_from_zero=True),
        f"message_rate_{op}": XYChart(
            f"{op.upper()} message rate, 1 QP", "Message size", "Message rate (million/s)",
            rate + measurements.message_rate_mops(real, op), x_log=True, y_log=True, x_bytes=True),
    }


def breakdown_chart(results: Results, op: str, size: int) -> Optional[BarChart]:
    """Stacked stages of one message by protocol; stages below 0.5 % everywhere are summed up."""
    runs = {p: results.latency(op, p, size) for p in PROTOCOLS}
    by_protocol = {p: stages(r) for p, r in runs.items() if r}
    if not by_protocol:
        return None
    names = list(dict.fromkeys(name for parts in by_protocol.values() for name in parts))
    totals = {p: sum(parts.values()) for p, parts in by_protocol.items()}
    values: dict[str, list[float]] = {}
    other = [0.0] * len(by_protocol)
    for name in names:
        row = [parts.get(name, 0.0) for parts in by_protocol.values()]
        if any(v > 0.005 * t for v, t in zip(row, totals.values())):
            values[name.replace("_", " ")] = row
        else:
            other = [a + b for a, b in zip(other, row)]
    if any(other):
        values["other"] = other
    return BarChart(f"Where a {quantities.format_bytes(size)} {op.upper()} spends its time",
                    "Mean latency (ns)", [PROTOCOL_NAMES[p] for p in by_protocol], values,
                    stacked=True)


def mtu_chart(results: Results) -> XYChart:
    """Wire efficiency against MTU beside the closed form."""
    series = []
    for index, protocol in enumerate(PROTOCOLS):
        points, expected = [], []
        for mtu in results.mtus(protocol):
            result = results.mtu(protocol, mtu)
            if result:
                points.append((float(mtu), 100.0 * result["throughput_gbps"] / link_gbps(result)))
                expected.append((float(mtu), 100.0 * expected_efficiency(
                    result, protocol, mtu, scenarios.MTU_SIZE)))
        if points:
            color = PROTOCOL_COLORS[protocol]
            series.append(Series(PROTOCOL_NAMES[protocol], [p[0] for p in points],
                                 [p[1] for p in points], colour=color, marker=index))
            series.append(Series(f"{PROTOCOL_NAMES[protocol]} bound",
                                 [p[0] for p in expected], [p[1] for p in expected], REFERENCE,
                                 color))
    ticks = sorted({float(m) for p in PROTOCOLS for m in results.mtus(p)})
    return XYChart("Wire efficiency against MTU, WRITE of 64 KiB, 1 QP",
                   "MTU (B): path MTU of IB and RoCE, Ethernet MTU of iWARP",
                   "Payload share of the link rate (%)", series, x_log=True, x_ticks=ticks)


def qp_charts(results: Results) -> dict[str, Chart]:
    """Message rate and throughput against the number of QPs."""
    charts: dict[str, Chart] = {}
    for op in scenarios.QP_OPS:
        for size, figure, what in ((64, "message_rate_mops", "Message rate (million/s)"),
                                   (65536, "throughput_gbps", "Payload throughput (Gb/s)")):
            values: dict[str, list[float]] = {}
            for protocol in PROTOCOLS:
                runs = [results.qps(op, protocol, size, n) for n in results.qp_counts()]
                if any(runs):
                    values[PROTOCOL_NAMES[protocol]] = [r[figure] if r else 0.0 for r in runs]
            charts[f"qps_{op}_{size}"] = BarChart(
                f"{op.upper()} of {quantities.format_bytes(size)} against queue pairs, a core each "
                f"({scenarios.CORES} at most)", what,
                [f"{n} QP{'s' if n > 1 else ''}" for n in results.qp_counts()], values,
                colours={PROTOCOL_NAMES[p]: c for p, c in PROTOCOL_COLORS.items()})
    return charts


def all_charts(results: Results, real: list[Measurement]) -> dict[str, Chart]:
    """Every chart by file name, in the order of the report."""
    charts: dict[str, Chart] = {}
    for op in OPS:
        charts.update(latency_charts(results, op, real))
    for op in OPS:
        charts.update(bandwidth_charts(results, op, real))
    for op, size in (("write", 64), ("read", 4096)):
        chart = breakdown_chart(results, op, size)
        if chart:
            charts[f"breakdown_{op}_{size}"] = chart
    charts["wire_efficiency"] = mtu_chart(results)
    charts.update(qp_charts(results))
    return charts


def tables(results: Results) -> dict[str, list[dict[str, figures.Value]]]:
    """The tables by file name, a row for each run."""
    result: dict[str, list[dict[str, figures.Value]]] = {}
    for group in ("latency", "bandwidth", "mtu", "qps"):
        rows = []
        for case, run in results.items(group):
            row: dict[str, figures.Value] = {
                "protocol": case.protocol, "op": case.op, "msg_size": case.size, "mtu": case.mtu,
                "qps": case.qps}
            columns = figures.columns_of(run)
            if group == "latency":
                row.update({k: v for k, v in columns.items() if k.startswith("latency.")})
            else:
                row.update({k: v for k, v in columns.items() if k in (
                    "throughput_gbps", "message_rate_mops", "bottleneck.unit",
                    "bottleneck.utilization", "bottleneck.why")})
            if group == "mtu":
                row["efficiency"] = run["throughput_gbps"] / link_gbps(run)
                row["efficiency_headers_only"] = expected_efficiency(run, case.protocol, case.mtu,
                                                                     case.size)
            rows.append(row)
        result[group] = rows
    result["breakdown"] = [
        {"protocol": case.protocol, "op": case.op, "msg_size": case.size, "stage": stage,
         "mean_ns": mean} for case, run in results.items("latency")
        if (case.op, case.size) in (("write", 64), ("read", 4096))
        for stage, mean in stages(run).items()]
    return result
