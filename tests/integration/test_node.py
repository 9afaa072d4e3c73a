#!/usr/bin/env python3
"""The package for Node: packed by npm, installed from the packed file into a project of its own, and run at a Unix socket, over TCP with
TLS and with a token; and its types, which TypeScript finds right in a program that is right, and wrong in each line with a slip.

Skipped where node or npm is missing, or the registry does not answer. Where CI is set that fails."""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

import node_cases
from cured_daemon import CLIENT, Daemon, DaemonTest, main
from test_tls import new_token
from tls_files import Authority

SOURCE = os.path.abspath(os.environ.get("CURED_TEST_SOURCE") or os.path.join(os.path.dirname(__file__), "..", ".."))
SEED = int(os.environ.get("CURED_TEST_SEED", "33"))
COUNT = 1000000  # as in node_calls.js
HANG_S = 200
FILES = {"package.json", "README.md", "LICENSE", "NOTICE", "index.d.ts", "cured.proto"}
FILES |= {name + ".js" for name in ("index", "address", "answers", "errors", "flight", "input", "options", "request", "values")}
PROGRAM = """\
import * as cured from 'cured';

async function* chunks(): AsyncGenerator<Float32Array> { yield new Float32Array(3); }
async function program(): Promise<void> {
    const client: cured.Client = cured.connect('unix:/run/cured/cured.sock', { timeoutMs: 1000 });
    const total: number | bigint = await client.sum(new Float32Array(4), { where: new Uint8Array(4), nan: 'skip' });
    const place: bigint = await client.argmax(new Int16Array(2));
    const rows: cured.ArrayResult = await client.mean(new Float64Array(6), { shape: [2, 3], axis: 1, keepdims: true });
    const several = await client.reduce(chunks(), ['sum', 'min'], { dtype: 'f32' });
    const least: cured.Value | undefined = several.min;
    const merged = await client.merge([await client.partial(new Float32Array(2), ['sum'])], ['sum']);
    const grouped: cured.ArrayResult = await client.sum(new Float32Array(4), { keys: new Int8Array(2), groups: 2, drop: true, shape: [2, 2] });
    const joined = await client.reduce(new Float32Array(4), ['sum'], { offsets: new Int32Array(3), where: new Uint8Array(4) });
    const planes: cured.ArrayResult | undefined = (await client.describe(new Float32Array(8), { axis: [0, 2], shape: [2, 2, 2] })).std;
    const some: number[] = await client.quantile(new Float32Array(4), { q: [0.25, 0.75], method: 'lower' });
    const middle: number = await client.quantile(new Float32Array(4));
    const spread: cured.ArrayResult = await client.quantile(new Float32Array(4), { q: new Float64Array(2), axis: 0 });
    const block: Uint8Array = await client.partial(new DataView(new ArrayBuffer(8)), ['sum', 'digest'], { dtype: 'f32', shape: [2, 1], within: [2, 2], start: [0, 1] });
    const rest = await client.finish(await client.mergePartials([block], ['sum']), ['sum'], { nan: 'skip', signal: AbortSignal.abort() });
    const weighted: number = await client.average(new SharedArrayBuffer(8), { dtype: 'f32', weights: chunks(), shape: [2], first: 3n });
    const halves: number | bigint = await client.sum(new Float16Array(2));
    console.log(halves, some, middle, spread.shape, rest.sum, weighted, (await client.slowLog()).length);
    console.log(grouped.shape, joined.sum?.values, planes?.shape);
    console.log(total, place, rows.shape[0], least, several.errors.sum?.code, several.elements, merged.sum);
    client.close();
    %s
}
program().catch((error) => { if (error instanceof cured.CuredError) console.log(error.code, error.retryAfterMs); });
"""
SLIPS = ("await client.summ(new Float32Array(1));", "client.clos();", "several.max;", "cured.connect(7);", "rows.valuess;",
         "await client.sum(new Float32Array(1), { nan: 'ignore' });", "await client.sum('text');", "await client.sum([1, 2]);",
         "const wrong: string = await client.mean(new Float32Array(1));", "await client.reduce(new Float32Array(1), ['summ']);",
         "await client.sum(new Float32Array(1), { axes: 0 });", "await client.sum(new Float32Array(1), { dtype: 'f33' });",
         "await client.sum(new Float32Array(1), { keys: [0, 1] });", "await client.sum(new Float32Array(1), { offsets: new Int8Array(2) });",
         "await client.sum(new Float32Array(1), { groups: 2 });", "await client.sum(new Float32Array(1), { axis: ['0'] });",
         "(await client.describe(new Float32Array(1))).median;", "cured.connect('tcp:x:1', { tokenn: 'a' });", "await client.partial(new Float32Array(1), ['sum'], { axis: 0 });",
         "await client.partial(new Float32Array(1), ['sum'], { within: 3 });", "await client.sum(new Float32Array(1), { signal: {} });",
         "const single: number = await client.quantile(new Float32Array(1), { q: [0.5] });", "await client.sum(new Float32Array(1), { timeoutMs: '9' });", "await client.merge(['text'], ['sum']);")


