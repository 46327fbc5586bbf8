# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/guard: results and instruction counts against those kept in the
repository.

`golden` runs a dozen small simulations and compares every figure of their results with those of
testbench/tests/data/golden.json: an optimisation must not change one bit. `instructions` counts
what a packet and a message cost (valgrind's callgrind, which repeats where seconds do not) and
compares with testbench/tests/data/instructions.json, within 3 %. Who changes either on purpose runs
`scripts/guard --update WHICH` and says why in the commit."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Optional

from . import runner, sweep

Settings = dict[str, str]

_DATA = Path(__file__).resolve().parents[3] / "testbench" / "tests" / "data"
GOLDEN = _DATA / "golden.json"
INSTRUCTIONS = _DATA / "instructions.json"
#: Allowed change of an instruction count, as a share.
TOLERANCE = 0.03
#: valgrind is not there: ctest counts the test as skipped.
SKIPPED = 77

_STREAM = {"workload.pattern": "bandwidth", "workload.op": "write", "workload.qps": "1",
           "workload.msg_size": "1048576", "workload.depth": "4", "workload.signal_every": "1",
           "sim.warmup": "4"}
_SMALL = {"workload.pattern": "bandwidth", "workload.op": "write", "workload.qps": "16",
          "workload.msg_size": "64", "workload.depth": "32", "workload.signal_every": "16",
          "sim.warmup": "512"}


def _golden_scenarios() -> dict[str, Settings]:
    scenarios: dict[str, Settings] = {}
    for protocol in ("ib", "rocev1", "rocev2", "iwarp"):
        base = {"transport.protocol": protocol}
        scenarios[f"{protocol}_stream"] = {**base, **_STREAM, "workload.iterations": "10"}
        scenarios[f"{protocol}_send_latency"] = {
            **base, "workload.pattern": "latency", "workload.op": "send",
            "workload.msg_size": "4096", "workload.iterations": "50"}
        scenarios[f"{protocol}_read_loss"] = {
            **base, **_STREAM, "workload.op": "read", "workload.msg_size": "65536",
            "workload.iterations": "40", "link.loss_rate": "0.005"}
    base = {"transport.protocol": "rocev2"}
    scenarios["rocev2_small"] = {**base, **_SMALL, "workload.iterations": "4000"}
    scenarios["rocev2_caches"] = {
        **base, **_SMALL, "workload.iterations": "4000", "workload.qps": "64",
        "nic.qpc_cache.entries": "16", "nic.mtt_cache.entries": "16"}
    scenarios["rocev2_atomics"] = {
        **base, **_SMALL, "workload.op": "atomic_fadd", "workload.msg_size": "8",
        "workload.iterations": "2000"}
    scenarios["rocev2_incast"] = {
        **base, **_STREAM, "fabric.hosts": "4", "fabric.topology": "single_switch",
        "workload.traffic": "incast", "workload.msg_size": "65536", "workload.iterations": "20"}
    return scenarios


#: Name: settings of a short run, settings of a longer one, and what the difference is divided by.
_COUNTED: dict[str, tuple[Settings, str, str, float]] = {
    "rocev2_stream_packet": ({"transport.protocol": "rocev2", "transport.mtu": "4096", **_STREAM},
                             "6", "18", 12 * 256.0),
    "rocev2_small_message": ({"transport.protocol": "rocev2", **_SMALL}, "1000", "5000", 4000.0),
}


class GuardError(Exception):
    """A run failed, or there is nothing to compare with."""


def _command(program: Path, settings: Settings, directory: str) -> list[str]:
    return [str(program), "run", *(f"--{key}={value}" for key, value in settings.items()),
            f"--output.dir={directory}", "--output.progress=off"]


def _run(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise GuardError(f"exit status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stderr


def figures_of(result: dict[str, Any]) -> dict[str, Any]:
    """What must not change: a result without its configuration and without the machine's part."""
    kept = {key: value for key, value in result.items() if key not in ("config", "version")}
    noise = ("wall_s", "packets_per_s", "peak_rss_bytes", "kernel_events", "model_events")
    kept["sim"] = {key: value for key, value in kept.get("sim", {}).items() if key not in noise}
    return kept


def summary_of(result: dict[str, Any]) -> dict[str, Any]:
    """A fingerprint of all figures, and the few that tell what has changed."""
    figures = figures_of(result)
    text = json.dumps(figures, sort_keys=True, separators=(",", ":"))
    latency = result.get("latency_ns", {})
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(),
            "throughput_gbps": result.get("throughput_gbps"),
            "message_rate_mops": result.get("message_rate_mops"),
            "latency_mean_ns": latency.get("mean"),
            "simulated_ns": result.get("sim", {}).get("simulated_ns"),
            "data_packets": result.get("sim", {}).get("data_packets")}


def golden_now(program: Path) -> dict[str, Any]:
    """Runs the golden scenarios."""
    now: dict[str, Any] = {}
    for name, settings in _golden_scenarios().items():
        with tempfile.TemporaryDirectory(prefix="rnicsim-guard-") as directory:
            try:
                _run(_command(program, settings, directory))
                now[name] = summary_of(runner.load_result(Path(directory) / runner.RESULT))
            except (GuardError, OSError, ValueError) as error:
                raise GuardError(f"{name}: {error}") from None
    return now


def _collected(program: Path, settings: Settings) -> int:
    with tempfile.TemporaryDirectory(prefix="rnicsim-guard-") as directory:
        said = _run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out",
                     *_command(program, settings, directory)])
    found = re.search(r"Collected : (\d+)", said)
    if found is None:
        raise GuardError("callgrind says no instruction count")
    return int(found[1])


