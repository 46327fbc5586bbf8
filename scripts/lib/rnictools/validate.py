# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/validate: the presets against published measurements.

Runs what each published point is bound to, prints errors by data set, category, device and split,
and writes DIR/points.csv (every point, its simulated counterpart or why there is none) and
DIR/summary.csv. Results are remembered: started again, only what has changed is simulated."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Optional

from . import runner, sweep
from .validation import dataset, explanations, plots, rules, score, summary
from .validation.binding import Unbound
from .validation.evaluation import Evaluation, evaluate, figures_of
from .validation.shapes import SHAPES
from .validation.simulations import Simulations

_DATA = sweep.REPOSITORY / "results" / "measurements" / "published.csv"
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
    parser.add_argument("-j", "--jobs", type=int, default=sweep.default_jobs(), metavar="N")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="default: results/validate")
    parser.add_argument("--plots", type=Path, metavar="DIR",
                        help="draw simulated over measured figures, one plot a data set")
    parser.add_argument("--readme", action="store_true",
                        help="write the summary into README.md, between its markers")
    parser.add_argument("--cache", type=Path, metavar="DIR",
                        default=sweep.REPOSITORY / "build" / "validation",
                        help="where results are remembered (default: build/validation)")
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
        _table(f"{split}, by device", score.group(members, "device"))
        for name, summaries in summary.by_kind(members).items():
            _table(f"{split}, {name} by data set", summaries)
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


def _print_bindings(points: list[dataset.Point]) -> None:
    unbound = {point: binding.reason for point in points
               if isinstance(binding := rules.bind(point), Unbound)}
    bound = len(points) - len(unbound)
    print(f"{len(points)} points, {bound} bound to simulations ({bound / max(1, len(points)):.0%})")
    for point, reason in unbound.items():
        print(f"  {point.id}: {reason}")


def _write_points(path: Path, evaluation: Evaluation) -> None:
    rows = [_row(s.point, s.simulated, "") for s in evaluation.scored]
    rows += [_row(point, None, "failed: " + error) for point, error in evaluation.failed.items()]
    rows += [_row(point, None, "not bound: " + why) for point, why in evaluation.unbound.items()]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "device", "op", "msg_bytes", "other_params", "metric", "split",
                         "category", "measured", "simulated", "error", "note"])
        writer.writerows(sorted(rows))


def main(argv: list[str]) -> int:
    """Entry point; returns the exit status."""
    options = _arguments(argv)
    points = _select(dataset.load(_DATA), options)
    if options.list:
        _print_bindings(points)
        return 0
    try:
        simulations = Simulations(options.program, sweep.REPOSITORY / "configs", options.cache,
                                  options.jobs)
    except runner.RunnerError as error:
        print(f"scripts/validate: {error}", file=sys.stderr)
        return 2
    evaluation = evaluate(points, simulations, "simulations")
    options.output.mkdir(parents=True, exist_ok=True)
    _write_points(options.output / "points.csv", evaluation)
    if evaluation.scored:
        _report(evaluation.scored, options)
    figures: dict[str, float] = {}
    if not options.dataset:
        figures = figures_of(SHAPES, dataset.load(_DATA), simulations)
        print("\nshapes")
        print("\n".join(summary.shape_lines(figures)))
    if options.plots:
        plots.draw_all(evaluation.scored, options.plots)
    if options.readme:
        lines = summary.markdown(evaluation.scored, evaluation.bound_share, figures)
        summary.write_readme(sweep.REPOSITORY / "README.md", lines)
        summary.write_presets(sweep.REPOSITORY / "results" / "validation" / "presets.csv",
                              evaluation.scored)
    _print_end(evaluation, options)
    return 1 if evaluation.failed else 0


def _print_end(evaluation: Evaluation, options: argparse.Namespace) -> None:
    far = [s for s in evaluation.scored if s.far_off]
    if far:
        print(f"\noff by a factor of {score.FAR_OFF} or more")
    for s in far:
        print(f"  {s.point.id:<15} {s.point.value:>8g} measured, {s.simulated:>8.4g} simulated: "
              f"{explanations.of(s)}")
    for point, error in evaluation.failed.items():
        print(f"failed: {point.id}: {error}", file=sys.stderr)
    print(f"\n{len(evaluation.scored)} points compared ({evaluation.bound_share:.0%} bound), "
          f"{len(far)} off by a factor of {score.FAR_OFF} or more, {len(evaluation.failed)} failed, "
          f"{len(evaluation.unbound)} not bound; details in {options.output}/points.csv")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
