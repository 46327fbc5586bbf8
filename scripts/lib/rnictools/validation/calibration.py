# SPDX-License-Identifier: Apache-2.0
"""Fits a preset's parameters to the points of split `calibrate`, block by block.

A block is a few parameters of evidence class `fitted` and the points that show them. Each parameter
has one value over all points of its device, within a range that is physically plausible; a weak pull
towards the value it had keeps what the points do not tell where it was."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import numpy as np
from scipy import optimize

from .. import quantities
from . import preset_file, rules, score
from .binding import Binding, Run
from .dataset import Point
from .evaluation import Evaluation, evaluate, runs_of, with_settings
from .simulations import Simulations

#: Pull towards the old value: as much as a relative error of this over the whole range.
_PULL = 0.01
#: Step of finite differences, of a range.
_STEP = 0.04
#: What a point counts whose simulation failed: a relative error of e.
_FAILED = 1.0


_Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """What is fitted: a key of the program, its unit and its plausible range."""

    key: str
    low: float
    high: float
    start: float            #: where no preset has a value yet
    unit: str = ""          #: as the program reads it: ns, Gbps; none for cycles and counts
    multiple: int = 1       #: values are multiples of this (ways of a cache); 0: any real number
    logarithmic: bool = False

    def scaled(self, value: float) -> float:
        """0..1 within the range."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, scaled: float) -> float:
        """The value at 0..1 within the range, rounded to what the program takes."""
        scaled = min(1.0, max(0.0, scaled))
        if self.logarithmic:
            value = self.low * (self.high / self.low) ** scaled
        else:
            value = self.low + scaled * (self.high - self.low)
        if self.multiple:
            value = max(self.multiple, round(value / self.multiple) * self.multiple)
        return value

    def text(self, value: float) -> str:
        """The value as the program reads it."""
        return f"{value:.4g}{self.unit}" if not self.multiple else f"{value:.0f}{self.unit}"


@dataclasses.dataclass(frozen=True)
class Block:
    """Parameters that are fitted together, on which points, and into which preset."""

    name: str
    preset: str
    parameters: tuple[Parameter, ...]
    chooses: Callable[[Point], bool]
    #: Latencies are nearly linear in the parameters (least squares with finite differences);
    #: rates and caches have knees (Nelder-Mead).
    smooth: bool = True
    evaluations: int = 40


@dataclasses.dataclass
class Fit:
    """A block's outcome."""

    block: Block
    values: dict[str, str]
    before: float
    after: float
    scored: list[score.Scored]


class _Objective:
    """Residuals of a block's points at a vector of scaled parameters."""

    def __init__(self, block: Block, points: Sequence[Point], simulations: Simulations,
                 known: Mapping[str, str]) -> None:
        self._block = block
        self._points = points
        self._simulations = simulations
        self.start = np.array([self._scaled_start(p, known.get(p.key)) for p in block.parameters])
        sets: dict[str, int] = {}
        for point in points:
            sets[point.dataset] = sets.get(point.dataset, 0) + 1
        # Every data set counts as much as another, whatever its size.
        self._weights = np.array([math.sqrt(len(points) / (len(sets) * sets[p.dataset]))
                                  for p in points])

    @staticmethod
    def _scaled_start(parameter: Parameter, known: Optional[str]) -> float:
        value = quantities.parse_number(known) if known else None
        inside = min(parameter.high, max(parameter.low, value or parameter.start))
        return parameter.scaled(inside)

    def settings(self, scaled: Sequence[float]) -> dict[str, str]:
        return {p.key: p.text(p.value(x)) for p, x in zip(self._block.parameters, scaled)}

    def _change(self, scaled: Sequence[float]) -> Callable[[Point, Run], Run]:
        settings = self.settings(scaled)

        def change(_: Point, run: Run) -> Run:
            return with_settings(run, settings) if self._block.preset in run.presets else run
        return change

    def evaluation(self, scaled: Sequence[float]) -> Evaluation:
        return evaluate(self._points, self._simulations, quiet=True, change=self._change(scaled))

    def jacobian(self, scaled: _Vector) -> _Vector:
        """Forward differences with a step that rounding does not swallow; all run at once."""
        moved = []
        for i in range(len(scaled)):
            place = np.array(scaled)
            place[i] += _STEP if place[i] + _STEP <= 1 else -_STEP
            moved.append(place)
        self._simulations.run(
            [run for place in [scaled, *moved] for point in self._points
             for run in runs_of(point, self._change(place))], quiet=True)
        base = self.residuals(scaled)
        columns = [(self.residuals(place) - base) / (place[i] - scaled[i])
                   for i, place in enumerate(moved)]
        return np.array(columns).T

    def residuals(self, scaled: Sequence[float]) -> _Vector:
        """Logarithms of simulated over measured, weighted, and the pull."""
        found = {s.point: math.log(max(s.simulated, 1e-9) / s.point.value)
                 for s in self.evaluation(scaled).scored}
        errors = np.array([found.get(point, _FAILED) for point in self._points])
        pull = _PULL * math.sqrt(len(self._points)) * (np.asarray(scaled) - self.start)
        return np.concatenate([errors * self._weights, pull])

    def cost(self, scaled: Sequence[float]) -> float:
        """Mean of the absolute errors, as the validation reports them: robust against outliers."""
        outside = sum(max(0.0, -x) + max(0.0, x - 1.0) for x in scaled)
        residuals = self.residuals(np.clip(scaled, 0, 1))
        count = len(self._points)
        logarithms = residuals[:count] / self._weights
        errors = np.concatenate([np.abs(np.expm1(logarithms)) * self._weights,
                                 np.abs(residuals[count:])])
        return float(errors.mean()) + outside


