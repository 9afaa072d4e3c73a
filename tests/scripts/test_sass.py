#!/usr/bin/env python3
"""test_sass: whether sass.py reads machine code right: opcodes, widths of loads, branches, loops and ways round them, for each chip that
kernels are compiled for. Known instructions are assembled, 8 and 16 of them, and the difference is counted: so an opcode that the table
has wrong, or a chip that encodes differently, fails.

Needs ptxas, of the CUDA toolkit, but no GPU; skipped (77) otherwise.  usage: test_sass.py [BUILD_DIR]
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sass  # noqa: E402

CHIPS = (80, 90, 100, 120)
HEAD = """.version 8.0
.target sm_80
.address_size 64
"""
ENTRY = """.visible .entry {name}(.param .u64 to) {{
.reg .b64 %a, %l<4>; .reg .f64 %d<4>; .reg .f32 %f<4>; .reg .b32 %r<8>, %i; .reg .b16 %h; .reg .pred %p, %q;
ld.param.u64 %a, [to]; cvta.to.global.u64 %a, %a;
{body}
ret;
}}
"""
BEGIN = """ld.global.f64 %d1, [%a]; ld.global.f64 %d2, [%a+8]; ld.global.f32 %f1, [%a+16]; ld.global.f32 %f2, [%a+20];
ld.global.u32 %r1, [%a+24]; ld.global.u32 %r2, [%a+28]; ld.global.u32 %r3, [%a+32]; ld.global.u64 %l1, [%a+40]; setp.eq.u32 %p, %r3, 7;
"""
END = """st.global.f64 [%a], %d1; st.global.f32 [%a+16], %f1; st.global.u32 [%a+24], %r1; st.global.u64 [%a+40], %l1;
selp.u32 %r4, 1, 2, %p; st.global.u32 [%a+48], %r4;
"""
FUNNEL = "shf.l.wrap.b32 %r1, %r1, %r2, %r3;"
# What is assembled, each using what the one before made; and what each must become: one of these, of which no other float64.
KNOWN = [
    ("add.rn.f64 %d1, %d1, %d2;", {"DADD"}),
    ("mul.rn.f64 %d1, %d1, %d2;", {"DMUL"}),
    ("fma.rn.f64 %d1, %d1, %d2, %d2;", {"DFMA"}),
    ("setp.lt.and.f64 %p, %d1, %d2, %p; @%p mov.b64 %d1, %l1; mov.b64 %d2, %d1;", {"DSETP"}),
    ("cvt.f64.f32 %d1, %f1; mov.b64 {%r4, %r5}, %d1; mov.b32 %f1, %r5;", {"F2F.64"}),
    ("cvt.rn.f32.f64 %f1, %d1; mov.b32 %r5, %f1; mov.b64 %d1, {%r5, %r5};", {"F2F.64"}),
    ("cvt.rzi.s64.f32 %l1, %f1; mov.b64 {%r4, %r5}, %l1; mov.b32 %f1, %r4;", {"F2I.64"}),
    ("cvt.rzi.s32.f64 %r1, %d1; mov.b64 %d1, {%r1, %r1};", {"F2I.64"}),
    ("cvt.rzi.s64.f64 %l1, %d1; mov.b64 %d1, %l1;", {"F2I.64"}),
    ("cvt.rn.f64.s32 %d1, %r1; mov.b64 {%r1, %r4}, %d1;", {"I2F.64"}),
    ("cvt.rn.f32.s64 %f1, %l1; mov.b32 %r4, %f1; mov.b64 %l1, {%r4, %r4};", {"I2F.64"}),
    ("cvt.rni.f64.f64 %d1, %d1; xor.b64 %l1, %l1, 5; mov.b64 %l1, %d1; add.s64 %l1, %l1, 7; mov.b64 %d1, %l1;", {"FRND.64"}),
    ("cvt.rzi.s32.f32 %r1, %f1; mov.b32 %f1, %r1;", {"F2I"}),
    ("cvt.rn.f32.s32 %f1, %r1; mov.b32 %r1, %f1;", {"I2F", "I2FP"}),
    ("cvt.u16.u32 %h, %r1; cvt.f32.f16 %f1, %h; mov.b32 %r1, %f1;", {"HADD2"}),
    ("add.rn.f32 %f1, %f1, %f2;", {"FADD"}),
    ("mul.rn.f32 %f1, %f1, %f2;", {"FMUL"}),
    ("fma.rn.f32 %f1, %f1, %f2, %f2;", {"FFMA"}),
    ("min.f32 %f1, %f1, %f2; add.rn.f32 %f1, %f1, %f1;", {"FMNMX"}),
    ("setp.lt.and.f32 %p, %f1, %f2, %p; @%p add.rn.f32 %f1, %f1, %f2;", {"FSETP"}),
    ("selp.f32 %f1, %f1, %f2, %p; add.rn.f32 %f1, %f1, %f2;", {"FSEL"}),
    ("selp.b32 %r1, %r1, %r2, %p; " + FUNNEL, {"SEL"}),
    ("mad.lo.s32 %r1, %r1, %r2, %r3;", {"IMAD"}),
    ("mad.hi.u32 %r1, %r1, %r2, %r3;", {"IMAD.HI"}),
    ("mul.wide.u32 %l1, %r1, %r2; mov.b64 {%r4, %r1}, %l1;", {"IMAD.WIDE"}),
    ("setp.lt.and.s32 %p, %r1, %r2, %p; @%p mad.lo.s32 %r1, %r1, %r2, %r3;", {"ISETP"}),
    ("lop3.b32 %r1, %r1, %r2, %r3, 0x96; " + FUNNEL, {"LOP3"}),
    ("prmt.b32 %r1, %r1, %r2, %r3;", {"PRMT"}),
    ("min.s32 %r1, %r1, %r2; " + FUNNEL, {"IMNMX", "VIMNMX"}),
    (FUNNEL, {"SHF"}),
    ("add.s32 %r1, %r1, %r2; add.s32 %r1, %r1, %r3; " + FUNNEL, {"IADD3"}),
]
WIDTHS = [("u8 %r1", 1), ("s8 %r1", 1), ("u16 %r1", 2), ("s16 %r1", 2), ("u32 %r1", 4), ("u64 %l1", 8), ("v4.u32 {%r1, %r2, %r3, %r4}", 16)]
# A loop of 16 bytes a turn, in which bit 0 of a word decides between two float64 additions and eight; the barriers keep both branches.
LOOP = BEGIN + """mov.u32 %i, 0;
outer: .pragma "nounroll";
ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a];
xor.b32 %r5, %r3, %r4; xor.b32 %r5, %r5, %r1; and.b32 %r5, %r5, 1; setp.eq.u32 %p, %r5, 0; @%p bra few;
bar.sync 1; """ + "add.rn.f64 %d1, %d1, %d2; " * 8 + """bar.sync 2; bra.uni joined;
few: bar.sync 3; add.rn.f64 %d1, %d1, %d2; mul.rn.f64 %d1, %d1, %d2; bar.sync 4;
joined:
mov.u32 %r6, 0;
inner: .pragma "nounroll"; bar.sync 5; mul.rn.f64 %d2, %d2, %d1; add.u32 %r6, %r6, 1; setp.lt.u32 %q, %r6, %r2; @%q bra inner;
add.s64 %a, %a, 512; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 1000; @%q bra outer;
""" + END


def find_ptxas():
    for build in sys.argv[1:2]:
        cache = os.path.join(build, "CMakeCache.txt")
        if os.path.exists(cache):
            with open(cache, encoding="utf-8") as f:
                found = re.search(r"^CMAKE_CUDA_COMPILER:\w+=(.*)nvcc$", f.read(), re.M)
            if found and os.path.exists(found.group(1) + "ptxas"):
                return found.group(1) + "ptxas"
    beside = "/usr/local/cuda/bin/ptxas"
    return shutil.which("ptxas") or (beside if os.path.exists(beside) else None)


PTXAS = find_ptxas()


def assemble(chip, bodies):
    """{name: instructions} of kernels, by name; None: this ptxas does not know the chip."""
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
        with open(ptx, "w", encoding="utf-8") as f:
            f.write(HEAD + "".join(ENTRY.format(name=name, body=body) for name, body in bodies.items()))
        done = subprocess.run([PTXAS, f"-arch=sm_{chip}", ptx, "-o", cubin], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            if chip > 90 and "is not defined for option 'gpu-name'" in done.stderr:
                return None
            raise AssertionError(done.stderr)
        with open(cubin, "rb") as f:
            return sass.kernels(f.read(), chip)


class Decoding(unittest.TestCase):
    def each(self, bodies):
        for chip in CHIPS:
            found = assemble(chip, bodies)
            if found is not None:
                self.assertEqual(set(bodies), set(found), f"sm_{chip}")
                yield chip, found

    def test_opcodes(self):
        bodies = {f"k{i}_{n}": BEGIN + (text + "\n") * n + END for i, (text, _) in enumerate(KNOWN) for n in (8, 16)}
        proven = set()
        for chip, found in self.each(bodies):
            for i, (text, names) in enumerate(KNOWN):
                few, many = (collections.Counter(one.name for one in found[f"k{i}_{n}"]) for n in (8, 16))
                more = {name: many[name] - few[name] for name in set(few) | set(many)}
                told = f"sm_{chip} {text}: {more}"
                self.assertEqual(8, sum(more.get(name, 0) for name in names), told)
                for name in sass.FLOAT64:
                    self.assertEqual(8 if name in names else 0, more.get(name, 0), told)
                proven |= {name for name in names if more.get(name)}
        self.assertEqual(set(sass.OPCODES.values()) - {"LDG", "LDGSTS", "BRA", "EXIT", "NOP"}, proven)

    def test_widths_of_loads(self):
        bodies = {f"w{i}": f"ld.global.{text}, [%a];\nst.global.u64 [%a+64], %l1; st.global.v4.u32 [%a+80], {{%r1, %r2, %r3, %r4}};"
                  for i, (text, _) in enumerate(WIDTHS)}
        for chip, found in self.each(bodies):
            for i, (text, width) in enumerate(WIDTHS):
                self.assertEqual([width], [one.bytes for one in found[f"w{i}"] if one.name == "LDG"], f"sm_{chip} {text}")

    def test_copies_into_shared_memory(self):
        for chip, found in self.each({"copy": "cvt.u32.u64 %r1, %a; cp.async.cg.shared.global [%r1], [%a], 16; cp.async.wait_all;"}):
            self.assertEqual([16], [one.bytes for one in found["copy"] if one.name == "LDGSTS"], f"sm_{chip}")

    def test_loops(self):
        for chip, found in self.each({"loop": LOOP}):
            code = found["loop"]
            for one in code:
                if one.target is not None:
                    self.assertTrue(one.target % 16 == 0 and 0 <= one.target < 16 * len(code), f"sm_{chip}: to {one.target}")
            flow = sass.Flow(code)
            loops = sorted(flow.loops().items(), key=lambda loop: len(loop[1]))
            self.assertEqual(2, len(loops), f"sm_{chip}")
            (_, inner), (head, outer) = loops
            self.assertLess(inner, outer)
            ways = flow.ways(head, outer)
            self.assertEqual({(3, 0, 16), (9, 0, 16)}, set(ways), f"sm_{chip}")  # each once through the inner loop
            few = flow.cheapest(1, 0, 16)
            self.assertEqual([one for one in few if one.bytes], [one for one in code if one.bytes == 16])
            self.assertEqual(3, sum(one.name in sass.ADDS64 for one in few))
            self.assertEqual(9, sum(one.name in sass.ADDS64 for one in flow.cheapest(4, 0, 16)))
            self.assertIsNone(flow.cheapest(1, 0, 32))
            self.assertIsNone(flow.cheapest(10, 0, 16))
            self.assertIsNone(flow.cheapest(1, 1, 16))
            self.assertEqual(9, sum(one.name in sass.ADDS64 for one in flow.cheapest(1, 0, 16, ("DADD",), 8)))
            self.assertEqual(3, sum(one.name in sass.ADDS64 for one in flow.cheapest(1, 0, 16, ("DADD",), 1)))
            self.assertIsNone(flow.cheapest(1, 0, 16, ("DADD",), 9))
            self.assertEqual("NOP", code[-1].name)  # which fills a kernel's last line
            self.assertEqual([False, True], sorted({one.name == "EXIT" for one in code}))


if __name__ == "__main__":
    if not PTXAS:
        print("skipped: no ptxas")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
