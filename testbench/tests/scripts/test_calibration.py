# SPDX-License-Identifier: Apache-2.0
"""Calibration, shapes, summaries and screening on simulations whose answers are known."""

import json
import tempfile
import types
import unittest
from pathlib import Path

import support  # noqa: F401  (puts the tools on the path)

from rnictools import believability
from rnictools.validation import (calibration, dataset, devices, preset_file, score, screening,
                                  shapes, simulations, summary)
from rnictools.validation.binding import run_of

_PRESET = """# A NIC
[nic]
# assumed: a start
clock = 2GHz
# measured: both of one table
qpc_cache.entries = 64
rx_parse.latency = 10
[pcie]
gen = 3
"""


class _Linear:
    """A simulator whose WRITE latency is 200 ns, a cycle of half a nanosecond for each of two
    stages' latencies, and 0.5 ns a byte."""

    def __init__(self):
        self.ran = 0

    def run(self, runs, label="", quiet=False):
        outcomes = {}
        for run in runs:
            self.ran += 1
            s = dict(run.settings)
            latency = (200 + 0.5 * float(s.get("nic.rx_parse.latency", 10))
                       + 0.5 * float(s["workload.msg_size"]))
            outcomes[run] = simulations.Outcome({"latency_ns": {
                key: latency for key in ("min", "p50", "mean", "p99")}})
        return outcomes


def _point(size, value, split="calibrate", number=1):
    return dataset.Point(
        id=f"CX3QDR-{number:03d}", source="s", device="ConnectX-3", link="", pcie="", mtu="2048",
        setup="", op="WRITE", msg_bytes=str(size), other_params="", metric="lat_median_us",
        value=value, confidence="exact table text", category="a", split=split)


class Calibration(unittest.TestCase):
    def _block(self):
        return calibration.Block("latency", "connectx3",
                                 (calibration.Parameter("nic.rx_parse.latency", 2, 1200, 40),),
                                 lambda p: True, evaluations=20)

    def _configs(self, directory):
        (Path(directory) / "nic").mkdir()
        path = Path(directory) / "nic" / "connectx3.ini"
        path.write_text(_PRESET, encoding="utf-8")
        return path

    def test_a_known_latency_is_found(self):
        # 400 + 0.5 x size ns: 200 of them are the stage's, 400 cycles.
        points = [_point(size, (400 + 0.5 * size) / 1e3, number=i)
                  for i, size in enumerate((8, 64, 1024, 4096), 1)]
        with tempfile.TemporaryDirectory() as directory:
            self._configs(directory)
            fit = calibration.fit(self._block(), points, _Linear(), Path(directory))
        self.assertAlmostEqual(float(fit.values["nic.rx_parse.latency"]), 400, delta=12)
        self.assertLess(fit.after, 0.02)
        self.assertGreater(fit.before, 0.1)

    def test_other_splits_are_never_looked_at(self):
        points = [_point(8, 0.404, number=1), _point(64, 9.0, "validate", 2),
                  _point(64, 9.0, "context", 3)]
        with tempfile.TemporaryDirectory() as directory:
            self._configs(directory)
            fit = calibration.fit(self._block(), points, _Linear(), Path(directory))
        self.assertEqual([s.point.id for s in fit.scored], ["CX3QDR-001"])

    def test_values_and_residuals_are_written(self):
        with tempfile.TemporaryDirectory() as directory:
            path = self._configs(directory)
            fit = calibration.fit(self._block(), [_point(8, 0.404)], _Linear(), Path(directory))
            calibration.write(fit, "connectx3", Path(directory), "scripts/calibrate connectx3")
            text = path.read_text(encoding="utf-8")
            report = json.loads(path.with_suffix(".fit.json").read_text(encoding="utf-8"))
        self.assertIn("# fitted (scripts/calibrate connectx3, block latency): 1 points of CX3QDR",
                      text)
        self.assertIn("qpc_cache.entries = 64\n", text)
        self.assertEqual(report["blocks"]["latency"]["residuals"]["CX3QDR-001"]["measured"], 0.404)

    def test_ranges_contain_their_starts(self):
        for device in devices.DEVICES.values():
            for block in device.blocks:
                for parameter in block.parameters:
                    self.assertLessEqual(parameter.low, parameter.start, parameter.key)
                    self.assertLessEqual(parameter.start, parameter.high, parameter.key)
                    self.assertAlmostEqual(
                        parameter.value(parameter.scaled(parameter.high)), parameter.high,
                        delta=parameter.multiple, msg=parameter.key)


