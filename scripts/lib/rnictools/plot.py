# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/plot: columns of a results.csv as a paper-ready plot and as a page.

    scripts/plot results.csv --x workload.msg_size --y latency.p50_ns --series transport.protocol \\
        --logx --logy -o latency        writes latency.png, .svg, .pdf and .html
    scripts/plot results.csv --x transport.protocol --stages -o breakdown
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Optional

from . import figures, quantities, render_html, render_print
from .chart import PROTOCOL_COLORS, PROTOCOL_NAMES, BarChart, Chart, Series, XYChart

Rows = list[dict[str, str]]


class PlotError(Exception):
    """The table does not hold what the command line asks for."""


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/plot", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a results.csv of scripts/sweep")
    parser.add_argument("--x", required=True, metavar="KEY", help="column of the horizontal axis")
    parser.add_argument("--y", metavar="FIGURE", help="column of the vertical axis")
    parser.add_argument("--stages", action="store_true",
                        help="instead of --y: stacked bars of the mean time in each stage")
    parser.add_argument("--series", action="append", default=[], metavar="KEY",
                        help="a curve for each value; may be given more than once")
    parser.add_argument("--where", action="append", default=[], metavar="KEY=VALUE",
                        help="only rows with this value; may be given more than once")
    parser.add_argument("--logx", action="store_true")
    parser.add_argument("--logy", action="store_true")
    parser.add_argument("--title", default="")
    parser.add_argument("--xlabel")
    parser.add_argument("--ylabel")
    parser.add_argument("--formats", default="png,svg,pdf,html", help="default: png,svg,pdf,html")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="BASE",
                        help="path of the plots without extension")
    options = parser.parse_args(argv)
    if bool(options.y) == options.stages:
        parser.error("give either --y FIGURE or --stages")
    options.formats = options.formats.split(",")
    unknown = set(options.formats) - {*render_print.FORMATS, "html"}
    if unknown:
        parser.error(f"unknown format {', '.join(sorted(unknown))}")
    return options


def select(rows: Rows, conditions: list[str]) -> Rows:
    """Finished rows that meet all KEY=VALUE conditions; quantities compare by value."""
    selected = [row for row in rows if row.get("status", "done") == "done"]
    for condition in conditions:
        key, equals, value = condition.partition("=")
        if not equals or (rows and key not in rows[0]):
            raise PlotError(f"--where {condition}: no column '{key}'")
        selected = [row for row in selected if _same(row[key], value)]
    return selected


def _same(left: str, right: str) -> bool:
    a, b = quantities.parse(left), quantities.parse(right)
    return left == right or (a is not None and b is not None and a[0] == b[0])


def _group(rows: Rows, keys: list[str]) -> dict[str, Rows]:
    groups: dict[str, Rows] = {}
    for row in rows:
        groups.setdefault(", ".join(_readable(key, row[key]) for key in keys), []).append(row)
    return groups


def _readable(key: str, value: str) -> str:
    if key == "transport.protocol":
        return PROTOCOL_NAMES.get(value, value)
    quantity = quantities.parse(value)
    if quantity and (quantity[1] == "B" or key.endswith(("size", "mtu"))):
        return quantities.format_bytes(quantity[0])
    return value if not quantity or quantity[1] else f"{key.rsplit('.', 1)[-1]} {value}"


def _is_bytes(key: str, rows: Rows) -> bool:
    return key.endswith(("size", "mtu")) or any(
        (quantities.parse(row[key]) or (0, ""))[1] == "B" for row in rows)


def make_chart(rows: Rows, x: str, y: str, series: list[str], title: str = "", logx: bool = False,
               logy: bool = False) -> Chart:
    """The chart of column y over column x, a curve for each combination of `series`."""
    for key in (x, y, *series):
        if not rows or key not in rows[0]:
            raise PlotError(f"no column '{key}' with results" if rows else "no finished rows")
    rows = [row for row in rows if row[y] != ""]
    colours = {PROTOCOL_NAMES[p]: c for p, c in PROTOCOL_COLORS.items()}
    if any(quantities.parse_number(row[x]) is None for row in rows):
        categories = list(dict.fromkeys(_readable(x, row[x]) for row in rows))
        values = {name or figures.label(y): [_cell(group, x, c, y) for c in categories]
                  for name, group in _group(rows, series).items()}
        return BarChart(title or figures.label(y), figures.label(y), categories, values,
                        colours=colours)
    curves = []
    for name, group in _group(rows, series).items():
        points = sorted((quantities.parse_number(row[x]) or 0.0, float(row[y])) for row in group)
        curves.append(Series(name or figures.label(y), [p[0] for p in points],
                             [p[1] for p in points], colour=colours.get(name)))
    is_bytes = logx and _is_bytes(x, rows)
    return XYChart(title or f"{figures.label(y)}", figures.label(x), figures.label(y), curves,
                   x_log=logx, y_log=logy, x_bytes=is_bytes, y_from_zero=not logy)


def _cell(rows: Rows, x: str, category: str, y: str) -> float:
    for row in rows:
        if _readable(x, row[x]) == category:
            return float(row[y])
    return 0.0


def make_stage_chart(rows: Rows, x: str, series: list[str], title: str = "") -> BarChart:
    """Stacked bars of the mean time in each stage, a bar for each row."""
    if not rows or x not in rows[0]:
        raise PlotError(f"no column '{x}' with results" if rows else "no finished rows")
    stages = [column for column in rows[0] if column.startswith("stage.")
              and column.endswith(".mean") and any(float(row[column] or 0) > 0 for row in rows)]
    if not stages:
        raise PlotError("the table has no stage.NAME.mean columns")
    categories = ["\n".join(_readable(key, row[key]) for key in [x, *series]) for row in rows]
    values = {column.split(".")[1]: [float(row[column] or 0) for row in rows] for column in stages}
    return BarChart(title or "Where the time goes", "Mean latency (ns)", categories, values,
                    stacked=True)


def main(argv: Optional[list[str]] = None) -> int:
    """Draws one plot; returns the exit status."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    try:
        rows = select(figures.read_csv(options.results), options.where)
        for key in options.series:
            if rows and key not in rows[0]:
                raise PlotError(f"no column '{key}'")
        chart: Chart = make_stage_chart(rows, options.x, options.series, options.title) \
            if options.stages else make_chart(rows, options.x, options.y, options.series,
                                              options.title, options.logx, options.logy)
        if isinstance(chart, XYChart):
            chart.x_label = options.xlabel or chart.x_label
        chart.y_label = options.ylabel or chart.y_label
        options.output.absolute().parent.mkdir(parents=True, exist_ok=True)
        printed = tuple(f for f in options.formats if f in render_print.FORMATS)
        paths = render_print.write(chart, options.output, printed)
        if "html" in options.formats:
            page = options.output.with_name(options.output.name + ".html")
            render_html.write([chart], page, chart.title)
            paths.append(page)
    except (PlotError, OSError, ValueError) as error:
        print(f"scripts/plot: {error}", file=sys.stderr)
        return 2
    print("\n".join(str(path) for path in paths))
    return 0