def npm(folder, *arguments):
    return subprocess.run(["npm", *arguments], cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False)


class Node(DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.why = None if shutil.which("node") and shutil.which("npm") else "there is no node or no npm (scripts/bootstrap --clients)"
        if cls.why is None and npm("/", "view", "@grpc/grpc-js@1.14.7", "version").returncode != 0:
            cls.why = "the registry of npm does not answer"
        if cls.why is not None:
            if os.environ.get("CI"):
                raise AssertionError("%s; where CI is set the package must be tested" % cls.why)
            return
        cls.work = tempfile.mkdtemp(dir=cls.folder)
        cls.project = os.path.join(cls.work, "project")
        shutil.copytree(os.path.join(SOURCE, "client", "node"), os.path.join(cls.work, "client", "node"))
        shutil.copytree(os.path.join(SOURCE, "proto"), os.path.join(cls.work, "proto"))
        for name in ("LICENSE", "NOTICE"):
            shutil.copy(os.path.join(SOURCE, name), cls.work)
        cls.packed = npm(os.path.join(cls.work, "client", "node"), "pack", "--json", "--pack-destination", cls.work)
        os.mkdir(cls.project)
        with open(os.path.join(cls.project, "package.json"), "w", encoding="utf-8") as f:
            f.write('{"private": true}')

    def setUp(self):
        super().setUp()
        if self.why is not None:
            self.skipTest(self.why)

    def node(self, *arguments, env=None):
        run = subprocess.run(["node", *arguments], cwd=self.project, capture_output=True, text=True, timeout=HANG_S, check=False,
                             env={**os.environ, **(env or {})})
        return run.returncode, run.stdout, run.stderr

    def test_install_and_calls(self):
        self.assertEqual(0, self.packed.returncode, self.packed.stderr)
        listed, = json.loads(self.packed.stdout)
        self.assertEqual(FILES, {file["path"] for file in listed["files"]})
        installed = npm(self.project, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
                        os.path.join(self.work, listed["filename"]), "typescript@5.9.3")
        self.assertEqual(0, installed.returncode, installed.stderr)
        for program in ("node_calls.js", "node_cross.js", "node_table.js", "node_refusals.js", "node_hostile.js"):
            shutil.copy(os.path.join(SOURCE, "tests", "integration", program), self.project)
        file = os.path.join(self.project, "file.bin")
        with open(file, "wb") as f:
            f.write(struct.pack("<%df" % COUNT, *range(COUNT)))
        self.assertEqual((0, "good\n", ""), self.node("node_calls.js", file, self.daemon.address))
        self.assertEqual((0, "good\n", ""), self.node("node_cross.js", self.daemon.address))
        for name in ("Float64Array", "Int32Array"):  # the parts by key that node_calls.js has made, in which 4 is masked and 7 dropped
            merged = subprocess.run([CLIENT, "merge", name + "-1.crp", name + "-2.crp", name + "-0.crp", "--ops", "sum,count"], cwd=self.project,
                                    capture_output=True, text=True, check=False)
            self.assertEqual((0, "# sum\n2 0 4 0\n# count\n1 0 2 0\n", ""), (merged.returncode, merged.stdout, merged.stderr))
        self.readme()
        self.table()
        for program in (("node_refusals.js", self.daemon.address), ("node_hostile.js",)):
            self.assertEqual((0, "good\n", ""), self.node(*program), program)
        ca = Authority(self.folder)
        certificate, key = ca.sign("server")
        tls = Daemon(self.folder, listen=["tcp:127.0.0.1:0"], tls_certificate=certificate, tls_key=key, tls_client_ca=ca.certificate)
        self.addCleanup(lambda: tls.check_end(self, tls.stop()))
        code, out, err = self.node("node_calls.js", file, tls.address.replace("tcp:", "tls:"), ca.certificate, *ca.sign("somebody"))
        self.assertEqual((0, "good\n"), (code, out), err)  # Node warns of an address as a server's name
        self.tokens()
        self.types()

    def readme(self):
        """What the package's page shows: each line prints what stands beside it."""
        with open(os.path.join(SOURCE, "client", "node", "README.md"), encoding="utf-8") as f:
            program, = re.findall(r"^```js\n(.*?)^```", f.read(), flags=re.S | re.M)
        wanted = [line.split("; // ")[1] for line in program.splitlines() if line.startswith("console.log")]
        self.assertGreater(len(wanted), 5)
        with open(os.path.join(self.project, "readme.mjs"), "w", encoding="utf-8") as f:
            f.write(program)
        self.assertEqual((0, wanted, ""), (lambda code, out, err: (code, out.splitlines(), err))(
            *self.node("readme.mjs", env={"CURED_CONNECT": self.daemon.address})))

    def table(self):
        """Every type by every way, against the oracle."""
        cases = [node_cases.Cases(SEED, dtype).json() for dtype in node_cases.oracle.DTYPES]
        asked = sum(len(one["cases"]) for one in cases)
        self.assertGreater(asked, 800)
        with open(os.path.join(self.project, "cases.json"), "w", encoding="utf-8") as f:
            json.dump(cases, f)
        code, out, err = self.node("node_table.js", "cases.json", self.daemon.address)
        self.assertEqual((0, ""), (code, err), out)
        self.assertRegex(out, r"^good: \d+ calls\n$")
        self.assertGreater(int(out.split()[1]), 10 * asked)

    def tokens(self):
        token, line = new_token("somebody")
        principals = os.path.join(self.folder, "principals")
        with open(principals, "w", encoding="utf-8") as f:
            f.write(line + "\n")
        os.chmod(principals, 0o600)
        daemon = Daemon(self.folder, listen=["tcp:127.0.0.1:0"], principals=principals)
        self.addCleanup(lambda: daemon.check_end(self, daemon.stop()))
        program = ("const [address, token] = process.argv.slice(1); const c = require('cured').connect(address, token ? { token } : {});"
                   "c.sum(Float32Array.of(1, 2)).then(console.log, (e) => console.log(e.code)).finally(() => c.close())")
        file = os.path.join(self.folder, "token")
        with open(file, "w", encoding="utf-8") as f:
            f.write(token + "\n")
        os.chmod(file, 0o600)
        wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
        for given, wanted in ((token, "3"), (wrong, "UNAUTHENTICATED")):
            self.assertEqual((0, wanted + "\n", ""), self.node("-e", program, daemon.address, given))
        for env, wanted in (({"CURED_CLIENT_TOKEN": wrong}, "UNAUTHENTICATED"), ({"CURED_CLIENT_TOKEN_FILE": file}, "3"),
                            ({"CURED_CLIENT_TOKEN": token, "CURED_CLIENT_TOKEN_FILE": "/nowhere"}, "3")):
            self.assertEqual((0, wanted + "\n", ""), self.node("-e", program, daemon.address, env=env))

    def types(self):
        """All slips in one program, a line each: each is found, and nothing else."""
        text = PROGRAM % "\n    ".join(SLIPS)
        with open(os.path.join(self.project, "program.ts"), "w", encoding="utf-8") as f:
            f.write(text)
        options = {"noEmit": True, "strict": True, "target": "es2022", "lib": ["es2022", "dom", "esnext.float16"], "types": [], "module": "node16", "moduleResolution": "node16"}
        with open(os.path.join(self.project, "tsconfig.json"), "w", encoding="utf-8") as f:
            json.dump({"compilerOptions": options, "files": ["program.ts"]}, f)
        _, out, err = self.node("node_modules/typescript/bin/tsc", "-p", ".", "--pretty", "false")
        found = {int(line.split("(")[1].split(",")[0]) for line in out.splitlines() if line.startswith("program.ts(")}
        self.assertEqual({text.split("\n").index("    " + slip) + 1 for slip in SLIPS}, found, out + err)
        self.assertTrue(all(line.startswith(("program.ts(", " ")) for line in out.splitlines()), out)


if __name__ == "__main__":
    main()
