# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/sweep."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Optional

from . import figures, runner, spec

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = REPOSITORY / "build" / "rnicsim"
_TABLE_EVERY_S = 10.0


def default_program() -> Path:
    """The built program, or the one that RNICSIM names."""
    return Path(os.environ.get("RNICSIM") or PROGRAM).absolute()


def default_jobs() -> int:
    """One run a usable core."""
    return len(os.sched_getaffinity(0))


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/sweep", description=spec.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Started again after any interruption, it runs only what is not finished. "
               "Exit status: 0 all done, 1 some points failed, 2 bad usage.")
    parser.add_argument("spec", type=Path, help="the specification")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR",
                        help="directory of the results")
    parser.add_argument("--jobs", type=int, default=default_jobs(), metavar="N",
                        help="simulations at a time (default: usable cores)")
    parser.add_argument("--executor", choices=["local", "slurm"], default="local")
    parser.add_argument("--program", type=Path, default=default_program(), metavar="FILE",
                        help="the simulator (default: build/rnicsim, or $RNICSIM)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS",
                        help="a point that takes longer counts as failed")
    parser.add_argument("--rerun-stale", action="store_true",
                        help="run again what another build of the program computed")
    parser.add_argument("--list", action="store_true", help="print the points, run nothing")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    if options.timeout is not None and options.timeout <= 0:
        parser.error("--timeout must be positive")
    return options


def write_table(directory: Path, points: list[spec.Point], swept: list[str],
                failures: list[runner.Failure]) -> None:
    """Writes results.csv and its documentation from what is finished on disk."""
    failed = {failure.point.name: failure for failure in failures}
    rows = []
    for point in points:
        row: dict[str, figures.Value] = {"point": point.name, **dict(point.axes)}
        try:
            result = runner.load_result(directory / "points" / point.name / runner.RESULT)
            row.update(status="done", **figures.columns_of(result))
        except FileNotFoundError:
            if point.name not in failed:
                continue
            row.update(status="failed", error=failed[point.name].message.splitlines()[0])
        rows.append(row)
    figures.write_csv(directory / "results.csv", rows, ["point", *swept, "status", "error"])
    (directory / "results.columns.md").write_text(figures.describe_columns(swept), encoding="utf-8")


def _report(outcome: runner.Outcome, total: int, directory: Path) -> int:
    print(f"{len(outcome.done)} of {total} points done ({outcome.ran} run now); "
          f"results in {directory / 'results.csv'}")
    if outcome.stale:
        print(f"note: {outcome.stale} finished points come from another build of the program; "
              "--rerun-stale runs them again", file=sys.stderr)
    for failure in outcome.failures:
        print(f"failed: {failure.point.name} (status {failure.status}): {failure.message}",
              file=sys.stderr)
    return 1 if outcome.failures else 0


class _TableWriter:
    """Keeps results.csv roughly up to date while a long sweep runs."""

    def __init__(self, directory: Path, points: list[spec.Point], swept: list[str]) -> None:
        self._arguments = (directory, points, swept)
        self._last = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last > _TABLE_EVERY_S:
            write_table(*self._arguments, [])
            self._last = time.monotonic()


def main(argv: Optional[list[str]] = None) -> int:
    """Runs a sweep; returns the exit status."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    if options.executor == "slurm":
        print("scripts/sweep: the slurm executor is not available in this release; use "
              "--executor local", file=sys.stderr)
        return 2
    directory: Path = options.output.absolute()
    presets = spec.Presets(REPOSITORY / "configs", options.spec.absolute().parent)
    try:
        plan = spec.parse(options.spec.read_text(encoding="utf-8"), str(options.spec))
        points = plan.points(presets)
        if options.list:
            for point in points:
                print(point.name, *(f"{key}={value}" for key, value in point.axes))
            return 0
        work = runner.Runner(directory, options.program, options.jobs, presets, options.timeout,
                             options.rerun_stale)
    except (spec.SpecError, runner.RunnerError) as error:
        print(f"scripts/sweep: {error}", file=sys.stderr)
        return 2
    except (OSError, UnicodeDecodeError) as error:
        print(f"scripts/sweep: cannot read {options.spec}: {error}", file=sys.stderr)
        return 2
    try:
        outcome = work.run(points, quiet=options.quiet,
                           on_done=_TableWriter(directory, points, plan.swept))
    except runner.Interrupted as interrupt:
        write_table(directory, points, plan.swept, [])
        print(f"scripts/sweep: stopped ({interrupt}); the same command continues", file=sys.stderr)
        return 128 + interrupt.signal_number
    except OSError as error:
        print(f"scripts/sweep: {error}", file=sys.stderr)
        return 1
    finally:
        work.close()
    write_table(directory, points, plan.swept, outcome.failures)
    return _report(outcome, len(points), directory)
