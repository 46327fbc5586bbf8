# SPDX-License-Identifier: Apache-2.0
"""Settings of the programs that measurements were made with, as short as a steady state allows."""

from __future__ import annotations

from typing import Any

#: Packets of a measured window: enough for a steady state, few enough for a validation of minutes.
_WINDOW_PACKETS = 2048
_PACKET = 4096
#: perftest's depth, and bytes that are in flight at most: enough for any pipe.
_DEPTH = 128
_IN_FLIGHT = 2 << 20
#: Messages measured with many threads, of all together, and at least on each queue pair: caches are
#: in their steady state then.
_MESSAGES = 4800
_PER_QP = 6
#: What nobody acknowledges is limited by the receiver only once its buffer is full.
_UNACKNOWLEDGED = 14400
#: Of long messages so many, or the beginning and the end of the window count for too much.
_LONG_MESSAGES = 32
_LONGEST_OF_MANY = 1 << 20

#: datasheet: 170 ns from port to port (NVIDIA SX6036), of which two PHYs and a cable are modelled apart
FDR_SWITCH = {"fabric.topology": "single_switch", "switch.latency": "100ns"}

#: datasheet: 220 ns from port to port at 40 GbE (NVIDIA SX1036, SwitchX-2), of which two PHYs and a cable likewise
ETH40_SWITCH = {"fabric.topology": "single_switch", "switch.latency": "110ns"}

#: One core of FaSST's and rdma_bench's READ programs, which post lists of work requests, starts and
#: completes 10.9 M/s on queue pairs of its own (section 1.3 of the data's README): 92 ns, which is what
#: posting costs here without the wait for the one doorbell register that perftest's core stores to again
#: and again. HERD's and the design guidelines' cores post one by one, as perftest's does.
RDMA_BENCH = {"cpu__doorbell_stall": 0}

#: Threads of clusters choose the next peer at random, which is behind a switch.
CLUSTER = {"workload__qp_order": "random", "fabric__topology": "single_switch"}


def latency(size: int) -> dict[str, Any]:
    """perftest's *_lat: one message at a time. The model is deterministic: a few are enough."""
    few = size >= 1 << 18
    return {"workload.pattern": "latency", "workload.iterations": 2 if few else 8,
            "sim.warmup": 1 if few else 4}


def post_to_completion(size: int) -> dict[str, Any]:
    """One message at a time, from post_send to its polled completion."""
    return {"workload.pattern": "bandwidth", "workload.depth": 1, "workload.signal_every": 1,
            "workload.iterations": 4 if size >= 1 << 20 else 12, "sim.warmup": 2}


def bandwidth(size: int) -> dict[str, Any]:
    """perftest's *_bw: 128 in flight, or as many long messages as fill any pipe, and a completion
    asked for every 100."""
    depth = max(2, min(_DEPTH, _IN_FLIGHT // max(size, 1)))
    messages = max(_WINDOW_PACKETS * _PACKET // max(size, _PACKET // 2),
                   _LONG_MESSAGES if size <= _LONGEST_OF_MANY else 0)
    return {"workload.pattern": "bandwidth", "workload.depth": depth,
            "workload.signal_every": max(1, min(100, depth // 4)), "workload.inline_max": 0,
            "sim.warmup": depth, "workload.iterations": max(3 * depth, messages)}


def rate(threads: int, qps: int, **more: Any) -> dict[str, Any]:
    """Many threads with their queue pairs, as fast as they can. Keyword a__b is the key a.b."""
    settings = {"workload.pattern": "bandwidth", "workload.threads": threads,
                "workload.qps": qps,
                **{key.replace("__", "."): value for key, value in more.items()}}
    if "workload.mr_size" not in settings:
        # The sources register one region for all queue pairs; here each has its own.
        settings |= {"nic.mpt_cache.entries": 65536, "nic.mtt_cache.entries": 65536}
    in_flight = settings.get("workload.outstanding") or \
        settings.get("workload.depth", _DEPTH) * -(-qps // threads)
    messages = _MESSAGES if settings.get("transport.type", "rc") == "rc" else _UNACKNOWLEDGED
    share = -(-max(messages, _PER_QP * qps) // threads)
    return {"workload.iterations": max(share, 2 * in_flight),
            "sim.warmup": max(share // 3, in_flight), **settings}


def inbound(clients: int, threads: int, qps: int, **more: Any) -> dict[str, Any]:
    """Several clients of so many threads and queue pairs each against one server."""
    settings = rate(threads, qps, **{"workload__depth": 32, **more}) | {
        "fabric.hosts": clients + 1, "fabric.topology": "single_switch",
        "workload.traffic": "incast"}
    in_flight = settings["workload.depth"] * -(-qps // threads)
    share = max(-(-2 * _MESSAGES // (threads * clients)), 12 * in_flight)
    return settings | {"workload.iterations": share, "sim.warmup": 4 * in_flight}
