# SPDX-License-Identifier: Apache-2.0
"""The summary of a validation: tables for the terminal and, between markers, for README.md."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from . import explanations, score
from .shapes import SHAPES, Figures, Verdict, judge

BEGIN = "<!-- scripts/validate: begin -->"
END = "<!-- scripts/validate: end -->"

#: Kinds of figures, and what the project wants of each: mean over the data sets' mean errors.
KINDS = ("bandwidth", "latency", "rates and scaling")
TARGETS = {"bandwidth": 0.05, "latency": 0.10, "rates and scaling": 0.15}


def kind(scored: score.Scored) -> str:
    """What kind of figure a point is."""
    metric = scored.point.metric
    if metric == "bw_gbps":
        return "bandwidth"
    return "latency" if metric.startswith(("lat", "rtt", "time")) else "rates and scaling"


def by_kind(scored: Iterable[score.Scored]) -> dict[str, list[score.Summary]]:
    """Summaries by data set of each kind of figure."""
    members: dict[str, list[score.Scored]] = {name: [] for name in KINDS}
    for s in scored:
        members[kind(s)].append(s)
    return {name: score.group(some, "dataset") for name, some in members.items() if some}


def verdicts(figures: Figures) -> Mapping[int, list[Verdict]]:
    """Verdicts of all shapes by their number."""
    return {shape.number: judge(shape, figures) for shape in SHAPES}


def shape_lines(figures: Figures) -> list[str]:
    """The shapes for the terminal."""
    lines = []
    for shape in SHAPES:
        results = judge(shape, figures)
        lines.append(f"  {shape.number:>2} {'holds' if all(v.holds for v in results) else 'FAILS':<6}"
                     f" {shape.title}")
        lines += [f"       {'+' if v.holds else '-'} {v.text}" for v in results]
    return lines


def _errors(scored: Sequence[score.Scored]) -> list[str]:
    lines = ["| figures of split `validate` | data sets | points | mean error | wanted | worst |",
             "|---|--:|--:|--:|--:|---|"]
    for name, summaries in by_kind(s for s in scored if s.point.split == "validate").items():
        worst = max((s.worst for s in summaries), key=lambda s: abs(s.error))
        lines.append(f"| {name} | {len(summaries)} | {sum(s.count for s in summaries)} | "
                     f"{score.mean_over_groups(summaries):.1%} | {TARGETS[name]:.0%} | "
                     f"{worst.point.id} {worst.error:+.0%} |")
    return lines


#: No device may be off by more than twice what is wanted of all.
_DEVICE_SLACK = 2.0


def _devices(scored: Sequence[score.Scored]) -> list[str]:
    """Each device's errors of each kind: means over its data sets, those over twice the target bold."""
    judged = [s for s in scored if s.point.split == "validate"]
    lines = ["| preset | " + " | ".join(KINDS) + " |", "|---|" + "--:|" * len(KINDS)]
    for preset in sorted({s.preset for s in judged}):
        cells = []
        by = by_kind(s for s in judged if s.preset == preset)
        for name in KINDS:
            if name not in by:
                cells.append("")
                continue
            error = score.mean_over_groups(by[name])
            text = f"{error:.1%} ({sum(s.count for s in by[name])})"
            cells.append(f"**{text}**" if error > _DEVICE_SLACK * TARGETS[name] else text)
        lines.append(f"| {preset} | " + " | ".join(cells) + " |")
    return lines


def _sets(scored: Sequence[score.Scored]) -> list[str]:
    calibrated = {s.name: s for s in score.group(
        (x for x in scored if x.point.split == "calibrate"), "dataset")}
    judged = {s.name: s for s in score.group(
        (x for x in scored if x.point.split == "validate"), "dataset")}
    lines = ["| data set | device | calibrate | mean error | validate | mean error | rank |",
             "|---|---|--:|--:|--:|--:|--:|"]
    for name in sorted(calibrated.keys() | judged.keys()):
        left, right = calibrated.get(name), judged.get(name)
        some = left or right
        assert some is not None
        rank = "" if right is None or right.rank is None else f"{right.rank:.2f}"
        lines.append(f"| {name} | {some.worst.point.device.split(' (')[0][:24]} | "
                     + (f"{left.count} | {left.mean_absolute:.1%} | " if left else "| | ")
                     + (f"{right.count} | {right.mean_absolute:.1%} | " if right else "| | ")
                     + f"{rank} |")
    return lines


