"""The wheel: packed from the build, unpacked where nothing else is and used by every Python of 3.11 or later that is here, and installed
by pip in a venv, where Python and the command line answer."""
import base64
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy

from support import BUILD, ROOT, Case

GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def run(*command, env=BARE, **more):
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


class Wheel(Case):
    @classmethod
    def setUpClass(cls):
        if os.environ.get("CURED_TEST_SANITIZE"):
            raise unittest.SkipTest("no wheel is made of a build with sanitizers")
        cls.folder = tempfile.mkdtemp(prefix="cured-wheel-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        packed = run(sys.executable, os.path.join(ROOT, "scripts", "wheel"), BUILD, cls.folder, env=os.environ, text=True)
        for line in packed.stderr.splitlines():
            if "the sources of zlib and cJSON cannot be fetched" in line:
                raise unittest.SkipTest(line)
        if packed.returncode:
            raise AssertionError(packed.stdout + packed.stderr)
        cls.path = packed.stdout.strip()
        file = os.path.join(cls.folder, "a.npz")
        numpy.savez_compressed(file, x=numpy.array([1, 2.5] * 1000))
        cls.array = file + ":x"

    def unpacked(self, name):
        """All files, without their modes."""
        target = os.path.join(self.folder, name)
        with zipfile.ZipFile(self.path) as wheel:
            wheel.extractall(target)
        return target

    def test_record(self):
        with zipfile.ZipFile(self.path) as wheel:
            record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
            lines = [line.split(",") for line in wheel.read(record).decode().splitlines()]
            self.assertEqual(sorted(wheel.namelist()), sorted(line[0] for line in lines))
            for name, digest, _ in lines:
                if digest:
                    wanted = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
                    self.assertEqual("sha256=" + wanted, digest)
            for name in ("cured/py.typed", *(record.replace("RECORD", "LICENSE" + end) for end in ("", ".zlib", ".cjson"))):
                self.assertIn(name, wheel.namelist())

    def test_needs_glibc_alone(self):
        if not shutil.which("objdump"):
            self.skipTest("there is no objdump")
        tag = tuple(map(int, re.search(r"-cp311-abi3-manylinux_(\d+)_(\d+)_(?:x86_64|aarch64)\.whl$", self.path).groups()))
        target, programs = self.unpacked("programs"), {}
        for folder, _, names in os.walk(target):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    if f.read(4) == b"\x7fELF":
                        programs[name] = path
        kernels = {name for name in ["libcured-cuda.so.0"] if os.path.exists(os.path.join(BUILD, "lib", name))}
        self.assertEqual({"_cured.abi3.so", "cured-client"} | kernels, set(programs))
        for name, path in programs.items():
            needed = set(re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", path, text=True).stdout))
            self.assertEqual(set(), needed - GLIBC, name)
            versions = re.findall(r"GLIBC_([0-9.]+)", run("objdump", "-T", path, text=True).stdout)
            newest = max(tuple(map(int, version.split("."))) for version in versions)
            self.assertLessEqual(newest, tag, name)
            # Of Debian 12. A later glibc has later versions of some symbols, and gcc's code in the kernels wants _dl_find_object of 2.35.
            if os.confstr("CS_GNU_LIBC_VERSION") == "glibc 2.36":
                self.assertLessEqual(newest, (2, 35) if name in kernels else (2, 34), name)

    def test_one_file_for_every_python(self):
        target = self.unpacked("unpacked")
        runs = lambda python: subprocess.run([python, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0
        found = {shutil.which(name) for name in ("python3.11", "python3.12", "python3.13", "python3.14")} | {sys.executable}
        for python in sorted(python for python in found - {None} if runs(python)):
            done = run(python, "-c", "import array, cured; print(cured.sum(array.array('d', [1, 2.5])), cured.__file__)",
                       env=dict(os.environ, PYTHONPATH=target), text=True)
            self.assertEqual(("3.5 %s/cured/__init__.py\n" % target, ""), (done.stdout, done.stderr), python)

    def test_program_without_its_mode_or_missing(self):
        target = self.unpacked("modeless")
        ask = lambda path: run(sys.executable, "-m", "cured", "sum", self.array, text=True, env=dict(BARE, PATH=path, PYTHONPATH=target))
        program = os.path.join(target, "cured", "cured-client")
        os.chmod(program, 0o644)
        done = ask(BARE["PATH"])
        self.assertEqual((0, "3500\n", ""), (done.returncode, done.stdout, done.stderr))
        # Beside the package it is gone: PATH names another, or none.
        elsewhere = os.path.join(target, "elsewhere")
        os.mkdir(elsewhere)
        os.rename(program, os.path.join(elsewhere, "cured-client"))
        self.assertEqual("3500\n", ask(elsewhere).stdout)
        gone = ask("/nonexistent")
        self.assertEqual((69, ""), (gone.returncode, gone.stdout))
        self.assertRegex(gone.stderr, r"^cured: the program cured-client is not installed: .*\n$")

    def test_installed(self):
        pips = glob.glob("/usr/share/python-wheels/pip-*.whl")
        if importlib.util.find_spec("ensurepip"):
            pips += glob.glob(os.path.join(os.path.dirname(importlib.util.find_spec("ensurepip").origin), "_bundled", "pip-*.whl"))
        if not pips:
            self.skipTest("this Python has no pip for a venv (package python3-venv)")
        venv = os.path.join(self.folder, "venv")
        self.assertEqual(0, run(sys.executable, "-m", "venv", "--without-pip", venv).returncode)
        python, command = os.path.join(venv, "bin", "python"), os.path.join(venv, "bin", "cured-client")
        # pip out of its own wheel, because a venv takes 3 s of CPU to get a pip of its own.
        pip = run(python, os.path.join(pips[0], "pip"), "install", "--no-index", "--no-deps", "--disable-pip-version-check", self.path, text=True)
        self.assertEqual(0, pip.returncode, pip.stdout + pip.stderr)
        package = run(python, "-c", "import cured; print(cured.__file__)", text=True).stdout.strip()
        self.assertTrue(package.startswith(venv), package)
        program = os.path.join(os.path.dirname(package), "cured-client")
        self.assertTrue(os.stat(program).st_mode & stat.S_IXOTH, "pip dropped the mode of the program")
        # Deflated: zlib answers inside the extension, too.
        text = "import array, cured; print(cured.sum(array.array('d', [1, 2.5])), cured.file(%r).sum())" % self.array
        done = run(python, "-c", text, text=True)
        self.assertEqual(("3.5 3500.0\n", ""), (done.stdout, done.stderr))
        for ask in [(command,), (python, "-m", "cured")]:
            self.commands(ask)
        # The command that pip made does not start itself for ever once the program is gone.
        os.remove(program)
        gone = run(command, "sum", self.array, env=dict(BARE, PATH=os.path.dirname(command)), timeout=60)
        self.assertEqual(69, gone.returncode, gone.stderr)

    def commands(self, ask):
        """What the command-line program of an installed wheel answers, and how it ends."""
        elements = numpy.array([1, 2.5]).tobytes()
        for arguments, given, status, out, said in [
                (["sum", self.array], b"", 0, rb"3500\n", b""),
                (["sum", self.array, "--json"], b"", 0, rb"\{.*\"value\":3500,.*\}\n", b""),
                (["sum", "--dtype", "f64", "-"], elements, 0, rb"3\.5\n", b""),
                (["sum", "--dtype", "f64", "-"], elements[1:], 65, b"", rb"cured-client: .+\n"),
                (["sum", "/nonexistent.npy"], b"", 66, b"", rb"cured-client: cannot open .+: No such file or directory\n"),
                (["summ", self.array], b"", 64, b"", rb"cured-client: unknown command 'summ' (?s:.+)\n")]:
            done = run(*ask, *arguments, input=given)
            self.assertEqual(status, done.returncode, (ask, arguments, done.stderr))
            self.assertRegex(done.stdout, rb"\A%s\Z" % out, (ask, arguments))
            self.assertRegex(done.stderr, rb"\A%s\Z" % said, (ask, arguments))
        # Python ignores SIGPIPE, and the program does not.
        read, write = os.pipe()
        os.close(read)
        ended = subprocess.run([*ask, "--help"], env=BARE, stdout=write, stderr=subprocess.DEVNULL)
        os.close(write)
        self.assertEqual(-signal.SIGPIPE, ended.returncode, ask)

    def test_exports_one_symbol(self):
        if not shutil.which("nm"):
            self.skipTest("there is no nm")
        for folder in ("python", "wheel"):
            text = run("nm", "-D", "--defined-only", os.path.join(BUILD, folder, "cured", "_cured.abi3.so"), text=True).stdout
            self.assertEqual(["PyInit__cured"], [line.split()[-1] for line in text.splitlines() if " A " not in line], folder)


if __name__ == "__main__":
    unittest.main()
