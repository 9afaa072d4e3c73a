""".github/workflows/ci.yml has only keys that GitHub knows, each with a value of its kind, and does what it is for: it runs
.ci/run on the Debian of scripts/bare-root, with the whole history, and may only read. Exit status 77: skipped, with the reason.
"""
import copy
import os
import re
import sys

from other_python import need

ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))

need("jsonschema", "yaml")
import jsonschema  # noqa: E402
import yaml  # noqa: E402

TEXT, NAME = {"type": "string", "minLength": 1}, "^[A-Za-z_][A-Za-z0-9_-]*$"
SCALARS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": ["string", "number", "boolean"]}}


def keys(properties, *required):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


# The part of the syntax that this workflow may use. A key that is not here is refused: add it, with its kind.
STEP = keys({"name": TEXT, "id": {"type": "string", "pattern": NAME}, "if": TEXT, "run": TEXT, "env": SCALARS,
             "uses": {"type": "string", "pattern": r"^[\w-]+/[\w-]+@v\d+$"}, "with": SCALARS,
             "timeout-minutes": {"type": "integer", "minimum": 1}})
STEP["oneOf"] = [{"required": ["run"], "not": {"required": ["with"]}}, {"required": ["uses"]}]
JOB = keys({"name": TEXT, "runs-on": {"enum": ["ubuntu-22.04", "ubuntu-24.04"]}, "env": SCALARS, "if": TEXT,
            "timeout-minutes": {"type": "integer", "minimum": 1, "maximum": 360},
            "container": keys({"image": TEXT, "options": TEXT, "env": SCALARS}, "image"),
            "steps": {"type": "array", "minItems": 1, "items": STEP}}, "runs-on", "steps", "timeout-minutes")
TIMES = {"type": "array", "minItems": 1, "items": keys({"cron": {"type": "string", "pattern": r"^(\S+ ){4}\S+$"}}, "cron")}
FILTER = {"type": ["object", "null"], "additionalProperties": False,
          "properties": {"branches": {"type": "array", "minItems": 1, "items": TEXT}}}
SCHEMA = keys({"name": TEXT, "on": keys({"push": FILTER, "pull_request": FILTER, "workflow_dispatch": {"type": "null"}, "schedule": TIMES}),
               "permissions": keys({"contents": {"enum": ["read", "none"]}}, "contents"),
               "concurrency": keys({"group": TEXT, "cancel-in-progress": {"type": "boolean"}}, "group"),
               "jobs": {"type": "object", "minProperties": 1, "additionalProperties": False, "patternProperties": {NAME: JOB}}},
              "name", "on", "permissions", "jobs")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def workflow():
    found = yaml.safe_load(read(".github", "workflows", "ci.yml"))
    if True in found:
        found["on"] = found.pop(True)  # YAML 1.1 reads "on" so
    return found


def faults(flow):
    return [f"{'/'.join(map(str, e.path))}: {e.message}" for e in jsonschema.Draft7Validator(SCHEMA).iter_errors(flow)]


def sees_faults(good):
    """Misspelt keys and values of another kind, one at a time."""
    def broken(change):
        flow = copy.deepcopy(good)
        change(flow, flow["jobs"]["all"], flow["jobs"]["all"]["steps"])
        return faults(flow)
    changes = [lambda flow, job, steps: flow.pop("on"),
               lambda flow, job, steps: flow["on"].update(pul_request=None),
               lambda flow, job, steps: flow["on"].update(schedule=[{"cron": "every week"}]),
               lambda flow, job, steps: flow["permissions"].update(contents="write"),
               lambda flow, job, steps: job.update({"runs_on": job.pop("runs-on")}),
               lambda flow, job, steps: job.update({"timeout-minutes": "two hours"}),
               lambda flow, job, steps: job["container"].update(option="--privileged"),
               lambda flow, job, steps: steps[0].update(uses="actions/checkout@v4"),
               lambda flow, job, steps: steps[1].update(uses="actions/checkout"),
               lambda flow, job, steps: steps[-1].pop("run")]
    return all(broken(change) for change in changes)


def main():
    flow = workflow()
    found = faults(flow)
    assert not found, "\n".join(found)
    assert sees_faults(flow), "a fault that was made is not seen"
    (job,) = flow["jobs"].values()
    assert [step["run"] for step in job["steps"] if ".ci/run" in step.get("run", "")] == ["bash .ci/run"], "it runs .ci/run once"
    assert "github.event_name == 'schedule'" in job["env"]["CURED_TEST_SEED"], "the weekly run alone draws other cases"
    assert "codename=bookworm" in read("scripts", "bare-root") and job["container"]["image"] == "debian:12", "it is the bare root's Debian"
    (checkout,) = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert checkout["with"] == {"fetch-depth": 0}, "tests look at old commits"
    (cache,) = [step["with"]["path"] for step in job["steps"] if step.get("uses", "").startswith("actions/cache@")]
    assert re.search(r'CCACHE_DIR="\$root/' + re.escape(cache) + '"', read(".ci", "run")), f"{cache} is not where .ci/run has its cache"
    print("the workflow has known keys only, and runs .ci/run on Debian 12")
    return 0


if __name__ == "__main__":
    sys.exit(main())
