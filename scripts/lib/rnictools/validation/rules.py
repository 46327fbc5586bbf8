# SPDX-License-Identifier: Apache-2.0
"""All bindings: which rule a data set has."""

from __future__ import annotations

from . import cache_rules, host_rules, perftest_rules, rate_rules
from .binding import Bound, Rule, Unbound
from .dataset import Point

_RULES: dict[str, Rule] = {**perftest_rules.RULES, **rate_rules.RULES, **cache_rules.RULES,
                           **host_rules.RULES}


def bind(point: Point) -> Bound:
    """The simulations behind a point, or why there are none."""
    rule = _RULES.get(point.dataset)
    return rule(point) if rule else Unbound("context only: too little is known of the set-up")