class PresetFile(unittest.TestCase):
    def _updated(self, values):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "x.ini"
            path.write_text(_PRESET, encoding="utf-8")
            preset_file.update(path, values, "fitted: by hand")
            return path.read_text(encoding="utf-8"), preset_file.values(path)

    def test_a_value_keeps_its_place_and_gets_a_comment(self):
        text, values = self._updated({"nic.clock": "1GHz"})
        self.assertIn("[nic]\n# fitted: by hand\nclock = 1GHz\n", text)
        self.assertNotIn("a start", text)
        self.assertEqual(values["nic.rx_parse.latency"], "10")

    def test_a_comment_of_two_keys_stays_with_the_other(self):
        text, _ = self._updated({"nic.qpc_cache.entries": "128"})
        self.assertIn("# measured: both of one table\n# fitted: by hand\nqpc_cache.entries = 128\n",
                      text)

    def test_new_keys_and_sections(self):
        text, values = self._updated({"nic.dma.latency": "3", "link.rate": "31Gbps"})
        self.assertLess(text.index("dma.latency = 3"), text.index("[pcie]"))
        self.assertEqual(values["link.rate"], "31Gbps")
        self.assertEqual(values["pcie.gen"], "3")


class Shapes(unittest.TestCase):
    def test_inline_step_by_hand(self):
        shape = shapes.SHAPES[0]
        figures = {"CX3QDR-011": 1.2, "CX3QDR-012": 1.8, "CX3QDR-033": 2.0, "CX3QDR-034": 2.1,
                   "CX3QDR-055": 1.3, "CX3QDR-056": 1.9}
        self.assertTrue(all(v.holds for v in shapes.judge(shape, figures)))
        # Without a step for WRITE, that part fails and the others hold.
        self.assertEqual([v.holds for v in shapes.judge(shape, figures | {"CX3QDR-012": 1.25})],
                         [False, True, True])

    def test_a_missing_figure_is_a_failure_with_its_name(self):
        (verdict,) = shapes.judge(shapes.SHAPES[0], {})
        self.assertFalse(verdict.holds)
        self.assertIn("CX3QDR-0", verdict.text)

    def test_the_points_of_shapes_exist_and_are_bound(self):
        from rnictools import sweep
        from rnictools.validation import binding, rules
        points = {p.id: p for p in dataset.load(
            sweep.REPOSITORY / "results" / "measurements" / "published.csv")}
        self.assertEqual([s.number for s in shapes.SHAPES], list(range(1, 14)))
        for shape in shapes.SHAPES:
            for id_ in shape.points:
                self.assertIsInstance(rules.bind(points[id_]), binding.Binding, id_)


class Summary(unittest.TestCase):
    def test_the_generated_part_replaces_only_itself(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "README.md"
            path.write_text(f"before\n{summary.BEGIN}\nold\n{summary.END}\nafter\n", encoding="utf-8")
            summary.write_readme(path, ["new"])
            self.assertEqual(path.read_text(encoding="utf-8"),
                             f"before\n{summary.BEGIN}\nnew\n{summary.END}\nafter\n")
            path.write_text("no markers", encoding="utf-8")
            with self.assertRaises(ValueError):
                summary.write_readme(path, ["new"])

    def test_believability_quotes_validate_only(self):
        scored = [score.Scored(_point(8, 1.0, "validate", 1), 1.1, "connectx5", "ib"),
                  score.Scored(_point(64, 1.0, "validate", 2), 0.7, "connectx5", "ib"),
                  score.Scored(_point(64, 1.0, "calibrate", 3), 9.0, "connectx5", "ib")]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "presets.csv"
            summary.write_presets(path, scored)
            errors = believability.load(path, "connectx5")
        count, error = errors["ib"]["latency"]
        self.assertEqual(count, 2)
        self.assertAlmostEqual(error, 0.2)  # 10 % and 30 %
        self.assertIn("latency within 20% on average (2 points)",
                      believability.sentence("ib", errors))
        self.assertIn("not validated", believability.sentence("iwarp", errors))


class Screening(unittest.TestCase):
    """A figure 3 a + b + 0 c: the effects are known."""

    def setUp(self):
        run = run_of(("x",), {})
        self.figure = screening.Figure("f", "", run, ("throughput_gbps",))
        self.factors = [screening.Factor(f"nic.{name}", 1.0, 0.5, 2.0, "", False)
                        for name in "abc"]

        def simulate(runs, label="", quiet=False):
            found = {}
            for run in runs:
                s = {k: float(v) for k, v in run.settings}
                found[run] = simulations.Outcome({"throughput_gbps": 3 * s.get("nic.a", 1.0)
                                                  + s.get("nic.b", 1.0)})
            return found
        self.simulations = types.SimpleNamespace(run=simulate)

    def test_one_at_a_time(self):
        base, effects = screening.one_at_a_time(self.factors, [self.figure], self.simulations)
        self.assertAlmostEqual(base["f"], 4.0)
        # a from 1 to 0.5 and 2: 2.5 and 7 for 4.
        self.assertAlmostEqual(effects[0].low, -0.375)
        self.assertAlmostEqual(effects[0].high, 0.75)
        self.assertAlmostEqual(effects[2].span, 0.0)

    def test_morris_ranks(self):
        effects = {e.factor: e for e in screening.morris(self.factors, [self.figure],
                                                         self.simulations, 6, 1)}
        self.assertGreater(effects["nic.a"].mu_star, 2 * effects["nic.b"].mu_star)
        self.assertAlmostEqual(effects["nic.c"].mu_star, 0.0)


if __name__ == "__main__":
    unittest.main()
