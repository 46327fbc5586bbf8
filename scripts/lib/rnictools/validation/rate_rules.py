# SPDX-License-Identifier: Apache-2.0
"""Bindings of message-rate measurements: many threads, one or more clients, one server."""

from __future__ import annotations

from typing import Any

from .binding import Binding, Bound, Rule, Unbound, ratio, run_of, single
from .dataset import Point

_CX3 = ("connectx3", "fdr56", "sandy_bridge")
_CIB = ("connectib", "fdr56x2", "haswell")
_CX4 = ("connectx4", "edr100", "broadwell")
_CX5 = ("connectx5", "eth100", "broadwell")
_CX7 = ("connectx7", "ndr200", "sapphire_rapids")
_MESSAGES = 2000


def _rate(**more: Any) -> dict[str, Any]:
    return {"workload.pattern": "bandwidth", "workload.iterations": _MESSAGES,
            "sim.warmup": 500, **{key.replace("__", "."): value for key, value in more.items()}}


def _inbound(clients: int, **more: Any) -> dict[str, Any]:
    """Several clients, enough to saturate the server's NIC."""
    return _rate(fabric__hosts=clients + 1, fabric__topology="single_switch",
                 workload__traffic="incast", **more)


def _herd(point: Point) -> Bound:
    size = point.size or 32
    if point.op == "WRITE inbound":
        return single(point, _CX3, _inbound(6, transport__type="uc", workload__msg_size=32,
                                            workload__threads=4, workload__qps=4,
                                            workload__inline_max=128))
    if point.op == "READ inbound":
        return single(point, _CX3, _inbound(6, workload__op="read", workload__msg_size=32,
                                            workload__threads=4, workload__qps=4,
                                            workload__depth=16, workload__signal_every=4))
    if point.op == "READ outbound":
        return single(point, _CX3, _rate(workload__op="read", workload__msg_size=32,
                                         workload__threads=8, workload__qps=8,
                                         workload__depth=16, workload__signal_every=4))
    if point.op == "WRITE outbound" and "all-to-all" not in point.other_params:
        return single(point, _CX3, _rate(transport__type="uc", workload__msg_size=size,
                                         workload__threads=8, workload__qps=8,
                                         workload__inline_max=size))
    if point.op == "WRITE outbound":
        return single(point, _CX3, _rate(transport__type="uc", workload__msg_size=32,
                                         workload__threads=16, workload__bidirectional="true",
                                         workload__qps=point.number(r"(\d+) QPs"),
                                         workload__outstanding=64, workload__signal_every=1,
                                         workload__inline_max=32))
    if point.op == "SEND(UD) outbound":
        return single(point, _CX3, _rate(transport__type="ud", workload__op="send",
                                         workload__msg_size=size, workload__threads=8,
                                         workload__qps=8, workload__inline_max=size))
    if point.op == "READ" and point.metric == "count":
        return Unbound("a device attribute, which the preset states as it is")
    return Unbound("an application protocol (HERD's request and reply) over several verbs")


