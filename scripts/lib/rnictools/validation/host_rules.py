# SPDX-License-Identifier: Apache-2.0
"""Bindings of PCIe, memory and registration measurements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .binding import Binding, Bound, Results, Rule, Run, Unbound, run_of, single
from .dataset import Point
from .workloads import FDR_SWITCH, latency, post_to_completion

#: pcie-bench's hosts as presets; the first that the set-up names.
_HOSTS = (("E5-2637v3", "xeon_e5_2637v3"), ("E5-2620v3", "xeon_e5_2620v3"),
          ("E5-2630v4", "xeon_e5_2630v4"), ("E5-2630", "xeon_e5_2630"),
          ("E3-1226v3", "xeon_e3_1226v3"))
_OPS = {"DMA_READ": "dma_read", "DMA_WRITE": "dma_write",
        "DMA_READ+WRITE (each)": "dma_read_write", "DMA_WRITE_THEN_READ": "dma_read_write",
        "CMD_READ (direct, no DMA engine)": "dma_read", "CMD_WRITE_THEN_READ": "dma_read_write"}


def _window(params: str) -> str:
    found = re.search(r"(?:window )?(\d+) ?(KB|MB)(?: window)?", params)
    return f"{found.group(1)}{'KiB' if found.group(2) == 'KB' else 'MiB'}" if found else "8KiB"


def _pcie(point: Point) -> Bound:
    op = _OPS.get(point.op)
    if op is None:
        return Unbound(f"{point.op} is not an operation of this program")
    host = next((entry for entry in _HOSTS if entry[0] in point.setup), None)
    if host is None:
        return Unbound(f"no preset for the host of {point.setup}")
    settings: dict[str, Any] = {
        "workload.op": op, "workload.msg_size": point.size,
        "workload.window": _window(point.other_params), "workload.access": "random",
        "workload.host_cache": "cold" if "Cold" in point.other_params else "warm"}
    if point.op.startswith("CMD"):
        settings["dma_device.setup_time"] = "0ns"  # no descriptor, no DMA engine
    presets = ["nfp6000", host[1]]
    if "remote socket" in point.setup:
        settings["memory.numa_remote"] = "true"
    if "IOMMU" in point.setup:
        settings["iommu.enabled"] = "true"
        settings["iommu.page_size"] = "2MiB" if "super-pages" in point.setup else "4KiB"
    if point.metric.startswith("lat"):
        settings |= {"workload.pattern": "latency", "workload.iterations": 100, "sim.warmup": 20}
    else:
        settings |= {"workload.pattern": "bandwidth", "workload.iterations": 4000, "sim.warmup": 400}
    bound = single(point, presets, settings)
    if point.op == "DMA_READ+WRITE (each)" and isinstance(bound, Binding):
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


_SOCC20 = ("connectx3", "fdr56", "sandy_bridge")
#: What posting a READ with the WRITE before it saves: the post, and the doorbell's way to the device.
_POSTED_WITH = ("cpu.post_cost", "cpu.doorbell_cost", "cpu.blueflame_cost_per_64b", "pcie.latency")


def _ddio(point: Point) -> Bound:
    """WRITEs with and without DDIO, and flushed by a READ behind them."""
    def run(op: str, ddio: str, size: int) -> Run:
        return run_of(_SOCC20, post_to_completion(size) | {
            "workload.op": op, "workload.msg_size": size, "memory.ddio": ddio, **FDR_SWITCH})

    def latency_us(result: Mapping[str, Any]) -> float:
        return float(result["latency_ns"]["p50"]) / 1e3

    def flush_us(result: Mapping[str, Any]) -> float:
        """A READ that has been posted with the WRITE and begins when that is acknowledged."""
        return latency_us(result) - sum(float(result["config"][key]) for key in _POSTED_WITH) / 1e3
    size = point.size or 64
    if point.op == "WRITE":
        return Binding((run("write", "true", size),), lambda results: latency_us(results[0]))
    flush = run("read", "false", 8)
    if point.op == "WRITE+READ flush":
        # Flushing takes 1.4 us more (SOCC20-012, split calibrate): nearly a READ, so it waits for the WRITE.
        return Binding((run("write", "false", size), flush),
                       lambda results: latency_us(results[0]) + flush_us(results[1]))
    if "flushing READ" in point.other_params:
        return Binding((flush,), lambda results: 1e3 * flush_us(results[0]))
    if "PCIe round trip" in point.other_params:
        ping = run_of(("sandy_bridge",), {"workload.op": "dma_read", "workload.msg_size": 64,
                                          "workload.iterations": 100, "sim.warmup": 20})
        return Binding((ping,), lambda results: 1e3 * latency_us(results[0]))
    return Unbound("a constant that the source derives")


def _raw_packets(point: Point) -> Bound:
    """Ping-pong of raw Ethernet packets of a queue pair, for which UD SENDs stand."""
    if "user TCP/IP" in point.other_params or "user TCP/IP" in point.setup:
        return Unbound("a TCP stack of the application is not modelled")

    def ping(topology: str) -> Run:
        return run_of(("connectx5", "eth100", "broadwell"), latency(64) | {
            "workload.op": "send", "workload.msg_size": 64, "transport.type": "ud",
            "transport.protocol": "rocev2", "fabric.topology": topology})
    direct, switched = ping("back_to_back"), ping("single_switch")

    def one_way(result: Mapping[str, Any]) -> float:
        return float(result["latency_ns"]["p50"])
    if point.op == "SWITCH_HOP":
        return Binding((direct, switched), lambda r: one_way(r[1]) - one_way(r[0]))
    run = switched if "switch" in point.setup else direct
    return Binding((run,), lambda results: 2 * one_way(results[0]))


def _far_reads(point: Point) -> Bound:
    """READs of one queue pair through the network of a data centre, whose length one point tells."""
    outstanding = point.number(r"max_rd_atomic=(\d+)") or 1
    if outstanding > 1:
        return Unbound("over that distance 16 READs of 64 KiB would fill the link twice: what held "
                       "the program to 156 Gb/s is not told")
    return single(point, ("connectx7", "eth400_far", "sapphire_rapids"), {
        "workload.op": "read", "workload.pattern": "bandwidth", "workload.depth": 4,
        "workload.msg_size": point.size, "workload.iterations": 24, "sim.warmup": 8,
        "transport.protocol": "rocev2", "transport.max_rd_atomic": outstanding})


def _constant(_: Point) -> Bound:
    return Unbound("a constant of a device or protocol, not the outcome of a run")


RULES: dict[str, Rule] = {
    "PCIE": _pcie, "REGBULK": _bulk_registration, "SOCC20": _ddio,
    "TIMER": _constant, "CC": _constant, "SPEC": _constant, "ATTR": _constant,
    "CONN": lambda point: Unbound("set-up of connections over the network is not modelled"),
    "TULIPS": _raw_packets,
    "IOTLB": lambda point: Unbound("the kernel's TCP and UDP, no RDMA"),
    "RDATOM": _far_reads,
}
