"""scripts/check-layers finds what it is for: each case plants one fault in a small tree and expects exactly one line."""
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
CHECK = os.path.join(SOURCE, "scripts", "check-layers")

CLEAN = {
    "proto/status.h": "/* s */\n",
    "proto/frame.h": '/* f */\n#include "proto/status.h"\n',
    "base/log.h": '/* l */\n#include "proto/status.h"\n',
    "kernels/core/op.h": '/* o */\n#include "proto/status.h"\n#include "kernels/core/op.h"\n',
    "engine/memory/slab.c": '/* m */\n#include "kernels/cpu/fold.h"\n#include "base/log.h"\n',
    "server/native/conn.c": '/* c */\n#include "server/admit/admission.h"\nint f(void) {\n    return 1;\n}\n',
    "server/main.c": '/* m */\n#include "server/transport/listener.h"\n',
    "client/lib/embedded/work.c": '/* w */\n#include "client/lib/call/call.h"\n#include "engine/queue.h"\n',
    "client/lib/call/call.c": '/* c */\n#include "cured/cured.h"\n#include "proto/frame.h"\n#include "kernels/core/op.h"\n',
    "client/lib/conn/conn.c": '/* c */\n#include "client/lib/call/calls.h"\n#include "client/lib/embedded/open.h"\n',
    "tests/unit/t.c": '/* t */\n#include "server/native/conn.h"\n#include "client/lib/call/call.h"\n',
    "scripts/x": "#!/bin/sh\n# x\n",
    "README.md": "no comment needed\n",
}


def long_function(lines, name="long"):
    return f"/* l */\nint {name}(int a,\n    int b) {{\n" + "    ;\n" * (lines - 2) + "}\n"


