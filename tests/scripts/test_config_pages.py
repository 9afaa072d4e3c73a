#!/usr/bin/env python3
"""config/cured.schema.json and docs/CONFIG.md are what the table of options gives, and the schema and the daemon agree on what a
configuration may be. usage: test_config_pages.py pages|schema. Exit status 77: skipped, with the reason."""
import json
import os
import subprocess
import sys
import tempfile

from other_python import need

ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CURED = os.path.join(os.path.abspath(os.environ["CURED_TEST_BIN"]), "cured")


def pages():
    """Both are fresh, and each option has its place in a page that says what it is good for."""
    texts = ""
    for name in ("OPERATIONS", "SECURITY", "INSTALL"):
        with open(os.path.join(ROOT, "docs", name + ".md"), encoding="utf-8") as f:
            texts += f.read()
    with open(os.path.join(ROOT, "config", "cured.json"), encoding="utf-8") as f:
        missing = [option for option in json.load(f) if option not in texts]
    if missing:
        print("no page says what these are good for: " + ", ".join(missing))
        return 1
    return subprocess.run([os.path.join(ROOT, "scripts", "config-pages"), "--check", CURED]).returncode


def check(folder, config):
    """What the daemon says is wrong with it: lines."""
    path = os.path.join(folder, "cured.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    env = {k: v for k, v in os.environ.items() if not k.startswith("CURED_")}
    ran = subprocess.run([CURED, "--check-config", "--config", path], env=dict(env, XDG_RUNTIME_DIR="/run/user/1"),
                         capture_output=True, text=True, timeout=60)
    assert (ran.returncode == 64) == bool(ran.stderr), ran
    return ran.stderr.splitlines()


def edges(option):
    """(values that are taken, values that are not)"""
    if "enum" in option:
        return option["enum"], ["", option["enum"][0] + "x", 0, True]
    if option.get("type") == "boolean":
        return [True, False], ["true", 1, []]
    if option.get("type") == "array":
        most = option["maxItems"]
        return [["unix:/tmp/%d" % i for i in range(most)]], ["unix:/tmp/x", ["unix:/tmp/%d" % i for i in range(most + 1)], [5]]
    if option.get("type") == "string":
        return ["0600", "0"], ["", "0o600", "8", 600]
    low, high = option["anyOf"][0]["minimum"], option["anyOf"][0]["maximum"]
    units = {"bytes": ("KiB", "kB"), "ms": ("ms", "us"), "us": ("us", "ns"), "count": ("", "k")}[option["x-unit"]]
    bad = [low - 1, low + 0.5, "", "-1", "%d %s" % (low, "s"), "%d%s" % (low, units[1]), [low], None]
    return [low, str(low), high, option["default"], option["default"] if units[0] == "KiB" else "%d%s" % (low, units[0])], bad


def schema():
    need("jsonschema")
    import jsonschema
    with open(os.path.join(ROOT, "config", "cured.schema.json"), encoding="utf-8") as f:
        rules = json.load(f)
    jsonschema.Draft202012Validator.check_schema(rules)
    validator = jsonschema.Draft202012Validator(rules)
    with open(os.path.join(ROOT, "config", "cured.json"), encoding="utf-8") as f:
        validator.validate(json.load(f))
    cases = {name: edges(option) for name, option in rules["properties"].items() if name != "$schema"}
    with tempfile.TemporaryDirectory() as folder:
        # What belongs together is beside the point here, and so are files and users that are not there.
        beside = ("tls_", "principals", "allow_", "admin_")
        single = {name: good for name, (good, _) in cases.items() if not name.startswith(beside)}
        for i in range(max(len(good) for good in single.values())):
            config = {name: good[i % len(good)] for name, good in single.items()}
            config["$schema"] = "cured.schema.json"
            validator.validate(config)
            said = check(folder, config)
            assert not said, said
        tried = 0
        for i in range(max(len(bad) for _, bad in cases.values())):
            config = {name: bad[i] for name, (_, bad) in cases.items() if i < len(bad)}
            named = {error.path[0] for error in validator.iter_errors(config)}
            assert named == set(config), "the schema takes %s" % {n: config[n] for n in set(config) - named}
            said = check(folder, config)
            for name in config:
                assert any('key "%s"' % name in line for line in said), (name, config[name], said)
            tried += len(config)
        assert not validator.is_valid({"slab": 5}) and check(folder, {"slab": 5})
    print("%d values refused by both" % tried)
    return 0


if __name__ == "__main__":
    sys.exit({"pages": pages, "schema": schema}[sys.argv[1]]())
