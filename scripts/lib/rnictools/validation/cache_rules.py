# SPDX-License-Identifier: Apache-2.0
"""Bindings of scalability measurements: many queue pairs, regions and pages against caches."""

from __future__ import annotations

from typing import Any

from .binding import Binding, Bound, Results, Rule, Run, Unbound, ratio, run_of, single
from .dataset import Point

_CX3_IB = ("connectx3", "fdr56", "sandy_bridge")
_CX3_ROCE = ("connectx3", "eth40", "sandy_bridge")
_CIB = ("connectib", "fdr56x2", "haswell")
_CX5 = ("connectx5", "eth80", "broadwell")
_CX7 = ("connectx7", "ndr200", "sapphire_rapids")
_MESSAGES = 1500


def _settings(**more: Any) -> dict[str, Any]:
    return {"workload.pattern": "bandwidth", "workload.iterations": _MESSAGES,
            "sim.warmup": 1000, **{key.replace("__", "."): value for key, value in more.items()}}


def _per_machine(size: int) -> Any:
    """Messages a machine starts per second, in millions: one direction of a symmetric pair."""
    return lambda results: float(results[0]["flows"][0]["throughput_gbps"]) * 1e3 / (8 * size)


def _all_to_all(point: Point, presets: tuple[str, ...], threads: int, qps: int, window: int,
                size: int, **more: Any) -> Binding:
    """All-to-all as one NIC sees it: its queue pairs, all of them used in both directions.

    Every machine does the same, so two that talk to each other over as many queue pairs as one
    has to all others stand for the cluster."""
    settings = _settings(workload__threads=threads, workload__qps=max(qps, threads),
                         workload__bidirectional="true", workload__outstanding=window,
                         workload__depth=max(16, window), workload__msg_size=size, **more)
    return Binding((run_of(presets, settings),), _per_machine(size))


