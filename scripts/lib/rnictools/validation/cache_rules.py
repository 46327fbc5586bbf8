# SPDX-License-Identifier: Apache-2.0
"""Bindings of scalability measurements: many queue pairs, regions and pages against caches."""

from __future__ import annotations

import re
from typing import Any

from .binding import Binding, Bound, Results, Rule, Run, Unbound, ratio, run_of, single
from .dataset import Point
from .workloads import (CLUSTER, ETH40_SWITCH, FDR_SWITCH, RDMA_BENCH, bandwidth, latency,
                        post_to_completion, rate)

_CX3_IB = ("connectx3", "fdr56", "sandy_bridge")
_CX3_ROCE = ("connectx3", "eth40", "sandy_bridge")
_CIB = ("connectib", "fdr56x2", "haswell")
_CX5 = ("connectx5", "eth80", "broadwell")
_CX7 = ("connectx7", "ndr200", "sapphire_rapids")


def _per_machine(results: Results) -> float:
    """Messages a machine starts per second, in millions: one direction of a symmetric pair."""
    return float(results[0]["flows"][0]["message_rate_mops"])


def _all_to_all(presets: tuple[str, ...], threads: int, qps: int, window: int, size: int,
                **more: Any) -> Binding:
    """All-to-all as one NIC sees it: its queue pairs, all of them used in both directions.

    Every machine does the same, so two that talk to each other over as many queue pairs as one
    has to all others stand for the cluster."""
    settings = rate(threads, max(qps, threads), **{
        "workload__bidirectional": "true", "workload__outstanding": window,
        "workload__depth": max(16, window), "workload__msg_size": size, **CLUSTER, **RDMA_BENCH, **more})
    return Binding((run_of(presets, settings),), _per_machine)


