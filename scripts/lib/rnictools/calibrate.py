# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/calibrate: fits a preset to published measurements.

Only parameters of evidence class `fitted` are changed, and only points of split `calibrate` are
looked at. Values go into the preset (and those of hosts and links into theirs), with their evidence;
residuals go beside it, into configs/nic/DEVICE.fit.json. What has been simulated is remembered."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import runner, sweep
from .validation import calibration, dataset
from .validation.devices import DEVICES
from .validation.simulations import Simulations


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/calibrate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", nargs="+", choices=[*DEVICES, "all"], metavar="DEVICE",
                        help=f"{', '.join(DEVICES)} or all")
    parser.add_argument("--block", action="append", metavar="NAME",
                        help="only this block (may be repeated); residuals are written for it alone")
    parser.add_argument("-n", "--dry-run", action="store_true", help="change no file")
    parser.add_argument("-j", "--jobs", type=int, default=sweep.default_jobs(), metavar="N")
    parser.add_argument("--cache", type=Path, metavar="DIR",
                        default=sweep.REPOSITORY / "build" / "validation",
                        help="where results are remembered (default: build/validation)")
    parser.add_argument("--program", type=Path, default=sweep.default_program(), metavar="FILE")
    options = parser.parse_args(argv)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    if "all" in options.device:
        options.device = list(DEVICES)
    return options


def _calibrate(name: str, points: list[dataset.Point], simulations: Simulations,
               options: argparse.Namespace) -> None:
    configs = sweep.REPOSITORY / "configs"
    device = DEVICES[name]
    for block in device.blocks:
        if options.block and block.name not in options.block:
            continue
        result = calibration.fit(block, points, simulations, configs)
        print(f"{name} {block.name} ({block.preset}.ini): {len(result.scored)} points, "
              f"mean error {result.before:.1%} -> {result.after:.1%}; "
              + ", ".join(f"{key}={value}" for key, value in result.values.items()), flush=True)
        # The next block starts from this one's values.
        if not options.dry_run:
            calibration.write(result, name, configs, f"scripts/calibrate {name}")


def main(argv: list[str]) -> int:
    """Entry point; returns the exit status."""
    options = _arguments(argv)
    try:
        points = dataset.load(sweep.REPOSITORY / "results" / "measurements" / "published.csv")
        simulations = Simulations(options.program.absolute(), sweep.REPOSITORY / "configs",
                                  options.cache, options.jobs)
    except (runner.RunnerError, dataset.DatasetError) as error:
        print(f"scripts/calibrate: {error}", file=sys.stderr)
        return 2
    for name in options.device:
        _calibrate(name, points, simulations, options)
    print(f"{simulations.ran} simulations run")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
