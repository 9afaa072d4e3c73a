#!/usr/bin/env python3
"""What an editor knows of cured: the arguments that help() and inspect.signature show are those of the stubs, each is taken, and mypy
and pyright accept a program that uses the package well and refuse each of its typos."""
import ast
import asyncio
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from support import OPS, PACKAGE, Case, cured, numpy  # noqa: E402

GOOD = """
import asyncio
import cured

a = bytearray(8)
total = cured.sum(a, axis=0, where=None, nan="skip", nulls="error", min_count=1)
spread = cured.std(a, correction=1.5)
found: cured.Result = cured.reduce(a, ["min", "max"], keepdims=True)
state: cured.Partial = cured.partial(a, "sum", first=None)
both = cured.merge([state, state]).finish("sum", dtype="f4").sum
column = cured.column(object(), "price")
each: cured.Results = cured.reduce_each([a, a], "sum")
some: list[cured.Result] = each[1:] + each.copy() + (each + each)
first = each[0].sum, [r.sum for r in each], each.index(each[1]), len(each)
f: cured.File = cured.file("a.npy")
lots = f.sum(), f.quantile(0.5, axis=0), f.reduce("sum,max", axis=1).max, f.shape[0]
with cured.Client("embedded:", threads=2) as client:
    more = client.mean(a, 0), client.quantile(a, [0.1]), client.reduce(a, "min"), client.dot(a, a), client.partial(a, "sum").count
    weighed = client.average(a, weights=a, axis=0, returned=True), client.nansum(a, keys=a), client.vecdot(a, a, axis=0), client.minmax(a)[0]
held = f.average(weights=[1, 2], axis=1), f.nanmax(0), f.percentile(50), f.minmax()[1], f.vecdot(a)


async def main() -> None:
    async with cured.AsyncClient() as asked:
        await asked.sum(a, axis=0)
        await asked.nanmax(a)
        await asked.average(a, 1, weights=a, keys=a)
        await asked.vecdot(a, a)
        result: cured.Result = await asked.reduce(a, ["sum"])
        print(result.sum)


asyncio.run(main())
print(cured.array_api.var(a, correction=0.5), cured.Search("f8", 0.5).asked)
"""
TYPOS = ("cured.suum(a)", "cured.sum(a, axs=0)", "cured.sum(a, nan='ignore')", "cured.max(a, dtype='f4')", "cured.sum(a, nulls='no')", "client.meen(a)",
         "client.mean(a, keepdim=True)", "client.clos()", "f.summ()", "f.sum(a, 0)", "f.shap", "f.argmax(overflow='wrap')", "cured.Client(adress='x')",
         "asked.men(a)", "client.average(a, wieghts=a)", "f.average(a, a, a, a)", "asked.nansum(a, axs=0)",  "asked.sum(a, axi=0)", "asked.sevrer", "cured.quantile(a, 0.5, method='liner')", "cured.partial(a, 'sum', firts=0)",
         "cured.reduce(a, 'sum').finish", "state.finnish('sum')", "cured.array_api.sum(a, 0)", "cured.column(a)", "cured.reduce_each(a, 'sum', axes=0)",
         "each.append(each[0])", "each['a']")
ALLOWED = {"cured.reduce(a, 'sum').finish"}  # answers have any name: r.sum


PYRIGHT = "pyright@1.1.414"  # of npm


def with_typos():
    """All in one program, a line each."""
    return GOOD.replace("        print(result.sum)\n", "        print(result.sum)\n" + "".join("        %s\n" % typo for typo in TYPOS))


def line_of(program, typo):
    return program.split("\n").index("        " + typo) + 1


