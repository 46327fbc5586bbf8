# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/validate: the presets against published measurements.

Runs what each published point is bound to, prints errors by data set, category, device and split,
and writes DIR/points.csv (every point, its simulated counterpart or why there is none) and
DIR/summary.csv. Started again it runs only what is missing."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any, Mapping, Optional

from . import runner, spec, sweep
from .validation import dataset, rules, score
from .validation.binding import Binding, Run, Unbound

_DATA = sweep.REPOSITORY / "results" / "measurements" / "published.csv"
_TIMEOUT_S = 300.0
_CATEGORIES = {"a": "perftest", "b": "message rate", "c": "scalability", "d": "PCIe",
               "e": "cross-technology, registration", "f": "loss, timers", "g": "data sheets"}


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/validate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", action="append", metavar="NAME",
                        help="only this data set (may be repeated)")
    parser.add_argument("--split", choices=dataset.SPLITS, action="append",
                        help="only points of this split (default: calibrate and validate)")
    parser.add_argument("--list", action="store_true", help="show the bindings and run nothing")
    parser.add_argument("--jobs", type=int, default=sweep.default_jobs(), metavar="N")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="default: results/validate")
    parser.add_argument("--program", type=Path, default=sweep.default_program(), metavar="FILE")
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    options.split = options.split or ["calibrate", "validate"]
    options.output = (options.output or sweep.REPOSITORY / "results" / "validate").absolute()
    options.program = options.program.absolute()
    return options


def _select(points: list[dataset.Point], options: argparse.Namespace) -> list[dataset.Point]:
    return [p for p in points if p.split in options.split
            and (not options.dataset or p.dataset in options.dataset)]


def _simulate(bindings: Mapping[str, Binding], options: argparse.Namespace
              ) -> tuple[dict[Run, Mapping[str, Any]], dict[Run, str]]:
    """Results of all distinct runs, and what was said of those that failed."""
    presets = spec.Presets(sweep.REPOSITORY / "configs")
    distinct = {run: spec.make_point(run.presets, dict(run.settings), {}, presets)
                for binding in bindings.values() for run in binding.runs}
    work = runner.Runner(options.output, options.program, options.jobs, presets, _TIMEOUT_S,
                         rerun_stale=True)
    try:
        outcome = work.run(list(distinct.values()), "simulations")
    finally:
        work.close()
    failed = {failure.point.name: failure.message for failure in outcome.failures}
    results, errors = {}, {}
    for run, point in distinct.items():
        if point.name in outcome.done:
            results[run] = runner.load_result(outcome.done[point.name] / runner.RESULT)
        else:
            errors[run] = failed.get(point.name, "did not run").splitlines()[0]
    return results, errors


def _row(point: dataset.Point, simulated: Optional[float], note: str) -> list[str]:
    error = "" if simulated is None else f"{(simulated - point.value) / point.value:.4f}"
    return [point.id, point.device, point.op, point.msg_bytes, point.other_params, point.metric,
            point.split, point.category, f"{point.value:g}",
            "" if simulated is None else f"{simulated:.6g}", error, note]


def _table(title: str, summaries: list[score.Summary]) -> None:
    print(f"\n{title}\n  {'':<34} {'points':>6} {'mean |error|':>12} {'bias':>8} {'rank':>6} "
          f"{'worst':>8}  at")
    for s in summaries:
        rank = "" if s.rank is None else f"{s.rank:.2f}"
        print(f"  {s.name[:34]:<34} {s.count:>6} {s.mean_absolute:>11.1%} {s.bias:>+8.1%} {rank:>6} "
              f"{s.worst.error:>+8.0%}  {s.worst.point.id}")
    print(f"  mean over the rows: {score.mean_over_groups(summaries):.1%}")


def _report(scored: list[score.Scored], options: argparse.Namespace) -> None:
    for split in options.split:
        members = [s for s in scored if s.point.split == split]
        if not members:
            continue
        _table(f"{split}, by data set", score.group(members, "dataset"))
        for category, name in _CATEGORIES.items():
            chosen = [s for s in members if s.point.category == category]
            if chosen:
                _table(f"{split}, {name}", score.group(chosen, "dataset"))
    with open(options.output / "summary.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["split", "dataset", "points", "mean_absolute_error", "bias",
                         "rank_correlation", "worst_error", "worst_point"])
        for split in options.split:
            for s in score.group([x for x in scored if x.point.split == split], "dataset"):
                writer.writerow([split, s.name, s.count, f"{s.mean_absolute:.4f}", f"{s.bias:.4f}",
                                 "" if s.rank is None else f"{s.rank:.3f}",
                                 f"{s.worst.error:.4f}", s.worst.point.id])


def main(argv: list[str]) -> int:
    """Entry point; returns the exit status."""
    options = _arguments(argv)
    points = _select(dataset.load(_DATA), options)
    bound = {point: rules.bind(point) for point in points}
    bindings = {p.id: b for p, b in bound.items() if isinstance(b, Binding)}
    unbound = {p: b for p, b in bound.items() if isinstance(b, Unbound)}
    print(f"{len(points)} points, {len(bindings)} bound to simulations "
          f"({len(bindings) / max(1, len(points)):.0%})")
    if options.list:
        for point, binding in unbound.items():
            print(f"  {point.id}: {binding.reason}")
        return 0
    results, errors = _simulate(bindings, options)
    scored, rows = [], []
    for point, binding in bound.items():
        if isinstance(binding, Unbound):
            rows.append(_row(point, None, "not bound: " + binding.reason))
            continue
        failed = next((errors[run] for run in binding.runs if run in errors), None)
        if failed is not None:
            rows.append(_row(point, None, "failed: " + failed))
            continue
        value = binding.figure([results[run] for run in binding.runs])
        scored.append(score.Scored(point, value))
        rows.append(_row(point, value, ""))
    with open(options.output / "points.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "device", "op", "msg_bytes", "other_params", "metric", "split",
                         "category", "measured", "simulated", "error", "note"])
        writer.writerows(rows)
    failures = sum(row[-1].startswith("failed") for row in rows)
    if scored:
        _report(scored, options)
    print(f"\n{len(scored)} points compared, {sum(s.far_off for s in scored)} off by a factor of "
          f"{score.FAR_OFF} or more, {failures} failed, {len(unbound)} not bound; "
          f"details in {options.output}/points.csv")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
