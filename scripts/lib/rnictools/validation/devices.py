# SPDX-License-Identifier: Apache-2.0
"""What scripts/calibrate fits: for each device its blocks, their parameters, ranges and points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .calibration import Block, Parameter
from .dataset import Point


def _stage(name: str, low: float = 2, high: float = 1200, start: float = 40) -> Parameter:
    """Latency of a pipeline stage in cycles: from a few to what no ASIC needs."""
    return Parameter(f"nic.{name}.latency", low, high, start)


def _interval(name: str, low: float, high: float, start: float) -> Parameter:
    """Cycles from one operation of a stage to the next."""
    return Parameter(f"nic.{name}.interval", low, high, start, logarithmic=True)


def _time(key: str, low: float, high: float, start: float) -> Parameter:
    return Parameter(key, low, high, start, unit="ns", multiple=0)


def _entries(key: str, low: float, high: float, start: float) -> Parameter:
    """Entries of a cache, in sets of eight ways."""
    return Parameter(key, low, high, start, multiple=8, logarithmic=True)


def _latency(datasets: str, largest: int = 1 << 30) -> Callable[[Point], bool]:
    names = datasets.split()
    return lambda p: (p.dataset in names and p.metric.startswith("lat_")
                      and p.metric not in ("lat_min_us", "lat_p99_us")
                      and (p.size or 0) <= largest and p.category in "ab")


def _ids(ids: str) -> Callable[[Point], bool]:
    """Points by id: DG16-001..005 or single ones."""
    wanted = set()
    for item in ids.split():
        name, _, numbers = item.rpartition("-")
        first, _, last = numbers.partition("..")
        wanted |= {f"{name}-{i:03d}" for i in range(int(first), int(last or first) + 1)}
    return lambda p: p.id in wanted


def _bandwidth(datasets: str, smallest: int) -> Callable[[Point], bool]:
    names = datasets.split()
    return lambda p: (p.dataset in names and p.metric == "bw_gbps"
                      and (p.size or 0) >= smallest)


def _link(preset: str, rate: float, points: Callable[[Point], bool]) -> Block:
    """What a link carries besides credits, clock compensation and FEC."""
    return Block("link", preset, (Parameter("link.rate", 0.94 * rate, rate, rate, "Gbps", 0),),
                 points, evaluations=8)


_PATH = (_stage("packetizer", 4), _stage("rx_parse", 4), _stage("dma", 2, 800, 20),
         _stage("responder", 2, 800, 20))


@dataclasses.dataclass(frozen=True)
class Device:
    """A device and its blocks, in the order in which they are fitted."""

    preset: str
    blocks: tuple[Block, ...]


_CX3 = Device("connectx3", (
    _link("qdr40", 32, _bandwidth("CX3QDR", 65536)),
    Block("host", "sandy_bridge", (_time("cpu.doorbell_stall", 0, 200, 70),),
          _ids("CX3QDR-070..079"), smooth=False, evaluations=16),
    # The path's latencies lie between this pair's and another's (connectx3.ini says which).
    Block("latency", "connectx3", (_stage("atomic", 4, 1600, 20),),
          lambda p: _latency("CX3QDR LITE17", 65536)(p) and "MRs" not in p.other_params
          or p.id == "DG16-012", evaluations=42),
    Block("inline", "sandy_bridge", (_time("cpu.blueflame_cost_per_64b", 0, 60, 6),
                                     _time("cpu.inline_cost_per_64b", 0, 40, 4)),
          _latency("CX3QDR", 128), evaluations=18),
    Block("rates", "connectx3", (_interval("rx_parse", 20, 120, 57),
                                 _interval("packetizer", 20, 120, 62),
                                 _interval("dma", 8, 100, 46),
                                 _interval("doorbell", 4, 80, 37),
                                 _interval("qpc_lookup", 10, 100, 42)),
          _ids("HERD14-001..003 HERD14-008..010 HERD14-014 DG16-017..020 FASST16-001 RBENCH-056 "
               "FARM14-032 FARM14-048..050"), smooth=False, evaluations=36),
    Block("caches", "connectx3", (_entries("nic.qpc_cache.entries", 48, 400, 128),
                                  Parameter("nic.context_misses", 1, 8, 1, logarithmic=True)),
          _ids("RBENCH-056 RBENCH-062 RBENCH-071 RBENCH-080 FASST16-001 FARM14-048..055 "
               "HERD14-014..015"),
          smooth=False, evaluations=10),
    Block("translation", "connectx3", (_entries("nic.mtt_cache.entries", 64, 2048, 320),
                                       _entries("nic.mpt_cache.entries", 64, 1000, 256)),
          lambda p: p.dataset in ("FARM14", "LITE17") and
          any(word in p.other_params for word in ("region", "MRs", "drop factor")),
          smooth=False, evaluations=16),
    Block("registration", "sandy_bridge", (_time("memory.reg_call_cost", 5e3, 1e5, 3e4),
                                           _time("memory.reg_page_cost", 100, 3000, 1200)),
          lambda p: p.op == "REG_MR" and p.dataset == "LITE17", evaluations=12),
))

_CIB = Device("connectib", (
    Block("host", "haswell", (_time("pcie.latency", 100, 250, 150),), _ids("DG16-008"),
          evaluations=8),
    Block("latency", "connectib", _PATH, lambda p: p.id == "DCT-014" or p.id == "DG16-008",
          evaluations=15),
    Block("rates", "connectib", (_interval("rx_parse", 8, 40, 16),
                                 _interval("packetizer", 6, 40, 13),
                                 _interval("dma", 4, 40, 12), _interval("doorbell", 4, 40, 12),
                                 _interval("qpc_lookup", 4, 40, 9),
                                 _interval("atomic", 10, 100, 38)),
          _ids("DG16-001..011 DG16-013..016 FASST16-002"), smooth=False, evaluations=40),
    Block("caches", "connectib", (_entries("nic.qpc_cache.entries", 64, 2048, 512),
                                  Parameter("nic.context_misses", 4, 128, 12, logarithmic=True)),
          _ids("RBENCH-103 RBENCH-109 RBENCH-118 RBENCH-127 FASST16-002"),
          smooth=False, evaluations=20),
))

_CX4 = Device("connectx4", (
    Block("rates", "connectx4", (_interval("rx_parse", 8, 40, 15),
                                 _interval("packetizer", 8, 40, 15),
                                 _interval("atomic", 10, 100, 42)),
          _ids("VAL-003 VAL-006 VAL-009 VAL-012"), smooth=False, evaluations=24),
    Block("lists", "broadwell", (_time("cpu.list_saving", 0, 38, 20),), _ids("DRTMH-001"),
          evaluations=8),
))

_CX5 = Device("connectx5", (
    Block("latency", "connectx5", _PATH,
          lambda p: _latency("ERPC")(p) or
          _ids("TULIPS-001..002")(p), evaluations=15),
    Block("host", "skylake", (_time("pcie.latency", 100, 350, 150),),
          _ids("ROCE100K8S-005"), evaluations=8),
    Block("loopback", "connectx5", (_time("nic.loopback_latency", 20, 600, 100),),
          _latency("ROCE100K8S"), evaluations=8),
    Block("caches", "connectx5", (_entries("nic.qpc_cache.entries", 128, 16384, 4096),
                                  Parameter("nic.context_misses", 4, 128, 16, logarithmic=True)),
          _ids("ERPC-003"), smooth=False, evaluations=12),
    Block("registration", "skylake", (_time("memory.reg_page_cost", 100, 3000, 400),
                                      _time("memory.dereg_page_cost", 20, 500, 100)),
          lambda p: p.dataset == "REGBULK", evaluations=12),
))

_CX6 = Device("connectx6", (
    _link("hdr200", 200, _bandwidth("CX6HDR", 1 << 20)),
    # What a message of one queue pair takes between those that the core and those that the wire limits.
    Block("engine", "connectx6", (Parameter("nic.qp_rate", 196, 300, 210, "Gbps", 0),
                                  _time("nic.qp_message_time", 0, 300, 120)),
          _ids("CX6HDR-034..036"), evaluations=18),
    Block("host", "epyc_vm", (_time("cpu.doorbell_stall", 100, 600, 300),),
          _ids("CX6HDR-028..030"), evaluations=8),
    Block("vm", "epyc_vm", (_time("memory.read_latency", 100, 900, 500),
                            _time("memory.read_line_latency", 0, 60, 10),
                            _time("pcie.latency", 100, 500, 150)),
          _latency("CX6HDR", 1 << 17), evaluations=24),
))

_CX7 = Device("connectx7", (
    _link("ndr400", 400, _bandwidth("CX7NDR", 65536)),
    Block("latency", "connectx7", (_stage("packetizer", 4), _stage("rx_parse", 4)),
          lambda p: p.id == "CX7NDR-001", evaluations=9),
    Block("rates", "connectx7", (_interval("packetizer", 4, 24, 8),),
          _ids("CX7GPU-001 CX7GPU-012"), smooth=False, evaluations=8),
    Block("caches", "connectx7", (_entries("nic.qpc_dual_cache.entries", 256, 8192, 1800),),
          _ids("CX7QP-010"), smooth=False, evaluations=8),
    Block("distance", "eth400_far", (_time("link.delay", 100, 20000, 5000),), _ids("RDATOM-001"),
          evaluations=8),
))

_NFP = Device("nfp6000", (
    Block("pcie", "nfp6000", (_time("dma_device.setup_time", 0, 200, 80),
                              _time("dma_device.read_request_time", 0, 20, 5.4),
                              _time("dma_device.write_request_time", 0, 20, 6),
                              _time("dma_device.read_unit_time", 1, 20, 9.25),
                              _time("dma_device.write_unit_time", 1, 40, 16.7)),
          lambda p: p.dataset == "PCIE" and "E5-2637v3" in p.setup, evaluations=20),
))

DEVICES = {device.preset: device for device in (_NFP, _CX3, _CIB, _CX4, _CX5, _CX6, _CX7)}
