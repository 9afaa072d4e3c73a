"""Runs what the documents show. Every fenced block of shell commands in a tracked .md file has a marker before it:

  <!-- doctest: run -->           run in this document's session (one bash in an empty folder, a daemon at $CURED_CONNECT, the
                                  built programs on PATH, libcured installed where pkg-config finds it)
  <!-- doctest: file NAME -->     (any language) written to NAME in that folder
  <!-- doctest: by FILE -->       every line is run by FILE (a script or another test), where it must be found word for word
  <!-- doctest: setup ... -->     run in the session, not shown to the reader
  <!-- doctest: fresh-root -->    run by scripts/fresh-root, which takes it from this document
  <!-- doctest: not run, WHY -->  said so in this test's output

In a `console` block, lines that begin with "$ " are commands and the others their output; "..." stands for any text.
Elsewhere every line is a command and only the exit status counts. Links to files of the tree must lead somewhere.

usage: test_docs.py [DOCUMENT]...   (all tracked ones when none is named); CURED_TEST_BUILD: the build to install from
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
BIN = os.environ.get("CURED_TEST_BIN", "")
SHELL_LANGUAGES = {"sh", "bash", "shell", "console"}
END = "--doctest-end--"


class Failure(Exception):
    pass


def documents():
    try:
        names = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True,
                               check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):  # no git, or a tree without its history
        names = []
        for folder, folders, files in os.walk(ROOT):
            folders[:] = [f for f in folders if f not in ("build", ".git", ".bundle")]
            names += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files if f.endswith(".md")]
    return sorted(names)


def parts(text):
    """(line, marker or None, language or None, body) of every fenced block and every setup comment, in order."""
    marker, lines, i = None, text.split("\n"), 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("<!-- doctest: setup"):
            start = i
            while not lines[i].endswith("-->"):
                i += 1
            yield start + 1, "setup", "sh", "\n".join(lines[start + 1:i])
        elif line.startswith("<!-- doctest:"):
            marker = line[len("<!-- doctest:"):].replace("-->", "").strip()
        elif line.startswith("```"):
            start, language = i, line[3:].strip()
            i += 1
            while lines[i] != "```":
                i += 1
            yield start + 1, marker, language, "\n".join(lines[start + 1:i])
            marker = None
        elif line.strip() and marker is not None:
            raise Failure(f"line {i + 1}: a doctest marker must stand right before its block")
        i += 1


def commands(language, body):
    """(command, expected output or None) pairs."""
    if language != "console":
        return [(f"set -e\n{body}\nset +e", None)]  # a command that fails ends the shell, which is noticed
    found = []
    for line in body.split("\n"):
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif not found:
            raise Failure("a console block begins with \"$ \"")
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(output)) for command, output in found]


def matches(expected, actual):
    pattern = ".*".join(re.escape(piece) for piece in expected.split("..."))
    return re.fullmatch(pattern, actual, flags=re.S) is not None


class Session:
    """One bash, a daemon and a folder, for one document."""

    def __init__(self, prefix):
        self.folder = tempfile.mkdtemp(prefix="cured-docs-")
        address = f"unix:{self.folder}/.cured.sock"
        environment = dict(os.environ, CURED_CONNECT=address, PATH=BIN + os.pathsep + os.environ["PATH"],
                           PKG_CONFIG_PATH=os.path.join(prefix, "lib", "pkgconfig"), CMAKE_PREFIX_PATH=prefix,
                           LD_LIBRARY_PATH=os.path.join(prefix, "lib"), HOME=self.folder, CURED_TEST_PREFIX=prefix)
        if os.environ.get("CURED_TEST_SANITIZE"):
            # The documents show plain commands; a library built with sanitizers needs them at its user's link, too.
            wrapper = os.path.join(self.folder, ".bin")
            os.mkdir(wrapper)
            with open(os.path.join(wrapper, "cc"), "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\nexec {shutil.which('cc')} -fsanitize={os.environ['CURED_TEST_SANITIZE']} \"$@\"\n")
            os.chmod(os.path.join(wrapper, "cc"), 0o755)
            environment["PATH"] = wrapper + os.pathsep + environment["PATH"]
        self.log = open(os.path.join(self.folder, ".log"), "w+", encoding="utf-8")
        self.daemon = subprocess.Popen([os.path.join(BIN, "cured"), "--listen", address], stderr=self.log,
                                       env=environment)
        self.bash = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True, cwd=self.folder, env=environment)
        self.run("set -o pipefail; for i in $(seq 100); do cured-client ping >/dev/null 2>&1 && break; sleep 0.1; done; "
                 "cured-client ping >/dev/null")

    def run(self, command):
        """Runs command in the session's bash; its output (standard error too), or Failure."""
        self.bash.stdin.write("{\n" + command + "\n} </dev/null\n" + f"printf '\\n{END}%d\\n' $?\n")
        self.bash.stdin.flush()
        output = []
        for line in self.bash.stdout:
            if line.startswith(END):
                text = "".join(output)[:-1]
                if line.strip() != END + "0":
                    raise Failure(f"`{command}` ended with status {line.strip()[len(END):]}:\n{text}")
                return text.rstrip("\n")
            output.append(line)
        raise Failure(f"`{command}` ended the shell:\n{''.join(output)}")

    def close(self):
        self.bash.stdin.close()
        self.bash.wait(30)
        self.daemon.terminate()
        status = self.daemon.wait(60)
        self.log.close()
        shutil.rmtree(self.folder)
        if status != 0:
            raise Failure(f"the daemon ended with status {status}")


def check_by(body, file):
    path = os.path.join(ROOT, file)
    if not os.path.isfile(path):
        raise Failure(f"there is no {file}")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for line in body.split("\n"):
        line = re.sub(r"^(\$ |\./|sudo )+", "", line.split(" #")[0].strip())
        if line and line not in text:
            raise Failure(f"`{line}` is not in {file}")


def check_links(path, text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), target.split("#")[0])):
            raise Failure(f"the link to {target} leads nowhere")


def check_document(path, prefix):
    """Runs one document; how many blocks were run here."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    check_links(path, text)
    session, ran = None, 0
    try:
        for line, marker, language, body in parts(text):
            try:
                if marker is None:
                    if language in SHELL_LANGUAGES:
                        raise Failure("shell commands without a doctest marker")
                    continue
                word, _, rest = marker.partition(" ")
                if word == "by":
                    check_by(body, rest)
                    continue
                if word == "fresh-root":
                    check_by(path, "scripts/fresh-root")
                    continue
                if marker.startswith("not run, "):
                    print(f"{path}:{line}: {marker}")
                    continue
                session = session or Session(prefix)
                if word == "file":
                    with open(os.path.join(session.folder, rest), "w", encoding="utf-8") as f:
                        f.write(body + "\n")
                elif word in ("run", "setup"):
                    for command, expected in commands(language, body):
                        actual = session.run(command)
                        if expected is not None and not matches(expected, actual):
                            raise Failure(f"`{command}`: expected\n{expected}\nbut it printed\n{actual}")
                    ran += 1
                else:
                    raise Failure(f"unknown marker \"{marker}\"")
            except Failure as failure:
                raise Failure(f"line {line}: {failure}") from None
    finally:
        if session:
            session.close()
    return ran


def main():
    names = [os.path.relpath(os.path.abspath(n), ROOT) for n in sys.argv[1:]] or documents()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="cured-prefix-") as prefix:
        subprocess.run(["cmake", "--install", os.path.dirname(BIN), "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        for name in names:
            try:
                print(f"{name}: {check_document(name, prefix)} blocks run")
            except Failure as failure:
                failed += 1
                print(f"{name}: {failure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
