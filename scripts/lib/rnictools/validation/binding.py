# SPDX-License-Identifier: Apache-2.0
"""What ties a published figure to simulations: the runs it needs and the figure taken from them."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from .dataset import Point

#: result.json of each run of a binding, in its order.
Results = Sequence[Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Run:
    """One simulation: presets, in order, and settings over them."""

    presets: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Binding:
    """A point's simulations and how its figure, in the point's unit, comes out of them."""

    runs: tuple[Run, ...]
    figure: Callable[[Results], float]


@dataclasses.dataclass(frozen=True)
class Unbound:
    """Why a point cannot be tied to a simulation."""

    reason: str


Bound = Union[Binding, Unbound]
Rule = Callable[[Point], Bound]

_LATENCY = {"lat_min_us": "min", "lat_median_us": "p50", "lat_avg_us": "mean", "lat_p99_us": "p99"}


_RATES = {"bw_gbps": "throughput_gbps", "msgrate_mops": "message_rate_mops"}


def figure_of(metric: str) -> Optional[Callable[[Results], float]]:
    """Extractor of a perftest-like metric from the only run; None for other metrics."""
    if metric in _LATENCY:
        key = _LATENCY[metric]
        return lambda results: float(results[0]["latency_ns"][key]) / 1e3
    if metric in _RATES:
        return lambda results: float(results[0][_RATES[metric]])
    return None


def of_first_flow(bound: Bound, metric: str) -> Bound:
    """The same simulations, but a rate of the first flow alone: others only keep it company."""
    if isinstance(bound, Unbound) or metric not in _RATES:
        return bound
    key = _RATES[metric]
    return Binding(bound.runs, lambda results: float(results[0]["flows"][0][key]))


def run_of(presets: Sequence[str], settings: Mapping[str, Any]) -> Run:
    """A run; values become text as the program reads them."""
    return Run(tuple(presets), tuple(sorted((key, str(value)) for key, value in settings.items())))


def single(point: Point, presets: Sequence[str], settings: Mapping[str, Any]) -> Bound:
    """A point that one run answers with the figure its metric names."""
    figure = figure_of(point.metric)
    if figure is None:
        return Unbound(f"no figure of a run corresponds to {point.metric}")
    return Binding((run_of(presets, settings),), figure)


def ratio(numerator: Run, denominator: Run, key: str = "message_rate_mops") -> Binding:
    """A point that compares two runs."""
    return Binding((numerator, denominator),
                   lambda results: float(results[0][key]) / float(results[1][key]))
