# SPDX-License-Identifier: Apache-2.0
"""What a plot shows, apart from how it is drawn: the same chart becomes a picture for paper
(render_print) and an interactive page (render_html)."""

from __future__ import annotations

import dataclasses
from typing import Optional, Union

#: Okabe-Ito: distinguishable with every common colour vision, and in print; then darker shades.
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D1F", "#666666",
           "#003A5C", "#8A5F00", "#00513A", "#7A3600", "#73425B", "#2E6E94", "#C9AE6A", "#A8A8A8"]
#: The four wires look the same in every chart.
PROTOCOL_COLORS = dict(zip(("ib", "rocev1", "rocev2", "iwarp"), PALETTE))
PROTOCOL_NAMES = {"ib": "InfiniBand", "rocev1": "RoCEv1", "rocev2": "RoCEv2", "iwarp": "iWARP"}
#: Stacked bars need more colours; neighbours differ in lightness.
STACK_PALETTE = ["#0072B2", "#9FD3F0", "#009E73", "#A6DBC4", "#E69F00", "#F6D99B", "#D55E00",
                 "#F2B08A", "#CC79A7", "#EBC8DB", "#666666", "#BBBBBB"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
LINE = "line"            # simulated: line with small markers
REFERENCE = "reference"  # closed formula: thin dashed line without markers
POINTS = "points"        # measured elsewhere: hollow markers without a line


@dataclasses.dataclass
class Series:
    """One curve or set of points. `colour` None takes the next of the palette."""

    name: str
    x: list[float]
    y: list[float]
    kind: str = LINE
    colour: Optional[str] = None
    marker: Optional[int] = None
    details: list[str] = dataclasses.field(default_factory=list)  # hover text of each point


@dataclasses.dataclass
class XYChart:
    """Curves over a numeric axis. A `bytes` axis is logarithmic with ticks 2 B ... 1 MiB."""

    title: str
    x_label: str
    y_label: str
    series: list[Series]
    x_log: bool = False
    y_log: bool = False
    x_bytes: bool = False
    x_ticks: Optional[list[float]] = None
    y_from_zero: bool = False


@dataclasses.dataclass
class BarChart:
    """Bars over categories, grouped or stacked: `values[name][i]` belongs to `categories[i]`."""

    title: str
    y_label: str
    categories: list[str]
    values: dict[str, list[float]]
    stacked: bool = False
    colours: dict[str, str] = dataclasses.field(default_factory=dict)


Chart = Union[XYChart, BarChart]


def color_of(series: Series, index: int) -> str:
    """The colour of the index-th series of a chart."""
    return series.colour or PALETTE[index % len(PALETTE)]


def bar_color(chart: BarChart, name: str, index: int) -> str:
    """The colour of the index-th set of bars."""
    palette = STACK_PALETTE if chart.stacked else PALETTE
    return chart.colours.get(name) or palette[index % len(palette)]
