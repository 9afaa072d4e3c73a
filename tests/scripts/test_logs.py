"""Every log of a measurement that a page cites can be read: it lies in docs/bench, or the page says that it is in git, and how to
print it. Every file of docs/bench is cited, and they are few.

usage: test_logs.py      (no arguments: the tree it lies in)
"""
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
LAST = "3c5863e"  # the last commit that has all logs
MOST_LOGS, MOST_LINES = 16, 500  # files of docs/bench; lines of BENCHMARKS*.md
SHOWN = f"git show {LAST}:docs/bench/NAME"


def pages():
    folder = os.path.join(ROOT, "docs")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".md"):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                yield name, f.read()


def in_git():
    """The logs at LAST; None where this tree has no such history."""
    found = subprocess.run(["git", "-C", ROOT, "ls-tree", "--name-only", LAST, "docs/bench/"], capture_output=True, text=True)
    return {os.path.basename(line) for line in found.stdout.split()} if found.returncode == 0 else None


def faults(texts, kept, old):
    """What is wrong, a line each."""
    cited = set()
    for page, text in texts:
        linked = set(re.findall(r"\]\(bench/([\w.-]+)\)", text))
        cited |= linked
        for name in sorted(linked - kept):
            yield f"{page}: links bench/{name}, which is not there"
        named = set(re.findall(r"`([\w.-]+\.(?:txt|json|log))` in git|log in git: `([\w.-]+)`", text))
        for name in sorted({first or second for first, second in named}):
            if old is not None and name not in old:
                yield f"{page}: {name} is not in git at {LAST}"
            if SHOWN not in re.sub(r"\s+", " ", text):
                yield f"{page}: cites {name} in git, and does not say how to print it: {SHOWN}"
                break
        for name in sorted((old or set()) - kept):
            if f"bench/{name}" in text:
                yield f"{page}: speaks of bench/{name} as if it were there"
        lines = text.count("\n")
        if page.startswith("BENCHMARKS") and lines > MOST_LINES:
            yield f"{page}: {lines} lines, the limit is {MOST_LINES}"
    for name in sorted(kept - cited):
        yield f"docs/bench/{name}: no page cites it"
    if len(kept) > MOST_LOGS:
        yield f"docs/bench: {len(kept)} files, the limit is {MOST_LOGS}: put a log into a commit of its own, and cite that"


def sees_faults():
    """This test can fail: each of these is one fault."""
    good = f"[log](bench/a.txt), `b.txt` in git, `{SHOWN}`"
    cases = [([("A.md", good)], {"a.txt"}, 0),
             ([("A.md", good + " [log](bench/c.txt)")], {"a.txt"}, 1),
             ([("A.md", good + " (log in git: `c.txt`)")], {"a.txt"}, 1),
             ([("A.md", good + " `bench/b.txt`")], {"a.txt"}, 1),
             ([("A.md", "[log](bench/a.txt), `b.txt` in git")], {"a.txt"}, 1),
             ([("A.md", good)], {"a.txt", "d.txt"}, 1),
             ([("BENCHMARKS.md", good + "\n" * (MOST_LINES + 1))], {"a.txt"}, 1)]
    return all(len(list(faults(texts, kept, {"a.txt", "b.txt"}))) == expected for texts, kept, expected in cases)


def main():
    if not sees_faults():
        print("test_logs: faults that were made are not seen, or not once")
        return 1
    found = list(faults(list(pages()), set(os.listdir(os.path.join(ROOT, "docs", "bench"))), in_git()))
    print("\n".join(found) if found else "every log that a page cites can be read")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
