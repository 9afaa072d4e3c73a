#!/usr/bin/env python3
"""The clients that docs/GRPC.md shows, as it shows them: its commands run, with the daemon's own socket."""
import os
import struct
import subprocess
import tempfile

import grpc_client

grpc_client.need("grpc")

from cured_daemon import DaemonTest, main  # noqa: E402

SOURCE = os.path.abspath(grpc_client.SOURCE)
WANTED = "small: sum 6.0 max 3.0\nfile: sum 49995000.0 max 9999.0\n"


# As the page has them; tests/scripts/test_docs.py sees that each line is here.
PYTHON = r"""
protoc -I proto --python_out=. --grpc_python_out=. \
    --plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" cured.proto
PYTHONPATH=. /usr/bin/python3 examples/grpc/reduce.py unix:/run/cured/cured.sock file.bin
"""


class Examples(DaemonTest):
    def shown(self, commands):
        """Runs them in a folder that has the source's proto and examples, and nothing else of it."""
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            for name in ("proto", "examples"):
                os.symlink(os.path.join(SOURCE, name), os.path.join(work, name))
            with open(os.path.join(work, "file.bin"), "wb") as f:
                f.write(struct.pack("<10000f", *range(10000)))
            script = commands.replace("unix:/run/cured/cured.sock", self.daemon.address)
            ran = subprocess.run(["bash", "-euc", script], cwd=work, capture_output=True, text=True, timeout=200)
            self.assertEqual((0, WANTED), (ran.returncode, ran.stdout), ran.stderr)

    def test_python(self):
        self.shown(PYTHON)


if __name__ == "__main__":
    main()
