# SPDX-License-Identifier: Apache-2.0
"""The thirteen shapes that a credible simulator of these NICs reproduces: order, knee, slope.

Each is judged on simulated figures alone, at the set-ups of published points (named by their ids) or
at runs of its own where nothing was published as a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from .binding import Run, run_of
from .cache_rules import loss_run
from .rate_rules import dynamic_reads
from .workloads import rate

#: Simulated figures: of points by id, of further runs by name (message rate or throughput).
Figures = Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether a part of a shape holds, and the figures that tell."""

    holds: bool
    text: str


@dataclasses.dataclass(frozen=True)
class Shape:
    """One of the shapes: what it needs and how it is judged."""

    number: int
    title: str
    points: tuple[str, ...]
    judge: Callable[[Figures], list[Verdict]]
    runs: tuple[tuple[str, Run, str], ...] = ()   #: name, run, key of its result


def _between(what: str, value: float, low: float, high: float, digits: int = 2) -> Verdict:
    return Verdict(low <= value <= high,
                   f"{what} {value:.{digits}f} ({low:g} to {high:g})")


def _order(what: str, values: Sequence[float], rising: bool = False) -> Verdict:
    pairs = list(zip(values, values[1:]))
    holds = all(a < b for a, b in pairs) if rising else all(a > b for a, b in pairs)
    sign = " < " if rising else " > "
    return Verdict(holds, f"{what}: " + sign.join(f"{v:.3g}" for v in values))


