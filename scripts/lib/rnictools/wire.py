# SPDX-License-Identifier: Apache-2.0
"""Closed-form wire efficiency: payload bytes per byte time on the wire, from header sizes alone.

Sources: IBTA volume 1 (LRH, BTH, RETH, ICRC, VCRC), its annexes A16 and A17 (RoCE), IEEE 802.3
(preamble, gap, header, FCS), RFC 791/768/9293 (IP, UDP, TCP), RFC 5044/5041 (MPA, DDP)."""

from __future__ import annotations

import math

#: Preamble, header, FCS and gap of every frame.
ETHERNET = 8 + 14 + 4 + 12
_BTH_ICRC = 12 + 4
#: Bytes of every data packet besides its payload.
PACKET_OVERHEAD = {
    "ib": 8 + _BTH_ICRC + 2,                  # LRH ... VCRC
    "rocev1": ETHERNET + 40 + _BTH_ICRC,      # GRH
    "rocev2": ETHERNET + 20 + 8 + _BTH_ICRC,  # IPv4, UDP
}
RETH = 16  # first packet of a WRITE
_IP_TCP = 20 + 20
_TIMESTAMPS = 12
_DDP_TAGGED = 14
_MPA_LENGTH_CRC = 2 + 4


def infiniband_family(protocol: str, mtu: int, size: int) -> float:
    """Share of the data rate that is payload for WRITEs of `size` bytes, 0..1 (ib, RoCE)."""
    packets = max(1, math.ceil(size / mtu))
    return size / (size + packets * PACKET_OVERHEAD[protocol] + RETH)


def iwarp(mtu: int, size: int, timestamps: bool = False, markers: bool = False) -> float:
    """The same for iWARP over IPv4: one tagged FPDU a TCP segment, `mtu` is Ethernet's."""
    segment = mtu - _IP_TCP - (_TIMESTAMPS if timestamps else 0)
    marker_bytes = 4 * math.ceil(segment / 512) if markers else 0
    # RFC 5044, section 5.1: the largest ULPDU that fits with header, padding and CRC.
    ulpdu = segment - (_MPA_LENGTH_CRC + marker_bytes + segment % 4)
    payload = ulpdu - _DDP_TAGGED
    fixed = ETHERNET + mtu - segment + marker_bytes + _MPA_LENGTH_CRC + _DDP_TAGGED
    full, rest = divmod(size, payload)
    wire = full * (payload + fixed + _padding(payload))
    if rest or not full:
        wire += rest + fixed + _padding(rest)
    return size / wire


def _padding(payload: int) -> int:
    return -(2 + _DDP_TAGGED + payload) % 4


def efficiency(protocol: str, mtu: int, size: int, timestamps: bool = False,
               markers: bool = False) -> float:
    """Payload share of the data rate, 0..1, of WRITEs of `size` bytes."""
    if protocol == "iwarp":
        return iwarp(mtu, size, timestamps, markers)
    return infiniband_family(protocol, mtu, size)
