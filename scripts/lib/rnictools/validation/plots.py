# SPDX-License-Identifier: Apache-2.0
"""Plots of a validation: simulated lines through measured points, one picture a data set."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend must be chosen first)

from ..chart import MARKERS, PALETTE  # noqa: E402
from ..progress import Progress  # noqa: E402
from . import score  # noqa: E402

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
#: Panels of curves in a picture at most, and points that make a curve.
_PANELS = 5
_CURVE = 3
_STYLE: dict[str, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.grid": True, "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5, "axes.axisbelow": True, "axes.spines.top": False,
    "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 7,
    "lines.linewidth": 1.3, "lines.markersize": 5}


@dataclasses.dataclass
class _Curve:
    """Points that differ in one number."""

    panel: tuple[str, str]        #: metric, what x is
    name: str
    points: list[tuple[float, score.Scored]]


def draw_all(scored: Sequence[score.Scored], directory: Path) -> list[Path]:
    """Writes DIRECTORY/DATASET.png for each data set; returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    sets: dict[str, list[score.Scored]] = {}
    for s in scored:
        sets.setdefault(s.point.dataset, []).append(s)
    progress = Progress(len(sets), label="plots")
    paths = []
    for number, (name, members) in enumerate(sorted(sets.items()), 1):
        paths.append(_draw(name, members, directory / f"{name}.png"))
        progress.update(number, 0, name)
    progress.close()
    return paths


def _features(s: score.Scored) -> dict[str, float]:
    """Numbers that may be an axis: message size and those among the parameters, by their text."""
    found: dict[str, float] = {}
    if s.point.size is not None:
        found["message size, B"] = float(s.point.size)
    # The first clauses say what was varied; the rest repeats it.
    text = s.point.other_params.split(";")[0]
    for match in _NUMBER.finditer(text):
        before = re.split(r"[,(]", text[:match.start()])[-1].strip(" =")
        after = re.split(r"[,;)]", text[match.end():])[0].strip()
        label = " ".join(part for part in (_NUMBER.sub("#", before), "#", _NUMBER.sub("#", after))
                         if part)
        found.setdefault(label[:48], float(match.group()))
    return found


def _curves(members: Sequence[score.Scored]) -> list[_Curve]:
    groups: dict[tuple[str, ...], list[score.Scored]] = {}
    for s in members:
        shape = _NUMBER.sub("#", s.point.other_params.split(";")[0])
        metric = s.point.metric
        groups.setdefault((metric, s.point.op, shape, s.point.setup, s.point.device), []).append(s)
    curves = []
    for key, some in groups.items():
        features = [_features(s) for s in some]
        names = list(dict.fromkeys(name for f in features for name in f))
        counts = {name: len({f.get(name) for f in features}) for name in names}
        if not counts or len(some) < _CURVE:
            continue
        axis = max(counts, key=lambda name: counts[name])
        if counts[axis] < _CURVE:
            continue
        others = [name for name in names if name != axis and counts[name] > 1
                  and not _together(features, axis, name)]
        several_mtus = len({s.point.mtu for s in some}) > 1
        split: dict[tuple[str, ...], list[tuple[float, score.Scored]]] = {}
        for s, f in zip(some, features):
            if axis in f:
                # All that is told apart; a legend has room for the first two.
                labels = tuple(f"{name} {f[name]:g}" if "#" not in name
                               else name.replace("#", f"{f[name]:g}", 1)
                               for name in others if name in f)
                if several_mtus:
                    labels = (f"MTU {s.point.mtu or 'unknown'}", *labels)
                split.setdefault(labels, []).append((f[axis], s))
        curves += [_Curve((key[0], axis), f"{key[1]} {', '.join(labels[:2])}".strip(),
                          sorted(points, key=lambda p: p[0]))
                   for labels, points in split.items()]
    return curves


def _together(features: Sequence[dict[str, float]], one: str, other: str) -> bool:
    """Whether two numbers say the same: each value of one goes with a single value of the other."""
    pairs = {(f.get(one), f.get(other)) for f in features}
    return len(pairs) == len({a for a, _ in pairs})


def _draw(name: str, members: Sequence[score.Scored], path: Path) -> Path:
    panels: dict[tuple[str, str], list[_Curve]] = {}
    for curve in _curves(members):
        panels.setdefault(curve.panel, []).append(curve)
    chosen = sorted(panels.items(), key=lambda item: -sum(len(c.points) for c in item[1]))[:_PANELS]
    count = len(chosen) + 1
    columns = min(3, count)
    rows = -(-count // columns)
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.3 * rows),
                                    squeeze=False)
        flat = list(axes.flat)
        for axis, (panel, curves) in zip(flat, chosen):
            _draw_panel(axis, panel, curves)
        _draw_scatter(flat[len(chosen)], members)
        for axis in flat[count:]:
            axis.set_visible(False)
        summary = score.summarise(name, list(members))
        figure.suptitle(f"{name}: {members[0].point.device.split(' (')[0]}; {len(members)} points, "
                        f"mean error {summary.mean_absolute:.1%}", x=0.01, ha="left", fontsize=10)
        figure.tight_layout()
        figure.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(figure)
    return path


def _draw_panel(axis: Any, panel: tuple[str, str], curves: Sequence[_Curve]) -> None:
    values = [v for c in curves for _, s in c.points for v in (s.simulated, s.point.value)]
    places = [x for c in curves for x, _ in c.points]
    for index, curve in enumerate(curves):
        colour = PALETTE[index % len(PALETTE)]
        x = [place for place, _ in curve.points]
        # Points that differ in something their text does not tell make no line.
        line = {"linestyle": "-"} if len(set(x)) == len(x) else {"linestyle": "none", "marker": "."}
        axis.plot(x, [s.simulated for _, s in curve.points], color=colour,
                  label=curve.name[:44] if index < 9 else None, **line)
        axis.plot(x, [s.point.value for _, s in curve.points], linestyle="none",
                  marker=MARKERS[index % len(MARKERS)], markerfacecolor="none",
                  markeredgecolor=colour)
    if min(places) > 0 and max(places) / min(places) > 20:
        axis.set_xscale("log", base=2)
    if min(values) > 0 and max(values) / min(values) > 20:
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, 1.1 * max(values))  # marks of a flat line must not lie on the frame
    axis.set_title(f"{panel[0]} over {panel[1]}", loc="left")
    axis.legend(title="lines and dots simulated, marks measured", title_fontsize=7)


def _draw_scatter(axis: Any, members: Sequence[score.Scored]) -> None:
    good = [s for s in members if s.simulated > 0 and s.point.value > 0]
    for index, split in enumerate(("calibrate", "validate", "context", "sanity")):
        some = [s for s in good if s.point.split == split]
        if some:
            axis.plot([s.point.value for s in some], [s.simulated for s in some], linestyle="none",
                      marker=MARKERS[index], markerfacecolor="none",
                      markeredgecolor=PALETTE[index], label=split)
    if good:
        ends = [min(min(s.point.value, s.simulated) for s in good) / 1.3,
                max(max(s.point.value, s.simulated) for s in good) * 1.3]
        axis.plot(ends, ends, color="#444444", linewidth=0.9)
        for factor in (score.FAR_OFF, 1 / score.FAR_OFF):
            axis.plot(ends, [end * factor for end in ends], color="#AAAAAA", linewidth=0.7,
                      linestyle="--")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.legend()
    axis.set_title("simulated over measured (dashed: factor 1.5)", loc="left")
