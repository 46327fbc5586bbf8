# SPDX-License-Identifier: Apache-2.0
"""Bindings of PCIe, memory and registration measurements."""

from __future__ import annotations

import re
from typing import Any, Optional

from .binding import Binding, Bound, Results, Rule, Unbound, run_of, single
from .dataset import Point

#: pcie-bench's hosts as presets; the first that the set-up names.
_HOSTS = (("E5-2637v3", "xeon_e5_2637v3"), ("E5-2620v3", "xeon_e5_2620v3"),
          ("E5-2630v4", "xeon_e5_2630v4"), ("E5-2630", "xeon_e5_2630"),
          ("E3-1226v3", "xeon_e3_1226v3"))
_OPS = {"DMA_READ": "dma_read", "DMA_WRITE": "dma_write", "DMA_READ+WRITE (each)": "dma_read_write"}


def _host(setup: str) -> Optional[str]:
    return next((preset for name, preset in _HOSTS if name in setup), None)


def _window(params: str) -> str:
    found = re.search(r"(?:window )?(\d+) ?(KB|MB)(?: window)?", params)
    return f"{found.group(1)}{'KiB' if found.group(2) == 'KB' else 'MiB'}" if found else "8KiB"


def _pcie(point: Point) -> Bound:
    op = _OPS.get(point.op)
    if op is None:
        return Unbound("the NFP's direct commands and dependent write-read pairs are its own")
    host = _host(point.setup)
    if host is None:
        return Unbound(f"no preset for the host of {point.setup}")
    settings: dict[str, Any] = {
        "workload.op": op, "workload.msg_size": point.size,
        "workload.window": _window(point.other_params), "workload.access": "random",
        "workload.host_cache": "cold" if "Cold" in point.other_params else "warm"}
    presets = ["nfp6000", host]
    if "remote socket" in point.setup:
        settings["memory.numa_remote"] = "true"
    if "IOMMU" in point.setup:
        settings["iommu.enabled"] = "true"
        settings["iommu.page_size"] = "2MiB" if "super-pages" in point.setup else "4KiB"
    if point.metric.startswith("lat"):
        settings |= {"workload.pattern": "latency", "workload.iterations": 500}
    else:
        settings |= {"workload.pattern": "bandwidth", "workload.iterations": 20000}
    bound = single(point, presets, settings)
    if op == "dma_read_write" and isinstance(bound, Binding):
        return Binding(bound.runs, lambda results: float(results[0]["throughput_gbps"]) / 2)
    return bound


def _bulk_registration(point: Point) -> Bound:
    if "parallel" in point.other_params:
        return Unbound("registration by several threads of the kernel at once is not modelled")
    pages = (point.size or 4096) / 4096
    deregister = "unregister" in point.other_params
    both = point.op.startswith("REG+DEREG")

    def figure(results: Results) -> float:
        config = results[0]["config"]
        register_ns = (float(config["memory.reg_call_cost"])
                       + pages * float(config["memory.reg_page_cost"]))
        deregister_ns = (float(config["memory.dereg_call_cost"])
                         + pages * float(config["memory.dereg_page_cost"]))
        total_ns = register_ns + deregister_ns if both else \
            deregister_ns if deregister else register_ns
        return total_ns / (1e9 if point.metric == "time_s" else 1e3)
    return Binding((run_of(("connectx5", "eth100", "skylake"),
                           {"workload.iterations": 1, "sim.warmup": 0}),), figure)


def _ddio(point: Point) -> Bound:
    if point.op != "WRITE":
        return Unbound("a derived constant, or a flushing READ behind each WRITE")
    return single(point, ("connectx3", "fdr56", "skylake"), {
        "workload.pattern": "bandwidth", "workload.depth": 1, "workload.signal_every": 1,
        "workload.msg_size": point.size, "workload.iterations": 200, "sim.warmup": 20,
        "fabric.topology": "single_switch"})


def _constant(_: Point) -> Bound:
    return Unbound("a constant of a device or protocol, not the outcome of a run")


RULES: dict[str, Rule] = {
    "PCIE": _pcie, "REGBULK": _bulk_registration, "SOCC20": _ddio,
    "TIMER": _constant, "CC": _constant, "SPEC": _constant, "ATTR": _constant,
    "CONN": lambda point: Unbound("set-up of connections over the network is not modelled"),
    "TULIPS": lambda point: Unbound("raw Ethernet packets, no RDMA"),
    "IOTLB": lambda point: Unbound("the kernel's TCP and UDP, no RDMA"),
    "RDATOM": lambda point: single(point, ("connectx7", "eth400", "sapphire_rapids"), {
        "workload.op": "read", "workload.pattern": "bandwidth", "workload.depth": 64,
        "workload.msg_size": point.size, "workload.iterations": 500, "sim.warmup": 64,
        "transport.protocol": "rocev2",
        "transport.max_rd_atomic": point.number(r"max_rd_atomic=(\d+)")}),
}
