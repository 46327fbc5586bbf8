# SPDX-License-Identifier: Apache-2.0
"""The simulations that scripts/compare runs, and their results by what was varied."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Optional

from . import runner, spec

_CONFIGS = Path(__file__).resolve().parents[3] / "configs"
PROTOCOLS = ["ib", "rocev1", "rocev2", "iwarp"]
OPS = ["write", "read", "send"]
#: Path MTU of IB and RoCE, Ethernet MTU of iWARP: what a jumbo-frame installation uses.
MTU = {"ib": 4096, "rocev1": 4096, "rocev2": 4096, "iwarp": 9000}
MTUS = {p: [256, 512, 1024, 2048, 4096] for p in PROTOCOLS[:3]}
MTUS["iwarp"] = [1024, 1500, 2048, 4096, 9000]
SIZES = [2**n for n in range(1, 21)]
QPS = [1, 4, 16, 64]
QPS_QUICK = [1, 16]
#: A core for each queue pair, as long as there are some: one alone posts no more than its doorbells
#: allow, whatever the wire.
CORES = 16
QP_SIZES = [64, 65536]
QP_OPS = ["write", "read"]
MTU_SIZE = 65536

#: The core on which all wires run, and its host: calibrated presets.
PRESET = "connectx5"
PRESETS = (PRESET, "broadwell")

_COMMON = {"link.rate": "100Gbps", "fabric.hosts": "2", "fabric.topology": "back_to_back",
           "transport.type": "rc"}


@dataclasses.dataclass(frozen=True)
class Case:
    """What one simulation is about."""

    group: str  # latency, bandwidth, mtu, qps
    protocol: str
    op: str
    size: int
    mtu: int
    qps: int


def _latency(case: Case, quick: bool) -> dict[str, str]:
    iterations = 20 if quick else 200 if case.size <= 4096 else 50 if case.size <= 65536 else 12
    return {"workload.pattern": "latency", "workload.iterations": str(iterations),
            "sim.warmup": str(max(4, iterations // 10))}


def depth_of(size: int, qps: int = 1) -> int:
    """128 as perftest; fewer for long messages, of which 16 fill any pipe."""
    return 128 if size <= 4096 else 16 if qps > 1 else max(16, min(128, 2**23 // size))


def _bandwidth(case: Case, quick: bool) -> dict[str, str]:
    # Warm-up and iterations count the messages of all QPs together: every send queue turns over
    # once before the measured window and a few times within it.
    depth = depth_of(case.size, case.qps)
    in_flight = depth * case.qps
    packets = -(-case.size // case.mtu)
    iterations = max(4 * in_flight, min(4000, 16384 // packets))
    if quick:
        iterations = 2 * in_flight
    return {"workload.pattern": "bandwidth", "workload.depth": str(depth),
            "workload.iterations": str(iterations), "sim.warmup": str(in_flight)}


def make_point(case: Case, quick: bool) -> spec.Point:
    """The simulation of a case."""
    settings = {**_COMMON, "transport.protocol": case.protocol, "transport.mtu": str(case.mtu),
                "workload.op": case.op, "workload.msg_size": str(case.size),
                "workload.qps": str(case.qps)}
    if case.qps > 1:
        settings["workload.threads"] = str(min(case.qps, CORES))
    settings.update(_latency(case, quick) if case.group == "latency" else _bandwidth(case, quick))
    axes = {"group": case.group, "workload.op": case.op, "transport.protocol": case.protocol,
            "workload.msg_size": str(case.size), "transport.mtu": str(case.mtu),
            "workload.qps": str(case.qps)}
    named = spec.make_point(PRESETS, settings, axes, spec.Presets(_CONFIGS))
    # The group only helps to read the directory's name; the program has no such key.
    pure = tuple((key, value) for key, value in named.settings if key != "group")
    return dataclasses.replace(named, settings=pure)


def cases(quick: bool) -> list[Case]:
    """All cases of the comparison; `quick` thins them out for a smoke run."""
    sizes = [2, 64, 4096, 65536] if quick else SIZES
    mtus = {p: m[::2] if quick else m for p, m in MTUS.items()}
    if quick:
        mtus["iwarp"] = [1500, 9000]
    result = []
    for group in ("latency", "bandwidth"):
        result += [Case(group, p, op, size, MTU[p], 1) for op in OPS for p in PROTOCOLS
                   for size in sizes]
    result += [Case("mtu", p, "write", MTU_SIZE, mtu, 1) for p in PROTOCOLS for mtu in mtus[p]]
    result += [Case("qps", p, op, size, MTU[p], qps) for op in QP_OPS for size in QP_SIZES
               for p in PROTOCOLS for qps in (QPS_QUICK if quick else QPS)]
    return result


class Results:
    """Result files of the comparison by case."""

    def __init__(self, all_cases: list[Case]) -> None:
        self._cases = all_cases
        self._results: dict[Case, dict[str, Any]] = {}

    def add(self, case: Case, directory: Path) -> None:
        """Takes up the result in a point's directory."""
        self._results[case] = runner.load_result(directory / runner.RESULT)

    def get(self, case: Case) -> Optional[dict[str, Any]]:
        """The result of a case; None when it failed."""
        return self._results.get(case)

    def latency(self, op: str, protocol: str, size: int) -> Optional[dict[str, Any]]:
        """Result of the latency run of an operation and size."""
        return self.get(Case("latency", protocol, op, size, MTU[protocol], 1))

    def bandwidth(self, op: str, protocol: str, size: int) -> Optional[dict[str, Any]]:
        """Result of the one-QP bandwidth run of an operation and size."""
        return self.get(Case("bandwidth", protocol, op, size, MTU[protocol], 1))

    def mtu(self, protocol: str, mtu: int) -> Optional[dict[str, Any]]:
        """Result of the run with this MTU."""
        return self.get(Case("mtu", protocol, "write", MTU_SIZE, mtu, 1))

    def qps(self, op: str, protocol: str, size: int, qps: int) -> Optional[dict[str, Any]]:
        """Result of the run with this many queue pairs."""
        return self.get(Case("qps", protocol, op, size, MTU[protocol], qps))

    def sizes(self, group: str = "latency") -> list[int]:
        """Message sizes of a group, smallest first."""
        return sorted({case.size for case in self._cases if case.group == group})

    def mtus(self, protocol: str) -> list[int]:
        """MTUs of a protocol's MTU runs, smallest first."""
        return sorted({c.mtu for c in self._cases if c.group == "mtu" and c.protocol == protocol})

    def qp_counts(self) -> list[int]:
        """Numbers of queue pairs, smallest first."""
        return sorted({case.qps for case in self._cases if case.group == "qps"})

    def items(self, group: str) -> list[tuple[Case, dict[str, Any]]]:
        """Finished cases of a group in the order they were planned."""
        return [(c, self._results[c]) for c in self._cases if c.group == group
                and c in self._results]

    def first(self) -> Optional[dict[str, Any]]:
        """Any result, for what all have in common."""
        return next(iter(self._results.values()), None)