def _rbench(point: Point) -> Bound:
    presets, threads = (_CX3_IB, 8) if "ConnectX-3" in point.device else (_CIB, 14)
    window = point.number(r"window (\d+)") or 16
    op = "read" if point.op.startswith("READ") else "write"
    more: dict[str, Any] = {"workload__op": op}
    if "(UC)" in point.op:
        more["transport__type"] = "uc"
    qps = point.number(r"QPs/NIC=(\d+)")
    if qps is None:
        workers = point.number(r"workers (\d+)") or threads
        machines = point.number(r"(\d+) machines") or 6
        threads = max(1, workers // machines)
        qps = threads * machines
        batch = point.number(r"batch (\d+)")
        if batch and batch <= window:
            more |= {"workload__signal_every": 1, "workload__post_batch": 1}
    return _all_to_all(point, presets, threads, qps, window, point.size or 32, **more)


def _farm(point: Point) -> Bound:
    if point.op.startswith(("TCP", "RDMA message")):
        return Unbound("TCP through the kernel, or FaRM's messages over WRITE, are not modelled")
    if point.metric == "ratio":
        def read(region: str) -> Run:
            return run_of(_CX3_ROCE, _farm_settings(64) | {"workload.mr_size": region})
        return ratio(read("64MiB"), read("8MiB"))
    region = point.number(r"region ([\d]+)(?:\.\d+)? MB")
    if region is not None:
        pages = "2MiB" if "2GB pages" in point.other_params else "4KiB"
        if "2GB pages" in point.other_params:
            pages = "1GiB"
        size = "256KiB" if "region 0.25" in point.other_params else f"{region}MiB"
        settings = _farm_settings(64) | {"workload.mr_size": size, "memory.page_size": pages,
                                         "workload.access": "random", "workload.qps": 16}
        return Binding((run_of(_CX3_ROCE, settings),), _per_machine(64))
    servers = point.number(r"(\d+) servers")
    if servers is not None:
        shared = point.number(r"(\d+) threads share") or 1
        if shared > 1:
            return Unbound("queue pairs shared by threads under a lock are not modelled")
        qps = point.number(r"= (\d+)$") or 32
        return _all_to_all(point, _CX3_ROCE, 16, qps, 16, 64, workload__op="read",
                           transport__protocol="rocev2", transport__mtu=2048)
    size = point.size or 64
    if point.metric == "bw_gbps":
        return single(point, _CX3_ROCE, _farm_settings(size))
    return Binding((run_of(_CX3_ROCE, _farm_settings(size)),), _per_machine(size))


def _farm_settings(size: int) -> dict[str, Any]:
    return _settings(workload__op="read", workload__msg_size=size, workload__threads=16,
                     workload__qps=32, workload__bidirectional="true", workload__outstanding=8,
                     workload__depth=16, transport__protocol="rocev2", transport__mtu=2048)


def _lite(point: Point) -> Bound:
    presets = ("connectx3", "qdr40", "sandy_bridge")
    params = point.other_params
    if point.op == "REG_MR":
        return _registration(presets, point.size or 4096)
    if point.op != "WRITE" or point.metric == "count":
        return Unbound("a knee, judged as a shape" if point.metric == "count"
                       else "TCP through the kernel is not modelled")
    size = point.size or 64
    base: dict[str, Any] = {"workload.op": "write", "workload.msg_size": size,
                            "fabric.topology": "single_switch", "transport.mtu": 2048}
    posted = {"workload.pattern": "bandwidth", "workload.depth": 1, "workload.signal_every": 1,
              "workload.iterations": 400, "sim.warmup": 100}
    mrs = point.number(r"(\d+) MRs")
    if mrs is not None:
        return single(point, presets, base | posted | {
            "workload.mrs": mrs, "workload.mr_size": "4KiB", "workload.access": "random"})
    region = point.number(r"MR size (\d+) MB")
    if region is not None:
        return single(point, presets, base | _settings(
            workload__mr_size=f"{region}MiB", workload__access="random",
            workload__iterations=3000))
    if point.metric.startswith("lat"):
        return single(point, presets, base | posted)
    threads = point.number(r"Verbs (\d+) thread") or 1
    return single(point, presets, base | _settings(workload__threads=threads,
                                                   workload__qps=threads))


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
        return Binding((many,), lambda results: float(results[0]["message_rate_mops"]))
    if point.op == "READ" and point.metric == "lat_median_us":
        nic, link = {"ConnectX-3": ("connectx3", "fdr56"), "ConnectX-5": ("connectx5", "eth40")
                     }.get(point.device.split(" ")[0], ("connectx4", "eth25"))
        protocol = "ib" if link == "fdr56" else "rocev2"
        return single(point, (nic, link, "broadwell"), {
            "workload.op": "read", "workload.msg_size": 32, "workload.iterations": 100,
            "sim.warmup": 20, "transport.protocol": protocol,
            "fabric.topology": "single_switch"})
    if point.op == "WRITE":
        return single(point, ("connectx5", "edr100", "broadwell"), {
            "workload.pattern": "bandwidth", "workload.depth": 1, "workload.signal_every": 1,
            "workload.msg_size": point.size, "workload.iterations": 100, "sim.warmup": 10})
    if point.op == "RPC":
        return Unbound("eRPC's software go-back-N; held as a shape with the NIC's own")
    return Unbound("a constant that the source assumes")


def _erpc_run(connections: int) -> Run:
    return run_of(_CX5, _settings(workload__op="read", workload__msg_size=32,
                                  workload__threads=14, workload__qps=connections,
                                  workload__outstanding=32, transport__protocol="rocev2",
                                  workload__iterations=1000 + 2 * connections // 14))


def _cx7qp(point: Point) -> Bound:
    return Unbound("the sender's threads run on a GPU and pace themselves; held as a shape")


RULES: dict[str, Rule] = {
    "RBENCH": _rbench, "FARM14": _farm, "LITE17": _lite, "ERPC": _erpc, "CX7QP": _cx7qp,
    "HUSKY": lambda point: Unbound("attacks on a shared NIC by other tenants are not modelled"),
}
