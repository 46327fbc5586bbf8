# SPDX-License-Identifier: Apache-2.0
"""Sweep specifications: INI text into the list of points to simulate.

    include = connectx5, write_bw          # before any section: presets or files, passed as -c
    [workload]                             # fixed keys, as in the program's own files
    op = write
    [sweep]                                # one axis a key: the cartesian product is simulated
    workload.msg_size = 2 .. 1MiB x2       # 2, 4, 8, ... 1 MiB; or a list: 64, 4KiB, 1MiB
    transport.protocol = ib, rocev2
    [zip wire]                             # keys that change together: together one axis
    link.rate = 100Gbps, 200Gbps
    nic.clock = 1GHz, 2GHz
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import re
from pathlib import Path
from typing import Iterable, Optional

from . import quantities

INCLUDE = "include"
_KEY = re.compile(r"^[a-z0-9_]+(\.[a-z0-9_]+)*$")
_RANGE = re.compile(r"^(\S+)\s*\.\.\s*(\S+)\s+x\s*(\S+)$")
#: Chosen by the sweep for every point.
_RESERVED = {"output.dir", "output.progress"}
MAX_POINTS = 1_000_000


class SpecError(Exception):
    """A mistake in a sweep specification; the text says where and what."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One simulation: presets and settings, and which of them the sweep varies."""

    includes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    axes: tuple[tuple[str, str], ...]
    name: str

    def ini(self) -> str:
        """The point's settings as a file for the program."""
        lines = ["# Written by scripts/sweep: the settings of this point."]
        section = None
        for key, value in sorted(self.settings):
            head, _, rest = key.partition(".")
            if head != section:
                lines.append(f"[{head}]")
                section = head
            lines.append(f"{rest}={value}")
        return "\n".join(lines) + "\n"


def make_point(includes: Iterable[str], settings: dict[str, str], axes: dict[str, str],
               presets: Optional["Presets"] = None) -> Point:
    """A point and its directory name: what it varies, and a hash of all it depends on."""
    merged = {**settings, **{k: v for k, v in axes.items() if k != INCLUDE}}
    files = tuple(includes)
    if axes.get(INCLUDE):
        files += (axes[INCLUDE],)
    digest = hashlib.sha256()
    for name in files:
        digest.update(f"include {name}\n".encode())
        digest.update((presets or Presets()).content(name))
    for key, value in sorted(merged.items()):
        digest.update(f"{key}={value}\n".encode())
    readable = "-".join(re.sub(r"[^A-Za-z0-9.]+", "_", v) for v in axes.values())[:60].strip("-_.")
    name = f"{readable or 'point'}-{digest.hexdigest()[:12]}"
    return Point(files, tuple(sorted(merged.items())), tuple(axes.items()), name)


class Presets:
    """Finds what `include` names, so that a changed file makes another point."""

    def __init__(self, configs: Optional[Path] = None, beside: Optional[Path] = None) -> None:
        self._configs = configs
        self._beside = beside
        self._found: dict[str, bytes] = {}

    def path(self, name: str) -> Optional[Path]:
        """The file behind a name: relative to the specification, else a preset; None if neither."""
        if "/" in name or name.endswith(".ini"):
            path = Path(name) if self._beside is None else self._beside / name
            return path.resolve() if path.is_file() else None
        found = sorted(self._configs.glob(f"*/{name}.ini")) if self._configs else []
        return found[0] if found else None

    def argument(self, name: str) -> str:
        """What to pass to the program: files absolute, preset names as they are."""
        path = self.path(name)
        return str(path) if path and ("/" in name or name.endswith(".ini")) else name

    def content(self, name: str) -> bytes:
        """The file's bytes, or nothing for a name that only the program knows."""
        if name not in self._found:
            path = self.path(name)
            self._found[name] = path.read_bytes() if path else b""
        return self._found[name]