class CheckLayers(unittest.TestCase):
    def run_on(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **changes}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout.strip().split("\n")

    def expect_one(self, path, text, words):
        status, lines = self.run_on({path: text})
        self.assertEqual((status, len(lines)), (1, 1), lines)
        self.assertTrue(lines[0].startswith(path + ":"), lines)
        self.assertIn(words, lines[0])

    def test_clean(self):
        status, lines = self.run_on({})
        self.assertEqual(status, 0, lines)

    def test_ops_outside_their_table(self):
        body = "/* a */\nint f(int op) {\n    return op == %s;\n}\n"
        self.expect_one("server/call/a.c", body % "CR_OP_SUM", "CR_OP_SUM: only op.def names an op")
        self.expect_one("client/lib/a.c", body % "CURED_OP_ARGMIN", "CURED_OP_ARGMIN: only op.def names an op")
        status, lines = self.run_on({"bench/a.c": body % "CR_OP_SUM", "kernels/core/op.c": body % "CR_OP_SUM",
                                     "engine/a.c": body % "CR_OP_NONE", "engine/b.c": "/* b: CR_OP_SUM */\n"})
        self.assertEqual(status, 0, lines)

    def test_defaults(self):
        body = "/* a */\nint f(int kind) {\n    switch (kind) {\n        default:\n            return 1;\n    }\n}\n"
        self.expect_one("engine/a.c", body, "a switch with a default: name every case")
        status, lines = self.run_on({"tests/a.c": body, "client/cli/npy.c": body, "engine/b.c": "/* b: no\n    default: */\n"})
        self.assertEqual(status, 0, lines)

    def test_includes_upward(self):
        for path, target in [
            ("base/a.c", "proto/frame.h"),
            ("base/a.c", "engine/memory/slab.h"),
            ("proto/a.c", "kernels/core/op.h"),
            ("proto/a.c", "base/log.h"),
            ("kernels/core/a.c", "kernels/cpu/fold.h"),
            ("kernels/core/a.c", "proto/frame.h"),
            ("kernels/cpu/a.c", "base/log.h"),
            ("kernels/cpu/family/a.inc", "kernels/cpu/whole/fused.h"),
            ("engine/a.c", "kernels/cpu/axis/plan.h"),
            ("engine/memory/a.c", "engine/job.h"),
            ("engine/a.c", "server/lanes/lanes.h"),
            ("server/lanes/gpu/a.c", "server/lanes/lanes.h"),
            ("server/lanes/a.c", "server/call/call.h"),
            ("server/admit/a.c", "server/native/conn.h"),
            ("server/admit/a.c", "server/job/job.h"),
            ("server/call/a.c", "server/loop/loop.h"),
            ("server/loop/a.c", "server/native/conn.h"),
            ("server/transport/a.c", "server/native/conn.h"),
            ("server/native/a.c", "server/transport/listener.h"),
            ("client/cli/a.c", "engine/queue.h"),
            ("client/lib/a.c", "engine/queue.h"),
            ("client/cli/a.c", "client/lib/error.h"),
            ("client/lib/a.c", "client/lib/region/region.h"),
            ("client/lib/region/a.c", "client/lib/call/calls.h"),
            ("client/lib/call/a.c", "client/lib/conn/conn.h"),
            ("client/lib/call/a.c", "client/lib/embedded/open.h"),
            ("client/lib/embedded/a.c", "client/lib/conn/conn.h"),
            ("client/lib/conn/a.c", "client/lib/call/call.h"),
            ("client/lib/conn/a.c", "client/lib/region/region.h"),
            ("client/lib/conn/a.c", "client/lib/embedded/embedded.h"),
            ("client/python/a.c", "client/lib/conn/conn.h"),
            ("client/cli/a.c", "client/lib/embedded/embedded.h"),
            ("client/lib/embedded/a.c", "engine/memory/region.h"),
            ("client/lib/embedded/a.c", "server/call/call.h"),
            ("client/cli/a.c", "kernels/cpu/fold.h"),
            ("proto/status.h", "proto/frame.h"),
        ]:
            with self.subTest(path=path, target=target):
                self.expect_one(path, f'/* a */\n#include "{target}"\n', "may not include " + target)

    def test_libraries(self):
        for path, header in [("client/a.c", "uv.h"), ("server/call/a.c", "uv.h"), ("kernels/core/a.c", "uv.h"), ("server/native/a.c", "cjson/cJSON.h"),
                             ("server/native/a.c", "protobuf-c/protobuf-c.h"), ("proto/frame.c", "cured.pb-c.h"),
                             ("engine/a.c", "cuda_runtime.h"), ("engine/a.c", "uv.h"),
                             ("engine/memory/a.h", "uv.h"), ("server/lanes/gpu/a.c", "uv/unix.h")]:
            with self.subTest(path=path, header=header):
                self.expect_one(path, f"/* a */\n#include <{header}>\n", header + " is not for this room")

    def test_unknown_room(self):
        self.expect_one("surprise/a.c", "/* a */\n", "outside the rooms")

    def test_opening_comments(self):
        self.expect_one("proto/a.c", "#include <stdio.h>\n", "does not open with a comment")
        self.expect_one("scripts/y", "#!/bin/sh\nset -e\n", "does not open with a comment")
        self.expect_one("proto/CMakeLists.txt", "add_library(x)\n", "does not open with a comment")

    def test_file_length(self):
        self.assertEqual(self.run_on({"proto/a.c": "/* a */\n" + "\n" * 499})[0], 0)
        self.expect_one("proto/a.c", "/* a */\n" + "\n" * 500, "501 lines")

    def test_function_length(self):
        self.assertEqual(self.run_on({"proto/a.c": long_function(70)})[0], 0)
        self.expect_one("proto/a.c", long_function(71), "long has 71 lines")

    def test_function_length_sees_through_noise(self):
        noise = '/* a { */\n#define X {\nstatic const char *s = "{ \\" {";\nchar c = \'{\'; // {\nstruct s { int a; };\n'
        noise += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n#if A\nint f(void) {\n#else\nint f(int a) {\n#endif\n}\n"
        self.expect_one("proto/a.c", noise + long_function(71).split("\n", 1)[1], "long has 71 lines")

    def test_tables_are_no_functions(self):
        self.assertEqual(self.run_on({"proto/a.c": "/* a */\nint t[] = {\n" + "1,\n" * 100 + "};\n"})[0], 0)

    def test_callers(self):
        header = "/* a */\nint cr_one(int a);\nstatic inline int cr_two(void) {\n    return 1;\n}\n"
        body = '/* a */\n#include "base/a.h"\nint cr_one(int a) { /* cr_one(1) */\n    return a;\n}\n'
        calls = {"base/b.c": "/* b */\nstatic int f(void) {\n    return cr_one(1) + cr_two();\n}\n"}
        self.assertEqual(self.run_on({"base/a.h": header, "base/a.c": body, **calls})[0], 0)
        macro = {"base/b.h": "/* b */\n#define BOTH cr_one(1) + \\\n    cr_two()\n"}
        self.assertEqual(self.run_on({"base/a.h": header, "base/a.c": body, **macro})[0], 0)
        status, lines = self.run_on({"base/a.h": header, "base/a.c": body, "tests/unit/b.c": calls["base/b.c"]})
        self.assertEqual((status, len(lines)), (1, 2), lines)
        self.assertIn("base/a.h:2: cr_one has no caller outside tests", lines)
        self.assertIn("base/a.h:3: cr_two has no caller outside tests", lines)

    def test_fast_ways_that_no_test_switches_off(self):
        path = "kernels/core/fast.def"
        rows = "/* f */\n" + "".join(f'CR_FAST({s}, "{s.lower()}_way", "t", "g")\n' for s in "ABCDE")
        loop = "/* a */\nint f(void) {\n    unsigned way = CR_FAST_A;\n    while (case_without(&way, CR_FAST_C)) f();\n}\n"
        off = {"tests/gpu/a.c": loop, "tests/unit/b.c": "/* b: CR_FAST_E */\n",
               "tests/CMakeLists.txt": "# c: CURED_TEST_WITHOUT=a_way,d_way,\n"}
        self.assertEqual(self.run_on({path: rows, **off})[0], 0)
        for without, line in (("tests/CMakeLists.txt", 5), ("tests/unit/b.c", 6)):
            status, lines = self.run_on({path: rows, **off, without: "/* # */\n" if without.endswith(".c") else "# c\n"})
            self.assertEqual((1, [f"{path}:{line}: {'ABCDE'[line - 2]}: no test switches this way off"]), (status, lines))

    def test_columns_of_documents(self):
        words, row = "word " * 20, "| " + "cell " * 30 + "|\n"
        fine = [words[:100], row, f"```\n{row}```", f"<!-- {words} {words} -->", "https://" + "a" * 100]
        self.assertEqual(self.run_on({"docs/a.md": "\n\n".join(fine) + "\n"})[0], 0)
        self.expect_one("docs/a.md", f"# A\n\n{words}ab\n", "102 columns, the limit is 100")
        self.expect_one("docs/a.md", f"```\n{row}```\n{words}a\n", "101 columns")


if __name__ == "__main__":
    unittest.main()