def fit(block: Block, points: Sequence[Point], simulations: Simulations, configs: Path) -> Fit:
    """Fits one block; of `points` only those of split `calibrate` are looked at."""
    chosen = [p for p in points if p.split == "calibrate" and block.chooses(p)
              and isinstance(rules.bind(p), Binding)]
    known = preset_file.values(_preset(configs, block.preset))
    objective = _Objective(block, chosen, simulations, known)
    before = _mean_error(objective.evaluation(objective.start).scored)
    if block.smooth:
        best = _gauss_newton(objective, block.evaluations)
    else:
        simplex = [objective.start]
        for i in range(len(objective.start)):
            corner = objective.start.copy()
            corner[i] += 0.15 if corner[i] <= 0.6 else -0.15
            simplex.append(corner)
        found = optimize.minimize(objective.cost, objective.start, method="Nelder-Mead",
                                  options={"initial_simplex": np.array(simplex), "xatol": 0.01,
                                           "fatol": 0.001, "maxfev": block.evaluations})
        best = np.clip(found.x, 0, 1)
    scored = objective.evaluation(best).scored
    return Fit(block, objective.settings(best), before, _mean_error(scored), scored)


def _gauss_newton(objective: _Objective, evaluations: int) -> _Vector:
    steps = max(2, evaluations // (len(objective.start) + 1))
    found = optimize.least_squares(objective.residuals, np.clip(objective.start, 0.001, 0.999),
                                   jac=objective.jacobian, bounds=(0, 1), loss="soft_l1",
                                   f_scale=0.1, max_nfev=steps, xtol=1e-3, ftol=1e-3)
    return np.asarray(found.x)


def _mean_error(scored: Sequence[score.Scored]) -> float:
    return sum(abs(s.error) for s in scored) / max(1, len(scored))


def _preset(configs: Path, name: str) -> Path:
    return next(iter(configs.glob(f"*/{name}.ini")))


def write(result: Fit, device: str, configs: Path, command: str) -> None:
    """Writes a block's values into its preset and its residuals beside the device's."""
    sets = ", ".join(sorted({s.point.dataset for s in result.scored}))
    evidence = (f"fitted ({command}, block {result.block.name}): {len(result.scored)} points of "
                f"{sets}, mean error {result.after:.1%}")
    preset_file.update(_preset(configs, result.block.preset), result.values, evidence)
    beside = _preset(configs, device).with_suffix(".fit.json")
    report = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else {}
    report["command"] = command
    report.setdefault("blocks", {})[result.block.name] = {
        "preset": result.block.preset, "values": result.values,
        "mean_absolute_error_before": round(result.before, 4),
        "mean_absolute_error": round(result.after, 4),
        "residuals": {s.point.id: {"measured": s.point.value,
                                   "simulated": float(f"{s.simulated:.5g}"),
                                   "error": round(s.error, 4)} for s in result.scored}}
    beside.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
