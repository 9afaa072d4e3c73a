"""Runs what the documents show. Every fenced block of shell commands in a tracked .md file has a marker before it:

  <!-- doctest: run -->           run in this document's session: one bash, which begins in the folder of the source
  <!-- doctest: run start -->     the same; in README.md: other documents go on in the shell that ran this
  <!-- doctest: run sample -->    the same; in README.md: other documents find the file that this makes
  <!-- doctest: run where TEST --> run where the shell command TEST succeeds; elsewhere this test's output says what is not here.
                                  Where CI is set it must succeed
  <!-- doctest: try where TEST -->  the same, of what scripts/bootstrap does not install: CI may lack it, too
  <!-- doctest: file NAME -->     (any language) written to NAME in the folder where that bash is
  <!-- doctest: by FILE -->       every line is run by FILE (a script or another test), where it must be found word for word
  <!-- doctest: fresh-root -->    run by scripts/fresh-root alone: it installs packages or takes minutes
  <!-- doctest: not run, WHY -->  said so in this test's output

Nothing is run that the reader does not see: there is no marker for a hidden set-up. In a `console` block, lines that begin
with "$ " are commands, those with "> " go on with one, and the others are their output; "..." stands for any text. Elsewhere
every line is a command and only the exit status counts. Links to files of the tree, and to headings in
them, must lead somewhere.

usage: test_docs.py [DOCUMENT]...               each document by itself (all tracked ones when none is named)
       test_docs.py --in-root DIR DOCUMENT...   one after the other in one shell, of the user newcomer in /cured of the root
                                                folder DIR, with nothing prepared: what scripts/fresh-root does

Without --in-root a session has a folder in place of the source, with the examples, proto, the package for Node and with the build
under test as build/quickstart, and libcured installed where compilers look.
"""
import os
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.environ.get("CURED_TEST_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..")))
BIN = os.environ.get("CURED_TEST_BIN", "")
SHELL_LANGUAGES = {"sh", "bash", "shell", "console"}
END = "--doctest-end--"
WHERE = re.compile("(run|try) where (.*)")
HANG_S = 200  # of one command; it only catches hangs
# The shell of a user without rights but sudo, as after a login: with no more variables than these, and what draws random cases.
SEED = "CURED_TEST_SEED=%d " % int(os.environ["CURED_TEST_SEED"]) if os.environ.get("CURED_TEST_SEED") else ""
LOGIN = ("setpriv --reuid newcomer --regid newcomer --init-groups env -i HOME=/home/newcomer USER=newcomer LOGNAME=newcomer "
         "SHELL=/bin/bash PATH=/usr/local/bin:/usr/bin:/bin TERM=dumb " + SEED + "bash")
START = "README.md#start-make-a-sample-ask"


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
    """(line, marker or None, language or None, body) of every fenced block, in order."""
    marker, lines, i = None, text.split("\n"), 0
    while i < len(lines):
        line = lines[i]
        if line.startswith("<!-- doctest:"):
            if not line.endswith("-->"):
                raise Failure(f"line {i + 1}: a marker is one line: commands that the reader does not see are not run")
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
            found.append([line[2:], []])
        elif not found:
            raise Failure("a console block begins with \"$ \"")
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(output)) for command, output in found]


def matches(expected, actual):
    pattern = ".*".join(re.escape(piece) for piece in expected.split("..."))
    return re.fullmatch(pattern, actual, flags=re.S) is not None


