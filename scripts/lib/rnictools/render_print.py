# SPDX-License-Identifier: Apache-2.0
"""Charts as PNG (300 dpi), SVG and PDF for papers and reports."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend must be chosen first)
from matplotlib import ticker  # noqa: E402
from matplotlib.legend import Legend  # noqa: E402

from . import quantities  # noqa: E402
from .chart import (MARKERS, POINTS, REFERENCE, BarChart, Chart, XYChart, bar_color,  # noqa: E402
                    color_of)

FORMATS = ("png", "svg", "pdf")
_STYLE: dict[str, Any] = {
    "figure.figsize": (6.4, 4.0), "savefig.dpi": 300, "font.size": 9, "axes.titlesize": 10,
    "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.labelsize": 9,
    "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "axes.edgecolor": "#555555", "xtick.color": "#333333", "ytick.color": "#333333",
    "legend.frameon": False, "legend.fontsize": 8, "lines.linewidth": 1.6, "lines.markersize": 4,
    "svg.fonttype": "path", "svg.hashsalt": "rnicsim", "pdf.fonttype": 42,
}
#: Nothing in the files depends on when they were made.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def write(chart: Chart, base: Path, formats: tuple[str, ...] = FORMATS) -> list[Path]:
    """Writes BASE.png and so on; returns the files."""
    paths = []
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots()
        if isinstance(chart, XYChart):
            _draw_curves(axes, chart)
        else:
            _draw_bars(axes, chart)
        axes.set_title(chart.title, pad=10)
        for extension in formats:
            path = base.with_name(f"{base.name}.{extension}")
            figure.savefig(path, bbox_inches="tight", metadata=_METADATA[extension])
            paths.append(path)
        plt.close(figure)
    return paths


def _draw_curves(axes: Any, chart: XYChart) -> None:
    for index, series in enumerate(chart.series):
        marker = MARKERS[(index if series.marker is None else series.marker) % len(MARKERS)]
        color = color_of(series, index)
        if series.kind == POINTS:
            axes.plot(series.x, series.y, linestyle="none", marker=marker, markersize=5.5,
                      markerfacecolor="none", markeredgecolor=color, markeredgewidth=1.1,
                      label=series.name, zorder=4)
        elif series.kind == REFERENCE:
            axes.plot(series.x, series.y, linestyle=(0, (4, 2)), linewidth=1.0, color=color,
                      label=series.name, zorder=2)
        else:
            axes.plot(series.x, series.y, marker=marker, color=color, label=series.name, zorder=3)
    _scale(axes, chart)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    _legend(axes, [series.name for series in chart.series],
            sum(series.kind == POINTS for series in chart.series))


def _scale(axes: Any, chart: XYChart) -> None:
    if chart.y_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        low, high = axes.get_ylim()
        if math.log10(high / low) < 1.5:
            axes.yaxis.set_minor_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    if chart.x_bytes or chart.x_log:
        axes.set_xscale("log", base=2 if chart.x_bytes else 10)
    xs = sorted({x for series in chart.series for x in series.x})
    if chart.x_ticks or (chart.x_bytes and xs):
        axes.set_xticks(chart.x_ticks or _byte_ticks(xs[0], xs[-1]))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    if chart.x_bytes:
        axes.xaxis.set_major_formatter(
            ticker.FuncFormatter(lambda value, _: quantities.format_bytes(value)))
        if len(axes.get_xticks()) > 8:
            axes.tick_params(axis="x", labelrotation=35)
            for text in axes.get_xticklabels():
                text.set_horizontalalignment("right")
                text.set_rotation_mode("anchor")
    elif chart.x_ticks:
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    if chart.y_from_zero and not chart.y_log:
        axes.set_ylim(bottom=0)


def _byte_ticks(low: float, high: float) -> list[float]:
    """Powers of two between two sizes; every second or fourth one when there are many."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = 1 if last - first <= 10 else 2 if last - first <= 20 else 4
    ticks = [2.0**n for n in range(first, last + 1, step)]
    if ticks[-1] < high:
        # The last size is labelled; a neighbour too close to it is not.
        ticks[-1 if last - math.log2(ticks[-1]) < step else len(ticks):] = [2.0**last]
    return ticks


def _draw_bars(axes: Any, chart: BarChart) -> None:
    count = len(chart.categories)
    width = 0.62 if chart.stacked else 0.8 / max(1, len(chart.values))
    bottoms = [0.0] * count
    for index, (name, values) in enumerate(chart.values.items()):
        color = bar_color(chart, name, index)
        if chart.stacked:
            axes.bar(range(count), values, width, bottom=bottoms, color=color, label=name,
                     edgecolor="white", linewidth=0.4)
            bottoms = [b + v for b, v in zip(bottoms, values)]
        else:
            offset = (index - (len(chart.values) - 1) / 2) * width
            axes.bar([i + offset for i in range(count)], values, width, color=color, label=name,
                     edgecolor="white", linewidth=0.4)
    if chart.stacked:
        for position, total in enumerate(bottoms):
            axes.annotate(f"{total:.0f}", (position, total), xytext=(0, 3), fontsize=8,
                          textcoords="offset points", ha="center")
    axes.set_xticks(range(count), chart.categories)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel(chart.y_label)
    if chart.stacked:
        # Read from top to bottom, the legend follows the stack.
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5))
    else:
        _legend(axes, list(chart.values))


def _legend(axes: Any, names: list[str], measured: int = 0) -> None:
    """Below the axes, where it hides nothing: the curves, then the last `measured` names apart."""
    if len(names) < 2:
        return
    handles, labels = axes.get_legend_handles_labels()
    rotated = any(text.get_rotation() for text in axes.get_xticklabels())
    top = -0.25 if rotated else -0.15
    curves = len(names) - measured
    for first, last in ((0, curves), (curves, len(names))):
        if first == last:
            continue
        longest = max(len(name) for name in names[first:last])
        columns = min(4 if longest <= 18 else 3 if longest <= 24 else 2 if longest <= 42 else 1,
                      last - first)
        # Of the figure, not the axes: those would keep one legend and clip the other.
        axes.figure.add_artist(Legend(
            axes, handles[first:last], labels[first:last], loc="upper center",
            bbox_to_anchor=(0.5, top), bbox_transform=axes.transAxes, ncol=columns,
            columnspacing=1.6, handlelength=2.2))
        top -= 0.065 * -(-(last - first) // columns) + 0.01
