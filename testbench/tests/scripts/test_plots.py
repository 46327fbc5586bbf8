# SPDX-License-Identifier: Apache-2.0
"""Plots, closed forms, the comparison and the speed measurement, against the fake simulator."""

import csv
import json
import re
import unittest

import support
from rnictools import figures, measurements, wire

SPEC = """
[sweep]
transport.protocol = ib, iwarp
workload.msg_size = 64, 4KiB, 1MiB
"""
#: Whatever would make a page load something from elsewhere when it is opened.
LOADS = re.compile(r"""<(script|img|link|iframe)[^>]*(src|href)=["']?(https?:)?//""")


class Wire(unittest.TestCase):
    # Header sums by hand: IB 8+12+4+2 = 26; RoCEv1 38+40+12+4 = 94; RoCEv2 38+20+8+12+4 = 82.
    def test_long_messages(self):
        size = 2**40
        for protocol, overhead in (("ib", 26), ("rocev1", 94), ("rocev2", 82)):
            for mtu in (256, 4096):
                self.assertAlmostEqual(wire.efficiency(protocol, mtu, size),
                                       mtu / (mtu + overhead), 6)

    def test_one_packet_carries_a_reth(self):
        self.assertAlmostEqual(wire.efficiency("ib", 4096, 64), 64 / (64 + 26 + 16))

    def test_iwarp(self):
        # MTU 1500: segment 1460, FPDU 2+14+1440+4 = 1460; wire 1500+38 = 1538.
        self.assertAlmostEqual(wire.iwarp(1500, 1440 * 1000), 1440 / 1538)
        # Timestamps: segment 1448 -> payload 1428; markers: 3 of 4 B -> 1428.
        self.assertAlmostEqual(wire.iwarp(1500, 1428 * 1000, timestamps=True), 1428 / 1538)
        self.assertAlmostEqual(wire.iwarp(1500, 1428 * 1000, markers=True), 1428 / 1538)
        # One byte: FPDU 2+14+1+3 padding+4 = 24, TCP/IP 40, Ethernet 38.
        self.assertAlmostEqual(wire.iwarp(1500, 1), 1 / 102)


class Tables(support.ScriptTest):
    def test_columns_of_one_kind_stand_together(self):
        path = self.dir / "t.csv"
        figures.write_csv(path, [{"point": "a", "stage.x.mean": 1, "sim.wall_s": 2},
                                 {"point": "b", "stage.y.mean": 3}], ["point"])
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["point", "stage.x.mean", "stage.y.mean", "sim.wall_s"])
        self.assertEqual(rows[2], ["b", "", "3", ""])

    def test_published_measurements_are_complete(self):
        real = measurements.load(support.REPOSITORY / "results" / "measurements" / "class_100g.csv")
        self.assertGreater(len(real), 40)
        self.assertEqual(len({m.id for m in real}), len(real))
        for measurement in real:
            self.assertTrue(measurement.source and measurement.device and measurement.setup)
            self.assertEqual(bool(measurement.latency_definition),
                             measurement.metric.startswith("lat_"))
            self.assertGreater(measurement.value, 0)

    def test_rate_and_bandwidth_convert(self):
        real = [measurements.Measurement("X-1", "l", "s", "d", "k", "ib", "", "", "t", "write",
                                         1000, "", "msgrate_mops", 2.0, "", "")]
        # 2 M/s of 1000 B = 16 Gb/s.
        self.assertEqual(measurements.throughput_gbps(real, "write")[0].y, [16.0])
        self.assertEqual(measurements.message_rate_mops(real, "write")[0].y, [2.0])


