"""Clients that show a daemon who they are: tokens and certificates under TLS, by arguments instead of the environment."""
import asyncio
import os
import shutil
import subprocess
import tempfile
import unittest

from support import Case, cured
from cured_daemon import CLIENT, Daemon, environment
from tls_files import HOST, Authority


class Credentials(Case):
    @classmethod
    def setUpClass(cls):
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("no openssl to make certificates with")
        cls.folder = tempfile.mkdtemp(prefix="cured-py-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.ca = Authority(cls.folder)
        certificate, key = cls.ca.sign("server")
        cls.shown = cls.ca.sign("somebody")
        said = subprocess.run([CLIENT, "token", "job"], capture_output=True, text=True, check=True, env=environment()).stdout
        cls.token, line = (line.partition(": ")[2] for line in said.splitlines())
        tokens = cls.ca.path("principals")
        with open(tokens, "w") as f:
            f.write(line + "\n")
        cls.daemon = Daemon(cls.folder, listen=["tcp:0.0.0.0:0"], tls_certificate=certificate, tls_key=key,
                            tls_client_ca=cls.ca.certificate, principals=tokens)
        cls.addClassCleanup(cls.daemon.stop)
        cls.address = "tls:" + HOST + ":" + cls.daemon.address.rpartition(":")[2]

    def test_what_is_shown(self):
        certificate, key = self.shown
        for options in ({"token": self.token}, {"tls_certificate": certificate, "tls_key": key}):
            with cured.Client(self.address, tls_ca=self.ca.certificate, **options) as c:
                self.assertEqual(6, c.sum(b"\1\2\3"))

    def test_what_is_wrong(self):
        wrong = self.token[:-1] + ("0" if self.token[-1] != "0" else "1")
        for options in ({}, {"token": wrong}):
            with cured.Client(self.address, tls_ca=self.ca.certificate, **options) as c, self.assertRaises(cured.Error):
                c.sum(b"\1")
        with cured.Client(self.address, token=self.token) as c, self.assertRaises(cured.Error):
            c.sum(b"\1")  # nobody said whom to trust
        for options in ({"token": 7}, {"tls_ca": 7}, {"tls_key": object()}):
            with self.assertRaises(TypeError):
                cured.Client(self.address, **options)
        with self.assertRaises(ValueError):
            cured.Client(self.address, token="a\0b")

    def test_a_token_from_a_file(self):
        path = self.ca.path("token")
        with open(path, "w") as f:
            f.write(self.token + "\n")
        for mode in 0o600, 0o640:
            os.chmod(path, mode)
            with cured.Client(self.address, tls_ca=self.ca.certificate, token_file=path) as c:
                if mode == 0o600:
                    self.assertEqual(6, c.sum(b"\1\2\3"))
                    continue
                with self.assertRaisesRegex(ValueError, "may be read by others"):
                    c.sum(b"\1")

    def test_awaited(self):
        async def ask():
            async with cured.AsyncClient(self.address, tls_ca=self.ca.certificate, token=self.token) as c:
                return await c.sum(b"\1\2\3")
        self.assertEqual(6, asyncio.run(ask()))


if __name__ == "__main__":
    unittest.main()
