# SPDX-License-Identifier: Apache-2.0
"""Points to scores: what each published figure is bound to, and what the simulator makes of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Optional

from . import rules, score
from .binding import Run, Unbound, run_of
from .dataset import Point
from .shapes import Shape
from .simulations import Simulations


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What became of a set of points."""

    scored: list[score.Scored]
    failed: dict[Point, str]
    unbound: dict[Point, str]

    @property
    def bound_share(self) -> float:
        """Share of the points that have a simulation."""
        total = len(self.scored) + len(self.failed) + len(self.unbound)
        return 1.0 - len(self.unbound) / total if total else 0.0


def figures_of(shapes: Iterable[Shape], points: Iterable[Point], simulations: Simulations
               ) -> dict[str, float]:
    """What the shapes are judged on: simulated figures of their points and of their own runs."""
    wanted = list(shapes)
    ids = {id_ for shape in wanted for id_ in shape.points}
    own = [run for shape in wanted for run in shape.runs]
    evaluation = evaluate([p for p in points if p.id in ids], simulations, "shapes: points")
    outcomes = simulations.run([run for _, run, _ in own], "shapes: runs of their own")
    figures = {s.point.id: s.simulated for s in evaluation.scored}
    for name, run, key in own:
        result = outcomes[run].result
        if result is not None:
            figures[name] = float(result[key])
    return figures


def with_settings(run: Run, settings: Mapping[str, object]) -> Run:
    """The run with further settings over its own."""
    return run_of(run.presets, {**dict(run.settings), **settings})


def runs_of(point: Point, change: Optional[Callable[[Point, Run], Run]] = None) -> tuple[Run, ...]:
    """The simulations of a point; none when it is not bound."""
    binding = rules.bind(point)
    if isinstance(binding, Unbound):
        return ()
    return tuple(change(point, run) if change else run for run in binding.runs)


def evaluate(points: Iterable[Point], simulations: Simulations, label: str = "",
             quiet: bool = False, change: Optional[Callable[[Point, Run], Run]] = None) -> Evaluation:
    """Simulates the points; `change` may alter each run beforehand."""
    bound = {point: rules.bind(point) for point in points}
    runs = {point: runs_of(point, change) for point in bound}
    outcomes = simulations.run([run for some in runs.values() for run in some], label, quiet)
    result = Evaluation([], {}, {})
    for point, binding in bound.items():
        if isinstance(binding, Unbound):
            result.unbound[point] = binding.reason
            continue
        mine = [outcomes[run] for run in runs[point]]
        error = next((outcome.error for outcome in mine if outcome.result is None), None)
        if error is not None:
            result.failed[point] = error
        else:
            value = binding.figure([o.result for o in mine if o.result is not None])
            first = binding.runs[0]
            protocol = dict(first.settings).get("transport.protocol", "ib")
            result.scored.append(score.Scored(point, value, first.presets[0], protocol))
    return result
