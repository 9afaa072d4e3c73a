#!/usr/bin/env python3
"""test_admin_prometheus: /metrics as Prometheus reads it; the alert rules and the dashboard name nothing that the daemon does not
expose. Without promtool, what needs it says so."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from admin_client import HANG_S, get, metrics
from cured_daemon import main, wait_for
from test_admin import AdminTest

ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RULES, TESTS, SCRAPE = (os.path.join(ROOT, "deploy", "prometheus", name) for name in ("cured.rules.yml", "cured.test.yml", "prometheus.yml"))
BOARD = os.path.join(ROOT, "deploy", "grafana", "cured.json")
# Exposed only where there is a GPU, and NVML can be loaded.
WITH_A_GPU = {"cured_gpu_healthy", "cured_gpu_errors_total", "cured_gpu_temperature_celsius", "cured_gpu_utilization_ratio", "cured_gpu_memory_bytes"}


def need(tool):
    if not shutil.which(tool):
        raise unittest.SkipTest("there is no %s: scripts/bootstrap --clients installs it" % tool)


def promtool(*arguments, text=None):
    return subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, timeout=HANG_S)


def named(expression):
    """The metrics of an expression of PromQL."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\b(by|on|without|ignoring)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", bare)
    return set(re.findall(r"\b(?:cured|process)_[a-z_]+\b|\bup\b", bare))


def dashboard():
    with open(BOARD) as f:
        return json.load(f)


def queries():
    return [t["expr"] for p in dashboard()["panels"] for t in p["targets"]]


def quiet_minute(series):
    """promtool's word on the shipped rules, without their `for`, over a minute of scrapes in which no alert is to fire. NaN is no
    value that promtool takes."""
    with open(RULES) as f:
        text = re.sub(r"(?m)^ +for: .*\n", "", f.read())
    alerts = set(re.findall(r"- alert: (\w+)", text)) - {"CuredLoopBusy"}  # which says what else the machine does
    at = [{"eval_time": "%ds" % s, "alertname": name} for s in range(0, 61, 5) for name in sorted(alerts)]
    inputs = []
    for name, values in series.items():
        labels = 'job="cured", instance="a"' + (", " + name[name.index("{") + 1:-1] if "{" in name else "")
        inputs.append({"series": "%s{%s}" % (name.partition("{")[0], labels), "values": " ".join(values).replace("nan", "_")})
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "rules.yml"), "w") as f:
            f.write(text)
        tests = os.path.join(folder, "tests.yml")
        with open(tests, "w") as f:
            json.dump({"rule_files": ["rules.yml"], "evaluation_interval": "1s",
                       "tests": [{"interval": "1s", "input_series": inputs, "alert_rule_test": at}]}, f)
        return promtool("test", "rules", tests)