def of_stub(function, method):
    """[(name, kind, default)] of a function of the stubs, without self."""
    a, found = function.args, []
    positional = a.posonlyargs + a.args
    defaults = [None] * (len(positional) - len(a.defaults)) + [ast.unparse(d) for d in a.defaults]
    for k, (argument, default) in enumerate(zip(positional, defaults)):
        found.append((argument.arg, "before" if k < len(a.posonlyargs) else "either", default))
    for argument, default in zip(a.kwonlyargs, a.kw_defaults):
        found.append((argument.arg, "named", None if default is None else ast.unparse(default)))
    return [row if row[0] not in ("a", "b") else (row[0], "before", row[2]) for row in found if not (method and row[0] == "self")]


def of_signature(function, method):
    kinds = {inspect.Parameter.POSITIONAL_ONLY: "before", inspect.Parameter.POSITIONAL_OR_KEYWORD: "either", inspect.Parameter.KEYWORD_ONLY: "named"}
    return [(p.name, kinds[p.kind], None if p.default is p.empty else repr(p.default)) for p in inspect.signature(function).parameters.values()
            if not (method and p.name == "self")]


class Signatures(Case):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(os.path.dirname(cured.__file__), "__init__.pyi"), encoding="utf-8") as f:
            cls.body = ast.parse(f.read()).body
        cls.functions = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
        cls.classes = {node.name: {n.name: n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
                       for node in cls.body if isinstance(node, ast.ClassDef)}

    def test_functions(self):
        """Those of C and those of Python, against the stubs."""
        checked = 0
        for name in sorted(set(cured.__all__) | set(OPS)):
            function = getattr(cured, name)
            if inspect.isclass(function) or inspect.ismodule(function) or name in ("partial", "from_linear", "linear", "reduce_each", "reduce_parts", "weights", "vecdot"):
                if not inspect.ismodule(function) and name not in ("Error", "File", "Results", "Weights"):
                    self.assertIsNotNone(inspect.signature(function), name)
                continue
            of_file = [row for row in of_signature(function, False)]
            self.assertEqual([row[0] for row in of_stub(self.functions[name], False)], [row[0] for row in of_file], name)
            self.assertIn(name + "(", inspect.getdoc(function) and "%s%s" % (name, inspect.signature(function)))
            checked += 1
        self.assertGreater(checked, 40)

    def test_ops(self):
        """Names, kinds and defaults of each op, of the module and of the three classes."""
        for name in [op for op in OPS if op != "average"]:
            self.assertEqual(of_stub(self.functions[name], False), of_signature(getattr(cured, name), False), name)
        for owner in ("File", "Client", "AsyncClient"):
            for name in [*OPS, "reduce", "describe", "partial"]:
                if name == "average":  # a function of Python, below
                    continue
                wanted = of_stub(self.classes[owner][name], True)
                got = of_signature(getattr(getattr(cured, owner), name), True)
                if owner == "Client":
                    got = [row for row in got if row[0] != "client"]
                self.assertEqual(wanted, got, (owner, name))
                self.assertTrue(inspect.getdoc(getattr(getattr(cured, owner), name)), (owner, name))
            public = {n for n in dir(getattr(cured, owner)) if not n.startswith("_")} - {"dtype", "shape", "server"}
            self.assertEqual(set(), public - set(self.classes[owner]), owner)

    def test_functions_as_methods(self):
        """Each takes what the function does, but for client, and says so."""
        def same(found):
            return [row if row[2] in (None, "None") or row[2][0] != "'" else (*row[:2], row[2]) for row in found]
        for name in ("average", "vecdot", "minmax", "percentile", *(name for name in cured.__all__ if name.startswith("nan"))):
            wanted = same(of_stub(self.functions[name], False))
            self.assertEqual([row[0] for row in wanted], [row[0] for row in of_signature(getattr(cured, name), False)])
            for owner in ("File", "Client", "AsyncClient"):
                method = getattr(getattr(cured, owner), name)
                stub, got = of_stub(self.classes[owner][name], True), of_signature(method, True)
                kept = wanted[1:] if owner == "File" else [row for row in wanted if row[0] != "client"]
                self.assertEqual(kept, stub, (owner, name))
                self.assertEqual([(row[0], row[2]) for row in kept], [(row[0], row[2]) for row in got], (owner, name))
                self.assertEqual(owner + "." + name, method.__qualname__)
                self.assertEqual(owner == "AsyncClient", asyncio.iscoroutinefunction(method))

    def test_each_argument_is_taken(self):
        """By its name, with its default: no stub and no text promises what a call refuses."""
        a = numpy.arange(1, 5)
        for name in OPS:
            positional = [a, a] if name in ("dot", "sqdist", "average") else [a]
            for p in inspect.signature(getattr(cured._cured, name)).parameters.values():
                if p.kind is p.KEYWORD_ONLY:
                    if p.name == "correction" or (p.name, p.default) == ("initial", None):
                        continue
                    options = {p.name: p.default, **({"q": 0.5} if name == "quantile" else {})}
                    getattr(cured._cured, name)(*positional, **options)
        text = subprocess.run([sys.executable, "-c", "import cured; help(cured.sum)"], env=dict(os.environ, PYTHONPATH=PACKAGE), capture_output=True, text=True).stdout
        self.assertIn("sum(a, /, axis=None, *, dtype=None, keepdims=False, where=None", text)
        self.assertTrue(asyncio.iscoroutinefunction(cured.AsyncClient.sum))


class Types(Case):
    def mypy(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            run = subprocess.run(["/usr/bin/python3", "-m", "mypy", "--strict", "--cache-dir", os.path.join(self.cache.name, "mypy"), path], cwd=folder,
                                 env=dict(os.environ, MYPYPATH=PACKAGE), capture_output=True, text=True)
        return run.stdout + run.stderr

    @classmethod
    def setUpClass(cls):
        if subprocess.run(["/usr/bin/python3", "-c", "import mypy"], capture_output=True).returncode:
            raise unittest.SkipTest("there is no mypy (package mypy: scripts/bootstrap --tests installs it)")
        cls.cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.cache.cleanup)

    def test_a_program_that_is_right(self):
        said = self.mypy(GOOD)
        self.assertIn("Success: no issues found", said)

    def test_typos(self):
        lines = with_typos()
        said = self.mypy(lines)
        for typo in TYPOS:
            self.assertEqual(typo not in ALLOWED, "program.py:%d: error" % line_of(lines, typo) in said, "%s\n%s" % (typo, said))


class Pyright(Case):
    """What Visual Studio Code asks. It is a program of Node, and is fetched from npm's registry."""

    def run_in(self, folder, *command):
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=200)

    def test_a_program_that_is_right_and_its_typos(self):
        if not (shutil.which("node") and shutil.which("npm")):
            self.skipTest("there is no node or no npm for pyright (scripts/bootstrap --clients)")
        lines = with_typos()
        with tempfile.TemporaryDirectory() as folder:
            settings = {"extraPaths": [PACKAGE], "include": ["good.py", "typos.py"], "strict": ["good.py"], "typeCheckingMode": "standard"}
            for name, text in (("package.json", '{"private": true}'), ("good.py", GOOD), ("typos.py", lines),
                               ("pyrightconfig.json", json.dumps(settings))):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
            fetched = self.run_in(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", PYRIGHT)
            if fetched.returncode:
                self.skipTest("npm fetched no %s: %s" % (PYRIGHT, fetched.stderr.strip().splitlines()[:1]))
            said = self.run_in(folder, "node", "node_modules/pyright/index.js", "--outputjson")
        found = {(os.path.basename(one["file"]), one["range"]["start"]["line"] + 1) for one in json.loads(said.stdout)["generalDiagnostics"]
                 if one["severity"] == "error"}
        self.assertEqual({("typos.py", line_of(lines, typo)) for typo in TYPOS if typo not in ALLOWED}, found, said.stdout)


if __name__ == "__main__":
    unittest.main()