@dataclasses.dataclass
class Spec:
    """A parsed specification."""

    includes: list[str]
    fixed: dict[str, str]
    axes: list[list[dict[str, str]]]  # an axis is a list of settings that go together
    swept: list[str]                  # varied keys in the order of the file

    def points(self, presets: Optional[Presets] = None) -> list[Point]:
        """All points, the last axis changing fastest. Raises SpecError when there are too many."""
        total = 1
        for axis in self.axes:
            total *= len(axis)
        if total > MAX_POINTS:
            raise SpecError(f"{total} points are more than {MAX_POINTS}")
        result = []
        for choice in itertools.product(*self.axes):
            axes = {key: value for part in choice for key, value in part.items()}
            result.append(make_point(self.includes, self.fixed, axes, presets))
        return result


def expand(text: str) -> list[str]:
    """The values of "a, b, c" or of a geometric range "2 .. 1MiB x2". Raises SpecError."""
    values: list[str] = []
    for item in (part.strip() for part in text.split(",")):
        if not item:
            raise SpecError("an empty value in the list")
        match = _RANGE.match(item)
        values.extend(_geometric(*match.groups()) if match else [item])
    if len(set(values)) != len(values):
        raise SpecError("a value appears twice")
    return values


def _geometric(first: str, last: str, factor: str) -> list[str]:
    low, high, step = (quantities.parse(part) for part in (first, last, factor))
    if low is None or high is None or step is None or step[1]:
        raise SpecError(f"cannot read the range '{first} .. {last} x{factor}'")
    if low[0] <= 0 or high[0] < low[0] or step[0] <= 1:
        raise SpecError(f"the range '{first} .. {last} x{factor}' does not grow from above 0")
    units = {low[1], high[1]} - {""}
    if len(units) > 1 or units - {"B"}:
        raise SpecError("a range is of plain numbers or of bytes")
    values, value = [], low[0]
    while value <= high[0] * (1 + 1e-9):
        values.append(quantities.plain(value))
        value *= step[0]
    return values


def parse(text: str, origin: str = "SPEC") -> Spec:
    """Reads a specification. Raises SpecError with the line of the mistake."""
    parser = _Parser(origin)
    for number, raw in enumerate(text.splitlines(), 1):
        try:
            parser.line(raw.split("#", 1)[0].strip())
        except SpecError as error:
            raise SpecError(f"{origin}:{number}: {error}") from None
    return parser.finish()


class _Parser:
    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._section = ""
        self._includes: list[str] = []
        self._fixed: dict[str, str] = {}
        self._axes: dict[str, dict[str, list[str]]] = {}

    def line(self, text: str) -> None:
        if not text:
            return
        if text.startswith("["):
            if not text.endswith("]") or not text[1:-1].strip():
                raise SpecError(f"'{text}' is not a section")
            self._section = " ".join(text[1:-1].split())
            if self._section == "zip":
                raise SpecError("a zip group needs a name: [zip NAME]")
            return
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise SpecError(f"'{text}' is not 'key = value'")
        self._assign(key, value)

    def _assign(self, key: str, value: str) -> None:
        if self._section == "sweep" or self._section.startswith("zip "):
            self._check(key)
            group = f"sweep {key}" if self._section == "sweep" else self._section
            self._axes.setdefault(group, {})[key] = expand(value) if self._section == "sweep" \
                else [item.strip() for item in value.split(",")]
            if "" in self._axes[group][key]:
                raise SpecError("an empty value in the list")
        elif not self._section and key == INCLUDE:
            self._includes += [name.strip() for name in value.split(",") if name.strip()]
        else:
            full = f"{self._section}.{key}" if self._section else key
            self._check(full)
            self._fixed[full] = value

    def _check(self, key: str) -> None:
        if not _KEY.match(key):
            raise SpecError(f"'{key}' is not a key")
        if key in _RESERVED:
            raise SpecError(f"{key} is chosen by the sweep")
        if key in self._fixed or any(key in group for group in self._axes.values()):
            raise SpecError(f"{key} is given twice")

    def finish(self) -> Spec:
        axes, swept = [], []
        for name, group in self._axes.items():
            lengths = {len(values) for values in group.values()}
            if len(lengths) > 1:
                counts = ", ".join(f"{key} has {len(v)}" for key, v in group.items())
                raise SpecError(f"{self._origin}: [{name}] needs equally long lists: {counts}")
            axes.append([dict(zip(group, values)) for values in zip(*group.values())])
            swept += group
        return Spec(self._includes, self._fixed, axes, swept)
