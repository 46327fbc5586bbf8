# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/sensitivity: which parameters move which figure.

One at a time (each parameter at 1/FACTOR and FACTOR of its value) as a tornado plot, and Morris
screening (all of them moving) as a table. Writes DIR/tornado.png, DIR/tornado.svg and
DIR/sensitivity.csv, and prints the parameters that matter most."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import quantities, runner, sweep
from .validation import preset_file, screening
from .validation.simulations import Simulations

#: Of the NIC and its host that have no figure in a data sheet; presets say which are `fitted`.
_USUAL = ["nic.packetizer.latency", "nic.rx_parse.latency", "nic.dma.latency",
          "nic.responder.latency", "nic.packetizer.interval", "nic.rx_parse.interval",
          "nic.dma.interval", "nic.scheduler.interval", "nic.tx_slots", "pcie.latency",
          "pcie.read_tags", "memory.read_latency", "memory.write_latency", "cpu.post_cost",
          "cpu.doorbell_cost", "cpu.doorbell_stall", "cpu.poll_cost", "link.phy_latency",
          "link.rate"]
_BASE_UNITS = {"ns": "ns", "Gb/s": "Gbps", "GHz": "GHz", "B": "B"}


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/sensitivity", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", action="append", metavar="PRESET",
                        help="presets, in order (default: connectx5 edr100 broadwell)")
    parser.add_argument("-p", "--parameter", action="append", metavar="KEY",
                        help="parameters to vary (default: a usual set)")
    parser.add_argument("--factor", type=float, default=1.5,
                        help="parameters move between value / FACTOR and value x FACTOR")
    parser.add_argument("--trajectories", type=int, default=4, metavar="N",
                        help="of Morris screening; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", "--jobs", type=int, default=sweep.default_jobs(), metavar="N")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR",
                        default=sweep.REPOSITORY / "results" / "sensitivity")
    parser.add_argument("--cache", type=Path, metavar="DIR",
                        default=sweep.REPOSITORY / "build" / "validation",
                        help="where results are remembered (default: build/validation)")
    parser.add_argument("--program", type=Path, default=sweep.default_program(), metavar="FILE")
    options = parser.parse_args(argv)
    if options.factor <= 1:
        parser.error("--factor must be above 1")
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    options.config = options.config or ["connectx5", "edr100", "broadwell"]
    return options


def factors_of(keys: Sequence[str], config: dict[str, Any], texts: dict[str, str], factor: float
               ) -> list[screening.Factor]:
    """Factors around the values in force; a value that is no number or zero cannot be moved."""
    found = []
    for key in keys:
        text = texts.get(key)
        quantity = quantities.parse(text) if text else None
        value, unit = quantity if quantity else (config.get(key), "")
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            whole = not unit and float(value).is_integer() and not key.startswith(("link.", "cpu."))
            found.append(screening.Factor(key, float(value), value / factor, value * factor,
                                          _BASE_UNITS.get(unit, ""), whole and value >= 2))
    return found


def _draw(effects: list[screening.Effect], base: dict[str, float],
          wanted: Sequence[screening.Figure], path: Path, title: str) -> None:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    columns, rows = 2, -(-len(wanted) // 2)
    figure, axes = plt.subplots(rows, columns, figsize=(11, 2.9 * rows), squeeze=False)
    for axis, what in zip(axes.flat, wanted):
        mine = sorted((e for e in effects if e.figure == what.name and not math.isnan(e.span)),
                      key=lambda e: e.span)[-8:]
        places = range(len(mine))
        for end, colour in (("low", "#56B4E9"), ("high", "#D55E00")):
            axis.barh(places, [100 * getattr(e, end) for e in mine], color=colour, height=0.7,
                      label=f"{end} end")
        axis.set_yticks(list(places), [e.factor for e in mine], fontsize=7)
        axis.axvline(0, color="#444444", linewidth=0.8)
        axis.set_title(f"{what.name}: {base[what.name]:.3g} {what.unit}", fontsize=9, loc="left")
        axis.set_xlabel("change, %", fontsize=8)
        axis.tick_params(axis="x", labelsize=7)
    for axis in list(axes.flat)[len(wanted):]:
        axis.set_visible(False)
    axes[0][0].legend(fontsize=7, frameon=False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    figure.tight_layout()
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)


def _write(path: Path, single: list[screening.Effect], morris: list[screening.Effect]) -> None:
    screened = {(e.factor, e.figure): e for e in morris}
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["figure", "parameter", "change_at_low", "change_at_high", "mu_star",
                         "sigma"])
        for e in single:
            other = screened.get((e.factor, e.figure))
            writer.writerow([e.figure, e.factor, f"{e.low:.4f}", f"{e.high:.4f}",
                             f"{other.mu_star:.4f}" if other else "",
                             f"{other.sigma:.4f}" if other else ""])


def main(argv: list[str]) -> int:
    """Entry point; returns the exit status."""
    options = _arguments(argv)
    configs = sweep.REPOSITORY / "configs"
    try:
        simulations = Simulations(options.program.absolute(), configs, options.cache, options.jobs)
    except runner.RunnerError as error:
        print(f"scripts/sensitivity: {error}", file=sys.stderr)
        return 2
    wanted = screening.figures(options.config)
    first = simulations.run([wanted[0].run], quiet=True)[wanted[0].run]
    if first.result is None:
        print(f"scripts/sensitivity: {first.error}", file=sys.stderr)
        return 2
    texts: dict[str, str] = {}
    for name in options.config:
        for path in configs.glob(f"*/{name}.ini"):
            texts |= preset_file.values(path)
    factors = factors_of(options.parameter or _USUAL, dict(first.result["config"]), texts,
                         options.factor)
    base, single = screening.one_at_a_time(factors, wanted, simulations)
    screened = screening.morris(factors, wanted, simulations, options.trajectories, options.seed) \
        if options.trajectories else []
    options.output.mkdir(parents=True, exist_ok=True)
    title = (f"{' '.join(options.config)}: each parameter between 1/{options.factor:g} and "
             f"{options.factor:g} of its value")
    _draw(single, base, wanted, options.output / "tornado", title)
    _write(options.output / "sensitivity.csv", single, screened)
    for what in wanted:
        print(f"{what.name}: {base[what.name]:.4g} {what.unit}")
        best = {e.factor: e for e in screened if e.figure == what.name}
        for e in sorted((e for e in single if e.figure == what.name), key=lambda e: -e.span)[:5]:
            morris = best.get(e.factor)
            print(f"  {e.factor:<28} {e.low:>+7.1%} {e.high:>+7.1%}"
                  + (f"   mu* {morris.mu_star:6.1%}  sigma {morris.sigma:6.1%}" if morris else ""))
    print(f"{simulations.ran} simulations run; {options.output}/tornado.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
