"""test_mpi: cured-mpi under mpirun, on 1, 2, 3, 4 and 7 ranks, prints what cured-client prints for the whole: every bit, every error
once. The ranks share one machine; groups of ranks stand for its nodes."""
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import zipfile

from connection import HANG_S
from cured_daemon import BIN, CLIENT, Daemon, environment, main, need_binary
from tls_files import Authority

MPI = os.path.join(BIN, "cured-mpi")
SEED = int(os.environ.get("CURED_TEST_SEED", "20260105"))
RANKS = (1, 2, 3, 4, 7)
OPS = "sum,mean,min,max,argmin,argmax,count,count_nonzero,count_nan,count_inf,any,all,sumsq,norm1,norm2,norminf,var,std"
# Open MPI on a small machine, as root, without ssh, in a container. It frees little at its end, so leaks are not looked for.
SURROUNDINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm": "isolated",
                "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
                "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl": "self,vader",
                "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "ASAN_OPTIONS": "detect_leaks=0"}


def npy(descr, shape, data, fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data


class MpiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_binary(MPI)
        if not shutil.which("mpirun"):
            raise unittest.SkipTest("there is no mpirun (package openmpi-bin)")
        cls.folder = tempfile.mkdtemp(prefix="cured-mpi-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.random = random.Random(SEED)

    def file(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def floats(self, count, form="f", nan=False):
        """Far apart in size, so that a sum in any float type would lose some."""
        values = [self.random.choice((-1, 1)) * self.random.random() * 10.0 ** self.random.randint(-30, 30) for _ in range(count)]
        if nan and count:
            values[self.random.randrange(count)] = float("nan")
        return struct.pack("<%d%s" % (count, form), *values)

    def start(self, ranks, *arguments):
        # A folder for each run: one that ends clears away what another has just begun.
        folder = tempfile.mkdtemp(dir=self.folder)
        return subprocess.Popen(["mpirun", "-n", str(ranks), MPI] + [str(a) for a in arguments], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                                env=environment(TMPDIR=folder, **SURROUNDINGS))

    def run_mpi(self, ranks, *arguments):
        """Exit status, standard output, and what of standard error is not mpirun's."""
        return self.finish(self.start(ranks, *arguments))

    def finish(self, process):
        try:
            out, err = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        err = err.decode()
        self.assertNotRegex(err, r"ERROR: \w*Sanitizer|runtime error:")
        mine = [line for line in err.split("\n") if line.startswith("cured-mpi: ")]
        self.assertTrue(mine or process.returncode == 0, "mpirun failed by itself:\n" + err)
        return process.returncode, out, mine

    def client(self, *arguments):
        done = subprocess.run([CLIENT] + [str(a) for a in arguments] + ["--connect", "embedded:"], cwd=self.folder,
                              capture_output=True, env=environment(), timeout=HANG_S)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def same(self, wanted, *arguments, ranks=RANKS):
        """Every number of ranks prints this."""
        started = [(n, self.start(n, *arguments)) for n in ranks]  # together, because mpirun mostly waits
        for n, process in started:
            with self.subTest(ranks=n, arguments=arguments, seed=SEED):
                self.assertEqual((0, wanted, []), self.finish(process))

    def same_as_client(self, *arguments, ranks=RANKS):
        self.same(self.client(*arguments), *arguments, ranks=ranks)


class Answers(MpiTest):
    def test_uneven_slices_of_one_file(self):
        count = 4096 * self.random.randint(3, 40) + self.random.randint(1, 4095)
        path = self.file("a.f32", self.floats(count, nan=self.random.random() < 0.5))
        self.same_as_client("reduce", path, "--ops", OPS + ",prod")
        self.same_as_client("describe", path, "--offset", "12", "--count", count - 77, ranks=(3,))

    def test_without_standard_descriptors(self):
        """A single rank, started without some of them, as by `cured-mpi … >&-`: no socket and no file becomes its output."""
        path, out = self.file("closed.f32", self.floats(5000)), os.path.join(self.folder, "closed.npy")
        ways = {(0,): ([], 0), (1,): ([], 74), (0, 1, 2): ([], 74), (2,): (["--axis", "0", "--shape", "50,100", "--output", out], 0),
                (0, 1): (["--axis", "0", "--shape", "50,100", "--output", out], 0)}
        for closed, (more, status) in ways.items():
            done = subprocess.run([MPI, "sum", path, *more, "--connect", "embedded:"], cwd=self.folder, env=environment(TMPDIR=self.folder, **SURROUNDINGS),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S,
                                  preexec_fn=lambda closed=closed: [os.close(fd) for fd in closed])
            self.assertEqual(status, done.returncode, (closed, done))
            self.assertEqual(self.client("sum", path) if closed == (0,) else b"", done.stdout, closed)
            if closed == (1,):
                self.assertIn(b"cured-mpi: cannot write to standard output", done.stderr)
            if more:
                self.client("sum", path, *more[:-1], out + ".right")
                with open(out, "rb") as found, open(out + ".right", "rb") as right:
                    self.assertEqual(right.read(), found.read(), closed)

    def test_ranks_without_data(self):
        path = self.file("few.f64", self.floats(5, "d"))
        self.same_as_client("describe", path, "--dtype", "f64", ranks=(1, 7))

    def test_nothing_at_all(self):
        one, two = self.file("empty1", b""), self.file("empty2.npy", npy("<f4", "(0,)", b""))
        self.same(b"count 0\nsum 0\nany false\n", "reduce", one, two, "--ops", "count,sum,any", ranks=(1, 3))

    def test_integers_and_their_product(self):
        values = [self.random.choice((1, -1, 3)) for _ in range(9000)]
        path = self.file("i.npy", npy("<i8", "(9000,)", struct.pack("<9000q", *values)))
        self.same_as_client("reduce", path, "--ops", "sum,prod,bit_xor,argmax", "--overflow", "wrap", ranks=(2, 7))

    def test_medians_of_many_files(self):
        """By reads that all ranks make: of slices, of deflated members that one rank takes, of big-endian files."""
        parts = [self.floats(count) for count in (50000, 3, 0, 20000)]
        paths = [self.file("median%d.f32" % k, part) for k, part in enumerate(parts)]
        turned = struct.pack(">20000f", *struct.unpack("<20000f", parts[3]))
        paths.append(self.file("median.npy", npy(">f4", "(20, 1000)", turned, fortran=True)))
        with zipfile.ZipFile(os.path.join(self.folder, "median.npz"), "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("x.npy", npy("<f4", "(50000,)", parts[0]))
        whole = self.file("medians.f32", b"".join(parts + [parts[3], parts[0]]))
        paths.append(os.path.join(self.folder, "median.npz:x"))
        for asked in (("median",), ("reduce", "--ops", "quantile,median", "--q", "0,0.123,1", "--method", "midpoint")):
            self.same(self.client(asked[0], whole, *asked[1:]), asked[0], *paths, *asked[1:], ranks=(1, 3, 7))
        self.same(b"nan\n", "median", paths[2], ranks=(2,))
        for code, words, arguments in ((64, "several reads, sum by one", ("reduce", *paths, "--ops", "median,sum")),
                                       (64, "--partial: op median has none", ("median", *paths, "--partial", "--output", os.path.join(self.folder, "m.crp"))),
                                       (66, "gone: No such file", ("median", paths[0], os.path.join(self.folder, "gone")))):
            got, out, err = self.run_mpi(3, *arguments)
            self.assertEqual((code, b"", 1), (got, out, len(err)), err)
            self.assertIn(words, err[0])

    def test_blocks_of_an_array(self):
        """Boxes that tile an array of two axes, big-endian and in Fortran order, by any number of ranks; what does not
        tile it is said."""
        rows, columns, ops = 60, 700, ("--ops", "digest,argmin,argmax,sum,std,count_nan")
        data = self.floats(rows * columns, nan=True)
        whole = self.file("whole.npy", npy("<f4", "(%d, %d)" % (rows, columns), data))

        def box(first, count, left, width):
            return [data[(r * columns + left) * 4:(r * columns + left + width) * 4] for r in range(first, first + count)]
        paths, starts = [], []
        for k, (first, count, left, width) in enumerate(((0, 60, 0, 100), (0, 20, 100, 600), (20, 40, 100, 1), (20, 40, 101, 599))):
            lines, form = box(first, count, left, width), "(%d, %d)" % (count, width)
            if k == 1:
                lines = [b"".join(line[c * 4:c * 4 + 4] for line in lines) for c in range(width)]
            values = b"".join(lines)
            if k == 0:
                values = b"".join(values[i:i + 4][::-1] for i in range(0, len(values), 4))
            paths.append(self.file("box%d.npy" % k, npy(">f4" if k == 0 else "<f4", form, values, fortran=k == 1)))
            starts.append("%d,%d" % (first, left))
        within = ("--within", "%d,%d" % (rows, columns))
        chosen = [3, 1, 0, 2]
        self.same(self.client("reduce", whole, *ops), "reduce", *(paths[k] for k in chosen), *ops, *within, "--start",
                  ":".join(starts[k] for k in chosen), ranks=(1, 3, 6))
        wrong = ((64, "number 4 is missing", ("sum", *paths, *within, "--start", ":".join(starts[:3]))),
                 (65, "elements together, and the array of --within has 42000", ("sum", *paths[:3], *within, "--start", ":".join(starts[:3]))),
                 (65, "lies outside --within: along dimension 1", ("sum", *paths, *within, "--start", ":".join(starts[:3] + ["20,102"]))),
                 (65, "missing, or there twice|in two of them", ("digest", *paths[:2], paths[2], paths[3], *within, "--start", ":".join(starts[:3] + ["19,101"]))),
                 (64, "have no partials", ("median", *paths, *within, "--start", ":".join(starts))))
        started = [(case, self.start(2, *case[2])) for case in wrong]  # together, because mpirun mostly waits
        for (code, words, arguments), process in started:
            got, out, err = self.finish(process)
            self.assertEqual((code, b"", 1), (got, out, len(err)), err)
            self.assertRegex(err[0], words)

    def test_many_files_are_one_array(self):
        """Raw and .npy, big-endian, packed and empty ones, in the order they are given."""
        parts = [self.floats(n) for n in (10000, 0, 33, 50001, 4096)]
        names = [self.file("part0", parts[0]), self.file("part1", b""), self.file("part2.npy", npy("<f4", "(3, 11)", parts[2]))]
        turned = struct.pack(">50001f", *struct.unpack("<50001f", parts[3]))
        names.append(self.file("part3.npy", npy(">f4", "(50001,)", turned)))
        with zipfile.ZipFile(os.path.join(self.folder, "part4.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", npy("<f4", "(4096,)", parts[4]))
        names.append(os.path.join(self.folder, "part4.npz:x"))
        whole = self.file("whole", b"".join(parts))
        wanted = self.client("reduce", whole, "--ops", OPS)
        self.same(wanted, "reduce", *names, "--ops", OPS)
        self.same(wanted, "reduce", *names, "--ops", OPS, "--group", "2", ranks=(3, 7))
        self.same(wanted, "reduce", *names, "--ops", OPS, "--group", "1", ranks=(4,))

    def test_product_of_floats_over_files(self):
        parts = [struct.pack("<%df" % n, *(self.random.uniform(0.5, 2) for _ in range(n))) for n in (8192, 4096 * 3, 1001)]
        names = [self.file("p%d" % i, part) for i, part in enumerate(parts)]
        self.same(self.client("prod", self.file("product", b"".join(parts))), "prod", *names, ranks=(1, 4))
        status, out, mine = self.run_mpi(3, "prod", names[2], names[0])
        self.assertEqual((65, b""), (status, out))
        self.assertRegex("\n".join(mine), r"^cured-mpi: prod of floats over several files wants a multiple of 4096 elements")

    def test_along_an_axis(self):
        shape, count = "(23, 9, 5)", 23 * 9 * 5
        for order in (False, True):
            path = self.file("cube%d.npy" % order, npy("<f4", shape, self.floats(count), order))
            for axis in (0, 1, -1):
                self.same_as_client("reduce", path, "--ops", "sum,argmin,std", "--axis", axis, ranks=(1, 4) if axis else (3, 7))
            self.same_as_client("sum", path, "--axis", "0,1", ranks=(3,))
            status, out, mine = self.run_mpi(2, "sum", path, "--axis", "0,2")
            self.assertEqual((64, b""), (status, out))
            self.assertIn("cured-client alone", "\n".join(mine))
        self.same_as_client("describe", path, ranks=(3,))  # in Fortran order: indices count in C order
        path = self.file("none.npy", npy("<f4", "(3, 0, 2)", b""))
        self.same_as_client("sum", path, "--axis", "1", ranks=(2,))
        raw = self.file("raw", self.floats(count, "d"))
        output = os.path.join(self.folder, "out.npy")
        self.client("max", raw, "--dtype", "f64", "--shape", "23,45", "--axis", "0", "--output", output + "1")
        self.assertEqual(0, self.run_mpi(3, "max", raw, "--dtype", "f64", "--shape", "23,45", "--axis", "0", "--output", output)[0])
        with open(output, "rb") as f, open(output + "1", "rb") as g:
            self.assertEqual(g.read(), f.read())

    def test_columns_of_turned_elements(self):
        """Pieces of a row end within the buffer's elements, and the daemon is not asked to read them."""
        count = 700 * 301
        values = struct.unpack("<%dd" % count, self.floats(count, "d"))
        path = self.file("turned.npy", npy(">f8", "(700, 301)", struct.pack(">%dd" % count, *values)))
        self.same_as_client("sum", path, "--axis", "0", ranks=(1, 2, 7))

    def test_json_and_partials(self):
        path = self.file("json.f32", self.floats(20000))
        status, out, _ = self.run_mpi(3, "sum", path, "--json")
        answer = json.loads(out)
        self.assertEqual(0, status)
        self.assertEqual(json.loads(self.client("sum", path, "--json"))["results"], answer["results"])
        self.assertEqual((3, 1, 20000), (answer["ranks"], answer["nodes"], answer["count"]))
        timing = answer["timing"]
        self.assertEqual({"look_ns", "fold_ns", "least_ns", "gather_ns", "total_ns"}, set(timing))
        self.assertLessEqual(timing["least_ns"], timing["fold_ns"])
        self.assertLessEqual(timing["look_ns"] + timing["gather_ns"], timing["total_ns"])
        output = os.path.join(self.folder, "out.crp")
        wanted = self.client("reduce", path, "--ops", "sum,max", "--partial", "--first", "8192")
        self.same(b"", "reduce", path, path, "--ops", "sum,max", "--partial", "--count", "10000", "--output", output, ranks=(4,))
        self.same(b"", "reduce", path, "--ops", "sum,max", "--partial", "--first", "8192", "--output", output, ranks=(3,))
        with open(output, "rb") as f:
            self.assertEqual(wanted, f.read())

    def test_what_the_page_shows(self):
        """The commands of docs/CLUSTER.md, word for word."""
        self.file("part0.npy", npy("<f4", "(6000,)", self.floats(6000)))
        self.file("part1.npy", npy("<f4", "(5000,)", self.floats(5000)))
        self.file("table.npy", npy("<f4", "(100, 7)", self.floats(700)))
        for k in range(2):
            self.file("rank%d.npy" % k, npy("<f4", "(4096, 512)", bytes(4096 * 512 * 4)))
        for line in ("mpirun -n 4 cured-mpi describe part0.npy part1.npy",
                     "mpirun -n 4 cured-mpi reduce part0.npy part1.npy --ops sum,argmax --json",
                     "mpirun -n 4 cured-mpi mean table.npy --axis 1 --output means.npy",
                     "mpirun -n 2 cured-mpi reduce rank0.npy rank1.npy --within 4096,1024 --start 0,0:0,512 --ops digest,argmax",
                     "mpirun -n 4 cured-mpi bench"):
            done = subprocess.run(line.split(), cwd=self.folder, capture_output=True, timeout=HANG_S,
                                  env=environment(TMPDIR=self.folder, **SURROUNDINGS, PATH=BIN + ":" + os.environ["PATH"]))
            self.assertEqual(0, done.returncode, (line, done.stderr))
        self.assertEqual(128 + 400 * 2, os.path.getsize(os.path.join(self.folder, "means.npy")))

    def test_bench(self):
        status, out, _ = self.run_mpi(3, "bench", "--json", "--group", "2")
        answer = json.loads(out)
        self.assertEqual((0, 3, 2), (status, answer["ranks"], answer["groups"]))
        self.assertGreater(answer["partial_bytes"], 900)


class Daemons(MpiTest):
    def test_each_rank_asks_its_own(self):
        """One daemon for every rank of the node, found by its number there; the bits stay."""
        path = self.file("daemons.f32", self.floats(40000))
        daemons = [Daemon(self.folder, ["unix:%s/d%d.sock" % (self.folder, i)], cpu_workers=1) for i in range(2)]
        try:
            where = "unix:%s/d{local_rank}.sock" % self.folder
            self.assertEqual((0, self.client("describe", path), []), self.run_mpi(2, "describe", path, "--connect", where))
            for daemon in daemons:
                self.assertGreater(daemon.counters()["calls_ok"], 0)
            status, out, mine = self.run_mpi(3, "sum", path, "--connect", where)
            self.assertEqual((69, b""), (status, out))
            self.assertRegex(mine[0], r"^cured-mpi: rank 2 on \S+: .*d2\.sock")
            self.assertEqual(1, len(mine))
        finally:
            for daemon in daemons:
                daemon.check_end(self, daemon.stop())


@unittest.skipUnless(shutil.which("openssl"), "there is no openssl")
class Changes(MpiTest):
    def test_a_file_of_another_type_meanwhile(self):
        """The rank has looked at the file and waits for its CA: answers of half the size must not be read as whole ones."""
        ca = Authority(self.folder)
        certificate, key = ca.sign("server")
        daemon = Daemon(self.folder, ["tcp:127.0.0.1:0"], tls_certificate=certificate, tls_key=key)
        self.addCleanup(daemon.stop)
        path = self.file("changing.npy", npy("<f8", "(4, 1000)", bytes(32000)))
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        process = self.start(1, "min", path, "--axis", "0", "--connect", daemon.address.replace("tcp", "tls"), "--tls-ca", pipe)
        with open(pipe, "w") as f, open(ca.certificate) as pem:
            self.file("changing.npy", npy("<f4", "(4, 1000)", bytes(16000)))
            f.write(pem.read())
        status, out, err = self.finish(process)
        self.assertEqual((65, b""), (status, out), err)
        self.assertIn("4000 elements of f32 for this rank, and 4000 of f64", str(err))


class Errors(MpiTest):
    def fails(self, status, pattern, ranks, *arguments):
        got, out, mine = self.run_mpi(ranks, *arguments)
        self.assertEqual((status, b"", 1), (got, out, len(mine)), mine)
        self.assertRegex(mine[0], pattern)

    def test_one_rank_tells_for_all(self):
        good = self.file("good", self.floats(9000))
        self.fails(66, r"^cured-mpi: rank 1 on \S+: cannot open \S*gone: No such file", 3, "sum", good, self.folder + "/gone", good)
        self.fails(65, r"rank 3 on \S+: .*bad\.npy", 4, "sum", good, good, good, self.file("bad.npy", b"\x93NUMPY\1\0"))
        self.fails(65, r"doubles\.npy holds f64", 2, "sum", good, self.file("doubles.npy", npy("<f8", "(1,)", bytes(8))))
        self.fails(64, r"standard input belongs to one rank", 2, "sum", "-")

    def test_ranks_that_see_other_files_by_one_name(self):
        """As on nodes whose file systems differ: each rank stands in a folder of its own."""
        here, there = (os.path.join(self.folder, name) for name in ("here", "there"))
        os.mkdir(here), os.mkdir(there)

        def fails(pattern, mine, others, *arguments, name="a.bin", second=2):
            for folder, data in ((here, mine), (there, others)):
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(data)
            tail = [MPI, *arguments, name]
            command = ["mpirun", "-n", "1", "-wdir", here, *tail, ":", "-n", str(second), "-wdir", there, *tail]
            folder = tempfile.mkdtemp(dir=self.folder)
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder,
                                       env=environment(TMPDIR=folder, **SURROUNDINGS))
            status, out, said = self.finish(process)
            self.assertEqual((65, b"", 1), (status, out, len(said)), said)
            self.assertRegex(said[0], r"^cured-mpi: rank [12] on \S+: " + pattern)
        long = self.floats(40000)
        fails(r"a\.bin holds 40000 elements of f32 for this rank, and 30000 of f32 for rank 0", long[:120000], long, "sum")
        fails(r"a\.bin holds 30000 elements of f32 for this rank, and 40000 of f32 for rank 0", long, long[:120000], "sum")
        fails(r"a\.bin holds 0 elements of f32 for this rank, and 40000 of f32 for rank 0", long, b"", "sum")
        cube = {kind: npy(kind, "(40, 1000)", bytes(40000 * int(kind[2]))) for kind in ("<f4", "<f8", ">f4")}
        fails(r"a\.npy holds 40000 elements of f64 for this rank, and 40000 of f32 for rank 0", cube["<f4"], cube["<f8"], "max", name="a.npy")
        turned = npy("<f4", "(1000, 40)", bytes(160000))
        for arguments in (["argmin"], ["sum", "--axis", "1"], ["sum", "--axis", "0"]):
            fails(r"a\.npy has another shape or order for this rank than for rank 0", cube["<f4"], turned, *arguments, name="a.npy")
        fails(r"a\.npy has another shape or order", cube["<f4"], npy("<f4", "(40, 1000)", bytes(160000), True), "argmin", name="a.npy")
        fails(r"a\.npy has another shape or order", cube["<f4"], cube[">f4"], "sum", name="a.npy")

    def test_numbers_written_out(self):
        path = self.file("numbers", b"".join(b"%d\n" % i for i in range(20000)))
        self.fails(65, r"rank 0 on \S+: \S+ is text, not raw elements", 2, "sum", path, "--dtype", "u8")
        self.assertEqual(0, self.run_mpi(2, "sum", path, "--dtype", "u8", "--raw")[0])

    def test_wrong_words_are_told_once(self):
        self.fails(64, r"unknown command 'summ' \(did you mean sum\?\)", 3, "summ", "x")
        self.fails(64, r"unknown option '--total'", 2, "sum", "x", "--total")
        self.fails(64, r"--group is '0'", 2, "sum", "x", "--group", "0")

    def test_errors_in_json(self):
        status, out, _ = self.run_mpi(2, "sum", "gone", "--json")
        self.assertEqual((66, 66), (status, json.loads(out)["exit"]))

    def test_a_killed_rank_ends_all(self):
        """The ranks wait for a daemon that never answers; one is killed; mpirun ends the others."""
        path = self.file("waiting", self.floats(30000))
        silent = socket.socket(socket.AF_UNIX)
        self.addCleanup(silent.close)
        silent.bind(self.folder + "/silent.sock")
        silent.listen(8)
        process = self.start(3, "sum", path, "--connect", "unix:%s/silent.sock" % self.folder)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        peers = []
        silent.settimeout(HANG_S)
        for _ in range(3):
            peer = silent.accept()[0]
            self.addCleanup(peer.close)
            peers.append(struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        os.kill(self.random.choice(peers), signal.SIGKILL)
        self.assertNotEqual(0, process.wait(HANG_S))
        limit = time.monotonic() + HANG_S
        while any(os.path.exists("/proc/%d" % pid) for pid in peers):
            self.assertLess(time.monotonic(), limit, "a rank outlived the job")
            time.sleep(0.05)


if __name__ == "__main__":
    print("seed", SEED)
    main()