def instructions_now(program: Path) -> dict[str, float]:
    """Counts instructions; the start of the program cancels out."""
    now: dict[str, float] = {}
    for name, (settings, few, many, units) in _COUNTED.items():
        counts = [_collected(program, {**settings, "workload.iterations": iterations})
                  for iterations in (few, many)]
        now[name] = round((counts[1] - counts[0]) / units, 1)
    return now


def compare_golden(now: dict[str, Any], kept: dict[str, Any]) -> list[str]:
    """A line for each scenario whose figures are others than those kept."""
    lines = []
    for name in sorted({*now, *kept}):
        if name not in kept or name not in now:
            lines.append(f"{name}: {'not kept' if name not in kept else 'not run'}")
            continue
        if now[name]["sha256"] == kept[name]["sha256"]:
            continue
        changed = [f"{figure} {kept[name][figure]} -> {now[name][figure]}" for figure in kept[name]
                   if figure != "sha256" and kept[name][figure] != now[name][figure]]
        lines.append(f"{name}: {', '.join(changed) or 'a figure of a unit has changed'}")
    return lines


def compare_instructions(now: dict[str, float], kept: dict[str, float]) -> list[str]:
    """A line for each count that is off by more than TOLERANCE."""
    lines = []
    for name, count in now.items():
        before = kept.get(name)
        if not before:
            lines.append(f"{name}: not kept")
        elif abs(count / before - 1) > TOLERANCE:
            lines.append(f"{name}: {before:g} -> {count:g} instructions "
                         f"({100 * (count / before - 1):+.1f} %)")
    return lines


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/guard", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=["golden", "instructions"])
    parser.add_argument("--update", action="store_true", help="keep what is found")
    parser.add_argument("--program", type=Path, default=sweep.default_program(), metavar="FILE")
    options = parser.parse_args(argv)
    options.program = options.program.absolute()
    return options


def main(argv: Optional[list[str]] = None) -> int:
    """Compares or updates; returns the exit status."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    golden = options.which == "golden"
    path = GOLDEN if golden else INSTRUCTIONS
    if not golden and shutil.which("valgrind") is None:
        print("scripts/guard: valgrind is not installed; nothing was counted", file=sys.stderr)
        return SKIPPED
    try:
        now: dict[str, Any] = golden_now(options.program) if golden \
            else instructions_now(options.program)
        if options.update:
            path.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
            return 0
        kept = json.loads(path.read_text(encoding="utf-8"))
    except GuardError as error:
        print(f"scripts/guard: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"scripts/guard: {path}: {error}", file=sys.stderr)
        return 2
    lines = compare_golden(now, kept) if golden else compare_instructions(now, kept)
    for line in lines:
        print(line)
    if lines:
        print(f"If this is meant, run scripts/guard {options.which} --update and say why in the "
              "commit.")
    return 1 if lines else 0
