# SPDX-License-Identifier: Apache-2.0
"""Errors of the simulator against measurements, point by point and in summary."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Optional

from scipy import stats

from .dataset import Point

#: A point this far off, as a ratio, is listed on its own.
FAR_OFF = 1.5


@dataclasses.dataclass(frozen=True)
class Scored:
    """A measured figure and its simulated counterpart."""

    point: Point
    simulated: float
    preset: str = ""      #: of the NIC it was simulated with
    protocol: str = ""    #: and the wire

    @property
    def error(self) -> float:
        """Relative error: (simulated - measured) / measured."""
        return (self.simulated - self.point.value) / self.point.value

    @property
    def far_off(self) -> bool:
        """Whether simulated and measured differ by more than a factor of FAR_OFF."""
        if self.simulated <= 0 or self.point.value <= 0:
            return True
        return abs(math.log(self.simulated / self.point.value)) > math.log(FAR_OFF)


@dataclasses.dataclass(frozen=True)
class Summary:
    """Errors of a group of points."""

    name: str
    count: int
    mean_absolute: float           #: mean of |error|
    bias: float                    #: mean of error
    worst: Scored
    rank: Optional[float]          #: Spearman's rank correlation; None below three points
    far_off: int


def summarise(name: str, scored: list[Scored]) -> Summary:
    """Figures of a group that is not empty."""
    errors = [s.error for s in scored]
    rank = None
    measured = [s.point.value for s in scored]
    simulated = [s.simulated for s in scored]
    if len(scored) >= 3 and len(set(measured)) > 1 and len(set(simulated)) > 1:
        rank = float(stats.spearmanr(measured, simulated).statistic)
    return Summary(name, len(scored), sum(map(abs, errors)) / len(errors),
                   sum(errors) / len(errors), max(scored, key=lambda s: abs(s.error)), rank,
                   sum(s.far_off for s in scored))


def group(scored: Iterable[Scored], key: str) -> list[Summary]:
    """One summary for each value of a property of the points (dataset, device, category ...)."""
    groups: dict[str, list[Scored]] = {}
    for s in scored:
        groups.setdefault(str(getattr(s.point, key)), []).append(s)
    return [summarise(name, members) for name, members in sorted(groups.items())]


def mean_over_groups(summaries: list[Summary]) -> float:
    """Mean of the groups' mean absolute errors: a large data set counts as much as a small one."""
    return sum(s.mean_absolute for s in summaries) / len(summaries)