class Plot(support.ScriptTest):
    def setUp(self):
        super().setUp()
        done = self.run_script("sweep", self.write("s.ini", SPEC), "-o", "out")
        self.assertEqual(done.returncode, 0, done.stderr)

    def plot(self, *arguments):
        return self.run_script("plot", "out/results.csv", *arguments)

    def test_all_formats(self):
        done = self.plot("--x", "workload.msg_size", "--y", "latency.p50_ns", "--series",
                         "transport.protocol", "--logx", "--logy", "-o", "plots/latency")
        self.assertEqual(done.returncode, 0, done.stderr)
        base = self.dir / "plots"
        self.assertEqual((base / "latency.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((base / "latency.pdf").read_bytes()[:5], b"%PDF-")
        self.assertIn("<svg", (base / "latency.svg").read_text())
        page = (base / "latency.html").read_text()
        self.assertIn("Plotly.newPlot", page)
        self.assertIsNone(LOADS.search(page))

    def test_same_table_same_picture(self):
        for name in ("a", "b"):
            self.plot("--x", "workload.msg_size", "--y", "throughput_gbps", "-o", name,
                      "--formats", "svg,pdf")
        for extension in ("svg", "pdf"):
            self.assertEqual((self.dir / f"a.{extension}").read_bytes(),
                             (self.dir / f"b.{extension}").read_bytes())

    def test_stages_and_categories(self):
        done = self.plot("--x", "transport.protocol", "--stages", "--where",
                         "workload.msg_size=4096", "-o", "s", "--formats", "png")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.plot("--x", "transport.protocol", "--y", "message_rate_mops", "-o", "c",
                         "--formats", "png")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_bad_usage(self):
        for arguments in (["--x", "none", "--y", "throughput_gbps"], ["--x", "workload.msg_size"],
                          ["--x", "workload.msg_size", "--y", "throughput_gbps", "--where", "z=1"],
                          ["--x", "workload.msg_size", "--y", "throughput_gbps", "--formats",
                           "bmp"]):
            self.assertEqual(self.plot(*arguments, "-o", "x").returncode, 2, arguments)


class Compare(support.ScriptTest):
    def compare(self, **env):
        return self.run_script("compare", "--quick", "--program", support.FAKE, "-o", "out", **env)

    def test_report_and_resuming(self):
        done = self.compare()
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("InfiniBand", "RoCEv1", "RoCEv2", "iWARP"):
            self.assertIn(name, done.stdout)
        out = self.dir / "out"
        page = (out / "report.html").read_text()
        self.assertIsNone(LOADS.search(page))
        self.assertIn("Findings", page)
        self.assertIn("ConnectX-4 EDR, back to back", page)
        self.assertGreaterEqual(page.count("data:image/svg+xml"), 15)
        for table in ("latency", "bandwidth", "mtu", "qps", "breakdown"):
            self.assertTrue((out / f"{table}.csv").exists())
        for plot in ("latency_write", "throughput_read", "wire_efficiency", "breakdown_write_64"):
            self.assertTrue((out / f"{plot}.png").exists() and (out / f"{plot}.svg").exists())
        runs = len(self.runs())
        self.assertEqual(self.compare().returncode, 0)
        self.assertEqual(len(self.runs()), runs)

    def test_a_failing_wire_is_missing_not_hidden(self):
        done = self.compare(FAKE_FAIL="transport.protocol=iwarp")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stuck as ordered", done.stderr)
        page = (self.dir / "out" / "report.html").read_text()
        self.assertIn("simulations failed", page)


class Bench(support.ScriptTest):
    def test_figures_and_ratio(self):
        only = [argument for name in ("startup", "ib_write_1MiB") for argument in ("--only", name)]
        first = self.run_script("bench", "-n", "2", *only, "-o", "base.json")
        self.assertEqual(first.returncode, 0, first.stderr)
        report = json.loads(first.stdout)
        # The fake: 24000 events for 3000 packets.
        self.assertEqual(report["scenarios"]["startup"]["events_per_packet"], 8.0)
        self.assertEqual(report["scenarios"]["ib_write_1MiB"]["packets_per_s"]["best"], 750000.0)
        # Interleaved: the scenarios alternate.
        self.assertEqual([run["transport.protocol"] for run in self.runs()], ["rocev2", "ib"] * 2)
        second = self.run_script("bench", "-n", "1", *only, "--compare", "base.json")
        ratio = json.loads(second.stdout)["ratio_to_baseline"]
        self.assertEqual(ratio["startup"]["packets_per_s"], 1.0)
        self.assertEqual(ratio["startup"]["events_per_packet"], 1.0)

    def test_failure(self):
        done = self.run_script("bench", "-n", "1", "--only", "startup",
                               FAKE_FAIL="transport.protocol=rocev2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("startup: exit status 3", done.stderr)


if __name__ == "__main__":
    unittest.main()