def _dg16(point: Point) -> Bound:
    presets = _CX3 if "ConnectX-3" in point.device else _CIB
    if point.device == "ConnectX":
        return Unbound("no preset for the first ConnectX")
    size = point.size or 0
    threads = 8 if presets is _CX3 else 14
    op = point.op
    if op.startswith("PARAM"):
        return Unbound("a constant of the device, not a measurement")
    if op in ("SEND(UD)", "SEND0", "SEND>=1"):
        header_only = "header-only" in point.other_params and "Table" not in point.other_params \
            or op == "SEND0"
        batched = "non-batched" not in point.other_params and "batch 1," not in point.other_params
        payload = 0 if header_only else max(size, 16)
        return single(point, presets, _rate(
            transport__type="ud", workload__op="send", workload__msg_size=payload,
            workload__threads=threads, workload__qps=threads,
            workload__post_batch=16 if batched else 1, workload__inline_max=payload))
    if op in ("RECV(UD)", "RECV0", "RECV>=1"):
        payload = 0 if "header-only" == point.other_params or op == "RECV0" else 16
        return single(point, presets, _inbound(
            3, transport__type="ud", workload__op="send", workload__msg_size=payload,
            workload__threads=8, workload__qps=8, workload__post_batch=16,
            workload__inline_max=payload))
    if op == "READ inbound":
        return single(point, presets, _inbound(
            4, workload__op="read", workload__msg_size=size, workload__threads=8,
            workload__qps=8, workload__depth=16, workload__post_batch=4,
            workload__signal_every=4))
    if op == "READ outbound":
        window = point.number(r"window per thread (\d+)")
        if window is None:
            window = 128
        # A thread has a queue pair to each of several servers, so that 16 READs a QP are no limit.
        return single(point, presets, _rate(
            workload__op="read", workload__msg_size=8, workload__threads=threads,
            workload__qps=threads * max(1, (window + 15) // 16),
            workload__depth=max(window, 16), workload__outstanding=window))
    if op == "WRITE outbound":
        window = point.number(r"window per thread (\d+)") or 128
        return single(point, presets, _rate(
            transport__type="uc", workload__msg_size=size or 32, workload__threads=threads,
            workload__qps=threads, workload__depth=window, workload__inline_max=max(size, 32),
            workload__signal_every=1))
    if op == "FETCH_ADD":
        counters = 1 if "Z=1" in point.other_params or presets is _CX3 else 4096
        return single(point, presets, _inbound(
            3, workload__op="atomic_fadd", workload__threads=8, workload__qps=8,
            workload__depth=16, workload__signal_every=1, workload__mr_size=counters * 64,
            workload__access="random"))
    return Unbound("an application (sequencer) over several verbs")


def _val(point: Point) -> Bound:
    op = {"READ": "read", "WRITE": "write", "CAS": "atomic_cas",
          "FETCH_ADD": "atomic_fadd"}[point.op]
    clients = point.number(r"(\d+) clients") or 1
    settings = _inbound(clients, workload__op=op, workload__msg_size=8, workload__threads=12,
                        workload__qps=12, workload__depth=16, workload__signal_every=1,
                        workload__mr_size="1MiB", workload__access="random")
    if "doorbell batching" in point.other_params:
        settings |= {"workload.post_batch": 16, "workload.signal_every": 16}
    elif "sync" in point.other_params:
        settings |= {"workload.depth": 1}
    elif "coroutine" in point.other_params:
        settings |= {"workload.depth": 10}
    return single(point, _CX4, settings)


def _drtmh(point: Point) -> Bound:
    one = run_of(_CX4, _inbound(3, workload__msg_size=32, workload__threads=12, workload__qps=12,
                                workload__post_batch=16, workload__inline_max=32))
    return Binding((one,), lambda results: 2 * float(results[0]["message_rate_mops"]))


def _fasst(point: Point) -> Bound:
    if point.metric == "count" or "shared" in point.other_params:
        return Unbound("queue pairs shared by threads under a lock are not modelled"
                       if "shared" in point.other_params else "a knee, judged as a shape")
    presets, threads = (_CX3, 8) if "ConnectX-3" in point.device else (_CIB, 14)
    base: dict[str, Any] = dict(workload__op="read", workload__msg_size=32,
                                workload__bidirectional="true", workload__depth=64)
    if "1 thread" in point.other_params or "one thread" in point.other_params:
        qps = point.number(r"(\d+) QPs") or 5
        return single(point, presets, _rate(**base, workload__qps=qps, workload__outstanding=64)
                      | {"workload.bidirectional": "false"})
    few = run_of(presets, _rate(**base, workload__threads=threads, workload__qps=6 * threads,
                                workload__outstanding=16))
    if point.metric == "ratio":
        many = run_of(presets, _rate(**base, workload__threads=threads,
                                     workload__qps=22 * threads, workload__outstanding=16))
        return ratio(many, few)
    return Binding((few,), lambda results: float(results[0]["flows"][0]["throughput_gbps"])
                   * 1e3 / (8 * 32))


def _cx7gpu(point: Point) -> Bound:
    if point.metric.startswith("lat"):
        return Unbound("a GPU kernel's put with its own completion protocol")
    qps = point.number(r"(\d+) (?:RC )?QPs") or 1
    params = point.other_params
    if any(word in params for word in ("cooperative", "mini-gda", "CPU proxy")):
        return Unbound("how the GPU's threads share a queue pair is not modelled")
    batch = point.number(r"batch (\d+)") or 16
    return single(point, _CX7, _rate(workload__msg_size=8, workload__qps=qps,
                                     workload__threads=qps, workload__inline_max=8,
                                     workload__post_batch=batch))


RULES: dict[str, Rule] = {
    "HERD14": _herd, "DG16": _dg16, "VAL": _val, "DRTMH": _drtmh, "FASST16": _fasst,
    "CX7GPU": _cx7gpu,
    "XSTORE": lambda point: Unbound("a key-value store's traversals over two NICs"),
    "AVATAR": lambda point: Unbound("queue pairs shared by threads under a lock are not modelled"),
    "DCT": lambda point: Unbound("dynamically connected transport is not modelled"),
}
