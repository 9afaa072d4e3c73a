"""README's first screen is true: docs/answers.svg is what scripts/draw-answers draws here, and the lines that README shows of
the quickstart are what cured-client prints of the sample.
"""
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
CLIENT = os.path.join(os.environ.get("CURED_TEST_BIN", os.path.join(ROOT, "build", "release", "bin")), "cured-client")

try:
    import numpy
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

SCRIPT = os.path.join(ROOT, "scripts", "draw-answers")
loader = importlib.machinery.SourceFileLoader("draw_answers", SCRIPT)
draw = importlib.util.module_from_spec(importlib.util.spec_from_loader("draw_answers", loader))
sys.dont_write_bytecode = True
loader.exec_module(draw)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def picture():
    """None, or what is wrong with the picture."""
    answers, true = draw.rows(CLIENT)
    if answers[0][1] != true:
        return f"cured answers {answers[0][1]}, and the true sum is {true}"
    if any(answer == true for _, answer in answers[1:]):
        return "NumPy answers right, so the picture compares nothing"
    kept, drawn = read("docs", "answers.svg"), draw.picture(answers, true)
    version = ".".join(numpy.__version__.split(".")[:2])
    kept = re.sub(r"NumPy \d+\.\d+", f"NumPy {version}", kept)
    return None if kept == drawn else f"docs/answers.svg is not what scripts/draw-answers draws:\n{drawn}"


def lines():
    """None, or what is wrong with the lines of the quickstart."""
    shown = re.search(r"```text\n== Asking\n(.*?)```", read("README.md"), flags=re.S)
    if not shown:
        return "README.md shows no lines of the quickstart"
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "sample.bin"), "wb") as file:
            file.write(draw.SAMPLE)
        printed = ""
        for command in ("sum", "describe"):
            printed += f"$ cured-client {command} sample.bin\n"
            printed += subprocess.run([CLIENT, command, "sample.bin", "--connect", "embedded:"], cwd=folder, check=True,
                                      capture_output=True, text=True).stdout
    if printed != shown.group(1):
        return f"README.md shows of the quickstart:\n{shown.group(1)}cured-client prints:\n{printed}"
    for line in re.findall(r"^\$ .*$", printed, flags=re.M):
        if f"echo '{line}'" not in read("scripts", "quickstart"):
            return f"scripts/quickstart does not print {line!r}"
    return None


def main():
    found = [fault for fault in (picture(), lines()) if fault]
    print("\n".join(found) if found else "the first screen of README is true")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
