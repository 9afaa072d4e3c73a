"""scripts/plot-bench on a small sample: well-formed SVG, bars as long as their figures, one line a kernel, the same file twice;
and a sentence for what is not a benchmark's file."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SOURCE = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
PLOT = os.path.join(SOURCE, "scripts", "plot-bench")
SVG = "{http://www.w3.org/2000/svg}"


def row(group, kernel, size, speed, op="sum", dtype="f32", answer="exact"):
    return {"op": op, "dtype": dtype, "bytes": size, "group": group, "kernel": kernel, "gb_per_s": speed, "low": speed * 0.9,
            "high": speed * 1.1, "of_read": 0.5, "to_cub": None, "timed": "graph", "answer": answer, "error": 0}


SAMPLE = {"gpu": "Some <GPU> & more", "machine": "m", "command": "c", "rows":
          [row("read", "tiles", n, 400.0 * n / 4096, answer="") for n in (4096, 8192)] +
          [row("read", "runs", n, 300.0 * n / 4096, answer="") for n in (4096, 8192)] +
          [row("cub", "cub", n, 100.0 * n / 4096, answer="WRONG") for n in (4096, 8192)] +
          [row("cub", "gpu_to_gpu", n, 25.0 * n / 4096, answer="within bound") for n in (4096, 8192)] +
          [dict(row("cub", "not_guaranteed", 8192, 0.0, answer="none: CCCL 3.0"), gb_per_s=None, low=None, high=None)] +
          [row("ladder", "v0_baseline", n, 50.0 * n / 4096) for n in (4096, 8192)] +
          [row("fold", "cured", 4096, 7.0, "mean+var", "f64")]}


class PlotBench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def plot(self, data, *options, out="out"):
        with open(self.path("in.json"), "w", encoding="utf-8") as f:
            f.write(data if isinstance(data, str) else json.dumps(data))
        return subprocess.run([sys.executable, PLOT, self.path("in.json"), "--out", self.path(out), *options],
                              capture_output=True, text=True, check=False)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def test_pictures(self):
        done = self.plot(SAMPLE)
        self.assertEqual(0, done.returncode, done.stderr)
        names = sorted(os.listdir(self.path("out")))
        self.assertEqual(["ladder-mean-var-f64.svg", "ladder-sum-f32.svg", "sizes-mean-var-f64.svg", "sizes-sum-f32.svg"], names)
        self.assertEqual(names, sorted(os.path.basename(line) for line in done.stdout.split()))
        for name in names:
            self.assertEqual(SVG + "svg", ElementTree.fromstring(self.read("out/" + name)).tag)

    def test_bars_are_the_figures(self):
        self.plot(SAMPLE, "--op", "sum")
        root = ElementTree.fromstring(self.read("out/ladder-sum-f32.svg"))
        texts = [t.text for t in root.iter(SVG + "text")]
        self.assertIn("sum of f32, 8 KiB", texts)
        self.assertNotIn("runs", texts, "only the best read loop is drawn")
        self.assertEqual([t for t in texts if t.endswith("GB/s") or "wrong" in t],
                         ["200 GB/s  (wrong answer)", "50 GB/s", "100 GB/s", "800 GB/s"])
        bars = [float(r.get("width")) for r in root.iter(SVG + "rect") if r.get("height") == "16"]
        self.assertEqual(4, len(bars), "what that CUB lacks is not drawn")
        self.assertAlmostEqual(2, bars[0] / bars[2], 1)
        self.assertAlmostEqual(4, bars[3] / bars[0], 1)

    def test_lines(self):
        self.plot(SAMPLE, "--dtype", "f32")
        root = ElementTree.fromstring(self.read("out/sizes-sum-f32.svg"))
        self.assertEqual(8, sum(path.get("d").count("h0") for path in root.iter(SVG + "path")))
        self.assertEqual({"4 K", "8 K"}, {t.text for t in root.iter(SVG + "text")} & {"4 K", "8 K"})

    def test_same_figures_same_file(self):
        self.plot(SAMPLE)
        self.plot(SAMPLE, out="again")
        for name in os.listdir(self.path("out")):
            self.assertEqual(self.read("out/" + name), self.read("again/" + name))

    def test_tables(self):
        def lines(*options):
            done = subprocess.run([sys.executable, PLOT, self.path("in.json"), "--table", "--op", "sum", *options],
                                  capture_output=True, text=True, check=True)
            return done.stdout.strip().split("\n")
        self.plot(SAMPLE)
        self.assertEqual(["| kernel | 4 KiB | 8 KiB | answer |", "| --- | --- | --- | --- |", "| cub | 100 | 200 | WRONG |",
                          "| gpu_to_gpu | 25.0 | 50.0 | within bound |", "| v0_baseline | 50.0 | 100 | exact |", "| best read loop | 400 | 800 |  |"], lines()[2:])
        self.assertIn("| v0_baseline | 0.50 | 0.50 | exact |", lines("--of-cub"))

    def test_classes(self):
        rows = [row("cub", "cub", n, 10.0) for n in (4096, 65536, 1 << 30)]
        rows += [row("fold", "cured", n, speed) for n, speed in ((4096, 9.0), (65536, 15.0), (1 << 30, 10.0))]
        self.plot(dict(SAMPLE, rows=rows))
        done = subprocess.run([sys.executable, PLOT, self.path("in.json"), "--classes"], capture_output=True, text=True, check=True)
        self.assertEqual("| sum f32 | 0.90 … 1.50 | – | – | 1.00 |", done.stdout.strip().split("\n")[2])

    def test_choice_of_bytes(self):
        self.assertEqual(0, self.plot(SAMPLE, "--op", "sum", "--bytes", "4096").returncode)
        self.assertIn("sum of f32, 4 KiB", self.read("out/ladder-sum-f32.svg"))

    def test_refusals(self):
        for data, options, words in (("{", (), "in.json"), ({"rows": [{}]}, (), "in.json"), ({"rows": []}, (), "no rows"),
                                     (SAMPLE, ("--op", "prod"), "op and type"), (SAMPLE, ("--bytes", "17"), "17 bytes")):
            done = self.plot(data, *options)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(words, done.stderr)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
