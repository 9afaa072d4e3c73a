"""scripts/soak in short: a few seconds of clients that register, reduce and die at random, and of daemons that are killed and
reloaded, leave nothing behind; and a daemon that dies by itself, or answers wrongly, would be noticed."""
import os
import subprocess
import sys
import unittest

SOURCE = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
SOAK = os.path.join(SOURCE, "scripts", "soak")
sys.path.insert(0, os.path.join(SOURCE, "tests", "integration"))


class Soak(unittest.TestCase):
    def test_a_few_seconds(self):
        done = subprocess.run([sys.executable, SOAK, "--seconds", "5", "--clients", "8", "--seed", "4", "--kill-every", "2", "--reload-every", "1",
                               "--option", "slabs=8"],
                              capture_output=True, text=True, timeout=240)
        self.assertEqual(0, done.returncode, done.stdout[-4000:] + done.stderr[-4000:])
        self.assertRegex(done.stdout, r"soak: [1-9]\d* calls answered, .* [1-9]\d* daemons killed, [1-9]\d* reloads, .*everything was given back")

    def test_a_wrong_answer_is_noticed(self):
        """The client's own check, on answers as a broken daemon would give them."""
        import importlib.machinery
        import importlib.util
        loader = importlib.machinery.SourceFileLoader("soak", SOAK)
        soak = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
        loader.exec_module(soak)
        from cured_wire import Answer, Status, bytes_field, uint_field

        def answer(total, count):
            a = Answer()
            a.payload = b"".join(bytes_field(1, uint_field(1, op) + bytes_field(5, value.to_bytes(8, "little")))
                                 for op, value in ((1, total), (7, count)))
            return a

        class Region:
            value, size, sound, kind = 3, 100, True, "memfd"
        client = soak.Client.__new__(soak.Client)
        client.check("reduce", (Region, True, 10, 0), answer(30, 10))
        for total, count in ((29, 10), (31, 10), (30, 11)):
            with self.assertRaises(soak.Wrong):
                client.check("reduce", (Region, True, 10, 0), answer(total, count))
        lost = Answer()
        lost.status = Status(uint_field(1, 15))
        with self.assertRaises(soak.Wrong):
            client.check("reduce", (Region, True, 10, 0), lost)
        client.check("reduce", (Region, False, 10, 0), lost)
        lost.status.code = 13
        with self.assertRaises(soak.Wrong):
            client.check("any", Region, lost)


if __name__ == "__main__":
    unittest.main(verbosity=1)
