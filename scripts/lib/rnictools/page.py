# SPDX-License-Identifier: Apache-2.0
"""The report page of scripts/compare: one file, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

from . import scenarios
from .chart import PROTOCOL_NAMES
from .compare_charts import inline_limit
from .findings import Finding
from .measurements import Measurement
from .quantities import format_bytes
from .scenarios import OPS, PROTOCOLS, Results

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2129; --soft: #5b6270; --line: #d9dce1;
        --back: #fbfbfa; --card: #fff; --accent: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --soft: #a2a9b5; --line: #3a3f47; --back: #17191d; --card: #1f2227;
          --accent: #56b4e9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 2rem 1.2rem 4rem; color: var(--ink);
       background: var(--back); font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.6rem 0 .8rem;
     padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p.lead, .note, figcaption { color: var(--soft); } .note { font-size: .9rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(27rem, 1fr)); gap: 1.2rem; }
@media (max-width: 32rem) { .plots { grid-template-columns: 1fr; } }
figure { margin: 0; padding: .8rem; background: #fff; border: 1px solid var(--line);
         border-radius: 6px; } figure img { width: 100%; height: auto; display: block; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: .87rem; width: 100%;
         font-variant-numeric: tabular-nums; background: var(--card); }
th, td { padding: .32rem .6rem; border-bottom: 1px solid var(--line); text-align: right;
         white-space: nowrap; } th:first-child, td:first-child { text-align: left; }
td.text, th.text { text-align: left; white-space: normal; } thead th { color: var(--soft); }
tr.unit td { color: var(--soft); font-size: .8rem; } dl.findings dt { font-weight: 600; }
dl.findings dd { margin: 0 0 .8rem; } code { font-size: .88em; } a { color: var(--accent); }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--accent); }
"""


def _escape(value: Any) -> str:
    return html.escape(str(value))


def table(heading: list[str], rows: list[list[str]], text_columns: tuple[int, ...] = ()) -> str:
    """An HTML table; a first row of units is set apart by the caller's empty first cell."""
    def cell(tag: str, index: int, value: str) -> str:
        kind = " class='text'" if index in text_columns else ""
        return f"<{tag}{kind}>{_escape(value)}</{tag}>"

    parts = ["<div class='table'><table><thead><tr>",
             *(cell("th", i, v) for i, v in enumerate(heading)), "</tr></thead><tbody>"]
    for row in rows:
        parts.append("<tr class='unit'>" if row and row[0] == "" else "<tr>")
        parts += [cell("td", i, v) for i, v in enumerate(row)] + ["</tr>"]
    return "".join(parts) + "</tbody></table></div>"


