# SPDX-License-Identifier: Apache-2.0
"""Bindings of message-rate measurements: many threads, one or more clients, one server."""

from __future__ import annotations

import re
from typing import Any

from . import workloads
from .binding import Binding, Bound, Rule, Run, Unbound, ratio, run_of, single
from .dataset import Point
from .workloads import CLUSTER, RDMA_BENCH, inbound, rate

CX3 = ("connectx3", "fdr56", "sandy_bridge")
CIB = ("connectib", "fdr56x2", "haswell")
_CX4 = ("connectx4", "edr100", "broadwell")
_CX7 = ("connectx7", "ndr200", "sapphire_rapids")


#: Many machines receive what one sends; here it is one, whose receive path must not be the limit.
_RECEIVERS = {"nic__rx_parse__interval": 1, "nic__dma__interval": 2}
#: Queue pairs of a thread, each to another server, in the sweeps over windows of READs.
_SERVERS = 4
#: One machine to all others of its cluster, behind their FDR switch.
_ONE_TO_ALL = {key.replace(".", "__"): value for key, value in workloads.FDR_SWITCH.items()}


def _herd(point: Point) -> Bound:
    size = point.size or 32
    if point.op == "WRITE inbound":
        # RC instead of UC: the same work for the NIC that is written to, but ACKs, which hold the
        # senders back to what it accepts.
        return single(point, CX3, inbound(2, 4, 4, workload__msg_size=32,
                                          workload__inline_max=128))
    if point.op == "READ inbound":
        return single(point, CX3, inbound(2, 6, 6, workload__op="read", workload__msg_size=32,
                                          workload__depth=16, workload__signal_every=4))
    if point.op == "READ outbound":
        # Who READs has to learn of each answer.
        return single(point, CX3, rate(8, 8, workload__op="read", workload__msg_size=32,
                                       workload__depth=16, workload__signal_every=1))
    if point.op == "WRITE outbound" and "all-to-all" not in point.other_params:
        return single(point, CX3, rate(8, 8, transport__type="uc", workload__msg_size=size,
                                       workload__inline_max=size))
    if point.op == "WRITE outbound":
        qps = point.number(r"(\d+) QPs") or 16
        return single(point, CX3, rate(16, qps, transport__type="uc", workload__msg_size=32,
                                       workload__outstanding=64, workload__signal_every=1,
                                       workload__inline_max=32))
    if point.op == "SEND(UD) outbound":
        return single(point, CX3, rate(8, 8, transport__type="ud", workload__op="send",
                                       workload__msg_size=size, workload__inline_max=size,
                                       **_RECEIVERS))
    if point.op == "READ" and point.metric == "count":
        return Unbound("a device attribute, which the preset states as it is")
    return Unbound("an application protocol (HERD's request and reply) over several verbs")


def _datagrams(point: Point, presets: tuple[str, ...], threads: int) -> Bound:
    """DG16's SENDs and RECVs; SEND0 and RECV0 have no payload."""
    size = point.size or 0
    table = re.search(r"cachelines=(\d+)", point.other_params)
    header_only = point.op in ("SEND0", "RECV0") or \
        ("header-only" in point.other_params and "Table" not in point.other_params)
    payload = 0 if header_only else size if table else 16
    if point.op.startswith("RECV"):
        if header_only:
            return Unbound("messages without payload are not counted where they arrive")
        # RC instead of UD: nothing would hold the senders back to what the receiver accepts.
        return single(point, presets, inbound(
            2, threads, threads, workload__op="send", workload__msg_size=payload,
            workload__post_batch=16, workload__inline_max=payload, workload__recv_batch=16,
            workload__recv_depth=256))
    batched = "non-batched" not in point.other_params and "batch 1," not in point.other_params
    return single(point, presets, rate(
        threads, threads, transport__type="ud", workload__op="send",
        workload__msg_size=payload, workload__post_batch=16 if batched else 1,
        workload__inline_max=payload, workload__recv_batch=16, workload__recv_depth=512,
        **_RECEIVERS, **({"nic__max_inline": payload} if payload > 220 else {})))


