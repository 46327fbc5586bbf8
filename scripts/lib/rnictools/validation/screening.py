# SPDX-License-Identifier: Apache-2.0
"""Which parameters move which figure: one at a time, and Morris's elementary effects.

Morris (Technometrics 33, 1991): trajectories through a grid of the parameters' ranges, each step
changing one of them. The mean of the absolute effects (mu*) tells how much a parameter matters, their
deviation (sigma) whether its effect depends on the others."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from .binding import Run, run_of
from .evaluation import with_settings
from .simulations import Simulations

_LEVELS = 4


@dataclasses.dataclass(frozen=True)
class Figure:
    """An outcome that is looked at: its name, unit, run and place in the result."""

    name: str
    unit: str
    run: Run
    path: tuple[str, ...]
    scale: float = 1.0

    def of(self, result: Mapping[str, Any]) -> float:
        """The figure in a result."""
        value: Any = result
        for key in self.path:
            value = value[key]
        return float(value) * self.scale


@dataclasses.dataclass(frozen=True)
class Factor:
    """A parameter: its value now and the ends it is moved to, as the program reads them."""

    key: str
    base: float
    low: float
    high: float
    unit: str
    whole: bool

    def text(self, value: float) -> str:
        """A value for the command line."""
        return f"{max(1, round(value)) if self.whole else value:g}{self.unit}"

    def at(self, level: float) -> str:
        """The value at 0..1 between the ends, on a logarithmic scale."""
        return self.text(self.low * (self.high / self.low) ** level)


@dataclasses.dataclass(frozen=True)
class Effect:
    """What a factor does to a figure, as relative changes."""

    factor: str
    figure: str
    low: float = math.nan     #: at the factor's low end
    high: float = math.nan
    mu_star: float = math.nan
    sigma: float = math.nan

    @property
    def span(self) -> float:
        """Largest of the changes."""
        return max(abs(self.low), abs(self.high))


def figures(presets: Sequence[str]) -> list[Figure]:
    """The figures of a NIC that users ask for."""
    def latency(op: str, size: int) -> Run:
        return run_of(presets, {"workload.op": op, "workload.msg_size": size,
                                "workload.iterations": 8, "sim.warmup": 4})

    def stream(op: str, size: int, threads: int, messages: int) -> Run:
        return run_of(presets, {
            "workload.pattern": "bandwidth", "workload.op": op, "workload.msg_size": size,
            "workload.threads": threads, "workload.qps": threads, "workload.depth": 32,
            "workload.iterations": messages, "sim.warmup": 64})
    p50 = ("latency_ns", "p50")
    return [Figure("WRITE 8 B latency", "us", latency("write", 8), p50, 1e-3),
            Figure("READ 8 B latency", "us", latency("read", 8), p50, 1e-3),
            Figure("WRITE 4 KiB latency", "us", latency("write", 4096), p50, 1e-3),
            Figure("WRITE 64 KiB bandwidth", "Gb/s", stream("write", 65536, 1, 64),
                   ("throughput_gbps",)),
            Figure("WRITE 32 B, 16 threads", "M/s", stream("write", 32, 16, 192),
                   ("message_rate_mops",)),
            Figure("READ 32 B, 16 threads", "M/s", stream("read", 32, 16, 192),
                   ("message_rate_mops",))]


def one_at_a_time(factors: Sequence[Factor], wanted: Sequence[Figure],
                  simulations: Simulations) -> tuple[dict[str, float], list[Effect]]:
    """Base figures, and the effect of each factor at both of its ends."""
    runs: dict[tuple[str, str, str], Run] = {(f.name, "", ""): f.run for f in wanted}
    for figure in wanted:
        for factor in factors:
            for end, level in (("low", 0.0), ("high", 1.0)):
                runs[figure.name, factor.key, end] = with_settings(
                    figure.run, {factor.key: factor.at(level)})
    outcomes = simulations.run(runs.values(), "one at a time")

    def value(figure: Figure, key: str = "", end: str = "") -> float:
        result = outcomes[runs[figure.name, key, end]].result
        return math.nan if result is None else figure.of(result)
    base = {figure.name: value(figure) for figure in wanted}
    return base, [Effect(factor.key, figure.name,
                         value(figure, factor.key, "low") / base[figure.name] - 1,
                         value(figure, factor.key, "high") / base[figure.name] - 1)
                  for figure in wanted for factor in factors]


def morris(factors: Sequence[Factor], wanted: Sequence[Figure], simulations: Simulations,
           trajectories: int, seed: int) -> list[Effect]:
    """Elementary effects over random trajectories, relative to the figure at their start."""
    lot = random.Random(seed)
    step = _LEVELS / (2 * (_LEVELS - 1))
    paths = [_trajectory(len(factors), step, lot) for _ in range(trajectories)]
    runs = {(figure.name, number, place): with_settings(figure.run, {
                factor.key: factor.at(level) for factor, level in zip(factors, levels)})
            for figure in wanted for number, (_, path) in enumerate(paths)
            for place, levels in enumerate(path)}
    outcomes = simulations.run(runs.values(), "Morris")
    effects = []
    for figure in wanted:
        found: dict[str, list[float]] = {factor.key: [] for factor in factors}
        for number, (order, path) in enumerate(paths):
            values = []
            for place in range(len(path)):
                result = outcomes[runs[figure.name, number, place]].result
                values.append(math.nan if result is None else figure.of(result))
            for place, index in enumerate(order):
                rising = path[place + 1][index] > path[place][index]
                change = (values[place + 1] / values[place] - 1) * (1 if rising else -1) / step
                if not math.isnan(change):
                    found[factors[index].key].append(change)
        for key, changes in found.items():
            if changes:
                mean = sum(changes) / len(changes)
                variance = sum((c - mean) ** 2 for c in changes) / max(1, len(changes) - 1)
                effects.append(Effect(key, figure.name,
                                      mu_star=sum(map(abs, changes)) / len(changes),
                                      sigma=math.sqrt(variance)))
    return effects


def _trajectory(count: int, step: float, lot: random.Random) -> tuple[list[int], list[list[float]]]:
    """The order in which factors move, and the levels at each place."""
    start = [lot.randrange(_LEVELS // 2) / (_LEVELS - 1) for _ in range(count)]
    signs = [lot.random() < 0.5 for _ in range(count)]
    levels = [level if up else level + step for level, up in zip(start, signs)]
    order = list(range(count))
    lot.shuffle(order)
    path = [list(levels)]
    for index in order:
        levels = list(levels)
        levels[index] += step if signs[index] else -step
        path.append(levels)
    return order, path