class Scraped(AdminTest):
    def exposed(self):
        """Families with their types, and every name that a sample has."""
        families, samples, labels = {}, set(), {}
        for line in get(self.unix, "/metrics").body.decode().splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                families[name] = kind
            elif not line.startswith("#"):
                name = re.match(r"[a-z_]+", line).group(0)
                samples.add(name)
                labels.setdefault(name, set()).update(re.findall(r'([a-z]+)="', line))
        return families, samples, labels

    def work(self):
        with self.daemon.connect() as c:
            c.inline("f32", ["sum"], bytes(64))
            c.stream("f32", ["sum", "max"], bytes(1 << 20))

    def test_promtool_has_no_remarks(self):
        need("promtool")
        self.work()
        program = promtool("check", "metrics", text=get(self.unix, "/metrics").body.decode())
        self.assertEqual((0, "", ""), (program.returncode, program.stdout, program.stderr))
        # It would have some.
        self.assertNotEqual(0, promtool("check", "metrics", text="# TYPE a_total gauge\na_total{x=\"1\"} y\n").returncode)

    def test_nothing_is_named_that_is_not_exposed(self):
        self.work()
        families, samples, labels = self.exposed()
        with open(RULES) as f:
            text = f.read()
        rules = re.findall(r"expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", text)
        expressions = queries() + [a or b for a, b in rules]
        self.assertEqual(len(re.findall("- alert:", text)), len(rules))
        names = set().union(*map(named, expressions)) - {"up"}
        self.assertGreater(len(names), 15)
        for name in sorted(names - WITH_A_GPU):
            self.assertIn(name, samples, "it is in a rule or in the dashboard")
        # Labels, too: of each selector, and of what is summed by.
        for expression in expressions:
            for name, selector in re.findall(r"\b((?:cured|process)_[a-z_]+)\{([^}]*)\}", expression):
                for label in re.findall(r"([a-z]+)\s*[=!]", re.sub(r'"[^"]*"', '""', selector)):
                    if name not in WITH_A_GPU and label not in ("instance", "job"):
                        self.assertIn(label, labels[name], name)
        self.assertIn("histogram", families.values())

    def test_the_dashboard_is_good_promql(self):
        need("promtool")
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
            rules = [{"record": "query:%d" % i, "expr": re.sub(r"\$__rate_interval", "5m", q)} for i, q in enumerate(queries())]
            json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, f)
            f.flush()
            program = promtool("check", "rules", f.name)
        self.assertEqual(0, program.returncode, program.stderr)
        ids = [p["id"] for p in dashboard()["panels"]]
        self.assertEqual(len(ids), len(set(ids)))

    def test_rules_are_good_and_fire_when_they_should(self):
        need("promtool")
        for arguments in (("check", "rules", RULES), ("test", "rules", TESTS), ("check", "config", SCRAPE)):
            program = promtool(*arguments)
            self.assertEqual(0, program.returncode, program.stdout + program.stderr)
        with open(RULES) as f:
            alerts = set(re.findall(r"- alert: (\w+)", f.read()))
        with open(TESTS) as f:
            tested = re.findall(r"alertname: (\w+)\n\s+exp_alerts:", f.read())
        self.assertEqual(alerts, set(tested), "each alert is seen to fire")
        with open(os.path.join(ROOT, "docs", "OPERATIONS.md")) as f:
            page = f.read()
        for alert in alerts:
            self.assertIn("`%s`" % alert, page, "docs/OPERATIONS.md says what to do")

    def test_what_never_changes_is_the_same_in_every_scrape(self):
        seen = {series: set() for series in ("process_start_time_seconds", "process_max_fds")}
        for _ in range(60):
            said = metrics(self.unix)
            for series, values in seen.items():
                values.add(said[series])
            time.sleep(0.0017)
        self.assertEqual({series: 1 for series in seen}, {series: len(values) for series, values in seen.items()})

    def test_no_alert_fires_about_a_quiet_daemon(self):
        """61 scrapes, as if one came each second, under the shipped rules without their `for`: none may be pending either."""
        need("promtool")
        series = {}
        for at in range(61):
            for name, value in metrics(self.unix).items():
                series.setdefault(name, ["_"] * 61)[at] = repr(value)
            time.sleep(0.0017)
        series["up"] = ["1"] * 61
        program = quiet_minute(series)
        self.assertEqual(0, program.returncode, program.stdout + program.stderr)
        series["process_start_time_seconds"][20:24] = "100 200 300 400".split()
        self.assertIn("CuredRestarts", quiet_minute(series).stderr, "the check would not see an alert")

    def test_a_real_prometheus_scrapes_it(self):
        need("prometheus")
        config = os.path.join(self.folder, "prometheus.yml")
        with open(SCRAPE) as f:
            text = f.read().replace("127.0.0.1:7738", self.tcp.partition(":")[2]).replace("15s", "200ms")
        with open(config, "w") as f:
            f.write(text.replace("cured.rules.yml", os.path.abspath(RULES)))
        web = os.path.join(self.folder, "log")
        with open(web, "w") as log:
            program = subprocess.Popen(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(self.folder, "tsdb"),
                                        "--web.listen-address=127.0.0.1:0", "--log.level=info"], stdout=log, stderr=log)
        try:
            with open(web) as log:
                said = wait_for("its address", lambda: log.seek(0) or re.search(r'[lL]istening on"? ?\S*address=(\S+)', log.read()))
            address = said.group(1)

            def api(path):
                """What it answers; None while it is not ready."""
                try:
                    with urllib.request.urlopen("http://%s/api/v1/%s" % (address, path), timeout=HANG_S) as answer:
                        return json.load(answer)["data"]
                except urllib.error.URLError:
                    return None

            def ask(query):
                return (api("query?" + urllib.parse.urlencode({"query": query})) or {}).get("result")
            self.work()
            wait_for("a scrape", lambda: [r for r in ask('up{job="cured"}') or [] if r["value"][1] == "1"])
            wait_for("the figures", lambda: ask('cured_uptime_seconds{job="cured"} > 0'))
            self.assertEqual("cpu", wait_for("the build", lambda: ask("cured_build_info"))[0]["metric"]["backend"])
            groups = wait_for("the rules", lambda: (api("rules") or {}).get("groups"))
            self.assertEqual({"unknown", "ok"} | {r["health"] for r in groups[0]["rules"]}, {"unknown", "ok"})
        finally:
            program.terminate()
            program.wait(HANG_S)


if __name__ == "__main__":
    main()
