# SPDX-License-Identifier: Apache-2.0
"""Sweep specifications and quantities."""

import unittest

import support
from rnictools import quantities, spec


class Quantities(unittest.TestCase):
    def test_units_become_base_units(self):
        for text, number, unit in [
                ("4KiB", 4096, "B"), ("1.5us", 1500, "ns"), ("100Gbps", 100, "Gb/s"),
                ("1GHz", 1, "GHz"), ("16", 16, ""), ("1e-3", 0.001, ""), ("2 B", 2, "B")]:
            with self.subTest(text):
                value, got = quantities.parse(text)
                self.assertAlmostEqual(value, number)
                self.assertEqual(got, unit)

    def test_words_are_no_quantities(self):
        for text in ("ib", "4XiB", "", "1.2.3"):
            self.assertIsNone(quantities.parse(text))

    def test_readable_sizes(self):
        self.assertEqual([quantities.format_bytes(n) for n in (2, 1024, 65536, 2**20)],
                         ["2 B", "1 KiB", "64 KiB", "1 MiB"])


class Spec(unittest.TestCase):
    def test_cartesian_product_in_file_order(self):
        plan = spec.parse("[workload]\nop = write # fixed\n[sweep]\na.x = 1, 2\na.y = p, q\n")
        self.assertEqual(plan.fixed, {"workload.op": "write"})
        self.assertEqual([dict(p.axes) for p in plan.points()],
                         [{"a.x": x, "a.y": y} for x in "12" for y in "pq"])

    def test_zip_keys_change_together(self):
        plan = spec.parse("[zip pair]\na.x = 1, 2\na.y = p, q\n[sweep]\nb.z = 7, 8\n")
        self.assertEqual({tuple(dict(p.axes).values()) for p in plan.points()},
                         {("1", "p", "7"), ("1", "p", "8"), ("2", "q", "7"), ("2", "q", "8")})

    def test_geometric_range(self):
        self.assertEqual(spec.expand("2 .. 1KiB x8"), ["2", "16", "128", "1024"])
        self.assertEqual(spec.expand("1 .. 10 x 3, 10"), ["1", "3", "9", "10"])

    def test_mistakes_name_the_line(self):
        cases = {
            "[sweep]\na.x 1\n": ":2: ",
            "[sweep]\na.x = 1,,2\n": ":2: an empty value",
            "[sweep]\na.x = 1, 1\n": ":2: a value appears twice",
            "[w]\nk = 1\n[sweep]\nw.k = 1, 2\n": ":4: w.k is given twice",
            "[output]\ndir = x\n": ":2: output.dir is chosen by the sweep",
            "[zip]\n": ":1: a zip group needs a name",
            "[zip z]\na.x = 1, 2\na.y = 1\n": "equally long lists",
            "[sweep]\na.x = 9 .. 2 x2\n": ":2: the range",
            "[sweep]\na.Bad Key = 1\n": ":2: ",
        }
        for text, message in cases.items():
            with self.subTest(text):
                with self.assertRaises(spec.SpecError) as caught:
                    spec.parse(text, "s.ini").points()
                self.assertIn(message, str(caught.exception))

    def test_point_file_reads_back_as_sections(self):
        point = spec.make_point([], {"nic.qpc_cache.ways": "4", "workload.op": "read"}, {})
        self.assertEqual(point.ini().splitlines()[1:],
                         ["[nic]", "qpc_cache.ways=4", "[workload]", "op=read"])


class Names(support.ScriptTest):
    def test_any_change_makes_another_point(self):
        base = spec.make_point([], {"a.x": "1"}, {"b.y": "2"}).name
        self.assertEqual(base, spec.make_point([], {"a.x": "1"}, {"b.y": "2"}).name)
        self.assertNotEqual(base, spec.make_point([], {"a.x": "3"}, {"b.y": "2"}).name)
        self.assertNotEqual(base, spec.make_point(["p"], {"a.x": "1"}, {"b.y": "2"}).name)

    def test_changed_include_makes_another_point(self):
        names = []
        for content in ("[nic]\nclock=1GHz\n", "[nic]\nclock=2GHz\n"):
            self.write("my.ini", content)
            plan = spec.parse("include = my.ini\n")
            names.append(plan.points(spec.Presets(None, self.dir))[0].name)
        self.assertNotEqual(*names)


if __name__ == "__main__":
    unittest.main()
