"""The thread pool that folds large arrays: what the environment makes of it, forks, threads of the program, signals, the end of a program, and
that answers have the same bits as by one thread."""
import os
import subprocess
import sys
import threading
import unittest

import numpy
from support import PACKAGE, Case, cured

SANITIZED = os.environ.get("CURED_TEST_SANITIZE", "")
CORES = len(os.sched_getaffinity(0))
BEGIN = """
import os, sys
import numpy, cured
def tasks(): return len(os.listdir("/proc/self/task"))
large = numpy.ones(1 << 20, "f4")
"""


def run(program, **environment):
    """Exit status, output and errors of a program of its own."""
    names = {k: v for k, v in os.environ.items() if k not in ("CURED_NUM_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", BEGIN + program], capture_output=True, text=True, timeout=120,
                          env={**names, "PYTHONPATH": PACKAGE, "OPENBLAS_NUM_THREADS": "1", **environment})
    return done.returncode, done.stdout.strip(), done.stderr.strip()


class Environment(Case):
    COUNT = "before = tasks(); assert cured.sum(large) == 1 << 20; print(tasks() - before)"

    def more(self, program=COUNT, **environment):
        status, out, errors = run(program, **environment)
        self.assertEqual((0, ""), (status, errors))
        return int(out)

    def test_one_thread(self):
        self.assertEqual(0, self.more(CURED_NUM_THREADS="1"))
        self.assertEqual(0, self.more(OMP_NUM_THREADS="1"))
        self.assertEqual(0, self.more(OMP_NUM_THREADS="1,2"))
        self.assertEqual(0, self.more(CURED_NUM_THREADS="1", OMP_NUM_THREADS="2"))
        self.assertEqual(0, self.more("os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n" + self.COUNT))
        self.assertEqual(0, self.more(self.COUNT.replace("cured.sum", "cured.Client('embedded:', threads=1).sum")))
        self.assertEqual(0, self.more(self.COUNT.replace("(large)", "(large[:1 << 17]) * 8")))

    @unittest.skipIf(CORES == 1, "there is one core")
    def test_cores(self):
        self.assertIn(self.more(), range(CORES))  # a control group may allow fewer
        self.assertEqual(self.more(), self.more(CURED_NUM_THREADS="1024"))
        self.assertEqual(self.more(), self.more(OMP_NUM_THREADS="many"))
        self.assertEqual(self.more(), self.more(OMP_NUM_THREADS="0"))
        self.assertEqual(self.more(), self.more(CURED_NUM_THREADS=""))
        self.assertEqual(self.more(), self.more(CURED_NUM_THREADS="1024", OMP_NUM_THREADS="1"))

    def test_what_is_wrong_is_said(self):
        for junk in ("0", "two", "1025"):
            for array in ("large", "large[:10]"):
                status, _, errors = run("cured.sum(%s)" % array, CURED_NUM_THREADS=junk)
                self.assertEqual(1, status)
                self.assertIn('ValueError: CURED_NUM_THREADS is "%s", must be a number from 1 to 1,024' % junk, errors)

    def test_client(self):
        for wrong in (0, 1025, -1, 1 << 70):
            with self.assertRaisesRegex(ValueError, "threads: .* must be 1 to 1,024, or None"):
                cured.Client("embedded:", threads=wrong)
        with self.assertRaises(TypeError):
            cured.Client("embedded:", threads="2")
        with cured.Client("embedded:", threads=None) as client:
            self.assertEqual(3e6, client.sum(numpy.ones(3_000_000)))


