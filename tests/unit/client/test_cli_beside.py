#!/usr/bin/env python3
"""What lies beside an array of cured-client, of types that NumPy has not and beside a part of a file: second arrays, masks, keys."""
import struct

from cli_daemon import CliTest, main, npy


def bf16(*values):
    return b"".join(struct.pack("<f", value)[2:] for value in values)


class Types(CliTest):
    """The second array of a type that NumPy writes as void is of the type that --dtype says."""

    def test_second_arrays_without_a_type(self):
        pair = bf16(1, 2, 3, 4), bf16(5, 6, 7, 8)
        small = bytes([0x38, 0x40, 0x44, 0x48]), bytes([0x38, 0x38, 0x38, 0x40])  # 1 2 3 4, and 1 1 1 2
        for dtype, descr, (a, b), dot in (("bf16", "<V2", pair, "70"), ("bf16", "|V2", pair, "70"), ("f8_e4m3", "|V1", small, "14")):
            first, second = self.write("first.npy", npy(a, descr, (4,))), self.write("second.npy", npy(b, descr, (4,)))
            raw = self.write("first.bin", a)
            for tcp in (False, True):
                self.assertEqual(dot + "\n", self.client("dot", first, "--dtype", dtype, "--second", second, tcp=tcp).out)
                self.assertEqual(dot + "\n", self.client("dot", raw, "--raw", "--dtype", dtype, "--second", second, tcp=tcp).out)
            two = self.write("two.npy", npy(b, descr, (2, 2)))
            first = self.write("first.npy", npy(a, descr, (2, 2)))
            along = self.client("dot", first, "--dtype", dtype, "--second", two, "--axis", "1").out.split()
            self.assertEqual(float(dot), sum(map(float, along)))
            self.fails(65, "the shape of %s is not that of" % second, "dot", first, "--dtype", dtype, "--second", second)

    def test_of_another_type_it_is_refused(self):
        second = self.write("second.npy", npy(bf16(1, 2), "<V2", (2,)))
        for dtype in ("f32", "f8_e4m3", "i16"):
            first = self.write("first.bin", bytes(8 if dtype == "f32" else 4 if dtype == "i16" else 2))
            self.fails(65, "second.npy holds raw elements (dtype 'V2', as bf16 is written), and", "dot", first, "--raw", "--dtype", dtype, "--second", second)
        for option in ("keys", "offsets", "where"):
            self.fails(65, "--%s: %s holds raw elements (dtype 'V2')" % (option, second), "sum", self.npy, "--" + option, second)


if __name__ == "__main__":
    main()