def _image(path: Path, title: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return (f"<figure><img alt='{_escape(title)}' "
            f"src='data:image/svg+xml;base64,{data}'></figure>")


def _plots(images: dict[str, tuple[Path, str]], prefixes: tuple[str, ...]) -> str:
    chosen = [_image(path, title) for name, (path, title) in images.items()
              if name.startswith(prefixes)]
    return f"<div class='plots'>{''.join(chosen)}</div>"


def _size_table(results: Results, group: str, op: str) -> str:
    heading = ["Size", *(PROTOCOL_NAMES[p] for p in PROTOCOLS)]
    rows = []
    for size in results.sizes(group):
        row = [format_bytes(size)]
        for protocol in PROTOCOLS:
            result = results.latency(op, protocol, size) if group == "latency" else \
                results.bandwidth(op, protocol, size)
            if not result:
                row.append("-")
            elif group == "latency":
                row.append(f"{result['latency_ns']['p50'] / 1e3:.3f}")
            else:
                row.append(f"{result['throughput_gbps']:.2f} ({result['message_rate_mops']:.3f})")
        rows.append(row)
    what = "median latency, µs" if group == "latency" else "Gb/s (million messages/s)"
    return (f"<details><summary>{op.upper()}: table of {what}</summary>"
            f"{table(heading, rows)}</details>")


def _configuration(results: Results) -> str:
    runs = {p: results.latency("write", p, 64) for p in PROTOCOLS}
    configs = {p: r.get("config", {}) for p, r in runs.items() if r}
    if not configs:
        return ""
    keys = sorted({key for config in configs.values() for key in config})
    differing = [k for k in keys if len({str(c.get(k)) for c in configs.values()}) > 1]
    heading = ["Key", *(PROTOCOL_NAMES[p] for p in configs)]
    rows = [[k, *(str(c.get(k, "")) for c in configs.values())] for k in differing]
    first = next(iter(configs.values()))
    common = [[k, str(first.get(k, ""))] for k in keys if k not in differing]
    return ("<h3>What differs between the wires</h3>"
            + table(heading, rows)
            + f"<details><summary>All {len(common)} other keys, the same for every wire (from the "
              f"64 B WRITE runs)</summary>{table(['Key', 'Value'], common, (1,))}</details>")


def _measured(real: list[Measurement]) -> str:
    groups: dict[str, list[Measurement]] = {}
    for measurement in real:
        groups.setdefault(measurement.label, []).append(measurement)
    rows = [[label, g[0].device, g[0].link, g[0].mtu, g[0].setup,
             ", ".join(sorted({m.op.upper() for m in g})), str(len(g)), g[0].source]
            for label, g in groups.items()]
    return table(["Legend", "Device", "Link", "MTU", "Set-up", "Operations", "Figures", "Source"],
                 rows, (1, 2, 3, 4, 5, 7))


def _mtu_table(rows: list[dict[str, Any]]) -> str:
    body = [[PROTOCOL_NAMES[r["protocol"]], str(r["mtu"]), f"{r['throughput_gbps']:.2f}",
             f"{100 * r['efficiency']:.2f}", f"{100 * r['efficiency_headers_only']:.2f}"]
            for r in rows]
    return ("<details><summary>Table: efficiency against MTU</summary>" + table(
        ["Protocol", "MTU (B)", "Gb/s", "Share (%)", "Headers only (%)"], body) + "</details>")


def _qps_table(rows: list[dict[str, Any]]) -> str:
    body = [[PROTOCOL_NAMES[r["protocol"]], r["op"].upper(), format_bytes(r["msg_size"]),
             str(r["qps"]), f"{r['throughput_gbps']:.2f}", f"{r['message_rate_mops']:.3f}",
             str(r.get("bottleneck.unit", ""))] for r in rows]
    return ("<details><summary>Table: queue pairs and bottleneck</summary>" + table(
        ["Protocol", "Operation", "Size", "QPs", "Gb/s", "Million/s", "Bottleneck"], body, (6,))
        + "</details>")


def _head(results: Results, failures: list[str], quick: bool) -> list[str]:
    version = (results.first() or {}).get("version", "unknown")
    mtus = ", ".join(f"{PROTOCOL_NAMES[p]} {scenarios.MTU[p]} B" for p in PROTOCOLS)
    lead = (f"Simulated with rnicsim {version}: two hosts back to back at 100 Gb/s, the same NIC "
            f"core under all four wires. MTU unless varied: {mtus} (iWARP: Ethernet MTU).")
    parts = ["<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>",
             "<meta name='viewport' content='width=device-width, initial-scale=1'>",
             "<title>InfiniBand, RoCE and iWARP on one NIC core</title>",
             f"<style>{_STYLE}</style></head><body>",
             "<h1>InfiniBand, RoCEv1, RoCEv2 and iWARP on one NIC core</h1>",
             f"<p class='lead'>{_escape(lead)}</p>"]
    if quick:
        parts.append("<p><strong>Smoke run:</strong> few sizes, short runs; no basis for "
                     "conclusions.</p>")
    if failures:
        listed = "".join(f"<li><code>{_escape(f)}</code></li>" for f in failures)
        parts.append(f"<p><strong>{len(failures)} simulations failed</strong> and are missing "
                     f"below:</p><ul>{listed}</ul>")
    return parts


def _sections(results: Results, images: dict[str, tuple[Path, str]],
              tables: dict[str, list[dict[str, Any]]]) -> list[str]:
    inline = inline_limit(results.latency("write", "ib", 64))
    return [
        "<h2>Latency</h2><p class='note'>WRITE and SEND: half the round trip of a ping-pong. "
        "READ: from posting to completion. One message at a time, payload up to "
        f"{inline} B inline. Hollow grey and black marks are published measurements of real NICs "
        "with other hosts and switches (see below).</p>",
        _plots(images, ("latency_",)),
        *(_size_table(results, "latency", op) for op in OPS),
        "<h2>Where the time goes</h2><p class='note'>Mean time in each stage; the stages of a "
        "message sum to its latency.</p>",
        _plots(images, ("breakdown_",)),
        "<h2>Throughput and message rate, one queue pair</h2><p class='note'>128 messages in "
        "flight (fewer above 64 KiB, 16 from 512 KiB), no inline payload, one doorbell a message. "
        "</p>",
        _plots(images, ("throughput_", "message_rate_")),
        *(_size_table(results, "bandwidth", op) for op in OPS),
        "<h2>Wire efficiency</h2><p class='note'>Dashed: what header, preamble and gap sizes alone "
        "allow.</p>",
        _plots(images, ("wire_",)), _mtu_table(tables["mtu"]),
        "<h2>Queue pairs</h2>", _plots(images, ("qps_",)), _qps_table(tables["qps"]),
    ]


_CAVEAT = (
    "Other people's figures for real NICs of the 100 Gb/s class. Their hosts, PCIe, switches, "
    "cables, MTU and memory (some GPU memory, one a virtual machine on a 200 Gb/s link) differ "
    "from the simulated system and from each other. They show whether shape and size are "
    "plausible; they do not prove the simulation right. For 100 Gb/s iWARP no usable public table "
    "was found, so its curves stand on header sizes and on assumptions about the engine alone.")


def write(path: Path, results: Results, findings: list[Finding],
          summary: tuple[list[str], list[list[str]]], images: dict[str, tuple[Path, str]],
          tables: dict[str, list[dict[str, Any]]], real: list[Measurement],
          failures: list[str], quick: bool, interactive: str) -> None:
    """Writes the page to `path`; `interactive` names the page of charts beside it."""
    parts = _head(results, failures, quick)
    parts.append(table(*summary))
    parts.append("<h2>Findings</h2><dl class='findings'>")
    parts += [f"<dt>{_escape(f.title)}</dt><dd>{_escape(f.text)}</dd>" for f in findings]
    parts.append("</dl>")
    parts += _sections(results, images, tables)
    parts.append("<h2>Configuration</h2>" + _configuration(results))
    parts.append(f"<h2>Published measurements</h2><p class='note'>{_escape(_CAVEAT)}</p>"
                 + _measured(real))
    parts.append("<h2>Reproduce</h2><p>Run <code>scripts/compare</code>. Tables are the CSV files "
                 "beside this page, every run's result is under <code>points/</code>. Charts to "
                 f"explore: <a href='{interactive}'>{interactive}</a>.</p></body></html>\n")
    path.write_text("\n".join(parts), encoding="utf-8")
