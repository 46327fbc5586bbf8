# SPDX-License-Identifier: Apache-2.0
"""Charts as one interactive page that needs nothing but itself."""

from __future__ import annotations

import html
import math
from pathlib import Path

import plotly.graph_objects as go
import plotly.offline

from . import quantities
from .chart import POINTS, REFERENCE, BarChart, Chart, XYChart, bar_color, color_of

_SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star"]
_STYLE = """
body { font-family: system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
       color: #1d2129; background: #fff; }
h1 { font-size: 1.3rem; } .chart { margin: 0 0 2.5rem; } p { color: #555; }
"""


def figure(chart: Chart) -> go.Figure:
    """The chart as a plotly figure."""
    result = go.Figure()
    if isinstance(chart, XYChart):
        _add_curves(result, chart)
    else:
        _add_bars(result, chart)
    result.update_layout(title={"text": chart.title, "x": 0.0, "font": {"size": 15}},
                         template="plotly_white", height=520, hovermode="closest",
                         margin={"l": 70, "r": 20, "t": 50, "b": 60},
                         legend={"font": {"size": 11}})
    return result


def _add_curves(result: go.Figure, chart: XYChart) -> None:
    for index, series in enumerate(chart.series):
        color = color_of(series, index)
        symbol = _SYMBOLS[(index if series.marker is None else series.marker) % len(_SYMBOLS)]
        texts = [quantities.format_bytes(x) if chart.x_bytes else f"{x:g}" for x in series.x]
        if series.details:
            texts = [f"{text}<br>{html.escape(more)}" for text, more in zip(texts, series.details)]
        result.add_trace(go.Scatter(
            x=series.x, y=series.y, name=series.name, text=texts,
            mode={POINTS: "markers", REFERENCE: "lines"}.get(series.kind, "lines+markers"),
            line={"color": color, "dash": "dash" if series.kind == REFERENCE else "solid",
                  "width": 1.2 if series.kind == REFERENCE else 2},
            marker={"color": color, "size": 8 if series.kind == POINTS else 6,
                    "symbol": symbol + ("-open" if series.kind == POINTS else "")},
            hovertemplate="%{text}: %{y:.4g}<extra>%{fullData.name}</extra>"))
    xaxis = {"title": {"text": chart.x_label}}
    if chart.x_bytes or chart.x_log:
        xaxis["type"] = "log"
    if chart.x_bytes:
        ticks = chart.x_ticks or _byte_ticks(chart)
        xaxis.update(tickvals=ticks, ticktext=[quantities.format_bytes(t) for t in ticks])
    elif chart.x_ticks:
        xaxis.update(tickvals=chart.x_ticks, ticktext=[f"{t:g}" for t in chart.x_ticks])
    result.update_xaxes(xaxis)
    result.update_yaxes(title={"text": chart.y_label}, type="log" if chart.y_log else "linear",
                        rangemode="tozero" if chart.y_from_zero else "normal")


def _byte_ticks(chart: XYChart) -> list[float]:
    xs = [x for series in chart.series for x in series.x]
    if not xs:
        return []
    first, last = math.floor(math.log2(min(xs))), math.ceil(math.log2(max(xs)))
    return [2.0**n for n in range(first, last + 1, 1 if last - first <= 12 else 2)]


def _add_bars(result: go.Figure, chart: BarChart) -> None:
    for index, (name, values) in enumerate(chart.values.items()):
        result.add_trace(go.Bar(x=chart.categories, y=values, name=name,
                                marker={"color": bar_color(chart, name, index)},
                                hovertemplate="%{x}: %{y:.4g}<extra>%{fullData.name}</extra>"))
    result.update_layout(barmode="stack" if chart.stacked else "group",
                         legend={"traceorder": "reversed" if chart.stacked else "normal"})
    result.update_yaxes(title={"text": chart.y_label})


def write(charts: list[Chart], path: Path, title: str, note: str = "") -> None:
    """Writes all charts into one page, with the drawing library inside."""
    parts = ["<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'>",
             f"<title>{html.escape(title)}</title><style>{_STYLE}</style>",
             f"<script>{plotly.offline.get_plotlyjs()}</script></head><body>",
             f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(note)}</p>" if note else ""]
    for index, chart in enumerate(charts):
        # "</" would end the script element inside a text.
        data = figure(chart).to_json().replace("</", "<\\/")
        parts.append(f"<div class='chart' id='chart{index}'></div><script>(function () {{"
                     f"var f = {data}; Plotly.newPlot('chart{index}', f.data, f.layout, "
                     "{displaylogo: false, responsive: true});})();</script>")
    parts.append("</body></html>\n")
    path.write_text("\n".join(parts), encoding="utf-8")
