# SPDX-License-Identifier: Apache-2.0
"""The published measurements (results/measurements/published.csv; its README has the schema)."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path
from typing import Optional

SPLITS = ("calibrate", "validate", "context", "sanity")


class DatasetError(Exception):
    """The file is not what its schema says; the text names line and column."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One published figure, as its source states it."""

    id: str
    source: str
    device: str
    link: str
    pcie: str
    mtu: str
    setup: str
    op: str
    msg_bytes: str
    other_params: str
    metric: str
    value: float
    confidence: str
    category: str
    split: str

    @property
    def dataset(self) -> str:
        """Name of the data set the point belongs to."""
        return self.id.rsplit("-", 1)[0]

    @property
    def size(self) -> Optional[int]:
        """Message size in bytes; None when the source gives none. "<=64" and "1+" give the number."""
        found = re.search(r"\d+", self.msg_bytes)
        return int(found.group()) if found else None

    def number(self, pattern: str) -> Optional[int]:
        """The number that `pattern` (one group) finds among the parameters, or None."""
        found = re.search(pattern, self.other_params)
        return int(found.group(1)) if found else None


def _value(text: str) -> float:
    """A number, or the middle of a range such as 20-25."""
    ends = re.fullmatch(r"([\d.]+)-([\d.]+)", text)
    return (float(ends.group(1)) + float(ends.group(2))) / 2 if ends else float(text)


def load(path: Path) -> list[Point]:
    """All points of a file. Raises DatasetError for a malformed one."""
    names = [field.name for field in dataclasses.fields(Point)]
    points = []
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [name for name in names if name not in (reader.fieldnames or [])]
        if missing:
            raise DatasetError(f"{path}: no column {missing[0]}")
        for line, row in enumerate(reader, 2):
            if row["split"] not in SPLITS:
                raise DatasetError(f"{path}:{line}: split is {row['split']!r}, "
                                   f"not one of {', '.join(SPLITS)}")
            try:
                value = _value(row["value"])
            except ValueError:
                raise DatasetError(f"{path}:{line}: value {row['value']!r} is no number") from None
            points.append(Point(**{**{name: row[name] for name in names}, "value": value}))
    return points
