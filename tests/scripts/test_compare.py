"""scripts/compare, small: every way that this machine has is measured, cured's answers are right and the floors' too, and a wrong
answer is seen."""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BIN = os.environ["CURED_TEST_BIN"]
if not os.path.exists(os.path.join(BIN, "cured-bench")):
    print("skipped: cured-bench is not built")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    report, picture = os.path.join(folder, "c.json"), os.path.join(folder, "c.svg")
    run = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "compare"), BIN, "--mib", "1", "--rounds", "1", "--seconds", "0.5",
                          "--no-grpc", "--json", report, "--plot", picture], capture_output=True, text=True, check=False,
                         env={k: v for k, v in os.environ.items() if not k.startswith("CURED_")} | {"TMPDIR": folder})
    assert run.returncode == 0, run.stdout + run.stderr
    with open(report, encoding="utf-8") as f:
        tables = list(json.load(f)["tables"].values())
    rows = [r for table in tables for r in table]
    for row in rows:
        assert row["median"] > 0 and len(row["figures"]) == 1, row
        if "cured" in row["way"] or "daemon" in row["way"] or "floor" in row["way"] or "Redis" in row["way"]:
            assert row["right"], row
        if row["way"] in ("NumPy, float32", "CUB, float32"):
            assert not row["right"], "float32 has no room for this sum"
    assert {"cured-client, daemon", "cured-client alone", "cured"} <= {r["way"] for r in rows}, rows
    shared = "the daemon with --backend cpu" in {r["way"] for r in rows}
    assert shared or "/dev/shm has no room" in run.stdout, run.stdout
    assert xml.dom.minidom.parse(picture).getElementsByTagName("rect").length == len(rows)

    # The client that keeps requests in flight sees a wrong answer.
    peers, sock = os.path.join(folder, "peers"), os.path.join(folder, "s")
    built = subprocess.run(["cc", "-D_GNU_SOURCE", "-fopenmp", os.path.join(ROOT, "bench", "compare_peers.c"), "-luv", "-o", peers],
                           check=False, capture_output=True)
    if built.returncode == 0:
        echo = subprocess.Popen([peers, "echo", sock])
        try:
            for name, data in (("a", b"same"), ("b", b"diff")):
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(data)
            ask = [peers, "ask", sock, "0.05", "4", "1", os.path.join(folder, "a")]
            for _ in range(200):
                right = subprocess.run([*ask, os.path.join(folder, "a")], capture_output=True, text=True, check=False)
                if right.returncode == 0:
                    break
            assert right.stdout.endswith("right\n"), right
            wrong = subprocess.run([*ask, os.path.join(folder, "b")], capture_output=True, text=True, check=False)
            assert wrong.returncode == 1 and wrong.stdout.endswith("WRONG\n"), wrong
        finally:
            echo.kill()
            echo.wait()
print("compare: %d ways" % len(rows))
