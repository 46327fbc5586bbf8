# SPDX-License-Identifier: Apache-2.0
"""Published measurements, their bindings to simulations, and errors."""

import collections
import re
import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401  (puts the tools on the path)

from rnictools import sweep
from rnictools.validation import binding, cache_rules, dataset, preset_file, rules, score

_DATA = sweep.REPOSITORY / "results" / "measurements" / "published.csv"


def _point(**changes):
    base = dict(id="SET-001", source="s", device="d", link="l", pcie="p", mtu="4096", setup="",
                op="WRITE", msg_bytes="64", other_params="", metric="lat_median_us", value=2.0,
                confidence="exact table text", category="a", split="validate")
    return dataset.Point(**{**base, **changes})


class Dataset(unittest.TestCase):
    def test_all_points_are_read(self):
        points = dataset.load(_DATA)
        self.assertEqual(len(points), 891)
        self.assertEqual(len({p.id for p in points}), 891)
        self.assertEqual({p.split for p in points}, set(dataset.SPLITS))

    def test_sizes_with_relations(self):
        self.assertEqual(_point(msg_bytes="<=128").size, 128)
        self.assertEqual(_point(msg_bytes="1+").size, 1)
        self.assertIsNone(_point(msg_bytes="").size)

    def test_a_mistake_names_its_line(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "data.csv"
            lines = _DATA.read_text(encoding="utf-8").splitlines()[:3]
            path.write_text("\n".join(lines).replace(",0.88,", ",fast,") + "\n", encoding="utf-8")
            with self.assertRaisesRegex(dataset.DatasetError, r"data\.csv:3: value 'fast'"):
                dataset.load(path)

    def test_a_range_is_its_middle(self):
        self.assertEqual({p.id: p.value for p in dataset.load(_DATA)}["CX4ROCE-003"], 22.5)


class Bindings(unittest.TestCase):
    def test_every_point_is_bound_or_says_why_not(self):
        for point in dataset.load(_DATA):
            bound = rules.bind(point)
            if isinstance(bound, binding.Unbound):
                self.assertTrue(bound.reason, point.id)
                continue
            for run in bound.runs:
                for preset in run.presets:
                    self.assertTrue(list((sweep.REPOSITORY / "configs").glob(f"*/{preset}.ini")),
                                    f"{point.id}: no preset {preset}")
                for key, value in run.settings:
                    self.assertNotIn(value, ("None", ""), f"{point.id}: {key}")

    def test_a_perftest_row(self):
        point = next(p for p in dataset.load(_DATA) if p.id == "CX3QDR-001")
        bound = rules.bind(point)
        settings = dict(bound.runs[0].settings)
        self.assertEqual(bound.runs[0].presets[0], "connectx3")
        self.assertEqual((settings["workload.op"], settings["workload.msg_size"],
                          settings["workload.pattern"], settings["transport.mtu"]),
                         ("write", "2", "latency", "2048"))
        self.assertAlmostEqual(bound.figure([{"latency_ns": {"p50": 980.0}}]), 0.98)

    def test_points_of_one_run_share_it(self):
        runs = collections.Counter()
        for point in dataset.load(_DATA):
            if point.dataset == "CX3QDR" and point.op == "WRITE" and point.msg_bytes == "64" \
                    and point.metric.startswith("lat"):
                runs[rules.bind(point).runs[0]] += 1
        self.assertEqual(list(runs.values()), [3])  # minimum, median, 99th percentile


    def test_shared_queue_pairs_are_a_closed_network(self):
        # Eight threads on the locks of two queue pairs: 8 / (8 + 2 - 1) of the time a lock is held, for
        # 2.1 us each. Eight queue pairs, a thread for each: 2100 x 9/8 ns a READ; all of them 3.4 M/s.
        each = cache_rules._farm_lock_ns(qps=8, threads=8, sharers=8, machines=2)
        self.assertAlmostEqual(each, 2100 * 9 / 8)
        # Half as many threads stand for twice the queue pairs each.
        self.assertAlmostEqual(cache_rules._farm_lock_ns(8, 4, 8, 2), each / 2)
        # A lock that one thread has for itself is held whenever it posts.
        self.assertAlmostEqual(cache_rules._farm_lock_ns(8, 8, 1, 1), 2100)

    def test_writes_that_nobody_answers(self):
        point = next(p for p in dataset.load(_DATA) if p.id == "RBENCH-016")
        settings = dict(rules.bind(point).runs[0].settings)
        self.assertEqual((settings["transport.type"], settings["workload.signal_every"],
                          settings["workload.outstanding"], settings["workload.depth"]),
                         ("uc", "64", "0", "128"))

    def test_most_points_are_bound(self):
        judged = [p for p in dataset.load(_DATA) if p.split in ("calibrate", "validate")]
        bound = sum(isinstance(rules.bind(p), binding.Binding) for p in judged)
        self.assertGreaterEqual(bound / len(judged), 0.85)


class Presets(unittest.TestCase):
    def test_families_have_their_measured_members_memory(self):
        configs = sweep.REPOSITORY / "configs" / "host"
        for family, member in (("sandy_bridge", "xeon_e5_2630"), ("haswell", "xeon_e5_2637v3"),
                               ("broadwell", "xeon_e5_2630v4")):
            mine = preset_file.values(configs / f"{family}.ini")
            measured = preset_file.values(configs / f"{member}.ini")
            # pcie.latency is not the host's alone: half of it is the device's.
            for key in ("memory.read_latency", "memory.dram_latency", "memory.dram_channels",
                        "memory.dram_channel_bandwidth"):
                self.assertEqual(mine[key], measured[key], f"{family}: {key}")


    def test_every_value_has_its_evidence(self):
        # A comment that names an evidence class covers the settings that follow without a gap.
        classes = re.compile(r"\b(spec|datasheet|measured|fitted|assumed)\b")
        configs = sweep.REPOSITORY / "configs"
        for path in (p for kind in ("nic", "host", "link") for p in (configs / kind).glob("*.ini")):
            comment, previous = "", ""
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if line.startswith("#"):
                    comment = comment + line if previous.startswith("#") else line
                elif "=" in line:
                    self.assertRegex(comment, classes, f"{path.name}:{number}: {line}")
                else:
                    comment = ""
                previous = line


class Scores(unittest.TestCase):
    def test_errors_by_hand(self):
        # 2.2 for 2.0 is +10 %, 3.0 for 4.0 is -25 %: mean of the absolute values 17.5 %, bias -7.5 %.
        scored = [score.Scored(_point(value=2.0), 2.2),
                  score.Scored(_point(id="SET-002", value=4.0), 3.0)]
        summary = score.summarise("SET", scored)
        self.assertAlmostEqual(summary.mean_absolute, 0.175)
        self.assertAlmostEqual(summary.bias, -0.075)
        self.assertEqual(summary.worst.point.id, "SET-002")
        self.assertIsNone(summary.rank)

    def test_far_off_is_a_ratio(self):
        self.assertFalse(score.Scored(_point(value=3.0), 2.01).far_off)
        self.assertTrue(score.Scored(_point(value=3.0), 1.99).far_off)
        self.assertTrue(score.Scored(_point(value=2.0), 3.01).far_off)

    def test_data_sets_count_alike(self):
        many = [score.Scored(_point(id=f"MANY-{i:03}", value=1.0), 1.0) for i in range(9)]
        one = [score.Scored(_point(id="ONE-001", value=1.0), 1.5)]
        self.assertAlmostEqual(score.mean_over_groups(score.group(many + one, "dataset")), 0.25)


if __name__ == "__main__":
    unittest.main()