def _ids(name: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{name}-{number:03d}" for number in numbers)


def _inline(f: Figures) -> list[Verdict]:
    return [_between("WRITE 128 to 256 B, us", f["CX3QDR-012"] - f["CX3QDR-011"], 0.55, 0.95),
            _between("SEND 128 to 256 B, us", f["CX3QDR-056"] - f["CX3QDR-055"], 0.55, 0.95),
            _between("READ 128 to 256 B, us", f["CX3QDR-034"] - f["CX3QDR-033"], 0.0, 0.2)]


def _ratio(f: Figures) -> list[Verdict]:
    return [_between("READ/WRITE at 2 B", f["CX3QDR-027"] / f["CX3QDR-001"], 1.9, 2.05),
            _between("READ/WRITE at 64 B", f["CX3QDR-030"] / f["CX3QDR-008"], 1.8, 2.05),
            _between("READ/WRITE at 4 KiB", f["CX3QDR-040"] / f["CX3QDR-018"], 1.0, 1.1),
            _between("READ/WRITE at 64 KiB", f["CX3QDR-045"] / f["CX3QDR-023"], 1.0, 1.1),
            _between("atomic less READ, us", f["CX3QDR-067"] - f["CX3QDR-027"], 0.3, 0.4)]


def _slopes(f: Figures) -> list[Verdict]:
    qdr, edr = 8 / 32, 8 / 100  # ns a byte on the wire

    def slope(high: str, low: str, bytes_: int, wire: float) -> float:
        return (f[high] - f[low]) * 1e3 / bytes_ / wire
    spread = max(max(f[i] for i in group) - min(f[i] for i in group)
                 for group in (_ids("CX4EDR", 4, 5, 6), _ids("CX4EDR", 7, 8, 9)))
    return [_between("CX-3 512 B to 2 KiB over wire", slope("CX3QDR-017", "CX3QDR-013", 1536, qdr),
                     2.5, 3.0),
            _between("CX-3 16 to 64 KiB over wire", slope("CX3QDR-023", "CX3QDR-022", 49152, qdr),
                     1.0, 1.07),
            _between("CX-4 1 to 4 KiB over wire", slope("CX4EDR-009", "CX4EDR-006", 3072, edr),
                     2.5, 3.0),
            _between("CX-4 4 to 32 KiB over wire", slope("CX4EDR-012", "CX4EDR-009", 28672, edr),
                     1.0, 1.07),
            _between("CX-4 spread over the MTU, us", spread, 0.0, 0.1)]


def _pcie(f: Figures) -> list[Verdict]:
    read = [f[i] for i in _ids("PCIE", 40, 41, 42, 43)]
    write = [f[i] for i in _ids("PCIE", 54, 55)]
    return [Verdict(read[0] > read[1] < read[2] > read[3] and write[0] > write[1],
                    "sawtooth: reads of 64, 65, 128, 129 B "
                    + ", ".join(f"{v:.1f}" for v in read) + " Gb/s, writes of 256, 257 B "
                    + ", ".join(f"{v:.1f}" for v in write)),
            _between("remote over local, 64 B reads", f["PCIE-075"] / f["PCIE-069"], 0.6, 0.9),
            _between("remote over local, 64 B writes", f["PCIE-077"] / f["PCIE-050"], 0.97, 1.03),
            Verdict(f["PCIE-090"] < 0.85 * f["PCIE-089"],
                    f"IOTLB knee: {f['PCIE-089']:.1f} Gb/s at 64 pages, {f['PCIE-090']:.1f} at 128"),
            _between("512 B reads, 4096 pages over 64", f["PCIE-100"] / f["PCIE-096"], 0.9, 1.0),
            _between("64 B reads with super-pages, 4 MiB over 256 KiB",
                     f["PCIE-120"] / f["PCIE-117"], 0.97, 1.03)]


def _limits(f: Figures) -> list[Verdict]:
    return [_order("CX-3 WRITE in, READ in, READ out", [f[i] for i in _ids("HERD14", 1, 2, 3)]),
            _order("Connect-IB SEND header-only, batched, one by one",
                   [f[i] for i in _ids("DG16", 3, 2, 1)]),
            _order("Connect-IB SEND of 60, 188, 252 B (2, 4, 5 lines)",
                   [f[i] for i in _ids("DG16", 25, 27, 28)])]


def _windows(f: Figures) -> list[Verdict]:
    cx3 = [f[i] for i in _ids("DG16", 50, 51, 52, 53, 54, 55, 56)]
    best = max(range(len(cx3)), key=lambda i: cx3[i])
    uc = [f[i] for i in _ids("DG16", 64, 66, 67, 68, 69, 70)]
    return [Verdict(best in (2, 3, 4) and cx3[-1] < 0.8 * cx3[best],
                    "CX-3 READ, windows of 1, 4, 8, 16, 32, 64, 512: "
                    + ", ".join(f"{v:.1f}" for v in cx3) + " M/s"),
            Verdict(f["RBENCH-131"] > 1.05 * f["RBENCH-132"],
                    f"Connect-IB READ, windows of 24 and 32: {f['RBENCH-131']:.1f}, "
                    f"{f['RBENCH-132']:.1f} M/s"),
            Verdict(all(b >= 0.98 * a for a, b in zip(uc, uc[1:])) and uc[-1] > 3 * uc[0],
                    "Connect-IB UC WRITE, windows of 1 to 512: "
                    + ", ".join(f"{v:.1f}" for v in uc) + " M/s")]


def _scaling(f: Figures) -> list[Verdict]:
    write, read = f["CX6 WRITE 4096"] / f["CX6 WRITE 32"], f["CX6 READ 4096"] / f["CX6 READ 32"]
    small = f["CX7 8 B 4096"] / f["CX7 8 B 64"]
    long = f["CX7 256 B 4096"] / f["CX7 256 B 64"]
    one_way = f["CX7 one way 4096"] / f["CX7 one way 64"]
    return [_between("CX-3: 48 over 176 QPs", f["FASST16-001"] / f["RBENCH-058"], 3.5, 7),
            _between("Connect-IB: 1386 over 154 QPs", f["RBENCH-127"] / f["RBENCH-103"], 0.55, 0.8),
            _between("CX-5: 4480 over 110 QPs", f["ERPC-009"] / f["ERPC-004"], 0.4, 0.65),
            Verdict(read < 0.7 * write, f"CX-6: 4096 over 32 QPs: READ {read:.2f}, WRITE {write:.2f}"),
            Verdict(small < 0.5 * one_way and long > 1.5 * small,
                    f"CX-7: 4096 over 64 QPs: both ways {small:.2f}, one way {one_way:.2f}, both "
                    f"ways with 256 B {long:.2f}")]


def _sharing(f: Figures) -> list[Verdict]:
    few = {1: f["FARM14-048"], 4: f["FARM14-062"], 8: f["FARM14-068"]}
    middle = {1: f["FARM14-053"], 4: f["FARM14-065"], 8: f["FARM14-071"]}
    many = {1: f["FARM14-054"], 2: f["FARM14-061"], 4: f["FARM14-067"], 8: f["FARM14-072"]}

    def best(of: dict[int, float]) -> int:
        return max(of, key=lambda q: of[q])

    def line(name: str, of: dict[int, float]) -> str:
        return f"{name}: " + ", ".join(f"q={q} {v:.1f}" for q, v in of.items()) + " M/s"
    return [Verdict(best(few) == 1, line("2 servers, q=1 best", few)),
            Verdict(best(middle) == 4, line("12 servers, q=4 best", middle)),
            Verdict(best(many) == 8, line("16 and more servers, q=8 best", many))]


def _translation(f: Figures) -> list[Verdict]:
    steps = [f[i] for i in _ids("LITE17", 4, 5, 7)]
    return [Verdict(f["FARM14-034"] < 0.75 * f["FARM14-032"],
                    f"4 KiB pages: {f['FARM14-032']:.1f} M/s at 8 MiB, {f['FARM14-034']:.1f} at 16"),
            _between("1 GiB pages, 1 GiB over 256 KiB", f["FARM14-043"] / f["FARM14-029"], 0.97, 1.03),
            _order("latency with 100, 1,000, 100,000 regions, us", steps, rising=True)]


def _atomics(f: Figures) -> list[Verdict]:
    return [_between("Connect-IB, one address, M/s", f["DG16-008"], 1.9, 2.6),
            _between("mlx5 100G, one address, M/s", f["ROCE100K8S-010"], 1.9, 2.6),
            _between("CX-3, any addresses, M/s", f["DG16-012"], 2.0, 3.0),
            _between("Connect-IB, 4096 addresses over one", f["DG16-009"] / f["DG16-008"], 10, 40)]


def _outstanding(f: Figures) -> list[Verdict]:
    wire = 0.99 * 400
    per_read = f["READ 32 KiB, 1"]
    verdicts = [Verdict(abs(f[f"READ 32 KiB, {k}"] / min(wire, f["limit"], k * per_read) - 1) < 0.1,
                        f"{k} outstanding: {f[f'READ 32 KiB, {k}']:.0f} Gb/s, min(link, READ engine, "
                        f"{k} x {per_read:.1f}) {min(wire, f['limit'], k * per_read):.0f}")
                for k in (2, 4, 16)]
    return [*verdicts,
            _between("DCT: 6 initiators a thread over 1", f["DCT-008"] / f["DCT-005"], 2.0, 3.5),
            _between("DCT: 16 initiators a thread over 6", f["DCT 16"] / f["DCT-008"], 0.8, 1.0),
            _between("DCT: another target, us", f["DCT-015"] - f["DCT-014"], 0.8, 1.2)]


def _efficiency(f: Figures) -> list[Verdict]:
    per_thread = f["VAL-013"] / 12
    return [_between("RoCEv2, MTU 1024, % of the link", f["ROCE100K8S-011"], 91.6, 93.6, 1),
            _between("HDR, % of the link", f["CX6HDR-037"] / 2, 97.3, 99.3, 1),
            _between("NDR, % of the link", f["CX7NDR-006"] / 4, 97.1, 99.1, 1),
            _between("VAL: 12 threads one by one, M/s", f["VAL-013"], 5.2, 6.4),
            _between("which is a latency of, us", 1 / per_thread, 1.85, 2.3)]


def _losses(f: Figures) -> list[Verdict]:
    goodput = [f[i] for i in _ids("ERPC", 31, 32, 33)] + [f["ERPC loss 1e-4"], f["ERPC-035"]]
    half = goodput[0] / 2
    return [Verdict(all(a >= 0.99 * b for a, b in zip(goodput, goodput[1:])) and
                    goodput[-1] < goodput[0],
                    "goodput at losses of 1e-7 to 1e-3: "
                    + ", ".join(f"{v:.1f}" for v in goodput) + " Gb/s"),
            Verdict(goodput[2] > half > goodput[3], "half the rate between 1e-5 and 1e-4")]


_CX6 = ("connectx6", "hdr200", "epyc")
_CX7 = ("connectx7", "ndr200", "sapphire_rapids")


def _many(name: str, presets: tuple[str, ...], qps: int, **more: object) -> tuple[str, Run, str]:
    return name, run_of(presets, rate(32, qps, **{"workload__outstanding": 32,
                                                  **more})), "message_rate_mops"


def _outstanding_run(name: str, size: int, outstanding: int) -> tuple[str, Run, str]:
    return name, run_of(("connectx7", "eth400", "sapphire_rapids"), {
        "workload.op": "read", "workload.pattern": "bandwidth", "workload.msg_size": size,
        "workload.depth": 32, "workload.iterations": 160, "sim.warmup": 32,
        "transport.protocol": "rocev2", "transport.max_rd_atomic": outstanding}), "throughput_gbps"


_OUTSTANDING_RUNS = (*(_outstanding_run(f"READ 32 KiB, {k}", 32768, k) for k in (1, 2, 4, 16)),
                     _outstanding_run("limit", 1 << 18, 16))
_SCALING_RUNS = tuple(
    [_many(f"CX6 {op.upper()} {qps}", _CX6, qps, workload__op=op, workload__msg_size=32)
     for op in ("write", "read") for qps in (32, 4096)]
    + [_many(f"CX7 {size} B {qps}", _CX7, qps, workload__msg_size=size,
             workload__bidirectional="true", workload__inline_max=8)
       for size in (8, 256) for qps in (64, 4096)]
    + [_many(f"CX7 one way {qps}", _CX7, qps, workload__msg_size=8, workload__inline_max=8)
       for qps in (64, 4096)])

SHAPES: list[Shape] = [
    Shape(1, "inline step", _ids("CX3QDR", 11, 12, 33, 34, 55, 56), _inline),
    Shape(2, "READ against WRITE latency",
          _ids("CX3QDR", 1, 8, 18, 23, 27, 30, 40, 45, 67), _ratio),
    Shape(3, "two slopes of latency", _ids("CX3QDR", 13, 17, 22, 23)
          + _ids("CX4EDR", 4, 5, 6, 7, 8, 9, 12), _slopes),
    Shape(4, "PCIe sawtooth, NUMA, IOTLB",
          _ids("PCIE", 40, 41, 42, 43, 50, 54, 55, 69, 75, 77, 89, 90, 96, 100, 117, 120), _pcie),
    Shape(5, "message-rate limits", _ids("HERD14", 1, 2, 3) + _ids("DG16", 1, 2, 3, 25, 27, 28),
          _limits),
    Shape(6, "READ window has a best size", _ids("DG16", 50, 51, 52, 53, 54, 55, 56, 64, 66, 67, 68,
                                                 69, 70) + _ids("RBENCH", 131, 132), _windows),
    Shape(7, "scaling with queue pairs", ("FASST16-001", "RBENCH-058", "RBENCH-103", "RBENCH-127",
                                          "ERPC-004", "ERPC-009"), _scaling, _SCALING_RUNS),
    Shape(8, "shared queue pairs", _ids("FARM14", 48, 53, 54, 61, 62, 65, 67, 68, 71, 72), _sharing),
    Shape(9, "translation caches", _ids("FARM14", 29, 32, 34, 43) + _ids("LITE17", 4, 5, 7),
          _translation),
    Shape(10, "atomics", ("DG16-008", "DG16-009", "DG16-012", "ROCE100K8S-010"), _atomics),
    Shape(11, "READ bandwidth and outstanding READs; DCT", _ids("DCT", 5, 8, 14, 15), _outstanding,
          (*_OUTSTANDING_RUNS, ("DCT 16", dynamic_reads(16, 16), "message_rate_mops"))),
    Shape(12, "efficiencies, closed loop",
          ("ROCE100K8S-011", "CX6HDR-037", "CX7NDR-006", "VAL-013"), _efficiency),
    Shape(13, "goodput against loss", _ids("ERPC", 31, 32, 33, 35), _losses,
          (("ERPC loss 1e-4", loss_run(1e-4), "throughput_gbps"),)),
]


def judge(shape: Shape, figures: Figures) -> list[Verdict]:
    """Verdicts of a shape; a figure that is missing is a verdict of its own."""
    try:
        return shape.judge(figures)
    except KeyError as error:
        return [Verdict(False, f"no figure of {error.args[0]}")]
