"""The man pages and completions that the build wrote. Pages: mandoc and man have no remarks, and every option that --help lists
stands there. Help: no line of any program's or command's has more than 80 columns. Ops: each has a sentence of its own, and an example that runs. Completions: bash sources them and completes as asked; zsh and fish read them where they are installed.

usage: test_manual.py pages|help|ops|completions      Exit status 77: skipped, with the reason."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

BIN = os.environ["CURED_TEST_BIN"]
PAGES = os.path.join(os.path.dirname(BIN), "manual", "pages")
PROGRAMS = {"cured": 8, "cured-client": 1, "cured-bench": 1}
if os.path.exists(os.path.join(BIN, "cured-mpi")):  # built where there is MPI
    PROGRAMS["cured-mpi"] = 1
QUIET_MPI = dict(os.environ, OMPI_MCA_btl="self", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", ASAN_OPTIONS="detect_leaks=0")
# What is typed, the last word unfinished, and what must be offered: words that must be there, words that must not.
CASES = [
    ("cured-client ", ["sum", "merge", "bit_xor", "help"], ["--json"]),
    ("cured-client me", ["merge", "mean"], ["sum"]),
    ("cured-client --c", ["--connect", "--count"], ["--dtype"]),
    ("cured-client merge --", ["--local", "--partial", "--ops"], ["--axis", "--dtype"]),
    ("cured-client --connect unix:s reduce --ax", ["--axis"], []),
    ("cured-client sum --dtype b", ["bool", "bf16"], ["f32"]),
    ("cured-client reduce --ops sum,m", ["sum,mean", "sum,min", "sum,max"], ["sum,sum"]),
    ("cured-client sum --kernel v7", ["v7_shuffle"], ["v0_baseline"]),
    ("cured-client sum here", ["here.npy"], ["there.npy"]),
    ("cured-client sum --dtype=f", ["--dtype=f16", "--dtype=f64"], ["--dtype=bf16"]),
    ("cured-client sum --dtype=", ["--dtype=f16", "--dtype=bool"], ["--dtype=sum"]),
    ("cured-client reduce --ops=sum,m", ["--ops=sum,mean"], ["--ops=sum,sum"]),
    ("cured-client sum --where=he", ["--where=here.npy"], ["--where=there.npy"]),
    ("cured-client --connect un", ["unix:"], ["tcp:"]),
    ("cured-client --connect unix:he", ["unix:here.npy"], ["unix:there.npy"]),
    ("cured-client --connect=unix:he", ["--connect=unix:here.npy"], ["--connect=unix:there.npy"]),
    ("cured-client --connect=unix:s merge --", ["--local"], ["--axis"]),
    ("cured-client --connect auto: he", ["help", "health"], ["here.npy"]),
    ("cured-client config ", ["reload", "show"], ["here.npy"]),
    ("cured-client config re", ["reload"], ["show"]),
    ("cured --log-level=d", ["--log-level=debug"], ["--log-level=info"]),
    ("cured-client merge --output the", ["there.npy"], ["here.npy", "table"]),
    ("cured-client sum --output t", ["table", "there.npy"], ["json", "here.npy"]),
    ("cured-client sum --output=", ["--output=table", "--output=json", "--output=here.npy"], ["--output=sum"]),
    ("cured-client sum --text --delimiter t", ["tab"], ["there.npy"]),
    ("cured-client token --may reduce,in", ["reduce,info"], ["reduce,stats", "info"]),
    ("cured-client token --may=", ["--may=regions", "--may=nothing"], ["--may=calls="]),
    ("cured-client token --limits ca", ["calls="], ["bytes="]),
    ("cured-client help me", ["merge", "mean"], ["here.npy"]),
    ("cured --log", ["--log-level"], ["--listen"]),
    ("cured --backend c", ["cpu", "cuda"], ["auto"]),
    ("cured --config he", ["here.npy"], ["there.npy"]),
    ("cured-bench l", ["lane", "load"], ["axis"]),
    ("cured-bench load --h", ["--help"], []),
    ("cured-mpi ", ["sum", "describe", "bench"], ["merge", "ping"]),
    ("cured-mpi bench --", ["--group", "--json"], ["--total", "--days", "--ops"]),
]


def options(program):
    said = subprocess.run([os.path.join(BIN, program), "--help"], capture_output=True, text=True, check=True,
                          env=QUIET_MPI).stdout
    return set(re.findall(r"^  (--[\w-]+)", said, flags=re.M))


def remarks(command):
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80"))
    return [line for line in (ran.stdout if command[0] == "mandoc" else ran.stderr).split("\n")
            if line and 'missing date, using ""' not in line]  # a page of a build has no date, so that two builds are equal


def check_pages():
    if not shutil.which("mandoc") or not shutil.which("man"):
        print("skipped: mandoc and man are not both installed")
        sys.exit(77)
    broken = os.path.join(PAGES, "..", "broken.1")
    with open(broken, "w", encoding="utf-8") as f:
        f.write(".TH BROKEN 1\n.XY z\n")
    assert remarks(["mandoc", "-Tlint", broken]), "mandoc would pass anything"
    for program, section in PROGRAMS.items():
        page = os.path.join(PAGES, f"{program}.{section}")
        for command in (["mandoc", "-Tlint", page], ["man", "--warnings", "-l", page]):
            found = remarks(command)
            assert not found, "\n".join(found)
        with open(page, encoding="utf-8") as f:
            text = f.read().replace("\\-", "-")
        different = (options(program) ^ set(re.findall(r"^\.B (--[\w-]+)", text, flags=re.M))) - {"--help", "--version"}
        assert not different, f"{page} and --help differ in {different}"
        print(f"{program}({section}): {len(text)} characters, {len(options(program))} options of --help")


def check_help():
    """Of each program, and of each command that its --help lists; of ops check_ops does so."""
    count = 0
    for program in PROGRAMS:
        said = {}
        for words in [()] + [(name,) for name in sorted(commands_of(program))]:
            ran = subprocess.run([os.path.join(BIN, program), *words, "--help"], capture_output=True, text=True, check=False, env=QUIET_MPI)
            if "this build has no CUDA" in ran.stderr or words == ("peer",):
                continue
            assert ran.returncode == 0 and ran.stdout, (program, words, ran)
            said[words] = ran.stdout
        for words, text in said.items():
            for line in text.split("\n"):
                assert len(line) <= 80, (program, words, len(line), line)
        assert len(said) > {"cured": 0, "cured-bench": 7, "cured-mpi": 3, "cured-client": 10}[program], (program, list(said))
        count += len(said)
    print(f"{count} texts of --help keep to 80 columns")


def commands_of(program):
    if program == "cured":
        return set()
    said = subprocess.run([os.path.join(BIN, program), "--help"], capture_output=True, text=True, check=True, env=QUIET_MPI).stdout
    return set(re.findall(r"^  ([a-z][\w-]*)", said, flags=re.M))


def help_of(program, op):
    """The sentence of help, what an example says of the op, and its commands."""
    said = subprocess.run([os.path.join(BIN, program), "help", op], capture_output=True, text=True, check=True, env=QUIET_MPI).stdout
    assert max(map(len, said.split("\n"))) <= 80, max(said.split("\n"), key=len)
    sentence, said_of = re.search(rf"^{op}: ((?:.|\n)*?)\.\n((?:Of .*\n)?)\nExamples", said, flags=re.M).groups()
    sentence = sentence.replace("\n", " ")
    return sentence, said_of.rstrip("\n"), re.findall(r"^    (\S.*)$", said.replace(" \\\n    ", " "), flags=re.M)


def check_ops():
    with open(os.path.join(PAGES, "cured-client.1"), encoding="utf-8") as f:
        page = f.read().replace("\\-", "-").replace("\\e", "\\").replace("\n", " ")
    ops = re.search(r"line\s+for each of several:\n((?: {26}.*\n)+)",
                    subprocess.run([os.path.join(BIN, "cured-client"), "help"], capture_output=True, text=True, check=True).stdout).group(1).split()
    assert {"sum", "bit_xor"} <= set(ops) and len(ops) > 20, ops
    sentences = set()
    for op in ops:
        sentence, of, commands = help_of("cured-client", op)
        sentences.add(sentence)
        assert f".B {op} {sentence}. {of} " in page, f"the page does not say of {op}: {sentence}. {of}"
        answer = re.fullmatch(r"Of .+ it is (\S+)\.", of).group(1)
        with tempfile.TemporaryDirectory() as folder:
            printed = subprocess.run(["sh", "-c", commands[0]], capture_output=True, text=True, check=False, cwd=folder,
                                     env=dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", CURED_CONNECT="embedded:"))
        assert (printed.returncode, printed.stdout) == (0, answer + "\n"), (commands[0], printed)
        assert len(commands) > 1 and all(f"cured-client {op} " in command for command in commands), commands
        if "cured-mpi" in PROGRAMS:
            with_ranks, of_ranks, commands = help_of("cured-mpi", op)
            assert (with_ranks, of_ranks) == (sentence, of), with_ranks
            assert commands and all(f"cured-mpi {op} " in command for command in commands), commands
    assert len(sentences) == len(ops), "two ops have the same sentence"
    print(f"{len(ops)} ops: each has a sentence and an example")


def complete(line, folder, cut):
    """What is offered for the last word. cut: as bash comes, it cuts words at = and :, and an answer is what goes behind the last of them."""
    function = "_" + line.split(" ")[0].replace("-", "_")
    words = [piece for word in line.split(" ") for piece in (re.findall("[:=]|[^:=]+", word) if cut else [word]) or [""]]
    script = (f"source {PAGES}/{words[0]}.bash && complete -p {words[0]} >/dev/null && cd {folder} && COMP_CWORD={len(words) - 1} && "
              f"COMP_LINE='{line}' && COMP_WORDS=({' '.join(word or repr('') for word in words)}) && {function} 2>/dev/null && "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    ran = subprocess.run(["bash", "-uc", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (line, ran.stderr)
    return ran.stdout.split("\n")


def check_completions():
    folder = os.path.join(PAGES, "..", "files")
    os.makedirs(folder, exist_ok=True)
    for name in ("here.npy", "there.npy"):
        with open(os.path.join(folder, name), "w", encoding="utf-8"):
            pass
    for line, wanted, barred in CASES:
        for cut in (False, True):
            offered = complete(line, folder, cut)
            kept = re.match(".*[:=]|", line.split(" ")[-1]).group() if cut else ""
            assert {word[len(kept):] for word in wanted} <= set(offered), (line, cut, offered)
            assert not {word[len(kept):] for word in barred} & set(offered), (line, cut, offered)
    print(f"bash: {len(CASES)} lines completed")
    for shell, name in (("zsh", "_{}"), ("fish", "{}.fish")):
        if not shutil.which(shell):
            print(f"{shell} is not here: its completions are not read")
            continue
        for program in PROGRAMS:
            subprocess.run([shell, "-n", os.path.join(PAGES, name.format(program))], check=True)
        print(f"{shell}: read")


if __name__ == "__main__":
    {"pages": check_pages, "help": check_help, "ops": check_ops, "completions": check_completions}[sys.argv[1]]()