def _dg16(point: Point) -> Bound:
    if point.device == "ConnectX":
        return Unbound("no preset for the first ConnectX")
    presets, threads = (CX3, 8) if "ConnectX-3" in point.device else (CIB, 14)
    size = point.size or 0
    op = point.op
    if op.startswith("PARAM"):
        if "useful DMA read" in point.other_params:
            run = run_of(("gen3_x16",), {
                "workload.op": "dma_read", "workload.pattern": "bandwidth",
                "workload.msg_size": 4096, "workload.window": "256KiB",
                "workload.iterations": 4000})
            return Binding((run,), lambda results: float(results[0]["throughput_gbps"]) * 125)
        return Unbound("a constant of the device or of PCIe, not a measurement")
    if op.split("(")[0].rstrip("0>=1") in ("SEND", "RECV"):
        return _datagrams(point, presets, threads)
    if op == "READ inbound":
        return single(point, presets, inbound(
            2, threads, 2 * threads, workload__op="read", workload__msg_size=size, workload__depth=16,
            workload__post_batch=4, workload__signal_every=4))
    if op == "READ outbound":
        # A rate without a window is the best one's, which is 16 on ConnectX-3 and 24 on Connect-IB.
        best = 16 if presets is CX3 else 24
        window = point.number(r"window per thread (\d+)") or best
        # A thread has a queue pair to each of several servers, with 16 READs on their way at most; what
        # is more of a window waits in the rings.
        return single(point, presets, rate(
            threads, threads * max(1, min(_SERVERS, -(-window // 16))), workload__op="read",
            workload__msg_size=8, workload__depth=max(window, 16), workload__outstanding=window,
            **_ONE_TO_ALL))
    if op == "WRITE outbound":
        window = point.number(r"window per thread (\d+)") or 128
        return single(point, presets, rate(
            threads, threads, transport__type="uc", workload__msg_size=size or 32,
            workload__depth=window, workload__inline_max=max(size, 32),
            workload__signal_every=1 if window < 4 else window // 4, **_ONE_TO_ALL))
    if op == "FETCH_ADD":
        counters = 1 if "Z=1" in point.other_params or presets is CX3 else 4096
        return single(point, presets, inbound(
            2, 8, 8, workload__op="atomic_fadd", workload__depth=16, workload__signal_every=1,
            workload__mr_size=counters * 64, workload__access="random"))
    return Unbound("an application (sequencer) over several verbs")


def _val(point: Point) -> Bound:
    op = {"READ": "read", "WRITE": "write", "CAS": "atomic_cas",
          "FETCH_ADD": "atomic_fadd"}[point.op]
    clients = point.number(r"(\d+) clients") or 1
    more: dict[str, Any] = {
        "workload.op": op, "workload.msg_size": 8, "workload.depth": 16,
        "workload.signal_every": 1, "workload.mr_size": "256KiB", "workload.access": "random",
        "memory.page_size": "2MiB"}  # that library's memory is of huge pages
    if "doorbell batching" in point.other_params:
        # The next batch is posted when the last one is complete: with one client, 12 threads with
        # 16 READs each make 66 M/s of a latency of 2.07 us and the time to post and serve them.
        more |= {"workload.depth": 16, "workload.post_batch": 16, "workload.signal_every": 16}
    elif "sync" not in point.other_params and "coroutine" not in point.other_params:
        # 16 posts of 143 ns, then 2.07 us for the answers: 3.67 M/s of a thread, which is measured.
        more |= {"workload.depth": 16, "workload.post_batch": 16, "workload.signal_every": 16,
                 "workload.batch_as_list": "false"}
    elif "sync" in point.other_params:
        more |= {"workload.depth": 1}
    elif "coroutine" in point.other_params:
        # One thread with ten coroutines makes 2.5 M/s there (the same documentation, in no row of the data
        # set): each READ takes its core 235 ns for the change of coroutine and the look for completions.
        more |= {"workload.depth": 10, "cpu.post_cost": "275ns"}
    keywords = {key.replace(".", "__"): value for key, value in more.items()}
    return single(point, _CX4, inbound(clients, 12, 12, **keywords))


def _dct(point: Point) -> Bound:
    if point.id == "DCT-014":  # always the same target: nothing is connected anew, as on an RC QP
        return single(point, CIB, workloads.latency(32) | {
            "workload.op": "read", "workload.msg_size": 32, **workloads.FDR_SWITCH})
    if point.id == "DCT-015":
        return single(point, CIB, workloads.latency(32) | {
            "workload.op": "read", "workload.msg_size": 32, "dc.targets": 1024, **workloads.FDR_SWITCH})
    initiators = point.number(r"(\d+) DCIs")
    if initiators is None:
        return Unbound("contexts of dynamically connected targets are not modelled")
    return Binding((dynamic_reads(initiators, point.number(r"window (\d+)") or 16),),
                   lambda results: float(results[0]["message_rate_mops"]))


def dynamic_reads(initiators: int, window: int) -> Run:
    """READs of 14 threads with so many dynamically connected initiators each, to 5 machines."""
    # 18 M connections/s, seen in these very rows (DCT).
    return run_of(CIB, rate(
        14, 14 * initiators, workload__op="read", workload__msg_size=32, workload__depth=window,
        workload__outstanding=window, dc__targets=5, dc__connect_interval="55ns",
        fabric__topology="single_switch", **RDMA_BENCH))


def _drtmh(_: Point) -> Bound:
    # One machine's 24 threads over its two NICs, a batch at a time as in VAL.
    one = run_of(_CX4, rate(12, 12, workload__msg_size=32, workload__inline_max=32,
                            workload__depth=16, workload__post_batch=16,
                            workload__signal_every=16, fabric__topology="single_switch"))
    return Binding((one,), lambda results: 2 * float(results[0]["message_rate_mops"]))


def _one_thread(qps: int, sharers: int) -> dict[str, Any]:
    """READs of one thread, or of several under the lock of the queue pairs that they share."""
    return rate(1, qps, workload__op="read", workload__msg_size=32, workload__depth=64,
                workload__outstanding=64, workload__qp_sharers=sharers, **RDMA_BENCH)


def _avatar(point: Point) -> Bound:
    sharers = point.number(r"(\d+) threads") or 3
    presets = ("connectx5", "edr100", "broadwell")

    def one(threads: int, shared: int) -> Any:
        return run_of(presets, rate(threads, threads, workload__msg_size=64,
                                    workload__inline_max=64, workload__qp_sharers=shared))
    return ratio(one(1, sharers), one(1, 1))


def _fasst(point: Point) -> Bound:
    if point.metric == "count":
        return Unbound("a knee, judged as a shape")
    presets, threads = (CX3, 8) if "ConnectX-3" in point.device else (CIB, 14)
    if "1 thread" in point.other_params or "one thread" in point.other_params:
        qps = point.number(r"(\d+) QPs") or 5
        return single(point, presets, _one_thread(qps, 1))
    if "shared" in point.other_params:
        # The source counts what a core does; the run all that share the queue pair.
        sharers = point.number(r"by (\d+) threads") or 3
        return Binding((run_of(presets, _one_thread(1, sharers)),), lambda results:
                       float(results[0]["message_rate_mops"]) / sharers)

    def all_to_all(machines: int) -> Any:
        return run_of(presets, rate(threads, machines * threads, workload__op="read",
                                    workload__msg_size=32, workload__bidirectional="true",
                                    workload__depth=64, workload__outstanding=16, **CLUSTER,
                                    **RDMA_BENCH))
    if point.metric == "ratio":
        return ratio(all_to_all(22), all_to_all(6))
    return Binding((all_to_all(6),), lambda results:
                   float(results[0]["flows"][0]["message_rate_mops"]))


#: Threads of a warp.
_WARP = 32


def _cooperative(qps: int) -> dict[str, Any]:
    """A warp's threads write a WQE each at the same time; one of them rings the doorbell for all. More
    warps on a queue pair take turns."""
    return rate(qps, qps, workload__msg_size=8, workload__inline_max=8, workload__post_batch=_WARP,
                cpu__list_saving="179ns")


def _cx7gpu(point: Point) -> Bound:
    params = point.other_params
    if point.metric.startswith("lat"):
        return Unbound("a GPU kernel's put with its own completion protocol")
    if "CPU proxy" in params:
        return Unbound("a proxy thread between GPU and NIC is not modelled")
    qps = point.number(r"(\d+) (?:RC )?QPs?") or 1
    threads = point.number(r"(\d+) threads")
    if "cooperative" in params or "NVSHMEM" in params or (threads or 0) > qps:
        return single(point, (*_CX7, "gpu_initiated"), _cooperative(qps))
    # Without a batch of its own, a warp's or block's threads share a doorbell (16 and more).
    batch = point.number(r"batch (\d+)") or 16
    # A GPU thread's doorbell (fence, MMIO store over PCIe) costs more than a CPU's.
    return single(point, (*_CX7, "gpu_initiated"), rate(
        qps, qps, workload__msg_size=8, workload__inline_max=8, workload__post_batch=batch))


RULES: dict[str, Rule] = {
    "HERD14": _herd, "DG16": _dg16, "VAL": _val, "DRTMH": _drtmh, "FASST16": _fasst,
    "CX7GPU": _cx7gpu,
    "XSTORE": lambda point: Unbound("a key-value store's traversals over two NICs"),
    "AVATAR": _avatar,
    "DCT": _dct,
}
