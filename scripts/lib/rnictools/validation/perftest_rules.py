# SPDX-License-Identifier: Apache-2.0
"""Bindings of perftest tables: one queue pair, latency or bandwidth over message sizes."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

from . import workloads
from .binding import Bound, Rule, Unbound, of_first_flow, single
from .dataset import Point

_OPS = {"WRITE": "write", "READ": "read", "SEND": "send", "FETCH_ADD": "atomic_fadd",
        "CAS": "atomic_cas", "SEND(UD)": "send"}
@dataclasses.dataclass(frozen=True)
class Setup:
    """The system a table was measured on."""

    presets: Sequence[str]
    settings: dict[str, Any]


def perftest(point: Point, setup: Setup) -> Bound:
    """One row of a perftest table."""
    op = _OPS.get(point.op)
    if op is None:
        return Unbound(f"{point.op} is not an operation of this program")
    size = 8 if op.startswith("atomic") else point.size
    if size is None:
        return Unbound("the source gives no message size")
    settings = {**setup.settings, "workload.op": op, "workload.msg_size": size}
    if point.op == "SEND(UD)":
        settings["transport.type"] = "ud"
    if op.startswith("atomic") and not point.metric.startswith("lat_"):
        settings["workload.mr_size"] = 8  # perftest's atomics all go to one address
    settings |= workloads.latency(size) if point.metric.startswith("lat_") \
        else workloads.bandwidth(size)
    return single(point, setup.presets, settings)


def _fixed(presets: Sequence[str], **settings: Any) -> Rule:
    setup = Setup(presets, {key.replace("__", "."): value for key, value in settings.items()})
    return lambda point: perftest(point, setup)


def _switched(presets: Sequence[str], **settings: Any) -> Rule:
    return _fixed(presets, fabric__topology="single_switch", **settings)


def _cx4edr(point: Point) -> Bound:
    mtu = point.mtu or "4096"
    return perftest(point, Setup(("connectx4", "edr100", "broadwell"), {"transport.mtu": mtu}))


#: fitted: two nodes are 0.48 us one way and 0.92 us both ways further apart than a NIC from itself (section
#: 1.2 of the data's README, ROCE100K8S): 120 ns more than through a switch of 300 ns from port to port
#: (datasheet: NVIDIA Spectrum)
_K8S_SWITCH = {"fabric.topology": "single_switch", "switch.latency": "420ns"}
#: Buffers in the memory of a GPU beside the NIC, behind the same PCIe switch.
_GPU = {"workload.local_memory": "peer", "workload.remote_memory": "peer"}
#: A NIC that talks to itself.
_LOOPBACK = {"workload.traffic": "loopback"}


def _loopback(point: Point, presets: Sequence[str], settings: dict[str, Any]) -> Bound:
    """Every host of a run talks to itself; the first one's figures count."""
    return of_first_flow(perftest(point, Setup(presets, settings | _LOOPBACK)), point.metric)


def _roce100k8s(point: Point) -> Bound:
    """A NIC to itself, or two nodes."""
    settings: dict[str, Any] = {"transport.protocol": "rocev2", "transport.mtu": 1024}
    if "loopback" in point.setup:
        return _loopback(point, ("connectx5", "eth100", "skylake"), settings)
    return perftest(point, Setup(("connectx5", "eth100", "skylake"),
                                 settings | _K8S_SWITCH))


def _ipoib(point: Point) -> Bound:
    if point.op.startswith("TCP"):
        return Unbound("the kernel's TCP over IPoIB is not modelled")
    return perftest(point, Setup(("connectx3", "fdr56", "sandy_bridge"), {
        "transport.mtu": 2048, **workloads.FDR_SWITCH}))


#: Where a source tells the slot, or lets it be assumed, but not the CPU, the host is one by its slot.
RULES: dict[str, Rule] = {
    "CX3QDR": _switched(("connectx3", "qdr40", "sandy_bridge"), transport__mtu=2048),
    "CX3FDR": _ipoib,
    # A server of 2017 and later, with the adapter's Gen3 x8, and a switch of the adapter's time.
    "CX3ROCE40": lambda point: perftest(point, Setup(
        ("connectx3", "eth40", "skylake"),
        {"transport.protocol": "rocev2", "transport.mtu": 1024, "pcie.lanes": 8,
         **workloads.ETH40_SWITCH})),
    "CX4EDR": _cx4edr,
    "CX5X8": _fixed(("connectx5", "eth100", "ryzen_gen3_x8"), transport__protocol="rocev2"),
    "CX5EDRGPU": lambda point: perftest(point, Setup(
        ("connectx5", "edr100", "gen4_x16"), {**_GPU, "workload.inline_max": 0})),
    "ROCE100GPU": lambda point: Unbound("buffers are in GPU memory, model of the NIC not stated")
        if point.metric.startswith("lat") else perftest(point, Setup(
            ("connectx5", "eth100", "skylake"),
            {**_GPU, "transport.protocol": "rocev2", "transport.mtu": 1024})),
    "ROCE100A100": lambda point: perftest(point, Setup(
        ("connectx6", "eth100", "gen4_x16"),
        {**_GPU, "transport.protocol": "rocev2", "transport.mtu": 1024})),
    "ROCE100K8S": _roce100k8s,
    # "Switched fabric" of a cloud: its fat tree, as the source of HDRVM names that of such machines.
    "CX6HDR": _fixed(("connectx6", "hdr200", "three_switches", "epyc_vm"), transport__mtu=4096),
    "CX6LOOP": lambda point: _loopback(point, ("connectx6", "eth200", "gen4_x16"),
                                       # Two queue pairs carry 164 Gb/s (CX6LOOP-004): half each.
                                       {"transport.protocol": "rocev2", "nic.qp_rate": "82Gbps"}),
    "CX7NDR": _fixed(("connectx7", "ndr400", "sapphire_rapids"), transport__mtu=4096),
    "BRCM400": lambda point: Unbound("no preset: nothing else is public about this NIC"),
    "IRDMA10": _fixed(("e810", "eth10", "skylake"), transport__protocol="rocev2",
                      transport__mtu=1024),
    "BNXT10": _fixed(("generic", "eth10", "skylake"), transport__protocol="rocev2"),
}
