"""test_hpc: what programs of MPI and Fortran get (client/sum, examples/hpc): the heat equation has one set of bits for every number of
ranks and threads, in C and in Fortran, where plain sums have several; and what the header and the modules for MPI promise. The programs
are compiled as their first lines say, but that cured_sum.c comes from the build."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cured_daemon import BIN, main
from test_mpi import SURROUNDINGS

SOURCE = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
HANG_S = 120
CELLS, STEPS = "5000", "100"
# As docs/MPI.md shows them.
MAKE = """scripts/sum-file sum
cp examples/hpc/heat.* sum
cd sum
mpicc -O2 -c cured_sum.c"""
MAKE_C = "mpicc -O2 -fopenmp heat.c cured_sum.o -o heat"
MAKE_FORTRAN = "mpifort -O2 -fopenmp cured_sum_mod.f90 cured_sum_mpi_mod.f90 heat.f90 cured_sum.o -o heat_f"
RUN = "OMP_NUM_THREADS=2 mpirun -n 3 ./heat 5000 100"
# Some arguments of shr_reprosum_calc are not looked at, and bits are compared.
FORTRAN = "-std=f2008 -Wall -Wextra -Wno-unused-dummy-argument -Wno-compare-reals"
PRINTED = "exact 834833550.06956089 41c8e1464708e75f squares 42e30120f1887ceb"


class Hpc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("mpirun", "mpicc"):
            if not shutil.which(program):
                raise unittest.SkipTest("there is no %s (packages openmpi-bin, libopenmpi-dev)" % program)
        place = tempfile.mkdtemp(prefix="cured-hpc-")
        cls.addClassCleanup(shutil.rmtree, place, ignore_errors=True)
        for name in ("scripts", "examples"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(place, name))
        subprocess.run(["bash", "-e", "-c", MAKE], cwd=place, check=True, timeout=HANG_S)
        cls.folder = os.path.join(place, "sum")

    def build(self, *words):
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual((0, ""), (done.returncode, done.stderr), words)

    def need_fortran(self):
        if not shutil.which("mpifort") or not shutil.which("gfortran"):
            self.skipTest("there is no gfortran (package gfortran)")

    def run_mpi(self, ranks, *words, threads=1):
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            env = {**os.environ, **SURROUNDINGS, "TMPDIR": scratch, "OMP_NUM_THREADS": str(threads)}
            return subprocess.run(["mpirun", "-n", str(ranks), *words], cwd=self.folder, env=env, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=HANG_S)

    def heat(self, program, ranks, threads):
        """Bits of the plain sums, and those of the last line."""
        done = self.run_mpi(ranks, program, CELLS, STEPS, threads=threads)
        self.assertEqual(0, done.returncode, done.stderr)
        lines = done.stdout.strip().split("\n")
        exact = re.fullmatch(r"exact +\S+ ([0-9a-fA-F]{16}) squares ([0-9a-fA-F]{16})", lines[-1])
        self.assertTrue(exact, lines)
        plain = tuple(re.fullmatch(r"step \d+ plain +\S+ ([0-9a-fA-F]{16})", line).group(1).lower() for line in lines[:-1])
        self.assertEqual(2, len(plain))
        return plain, tuple(bits.lower() for bits in exact.groups())

    def test_heat(self):
        self.build(*(MAKE_C + " -std=c99 -Wall -Wextra -pedantic").split())
        runs = [("./heat", ranks, 1 + ranks % 4) for ranks in range(1, 8)] + [("./heat", 2, threads) for threads in (1, 2, 4)]
        if shutil.which("mpifort") and shutil.which("gfortran"):
            self.build(*(MAKE_FORTRAN + " " + FORTRAN).split())
            runs += [("./heat_f", 1, 1), ("./heat_f", 3, 2), ("./heat_f", 7, 1)]
        else:
            print("skipped: heat.f90: there is no gfortran")
        results = [self.heat(*run) for run in runs]
        self.assertEqual(1, len({exact for _, exact in results}), results)
        self.assertGreater(len({plain for plain, _ in results}), 1, "plain sums have one set of bits here, too")

    def test_as_the_page_shows(self):
        self.build(*MAKE_C.split())
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(["bash", "-c", RUN], cwd=self.folder, env={**os.environ, **SURROUNDINGS, "TMPDIR": scratch},
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=HANG_S)
        self.assertEqual((0, PRINTED), (done.returncode, done.stdout.strip().split("\n")[-1]), done.stderr)
        with open(os.path.join(SOURCE, "docs/MPI.md"), encoding="utf-8") as page:
            self.assertIn("\n" + PRINTED + "\n", page.read())

    def test_header(self):
        self.build("mpicc", "-O2", "-std=c99", "-Wall", "-Wextra", "-pedantic", os.path.join(SOURCE, "tests/integration/hpc_sum.c"),
                   "cured_sum.o", "-I.", "-lm", "-o", "hpc_sum")
        for ranks in (1, 2, 5):
            done = self.run_mpi(ranks, "./hpc_sum")
            self.assertEqual((0, "hpc_sum: %d ranks, 0 faults\n" % ranks), (done.returncode, done.stdout), done.stderr)

    def test_fortran(self):
        self.need_fortran()
        self.build("mpifort", "-O2", *FORTRAN.split(), "cured_sum_mod.f90", "cured_sum_mpi_mod.f90",
                   os.path.join(SOURCE, "tests/integration/hpc_sum.f90"), "cured_sum.o", "-o", "hpc_sum_f")
        for ranks in (1, 2, 5):
            done = self.run_mpi(ranks, "./hpc_sum_f")
            self.assertEqual((0, "hpc_sum in Fortran: %d ranks, 0 faults\n" % ranks), (done.returncode, done.stdout), done.stderr)
        done = self.run_mpi(2, "./hpc_sum_f", "infnan")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("cured_sum_mpi_mod: arr: it has NaN or infinities, and allow_infnan is not .true.", done.stderr)


if __name__ == "__main__":
    main()
