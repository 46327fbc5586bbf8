# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/compare: InfiniBand, RoCEv1, RoCEv2 and iWARP on one NIC core.

Writes tables (CSV), plots (PNG and SVG), report.html and interactive.html, and prints a summary.
Started again after an interruption it runs only what is missing; results of another build of the
program are computed again."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Optional

from . import (believability, compare_charts, figures, findings, measurements, page, quantities,
               render_html, render_print, runner, scenarios, sweep)
from .chart import Chart
from .progress import Progress

_VALIDATION = sweep.REPOSITORY / "results" / "validation" / "presets.csv"
_MEASUREMENTS = sweep.REPOSITORY / "results" / "measurements" / "class_100g.csv"
#: Longest that a single simulation may take; a healthy one takes seconds.
_TIMEOUT_S = 120.0


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="smoke run: few sizes, short runs (into results/tmp/compare-quick)")
    parser.add_argument("--jobs", type=int, default=sweep.default_jobs(), metavar="N",
                        help="simulations at a time (default: usable cores)")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR",
                        help="default: results/compare")
    parser.add_argument("--program", type=Path, default=sweep.default_program(), metavar="FILE",
                        help="the simulator (default: build/rnicsim, or $RNICSIM); with this "
                             "option nothing is installed or built")
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    default = "results/tmp/compare-quick" if options.quick else "results/compare"
    options.output = (options.output or sweep.REPOSITORY / default).absolute()
    options.program = options.program.absolute()
    return options


def _draw(charts: dict[str, Chart], directory: Path) -> dict[str, tuple[Path, str]]:
    progress = Progress(len(charts), label="plots")
    images = {}
    for index, (name, chart) in enumerate(charts.items(), 1):
        paths = render_print.write(chart, directory / name, ("png", "svg"))
        images[name] = (paths[1], chart.title)
        progress.update(index, 0, name)
    progress.close()
    return images


def print_summary(heading: list[str], rows: list[list[str]]) -> None:
    """Prints the small table, aligned."""
    widths = [max(len(row[i]) for row in [heading, *rows]) for i in range(len(heading))]
    for row in [heading, *rows]:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                        for i, (cell, w) in enumerate(zip(row, widths))).rstrip())


def _simulate(options: argparse.Namespace) -> tuple[scenarios.Results, runner.Outcome]:
    cases = scenarios.cases(options.quick)
    points = {case: scenarios.make_point(case, options.quick) for case in cases}
    work = runner.Runner(options.output, options.program, options.jobs, timeout_s=_TIMEOUT_S,
                         rerun_stale=True)
    try:
        outcome = work.run(list(points.values()), "simulations")
    finally:
        work.close()
    results = scenarios.Results(cases)
    for case, point in points.items():
        if point.name in outcome.done:
            results.add(case, outcome.done[point.name])
    return results, outcome


def _write(options: argparse.Namespace, results: scenarios.Results, failures: list[str]) -> None:
    real = measurements.load(_MEASUREMENTS)
    found = [*findings.all_findings(results, real),
             believability.finding(_VALIDATION, scenarios.PRESET, scenarios.PROTOCOLS)]
    tables = compare_charts.tables(results)
    for name, rows in tables.items():
        leading = list(rows[0]) if rows else []
        figures.write_csv(options.output / f"{name}.csv", rows, leading)
    charts = compare_charts.all_charts(results, real)
    images = _draw(charts, options.output)
    render_html.write(list(charts.values()), options.output / "interactive.html",
                      "InfiniBand, RoCE and iWARP on one NIC core",
                      "Simulated curves; hollow marks are published measurements of real NICs.")
    page.write(options.output / "report.html", results, found,
               findings.summary_rows(results), images, tables, real, failures, options.quick,
               "interactive.html")


def main(argv: Optional[list[str]] = None) -> int:
    """Runs the comparison; returns the exit status."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    started = time.monotonic()
    try:
        results, outcome = _simulate(options)
        failures = [f"{f.point.name}: {f.message.splitlines()[0]}" for f in outcome.failures]
        if results.first() is not None:
            _write(options, results, failures)
    except runner.Interrupted as interrupt:
        print(f"scripts/compare: stopped ({interrupt}); the same command continues",
              file=sys.stderr)
        return 128 + interrupt.signal_number
    except runner.RunnerError as error:
        print(f"scripts/compare: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"scripts/compare: {error}", file=sys.stderr)
        return 1
    for failure in failures[:10]:
        print(f"failed: {failure}", file=sys.stderr)
    if len(failures) > 10:
        print(f"... and {len(failures) - 10} more", file=sys.stderr)
    if results.first() is None:
        print("scripts/compare: no simulation succeeded", file=sys.stderr)
        return 1
    print_summary(*findings.summary_rows(results))
    print()
    errors = believability.load(_VALIDATION, scenarios.PRESET)
    for protocol in scenarios.PROTOCOLS:
        print(believability.sentence(protocol, errors))
    print(f"\n{len(outcome.done)} simulations ({outcome.ran} run now), "
          f"{quantities.format_seconds(time.monotonic() - started)}; "
          f"report: {options.output / 'report.html'}")
    return 1 if failures else 0
