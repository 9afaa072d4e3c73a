"""The wheel: packed from the build, unpacked where nothing else is, and used by every Python of 3.11 or later that is here."""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import BUILD, ROOT, Case


class Wheel(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cured-wheel-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "wheel"), BUILD, cls.folder], check=True,
                             stdout=subprocess.PIPE, text=True)
        cls.path = run.stdout.strip()

    def test_record(self):
        with zipfile.ZipFile(self.path) as wheel:
            record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
            lines = [line.split(",") for line in wheel.read(record).decode().splitlines()]
            self.assertEqual(sorted(wheel.namelist()), sorted(line[0] for line in lines))
            for name, digest, _ in lines:
                if digest:
                    wanted = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
                    self.assertEqual("sha256=" + wanted, digest)
            self.assertIn("cured/py.typed", wheel.namelist())

    def test_one_file_for_every_python(self):
        target = os.path.join(self.folder, "unpacked")
        with zipfile.ZipFile(self.path) as wheel:
            wheel.extractall(target)
        runs = lambda python: subprocess.run([python, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0
        found = {shutil.which(name) for name in ("python3.11", "python3.12", "python3.13", "python3.14")} | {sys.executable}
        for python in sorted(python for python in found - {None} if runs(python)):
            run = subprocess.run([python, "-c", "import array, cured; print(cured.sum(array.array('d', [1, 2.5])), cured.__file__)"],
                                 env=dict(os.environ, PYTHONPATH=target), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(("3.5 %s/cured/__init__.py\n" % target, ""), (run.stdout, run.stderr), python)

    def test_exports_one_symbol(self):
        if not shutil.which("nm"):
            self.skipTest("there is no nm")
        run = subprocess.run(["nm", "-D", "--defined-only", os.path.join(BUILD, "python", "cured", "_cured.abi3.so")],
                             stdout=subprocess.PIPE, text=True)
        names = [line.split()[-1] for line in run.stdout.splitlines() if " A " not in line]
        self.assertEqual(["PyInit__cured"], names)


if __name__ == "__main__":
    unittest.main()
