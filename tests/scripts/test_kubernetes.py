"""deploy/kubernetes against the schemas of Kubernetes and of the Prometheus operator (npm packages, checked by their digests), with
fields that they do not know refused; and against what the files promise: the image's user, the socket, time to drain, probes, and a
PodMonitor and a policy that find the daemons' port. Exit status 77: skipped, with the reason."""
import base64
import copy
import glob
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

from other_python import need

need("jsonschema", "yaml")
import jsonschema
import yaml

PACKAGES = {
    "kubernetes-models@3.1.0":
        "kpTwPQ2wOx+zVqQhyqMnruad5gjt4MtDJAD3qdqL0qWnHV/pvl5lL/fv2ZHHKh3gF92kZsH+Gm76dfvuxwGxzw==",
    "@kubernetes-models/apimachinery@0.2.0":
        "mSoBNn6ezZW9xJcLEZi41UbxQ/Z2NDyWLdY95wcYEoh5Cz6aBMhdzc3dzf89u6ZSZLcjuu5Kinr6rKampxXbjg==",
    "@kubernetes-models/prometheus-operator@1.6.3":
        "K5OTYnqWB40puLsntlQjvMz5viH0NNorPBjnB8CRdq1k/u7aIXOH+yk5wzxX0FZQeo2qy3cETVUjjYkEF8IOcQ==",
}
KINDS = {"DaemonSet": "io.k8s.api.apps.v1.DaemonSet", "Pod": "io.k8s.api.core.v1.Pod", "PodMonitor": "monitoring.coreos.com.v1.PodMonitor",
         "NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy"}
ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))


def fetch(package, digest):
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, timeout=120,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"skipped: {package} cannot be fetched: {error}")
            sys.exit(77)
        (name,) = glob.glob(os.path.join(folder, "*.tgz"))
        with open(name, "rb") as f:
            data = f.read()
    found = base64.b64encode(hashlib.sha512(data).digest()).decode()
    assert found == digest, f"{package} is not the file it was: {found}"
    return data


def schemas():
    """Name → schema. Every module of the packages has one, as JSON, and registers it under its name."""
    found = {}
    for package, digest in PACKAGES.items():
        with tarfile.open(fileobj=io.BytesIO(fetch(package, digest))) as archive:
            for member in archive:
                if member.name.endswith(".js"):
                    text = archive.extractfile(member).read().decode()
                    schema = re.search(r"^const schema = (\{.*?^\});", text, flags=re.S | re.M)
                    name = (re.search(r'register\)\("([^"]+)", schema', text) or re.search(r'const schemaId = "([^"]+)"', text))
                    if schema and name:
                        found[name.group(1)] = json.loads(schema.group(1))
    return found


def strict(known, part, inside=()):
    """The schema with what it refers to put in place, and without room for other fields."""
    if isinstance(part, list):
        return [strict(known, p, inside) for p in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        name = part["$ref"].rstrip("#")
        return {} if name in inside else strict(known, known[name], (*inside, name))
    part = {key: strict(known, value, inside) for key, value in part.items()}
    if isinstance(part.get("properties"), dict) and part.get("type", "object") == "object":
        part.setdefault("additionalProperties", False)
    return part


def leaves(error):
    return [leaf for e in error.context for leaf in leaves(e)] if error.context else [error]


def faults(validator, document):
    return [f"{'/'.join(map(str, leaf.absolute_path))}: {leaf.message}" for e in validator.iter_errors(document) for leaf in leaves(e)
            if "is not of type 'null'" not in leaf.message]


def documents():
    for path in sorted(glob.glob(os.path.join(ROOT, "deploy", "kubernetes", "*.yaml"))):
        with open(path, encoding="utf-8") as f:
            for document in yaml.safe_load_all(f):
                yield os.path.basename(path), document


def check_daemon(name, daemon, options):
    pod = daemon["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert daemon["spec"]["selector"]["matchLabels"] == daemon["spec"]["template"]["metadata"]["labels"], name
    assert pod["terminationGracePeriodSeconds"] * 1000 > options["drain_timeout_ms"], name
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["runAsGroup"] == 10001, name
    assert container["securityContext"]["readOnlyRootFilesystem"] and not pod.get("hostPID") and not pod.get("hostIPC"), name
    assert container["volumeMounts"] == pod["initContainers"][0]["volumeMounts"], name
    assert container["volumeMounts"][0]["mountPath"] == pod["volumes"][0]["hostPath"]["path"] == "/run/cured", name
    for variable in container["env"]:
        assert variable["name"].removeprefix("CURED_").lower() in options, f"{variable['name']} is no option of the daemon"
    start = container["startupProbe"]
    assert start["periodSeconds"] * start["failureThreshold"] * 1000 > options["gpu_start_timeout_ms"], name
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["exec"]["command"][0] == "cured-client", name
    assert ("nvidia.com/gpu" in container["resources"]["limits"]) == (name == "gpu.yaml"), name
    (port,) = container["ports"]
    assert port["name"] == "admin" and {"name": "CURED_ADMIN", "value": f"tcp:0.0.0.0:{port['containerPort']}"} in container["env"], name


def main():
    known = schemas()
    validators = {kind: jsonschema.Draft7Validator(strict(known, known[name])) for kind, name in KINDS.items()}
    found = {}
    for name, document in documents():
        wrong = faults(validators[document["kind"]], document)
        assert not wrong, f"{name}: " + "\n".join(wrong)
        found[name, document["kind"]] = document
    assert set(found) == {("cpu.yaml", "DaemonSet"), ("gpu.yaml", "DaemonSet"), ("client.yaml", "Pod"), ("podmonitor.yaml", "PodMonitor"),
                          ("podmonitor.yaml", "NetworkPolicy")}, set(found)
    broken = copy.deepcopy(found["gpu.yaml", "DaemonSet"])
    broken["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    assert faults(validators["DaemonSet"], broken), "the schema lets a misspelt key pass"
    broken = copy.deepcopy(found["podmonitor.yaml", "PodMonitor"])
    broken["spec"]["podMetricsEndpoints"][0]["intervall"] = "30s"
    assert faults(validators["PodMonitor"], broken), "the schema lets a misspelt key pass"

    with open(os.path.join(ROOT, "config", "cured.json"), encoding="utf-8") as f:
        options = json.load(f)
    labels = found["podmonitor.yaml", "PodMonitor"]["spec"]["selector"]["matchLabels"].items()
    for name in ("cpu.yaml", "gpu.yaml"):
        daemon = found[name, "DaemonSet"]
        check_daemon(name, daemon, options)
        assert labels <= daemon["metadata"]["labels"].items(), name
    assert found["podmonitor.yaml", "PodMonitor"]["spec"]["podMetricsEndpoints"][0]["port"] == "admin"
    client = found["client.yaml", "Pod"]["spec"]
    assert client["securityContext"]["supplementalGroups"] == [10001] and client["volumes"][0]["hostPath"]["path"] == "/run/cured"
    (near,) = client["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert near["topologyKey"] == "kubernetes.io/hostname", near
    for name in ("cpu.yaml", "gpu.yaml"):
        pod = found[name, "DaemonSet"]["spec"]["template"]["metadata"]["labels"]
        assert near["labelSelector"]["matchLabels"].items() <= pod.items(), f"{name}: client.yaml may land on a node without it"
    assert not near["labelSelector"]["matchLabels"].items() <= found["client.yaml", "Pod"]["metadata"]["labels"].items()
    print(f"{len(found)} objects are valid: {', '.join(kind for _, kind in found)}")


if __name__ == "__main__":
    main()