def _misses(scored: Sequence[score.Scored]) -> list[str]:
    groups: dict[str, list[score.Scored]] = {}
    for s in scored:
        if s.far_off:
            groups.setdefault(explanations.of(s), []).append(s)
    lines = []
    for reason, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        names = ", ".join(f"{s.point.id} {s.simulated / s.point.value:.2g}x" for s in members)
        lines.append(f"- {reason}: {names}")
    return lines


def markdown(scored: Sequence[score.Scored], bound_share: float, figures: Figures) -> list[str]:
    """The generated part of README.md."""
    results = verdicts(figures)
    held = [s for s in SHAPES if all(v.holds for v in results[s.number])]
    lines = [f"{len(scored)} published figures have a simulation ({bound_share:.0%} of the splits "
             "`calibrate` and `validate`). Errors are means over data sets of their mean absolute "
             "errors. `scripts/calibrate` never looks at `validate`. What is set by hand is set on rows of "
             "`calibrate`, or on what the data's own README infers in its sections 1 and 2. Those quote some "
             "rows of `validate`: posting READs at 10.9 M/s (FASST16), two nodes against a loopback "
             "(ROCE100K8S), doorbells of a GPU (CX7GPU), registration of 8 KiB (REGBULK), a sender without "
             "losses (ERPC), contexts of ConnectX-5 to -7, connections of DCT, one thread's latency (VAL). "
             "Set with other rows of `validate` in view were the hosts of PCIE; atomics of a queue pair in "
             "turn; how programs of VAL, DG16, HERD14, CX7GPU and RBENCH post (one by one or in lists, inline or "
             "not); which of several structures WQE caches have, and their size on Connect-IB (DG16, RBENCH); "
             "96 rather than 104 contexts and 13 rather than 15 packets between scheduler and wire on ConnectX-3 "
             "(RBENCH-058, by shape 7), and its translation's latency (CX3ROCE40-002); half of two queue pairs' rate "
             "for one in CX6LOOP; the order of WRITE and READ in SOCC20; hosts of CX5EDRGPU, ROCE100A100 and "
             "CX6LOOP; what a coroutine takes of its core (VAL, from one thread's rate); how long the runs with "
             "losses are (ERPC-035). Errors of those sets are therefore not those of a blind test.", "", *_errors(scored), "",
             "By preset, points in brackets (bold: more than twice what is wanted of all):", "",
             *_devices(scored), "", "<details><summary>By data set</summary>", "", *_sets(scored), "",
             "</details>", "",
             f"Of {len(SHAPES)} shapes (order, knee, slope) {len(held)} hold in every part:", "",
             "| | shape | parts that hold | what does not |", "|--:|---|--:|---|"]
    for shape in SHAPES:
        parts = results[shape.number]
        wrong = "; ".join(v.text for v in parts if not v.holds)
        lines.append(f"| {shape.number} | {shape.title} | {sum(v.holds for v in parts)} of "
                     f"{len(parts)} | {wrong} |")
    lines += ["", f"Wrong by a factor of {score.FAR_OFF} or more:", "", *_misses(scored)]
    return lines


def write_presets(path: Path, scored: Sequence[score.Scored]) -> None:
    """Errors of each preset on split `validate`, by wire and kind: what scripts/compare quotes."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for s in scored:
        if s.point.split == "validate":
            groups.setdefault((s.preset, s.protocol, kind(s)), []).append(abs(s.error))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["preset", "protocol", "kind", "points", "mean_absolute_error"])
        for key, errors in sorted(groups.items()):
            writer.writerow([*key, len(errors), f"{sum(errors) / len(errors):.4f}"])


def write_readme(path: Path, lines: Sequence[str]) -> None:
    """Replaces what stands between the markers. Raises ValueError when there are none."""
    text = path.read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise ValueError(f"{path}: no lines '{BEGIN}' and '{END}'")
    path.write_text(text[:begin] + BEGIN + "\n" + "\n".join(lines) + "\n" + text[end:],
                    encoding="utf-8")