class Answers(Case):
    OPS = "sum,mean,min,max,argmin,argmax,count,sumsq,norm1,norm2,var,std,count_nonzero,count_nan,digest,ptp"

    def compare(self, a, ops=OPS, **options):
        wanted = self.one.reduce(a, ops, **options)
        for _ in range(3):
            got = cured.reduce(a, ops, **options)
            [self.assert_same(wanted[op], got[op], op) for op in wanted]

    def setUp(self):
        self.one = cured.Client("embedded:", threads=1)

    def test_types(self):
        rng = numpy.random.default_rng(3)
        for dtype in ("f2", "f4", "f8", ">f4", "i1", "u2", "i4", "u8"):
            self.compare((rng.standard_normal(3_000_001) * 100).astype(dtype))
        a = rng.standard_normal(3_000_001)
        a[[5, 2_999_999]] = numpy.nan
        self.compare(a)
        self.compare(a, "sum,argmin,max,var", nan="skip")

    def test_layouts(self):
        a = numpy.random.default_rng(4).standard_normal((1500, 2000)).astype("f4")
        plain = self.OPS.replace("digest,", "")
        for view in (a, a.T, a[::-1], a[:, ::2], numpy.asfortranarray(a)):
            self.compare(view)
        self.compare(a, plain, where=a > 0)
        self.compare(numpy.ma.masked_array(a, a > 1), plain)
        self.compare(a, "median,sum,prod")
        for op in ("sum", "argmax", "std", "median", "prod", "digest"):
            for axis in (0, 1):
                self.assert_arrays(getattr(self.one, op)(a, axis=axis), getattr(cured, op)(a, axis=axis))
        borders = numpy.array([0, 5, 700_000, 700_002, 2_999_999])
        keys = numpy.arange(3_000_000) % 77
        for op in ("sum", "max", "var"):
            self.assert_arrays(getattr(self.one, op)(a, axis=0, where=a > 0.5), getattr(cured, op)(a, axis=0, where=a > 0.5))
            self.assert_arrays(getattr(self.one, op)(a.reshape(-1), offsets=borders), getattr(cured, op)(a.reshape(-1), offsets=borders))
            self.assert_arrays(getattr(self.one, op)(a.reshape(-1), keys=keys, groups=77), getattr(cured, op)(a.reshape(-1), keys=keys, groups=77))
        self.assert_same(self.one.dot(a[1:], a[:-1]), cured.dot(a[1:], a[:-1]))
        self.assertEqual(bytes(self.one.partial(a, ["sum", "digest"], first=7)), bytes(cured.partial(a, ["sum", "digest"], first=7)))


class Threads(Case):
    def test_threads_of_the_program(self):
        """One of them has the pool; the others do without, and start no more."""
        arrays = [numpy.random.default_rng(k).standard_normal(400_000 + k) for k in range(6)]
        with cured.Client("embedded:", threads=1) as one:
            wanted = [one.sum(a) for a in arrays]
        wrong, most = [], []

        def work(k):
            for _ in range(30):
                if cured.sum(arrays[k]) != wanted[k]:
                    wrong.append(k)
            most.append(len(os.listdir("/proc/self/task")))

        cured.sum(arrays[0])
        before = len(os.listdir("/proc/self/task"))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual([], wrong)
        self.assertLessEqual(max(most), before + 6)

    def test_signals_are_the_programs(self):
        status, out, errors = run("""
import signal, time
cured.sum(large)
for task in os.listdir("/proc/self/task"):
    text = open("/proc/self/task/%s/status" % task).read()
    if int(task) != os.getpid():
        blocked = int(text.split("SigBlk:")[1].split()[0], 16)
        assert all(blocked >> s - 1 & 1 for s in range(1, 32) if s not in (signal.SIGKILL, signal.SIGSTOP)), text
""")
        self.assertEqual((0, ""), (status, errors))

    @unittest.skipIf("address" in SANITIZED, "AddressSanitizer's locks do not survive a fork beside threads")
    def test_fork(self):
        status, out, errors = run("""
import threading
stop = []
def work():
    while not stop: assert cured.sum(large) == 1 << 20
before = tasks()
cured.sum(large)
more = tasks() - before
beside = threading.Thread(target=work)
beside.start()
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        good = tasks() == 1
        good = good and all(cured.sum(large) == 1 << 20 for _ in range(3)) and tasks() == 1 + more
        os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.append(1)
beside.join()
""")
        self.assertEqual((0, ""), (status, errors))

    def test_the_end_of_a_program(self):
        for program in ("cured.sum(large)",
                        "import threading\ndef work():\n  while True: cured.sum(large)\n"
                        "threading.Thread(target=work, daemon=True).start()\ncured.sum(large)",
                        "import atexit\natexit.register(lambda: cured.sum(large))\ncured.sum(large)",
                        "cured.sum(large); os._exit(0)", "cured.sum(large); sys.exit(0)"):
            status, _, errors = run(program)
            self.assertEqual((0, ""), (status, errors), program)


if __name__ == "__main__":
    unittest.main()
