# SPDX-License-Identifier: Apache-2.0
"""Command line of scripts/bench: how fast the simulator runs, on fixed scenarios, as JSON.

Rounds are interleaved (every scenario once, then all again), so that a busy moment of the machine
does not fall on one scenario alone. `best` is the figure to compare: noise only slows down."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Optional

from . import runner, sweep
from .progress import Progress

Sample = dict[str, float]

_BASE = {"link.rate": "100Gbps", "fabric.hosts": "2", "fabric.topology": "back_to_back",
         "transport.type": "rc", "workload.pattern": "bandwidth", "workload.op": "write"}
_LARGE = {"transport.protocol": "rocev2", "transport.mtu": "4096", "workload.qps": "1",
          "workload.msg_size": "1048576", "workload.depth": "16", "workload.signal_every": "1",
          "workload.iterations": "800", "sim.warmup": "16"}
_SMALL = {"transport.protocol": "rocev2", "transport.mtu": "4096", "workload.qps": "16",
          "workload.msg_size": "64", "workload.depth": "128", "workload.signal_every": "16",
          "workload.iterations": "160000", "sim.warmup": "2048"}
_PAIRS = {"transport.protocol": "rocev2", "transport.mtu": "4096",
          "fabric.topology": "single_switch", "workload.traffic": "permutation",
          "workload.qps": "8", "workload.msg_size": "65536", "workload.depth": "4",
          "workload.signal_every": "1", "workload.iterations": "20480", "sim.warmup": "32"}
_IDLE = {"workload.idle_qps": "100000"}

#: Scenario name: settings. Names and contents stay as they are, or old baselines lose their sense.
SCENARIOS: dict[str, dict[str, str]] = {
    "rocev2_write_1MiB": {**_LARGE},
    "rocev2_write_1MiB_no_payload": {**_LARGE, "sim.payload": "none"},
    "rocev2_write_1MiB_auto": {**_LARGE, "sim.detail": "auto"},
    "rocev2_write_64B_16qps": {**_SMALL},
    "ib_write_1MiB": {**_LARGE, "transport.protocol": "ib"},
    "iwarp_write_1MiB_mtu_4096": {**_LARGE, "transport.protocol": "iwarp"},
    "iwarp_write_1MiB": {**_LARGE, "transport.protocol": "iwarp", "transport.mtu": "9000"},
    "hosts_2_qps_8": {**_PAIRS, "fabric.hosts": "2"},
    "hosts_64_qps_8": {**_PAIRS, "fabric.hosts": "64", "workload.iterations": "640"},
    "pairs_2_hosts": {**_PAIRS, "workload.traffic": "pair", "fabric.hosts": "2",
                      "workload.iterations": "81920"},
    "pairs_64_hosts": {**_PAIRS, "workload.traffic": "pair", "fabric.hosts": "64",
                       "workload.iterations": "2560"},
    "idle_100k_qps": {**_LARGE, **_IDLE, "workload.msg_size": "4096",
                      "workload.iterations": "2000"},
    "startup": {**_LARGE, "workload.msg_size": "64", "workload.depth": "1",
                "workload.iterations": "1", "sim.warmup": "0"},
}
#: Figures of a scenario: True when more is better.
FIGURES = {"packets_per_s": True, "messages_per_s": True, "wall_s": False, "cpu_s": False,
           "peak_rss_bytes": False}


class BenchError(Exception):
    """A scenario did not run."""


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--rounds", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), metavar="SCENARIO",
                        help=f"one of {', '.join(SCENARIOS)}; may be given more than once")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="also write the JSON here")
    parser.add_argument("--compare", type=Path, metavar="BASELINE.json",
                        help="add the ratio of each figure to an earlier output")
    parser.add_argument("--program", type=Path, default=sweep.default_program(), metavar="FILE")
    options = parser.parse_args(argv)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    options.program = options.program.absolute()
    return options


def run_once(program: Path, settings: dict[str, str]) -> Sample:
    """Runs a scenario once and measures it from outside and by its own figures."""
    with tempfile.TemporaryDirectory(prefix="rnicsim-bench-") as scratch:
        command = [str(program), "run", *(f"--{k}={v}" for k, v in {**_BASE, **settings}.items()),
                   f"--output.dir={scratch}", "--output.progress=off"]
        with open(os.path.join(scratch, "stderr.txt"), "w+b") as errors:
            started = time.perf_counter()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=errors)
            # wait4 gives this child's own processor time and memory.
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
        if process.returncode != 0:
            raise BenchError(f"exit status {process.returncode}: {said}")
        try:
            result = runner.load_result(Path(scratch) / runner.RESULT)
        except (OSError, ValueError) as error:
            raise BenchError(str(error)) from None
    return _figures(result, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024.0)


def _figures(result: dict[str, Any], wall: float, cpu: float, memory: float) -> Sample:
    sim = result.get("sim") or {}
    packets = float(sim.get("data_packets", 0))
    # The program's own clock leaves out its start; without it the whole process counts.
    inner = float(sim.get("wall_s") or wall)
    messages = sum(float(v) for v in (result.get("completions") or {}).values())
    sample = {"wall_s": wall, "cpu_s": cpu, "peak_rss_bytes": memory, "data_packets": packets,
              "simulated_ns": float(sim.get("simulated_ns", 0)),
              "packets_per_s": float(sim.get("packets_per_s") or packets / inner),
              "events_per_packet": float(sim.get("model_events", 0)) / packets if packets else 0.0,
              "kernel_events_per_packet":
                  float(sim.get("kernel_events", 0)) / packets if packets else 0.0}
    rate = result.get("message_rate_mops")
    if rate is not None and sim.get("simulated_ns"):
        # Unsignalled messages complete too: the rate counts them, the completions do not.
        messages = max(messages, float(rate) * 1e-3 * float(sim["simulated_ns"]))
    sample["messages_per_s"] = messages / inner
    return sample


def summarise(samples: list[Sample]) -> dict[str, Any]:
    """Best and median of the noisy figures, the others as they are."""
    summary: dict[str, Any] = {}
    for figure, more_is_better in FIGURES.items():
        values = [sample[figure] for sample in samples]
        summary[figure] = {"best": max(values) if more_is_better else min(values),
                           "median": statistics.median(values)}
    for figure in ("events_per_packet", "kernel_events_per_packet", "data_packets",
                   "simulated_ns"):
        summary[figure] = samples[0][figure]
    return summary


def ratios(now: dict[str, Any], before: dict[str, Any]) -> dict[str, dict[str, float]]:
    """For scenarios in both outputs: new best / old best of each figure, and of events a packet."""
    result: dict[str, dict[str, float]] = {}
    for name, scenario in now["scenarios"].items():
        old = before.get("scenarios", {}).get(name)
        if not old:
            continue
        result[name] = {figure: round(scenario[figure]["best"] / old[figure]["best"], 4)
                        for figure in FIGURES if old.get(figure, {}).get("best")}
        if old.get("events_per_packet"):
            result[name]["events_per_packet"] = round(
                scenario["events_per_packet"] / old["events_per_packet"], 4)
    return result


def _machine() -> dict[str, Any]:
    model = ""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"processor": model or platform.machine(), "cores": sweep.default_jobs(),
            "system": platform.platform()}


def _measure(program: Path, names: list[str], rounds: int) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    progress = Progress(rounds * len(names), label="bench")
    for turn in range(rounds):
        for index, name in enumerate(names):
            try:
                samples[name].append(run_once(program, SCENARIOS[name]))
            except BenchError as error:
                progress.close()
                raise BenchError(f"{name}: {error}") from None
            progress.update(turn * len(names) + index + 1, 0, name)
    progress.close()
    return samples


def main(argv: Optional[list[str]] = None) -> int:
    """Measures and prints JSON; returns the exit status."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    try:
        baseline = json.loads(options.compare.read_text(encoding="utf-8")) \
            if options.compare else None
        samples = _measure(options.program, options.only or list(SCENARIOS), options.rounds)
        report: dict[str, Any] = {
            "schema": 1, "rounds": options.rounds, "machine": _machine(),
            "program": runner.fingerprint(options.program),
            "scenarios": {name: summarise(s) for name, s in samples.items()}}
        if baseline is not None:
            report["ratio_to_baseline"] = ratios(report, baseline)
        text = json.dumps(report, indent=2)
        if options.output:
            options.output.write_text(text + "\n", encoding="utf-8")
    except BenchError as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0