def readme_block(marker, what):
    """The block of README.md with this marker."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        found = [body for _, at, _, body in parts(f.read()) if at == marker]
    if len(found) != 1:
        raise Failure(f"README.md has no one block that {what}")
    return found[0]


def start_block():
    """What README.md shows for starting a daemon, and for making a sample: in a shell of its own, which leaves this folder."""
    sample = readme_block("run sample", "makes a sample")
    return readme_block("run start", "starts a daemon") + f"\n(\n{sample}\n)"


class Session:
    """One bash. Without in_root: for one document, with a folder and an installed libcured."""

    def __init__(self, prefix=None, in_root=None):
        self.folder, self.ended = None, False
        command, environment, folder = ["bash"], dict(os.environ), None
        if in_root:
            command = [os.path.join(ROOT, "scripts", "in-root"), in_root, "cd /cured && exec " + LOGIN]
            folder = os.path.join(in_root, "cured")
        else:
            self.folder = folder = tempfile.mkdtemp(prefix="cured-docs-")
            os.makedirs(os.path.join(folder, "build"))
            for name in ("examples", "proto", os.path.join("client", "node")):
                shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name))
            for name in ("LICENSE", "NOTICE"):  # the package has them
                shutil.copy(os.path.join(ROOT, name), folder)
            os.symlink(os.path.dirname(BIN), os.path.join(folder, "build", "quickstart"))
            environment.update(PKG_CONFIG_PATH=os.path.join(prefix, "lib", "pkgconfig"), CMAKE_PREFIX_PATH=prefix,
                               PATH=os.path.join(prefix, "bin") + os.pathsep + os.environ["PATH"],
                               LD_LIBRARY_PATH=os.path.join(prefix, "lib"), HOME=folder)
            if os.environ.get("CURED_TEST_SANITIZE"):
                self.sanitize(environment)
        self.hang_s = 3600 if in_root else HANG_S  # there packages are installed and all is built
        self.top = "/cured" if in_root else folder
        self.place = folder
        self.bash = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     text=True, cwd=folder, env=environment, start_new_session=True)

    def sanitize(self, environment):
        """The documents show plain commands; a library built with sanitizers needs them at its user's link, too."""
        wrapper = os.path.join(self.folder, ".bin")
        os.mkdir(wrapper)
        flag = f"-fsanitize={os.environ['CURED_TEST_SANITIZE']}"
        with open(os.path.join(wrapper, "cc"), "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nexec {shutil.which('cc')} {flag} \"$@\"\n")
        os.chmod(os.path.join(wrapper, "cc"), 0o755)
        environment["PATH"] = wrapper + os.pathsep + environment["PATH"]
        environment["CFLAGS"] = flag

    def write(self, name, text):
        """The file that a document shows, where the shell is."""
        here = self.run("pwd")
        inside = os.path.join(self.place, os.path.relpath(here, self.top))
        with open(os.path.join(inside, name), "w", encoding="utf-8") as f:
            f.write(text)

    def run(self, command):
        """Runs command in the session's bash; its output (standard error too), or Failure."""
        signal.signal(signal.SIGALRM, lambda *_: self.give_up(command))
        signal.alarm(self.hang_s)
        try:
            return self.answer(command)
        finally:
            signal.alarm(0)

    def give_up(self, command):
        self.ended = True
        os.killpg(self.bash.pid, signal.SIGKILL)
        raise Failure(f"`{command}` does not end within {self.hang_s} s")

    def answer(self, command):
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
        self.ended = True
        raise Failure(f"`{command}` ended the shell:\n{''.join(output)}")

    def close(self):
        """Ends the shell, and the daemon that its user would leave running; says when that one ended badly."""
        left = ""  # of a shell that a command has ended, which is said already
        try:
            if not self.ended:
                left = self.run('for job in $(jobs -p); do kill $job; wait $job || echo "a daemon ended with status $?"; done')
            self.bash.stdin.close()
            self.bash.wait(60)
        finally:
            try:
                os.killpg(self.bash.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.bash.wait()
            if self.folder:
                shutil.rmtree(self.folder)
        if "ended with status" in left:
            raise Failure(left)


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


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


def anchors(text):
    """The names of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", without_code(text), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(path, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file, page = os.path.join(ROOT, os.path.dirname(path), name), text
        if name and not os.path.exists(file):
            raise Failure(f"the link to {target} leads nowhere")
        if anchor and (not name or name.endswith(".md")):
            if name:
                with open(file, encoding="utf-8") as f:
                    page = f.read()
            if anchor not in anchors(page):
                raise Failure(f"the link to {target} leads to no heading")


def lacks(kind, test):
    """Whether what a block needs is not here; of "run" that is a failure where CI is set."""
    if subprocess.run(["bash", "-c", f"set -e; {test}"], capture_output=True, check=False).returncode == 0:
        return False
    if kind == "run" and os.environ.get("CI"):
        raise Failure(f"where CI is set this must run, but it fails: {test}")
    return True


def run_block(session, marker, language, body):
    """One block of a marker that runs something here; whether it did."""
    word, _, rest = marker.partition(" ")
    if word == "file":
        session.write(rest, body + "\n")
        return False
    for command, expected in commands(language, body):
        begun = time.monotonic()
        actual = session.run(command)
        if expected is not None and not matches(expected, actual):
            raise Failure(f"`{command}`: expected\n{expected}\nbut it printed\n{actual}")
        if marker == "fresh-root":
            print(f"{body}\n({time.monotonic() - begun:.0f} s)", flush=True)
    return True


def check_document(path, session_of, whole):
    """Runs one document in the session that session_of() gives; how many blocks were run here. whole: fresh-root's, too."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    check_links(path, text)
    ran = 0
    for line, marker, language, body in parts(text):
        try:
            if marker is None:
                if language in SHELL_LANGUAGES:
                    raise Failure("shell commands without a doctest marker")
                continue
            word, _, rest = marker.partition(" ")
            if word == "by":
                check_by(body, rest)
            elif marker.startswith("not run, "):
                print(f"{path}:{line}: {marker}")
            elif marker == "fresh-root" and not whole:
                check_by(path, "scripts/fresh-root")
            elif (where := WHERE.match(marker)) and lacks(*where.groups()):
                print(f"skipped: {path}:{line}: not all of it is here: {where[2]}")
            elif word == "file" or where or marker in ("run", "run start", "run sample", "fresh-root"):
                if path != "README.md" and START not in text:
                    raise Failure(f"a document with commands says where they begin: a link to {START}")
                ran += run_block(session_of(), marker, language, body)
            else:
                raise Failure(f"unknown marker \"{marker}\"")
        except Failure as failure:
            raise Failure(f"line {line}: {failure}") from None
    return ran


def check_alone(path, prefix):
    """One document in a session of its own, which begins as README.md's does."""
    session = None

    def begun():
        nonlocal session
        if session is None:
            session = Session(prefix)
            if path != "README.md":
                session.run(start_block())
        return session

    try:
        return check_document(path, begun, False)
    finally:
        if session:
            session.close()


def check_in_root(folder, names):
    """The documents one after the other in one shell; each begins in the folder of the source."""
    session = Session(in_root=os.path.abspath(folder))
    try:
        for name in names:
            session.run("cd /cured")
            print(f"{name}: {check_document(name, lambda: session, True)} blocks run", flush=True)
    finally:
        session.close()


def main():
    if sys.argv[1:2] == ["--in-root"]:
        try:
            check_in_root(sys.argv[2], sys.argv[3:])
        except Failure as failure:
            print(f"in {sys.argv[2]}: {failure}", file=sys.stderr)
            return 1
        return 0
    names = [os.path.relpath(os.path.join(ROOT, n), ROOT) for n in sys.argv[1:]] or documents()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="cured-prefix-") as prefix:
        subprocess.run(["cmake", "--install", os.path.dirname(BIN), "--prefix", prefix], check=True,
                       stdout=subprocess.DEVNULL)
        for name in names:
            try:
                print(f"{name}: {check_alone(name, prefix)} blocks run")
            except Failure as failure:
                failed += 1
                print(f"{name}: {failure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
