# SPDX-License-Identifier: Apache-2.0
"""scripts/sweep against the fake simulator: results, resuming, failures, interruption."""

import csv
import os
import shutil
import signal
import subprocess
import time
import unittest

import support

SPEC = """
[workload]
op = write
[sweep]
transport.protocol = ib, iwarp
workload.msg_size = 64, 4KiB, 1MiB
"""


class Sweep(support.ScriptTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write("s.ini", SPEC)
        self.out = self.dir / "out"

    def sweep(self, *arguments, **env):
        return self.run_script("sweep", self.spec, "-o", self.out, *arguments, **env)

    def start(self, jobs, delay):
        """Starts a sweep of slow points and does not wait for it."""
        command = [support.SCRIPTS / "sweep", self.spec, "-o", self.out, "--jobs", jobs]
        return subprocess.Popen(command, env={**self.env, "FAKE_DELAY": delay}, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def table(self):
        with open(self.out / "results.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_one_row_a_point_with_documented_figures(self):
        done = self.sweep()
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.table()
        self.assertEqual([(r["transport.protocol"], r["workload.msg_size"]) for r in rows],
                         [(p, s) for p in ("ib", "iwarp") for s in ("64", "4KiB", "1MiB")])
        # The fake's caches: 99 hits, 1 miss.
        self.assertEqual({r["cache.host0.nic.mtt_cache.hit_rate"] for r in rows}, {"0.99"})
        for column in ("throughput_gbps", "message_rate_mops", "latency.p99.9_ns",
                       "stage.post.mean",
                       "bottleneck.unit", "sim.kernel_events", "link.host0.port.wire_bytes"):
            self.assertIn(column, rows[0])
        self.assertIn("`throughput_gbps`", (self.out / "results.columns.md").read_text())
        self.assertEqual(len(list((self.out / "points").glob("*/result.json"))), 6)

    def test_finished_points_never_run_twice(self):
        self.sweep()
        again = self.sweep()
        self.assertEqual(again.returncode, 0)
        self.assertEqual(len(self.runs()), 6)
        self.write("s.ini", SPEC.replace("1MiB", "1MiB, 2MiB"))
        self.sweep()
        self.assertEqual(len(self.runs()), 8)
        self.assertEqual(len(self.table()), 8)

    def test_killed_at_any_instant_it_finishes(self):
        for delay in (0.2, 0.5, 0.8, 1.1):
            process = self.start("2", "0.15")
            time.sleep(delay)
            process.kill()
            process.communicate()
        # Orphans of the killed sweeps end by themselves; what they leave must not count.
        time.sleep(0.4)
        done = self.sweep()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({r["status"] for r in self.table()}, {"done"})
        self.assertEqual(len(self.table()), 6)
        self.assertEqual(list((self.out / "points").glob(".run-*")), [])

    def test_half_a_point_is_not_done(self):
        self.sweep()
        victim = next((self.out / "points").glob("ib-64-*"))
        (victim / "done.json").unlink()
        (victim / "result.json").write_text('{"schema": 1, "thr')
        self.assertEqual(self.sweep().returncode, 0)
        self.assertEqual(len(self.runs()), 7)
        self.assertNotEqual(self.table()[0]["throughput_gbps"], "")

    def test_failures_are_reported_and_tried_again(self):
        done = self.sweep(FAKE_FAIL="transport.protocol=iwarp")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stuck as ordered", done.stderr)
        rows = self.table()
        self.assertEqual([r["status"] for r in rows], ["done"] * 3 + ["failed"] * 3)
        self.assertEqual(rows[3]["error"], "error: stuck as ordered")
        self.assertEqual(len(list((self.out / "points").glob("*.failed.json"))), 3)
        self.assertEqual(self.sweep().returncode, 0)
        self.assertEqual({r["status"] for r in self.table()}, {"done"})
        self.assertEqual(list((self.out / "points").glob("*.failed.json")), [])

    def test_truncated_result_is_a_failure(self):
        done = self.sweep(FAKE_TRUNCATE="workload.msg_size=64")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([r["status"] for r in self.table()].count("failed"), 2)

    def test_timeout(self):
        done = self.sweep("--timeout", "0.2", FAKE_DELAY="30")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stopped after 0.2 s", done.stderr)

    def test_interrupt_stops_and_keeps_what_is_done(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            before = len(self.runs())
            process = self.start("1", "0.3")
            deadline = time.monotonic() + 20
            while len(self.runs()) <= before + 1 and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(number)
            _, errors = process.communicate(timeout=20)
            self.assertEqual(process.returncode, 128 + number)
            self.assertIn("continues", errors)
            self.assertTrue((self.out / "results.csv").exists())
            self.assertEqual(list((self.out / "points").glob(".run-*")), [])
        self.assertEqual(self.sweep().returncode, 0)

    def test_results_of_another_build_are_named_and_redone_on_request(self):
        self.sweep()
        other = self.dir / "other"
        other.write_text(support.FAKE.read_text() + "# another build\n")
        other.chmod(0o755)
        kept = self.sweep("--program", other)
        self.assertIn("6 finished points come from another build", kept.stderr)
        self.assertEqual(len(self.runs()), 6)
        self.sweep("--program", other, "--rerun-stale")
        self.assertEqual(len(self.runs()), 12)

    def test_bad_usage(self):
        self.assertEqual(self.sweep("--executor", "slurm").returncode, 2)
        self.assertEqual(self.sweep("--jobs", "0").returncode, 2)
        self.assertEqual(self.sweep("--program", self.dir / "none").returncode, 2)
        missing = self.run_script("sweep", self.dir / "none.ini", "-o", self.out)
        self.assertEqual(missing.returncode, 2)
        self.write("s.ini", "[sweep]\nnonsense\n")
        bad = self.sweep()
        self.assertEqual(bad.returncode, 2)
        self.assertIn("s.ini:2:", bad.stderr)

    def test_one_sweep_at_a_time_in_a_directory(self):
        process = self.start("1", "0.5")
        deadline = time.monotonic() + 20
        while not self.runs() and time.monotonic() < deadline:
            time.sleep(0.02)
        second = self.sweep()
        process.terminate()
        process.communicate()
        self.assertEqual(second.returncode, 2)
        self.assertIn("another sweep is at work", second.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_unwritable_directory(self):
        locked = self.dir / "locked"
        locked.mkdir(mode=0o500)
        self.assertEqual(self.run_script("sweep", self.spec, "-o", locked / "x").returncode, 2)


class Shipped(support.ScriptTest):
    def test_shipped_specifications_are_readable(self):
        files = sorted((support.REPOSITORY / "configs" / "sweep").glob("*.ini"))
        self.assertTrue(files)
        for file in files:
            listed = self.run_script("sweep", file, "-o", self.dir / "x", "--list")
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertGreater(len(listed.stdout.splitlines()), 3)

    def test_setup_leaves_apt_alone_when_nothing_is_missing(self):
        # Whatever is missing here is listed by the script itself; then the test says nothing.
        fake = self.dir / "bin"
        fake.mkdir()
        (fake / "apt-get").write_text(f"#!/bin/sh\necho called >> {self.dir / 'apt.log'}\nexit 1\n")
        (fake / "apt-get").chmod(0o755)
        tools = ("g++", "cmake", "ninja", "pkg-config", "tshark")
        if not all(shutil.which(tool) for tool in tools):
            self.skipTest("packages are missing")
        done = self.run_script("setup", "--packages-only", PATH=f"{fake}:{os.environ['PATH']}")
        if "installing" in done.stderr:
            self.skipTest("packages are missing")
        self.assertEqual(done.returncode, 0)
        self.assertFalse((self.dir / "apt.log").exists())

    def test_shell_scripts_parse(self):
        for path in [*support.SCRIPTS.iterdir(), support.SCRIPTS / "lib" / "common.sh",
                     support.REPOSITORY / ".ci" / "run"]:
            if path.is_file():
                self.assertEqual(subprocess.run(["bash", "-n", path]).returncode, 0, path)


if __name__ == "__main__":
    unittest.main()