def _rbench(point: Point) -> Bound:
    presets, threads = (_CX3_IB, 8) if "ConnectX-3" in point.device else (_CIB, 14)
    window = point.number(r"window (\d+)") or 16
    more: dict[str, Any] = {
        "workload__op": "read" if point.op.startswith("READ") else "write"}
    if point.op.startswith("WRITE"):
        more["workload__inline_max"] = 60  # that program puts up to 60 B into the WQE
    if "(UC)" in point.op:
        more["transport__type"] = "uc"
    qps = point.number(r"QPs/NIC=(\d+)")
    if qps is None:
        workers = point.number(r"workers (\d+)") or threads
        machines = point.number(r"(\d+) machines") or 6
        vms = point.number(r"(\d+) emulated VMs") or machines
        threads = max(1, workers // machines)
        qps = threads * vms
        # A worker that has posted a batch waits for the batch before it: two are in flight at most,
        # unless all of them are signalled, as the name of the sweep tells.
        batch = point.number(r"unsignaled batch (\d+)") or 1
        if "(UC)" in point.op:
            # Nobody answers a UC WRITE: a queue pair goes on until its own completion is due.
            more |= {"workload__depth": 2 * batch, "workload__signal_every": batch}
            window = 0
        window = window if "allsig" in point.source else min(window, 2 * batch)
    return _all_to_all(presets, threads, qps, window, point.size or 32, **more)


_FARM_THREADS = 16
#: What a READ takes one of these threads: 16 of them start 8.5 M/s where nothing misses (FARM14-032,
#: split calibrate).
_FARM_READ_NS = _FARM_THREADS / 8.5e-3
#: For which a shared queue pair's lock is held. With 32 threads, eight to a queue pair, NICs of 9 to 11 M/s
#: are the limit with 16 servers and the locks with 12 (shape 8 of the data's README): 1.8 to 2.5 us.
_FARM_LOCK_NS = 2100.0


def _farm_lock_ns(qps: int, threads: int, sharers: int, machines: int) -> float:
    """What a thread of the simulation, which posts for all that share its queue pairs, takes for a
    READ. `sharers` threads that choose among the locks of as many queue pairs as there are machines:
    a closed network of queues, whose locks are held for s / (s + m - 1) of the time."""
    busy = sharers / (sharers + machines - 1)
    return _FARM_LOCK_NS / busy * threads / qps


def _farm_read(size: int, qps: int = 32, window: int = 8, read_ns: float = _FARM_READ_NS,
               **more: Any) -> Run:
    """FaRM's READ benchmark as one of two machines sees it; a thread takes `read_ns` for each."""
    threads = more.pop("workload__threads", _FARM_THREADS)
    # What posting, polling and a completion take anyway is part of it.
    post_ns = max(40.0, read_ns - 120.0)
    return run_of(_CX3_ROCE, rate(threads, qps, **{
        "workload__op": "read", "workload__msg_size": size, "workload__bidirectional": "true",
        "workload__outstanding": window, "workload__depth": 16, "cpu__post_cost": f"{post_ns:.0f}ns",
        "transport__protocol": "rocev2", "transport__mtu": 2048, **CLUSTER, **more}))


def _farm(point: Point) -> Bound:
    size = point.size or 64
    if point.op.startswith("TCP"):
        return Unbound("TCP through the kernel is not modelled")
    if point.op.startswith("RDMA message"):
        # A request and its reply are a WRITE each; every machine is client and server.
        return Binding((_farm_read(size, workload__op="write"),),
                       lambda results: _per_machine(results) / 2)

    def region(size_text: str, pages: str) -> Run:
        # The requester's buffers, which are few in the source, are as many and random here: half the
        # region on each side, and fetches for both at a time. What one table reaches is shared likewise.
        return _farm_read(64, memory__page_size=pages, workload__mr_size=size_text,
                          workload__access="random", workload__qps=16, nic__context_misses=2,
                          nic__mtt_reach=(1 << 20) // 32)
    if point.metric == "ratio":
        return ratio(region("2MiB", "4KiB"), region("256KiB", "4KiB"))
    megabytes = re.search(r"region ([\d.]+) MB", point.other_params)
    if megabytes is not None:
        pages = "1GiB" if "2GB pages" in point.other_params else "4KiB"
        kibibytes = int(float(megabytes.group(1)) * 1024) // 32  # of a queue pair, half of it
        return Binding((region(f"{kibibytes}KiB", pages),), _per_machine)
    servers = point.number(r"(\d+) servers")
    if servers is not None:
        # 2 x servers x threads / sharers: a thread of the simulation stands for those that share.
        qps = (point.number(r"= (\d+)$") or 32) // 2
        sharers = point.number(r"(\d+) threads share") or 1
        threads = min(qps, 32)
        read_ns = 0.0 if sharers == 1 else _farm_lock_ns(qps, threads, sharers, servers)
        return Binding((_farm_read(64, qps, max(1, 128 // threads), read_ns,
                                   workload__threads=threads),), _per_machine)
    if point.metric == "bw_gbps":
        return Binding((_farm_read(size),), lambda results:
                       float(results[0]["flows"][0]["throughput_gbps"]))
    return Binding((_farm_read(size),), _per_machine)


def _lite(point: Point) -> Bound:
    presets = ("connectx3", "qdr40", "sandy_bridge")
    size = point.size or 64
    if point.op == "REG_MR":
        return _registration(presets, size)
    if point.op != "WRITE" or point.metric == "count":
        return Unbound("a knee, judged as a shape" if point.metric == "count"
                       else "TCP through the kernel is not modelled")
    base: dict[str, Any] = {"workload.op": "write", "workload.msg_size": size,
                            "fabric.topology": "single_switch", "transport.mtu": 2048}
    mrs = point.number(r"(\d+) MRs")
    if mrs is not None:
        return single(point, presets, base | post_to_completion(size) | {
            "workload.mrs": mrs, "workload.mr_size": "4KiB", "workload.access": "random",
            "workload.iterations": 600, "sim.warmup": min(2 * mrs, 2000)})
    region = point.number(r"MR size (\d+) MB")
    if region is not None:
        return single(point, presets, base | bandwidth(size) | {
            "workload.mr_size": f"{region}MiB", "workload.access": "random"})
    if point.metric.startswith("lat"):
        return single(point, presets, base | post_to_completion(size))
    # One thread moves what one message at a time does: 64 KiB in the 20 us of its latency.
    threads = point.number(r"Verbs (\d+) thread") or 1
    return single(point, presets, base | bandwidth(size) | {
        "workload.threads": threads, "workload.qps": threads, "workload.depth": 1,
        "workload.signal_every": 1, "sim.warmup": 8, "workload.iterations": 96})


def _registration(presets: tuple[str, ...], size: int) -> Binding:
    """Time of one ibv_reg_mr, microseconds, from the cost of a region of that size."""
    def figure(results: Results) -> float:
        config = results[0]["config"]
        pages = max(1, size // 4096)
        return (float(config["memory.reg_call_cost"])
                + pages * float(config["memory.reg_page_cost"])) / 1e3
    return Binding((run_of(presets, {"workload.iterations": 1, "sim.warmup": 0}),), figure)


def _erpc(point: Point) -> Bound:
    connections = point.number(r"(\d+) connections")
    if connections is not None:
        many = _erpc_run(connections)
        if point.metric == "ratio":
            return ratio(many, _erpc_run(110))
        return Binding((many,), _per_machine)
    if point.op == "READ" and point.metric == "lat_median_us":
        nic, link = {"ConnectX-3": ("connectx3", "fdr56"), "ConnectX-5": ("connectx5", "eth40")
                     }.get(point.device.split(" ")[0], ("connectx4", "eth25"))
        fabric = {"fdr56": {"transport.protocol": "ib", **FDR_SWITCH},
                  "eth40": {"transport.protocol": "rocev2", **ETH40_SWITCH}}.get(
                      link, {"transport.protocol": "rocev2", "fabric.topology": "single_switch"})
        return single(point, (nic, link, "broadwell"), latency(32) | {
            "workload.op": "read", "workload.msg_size": 32, **fabric})
    if point.op == "WRITE":
        size = point.size or 0
        return single(point, ("connectx5", "edr100", "broadwell"), post_to_completion(size) | {
            "workload.msg_size": size, "fabric.topology": "single_switch"})
    if point.op == "RPC":
        return Binding((loss_run(float(point.other_params.split()[-1])),),
                       lambda results: float(results[0]["throughput_gbps"]))
    return Unbound("a constant that the source assumes")


def _erpc_run(connections: int) -> Run:
    return run_of(_CX5, rate(14, connections, workload__op="read", workload__msg_size=32,
                             workload__bidirectional="true", workload__outstanding=32,
                             transport__protocol="rocev2", **CLUSTER))


def loss_run(rate_of_loss: float) -> Run:
    """eRPC's own go-back-N, for which the NIC's stands: no NAKs, a timer of 4.2 ms (5 in eRPC), and
    what one core moves without losses, 73 Gb/s (section 1.8 of the data's README)."""
    # Enough packets for nine losses at 1e-5, and for a steady state at more.
    messages = 900 if rate_of_loss < 1e-4 else 150
    return run_of(("connectx5", "edr100", "broadwell"), {
        "workload.pattern": "bandwidth", "workload.msg_size": 1 << 20, "workload.depth": 2,
        "workload.signal_every": 1, "workload.iterations": messages, "sim.warmup": 4,
        "link.loss_rate": rate_of_loss, "transport.sequence_nak": "false",
        "transport.ack_timeout": 10, "transport.window": 96, "transport.mtu": 1024,
        "nic.qp_rate": "73Gbps"})


def _cx7qp(point: Point) -> Bound:
    """What is left of the rate with so many connections, over 64 of them."""
    if point.metric != "ratio":
        return Unbound("the sender's threads run on a GPU and pace themselves")
    if point.other_params.startswith("DC"):
        return Unbound("dynamically connected transport is not modelled")
    connections = point.number(r"(\d{4,})") or 1024
    if "QPs/dir" in point.other_params:
        connections *= 2  # as many for each direction; here all of them carry both
    both = "one sender" not in point.other_params

    def many(qps: int) -> Run:
        return run_of(_CX7, rate(16, qps, workload__op="write", workload__msg_size=8,
                                 workload__inline_max=8, workload__outstanding=32,
                                 workload__bidirectional="true" if both else "false"))
    return ratio(many(connections), many(64))


RULES: dict[str, Rule] = {
    "RBENCH": _rbench, "FARM14": _farm, "LITE17": _lite, "ERPC": _erpc, "CX7QP": _cx7qp,
    "HUSKY": lambda point: Unbound("attacks on a shared NIC by other tenants are not modelled"),
}
