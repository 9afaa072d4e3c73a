"""other_python: runs a test under another Python of this machine where this one lacks a module."""
import importlib.util
import os
import shutil
import sys


def need(*modules):
    """Returns where the modules are there. Else goes on as another Python: the one on PATH, then the system's; or skips."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if not missing:
        return
    tried = os.environ.get("CURED_TEST_PYTHONS", sys.executable).split(":")
    for other in (shutil.which("python3"), "/usr/bin/python3"):
        if other and other not in tried and os.path.exists(other):
            os.environ["CURED_TEST_PYTHONS"] = ":".join([*tried, other])
            os.execv(other, [other, *sys.argv])
    print("skipped: no Python here has %s" % ", ".join(missing))
    sys.exit(77)
