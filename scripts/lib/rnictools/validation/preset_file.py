# SPDX-License-Identifier: Apache-2.0
"""Changes values in a preset without touching what people wrote around them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

_COMMENT_WIDTH = 100


def values(path: Path) -> dict[str, str]:
    """What the file sets, by full key."""
    found: dict[str, str] = {}
    section = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("["):
            section = text.strip("[] ")
        elif "=" in text:
            key, _, value = text.partition("=")
            found[f"{section}.{key.strip()}" if section else key.strip()] = value.strip()
    return found


def update(path: Path, values: Mapping[str, str], evidence: str) -> None:
    """Sets `values` (full keys) in the file, each below a comment with its evidence.

    A key that is there keeps its place; its own comment is replaced if it is the key's alone.
    New keys go to the end of their section."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for key, value in values.items():
        lines = _set(lines, key, value, evidence)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _set(lines: list[str], key: str, value: str, evidence: str) -> list[str]:
    comment = textwrap.wrap(evidence, _COMMENT_WIDTH, initial_indent="# ", subsequent_indent="# ")
    section, best = "", None  # (end of the section, its name), the longest that fits
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith("["):
            section = text.strip("[] ")
        if section and key.startswith(section + "."):
            if text.partition("=")[0].strip() == key[len(section) + 1:] and "=" in text:
                return _replace(lines, number, f"{key[len(section) + 1:]} = {value}", comment)
            if text and (best is None or len(section) >= len(best[1])):
                best = (number + 1, section)
    if best is None:
        head, _, rest = key.partition(".")
        return [*lines, "", f"[{head}]", *comment, f"{rest} = {value}"]
    at, name = best
    return [*lines[:at], *comment, f"{key[len(name) + 1:]} = {value}", *lines[at:]]


def _replace(lines: list[str], number: int, setting: str, comment: list[str]) -> list[str]:
    first = number
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    following = lines[number + 1].strip() if number + 1 < len(lines) else ""
    shared = following and not following.startswith(("#", "[")) and first < number
    above = lines[:number] if shared else lines[:first]
    return [*above, *comment, setting, *lines[number + 1:]]
