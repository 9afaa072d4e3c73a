"""What the property runs share: cases drawn by number, batches of them sent through a driver, and what failed, with the line that
replays it. A run is a module with
    BATCH               how many cases go to one driver process
    make_case(seed, k)  the case of that number
    pack_case(case)     its bytes for the driver
    check(case, lines)  the complaints about the driver's answer; None: the driver refused it as not implemented
    describe(case)      one line for people
"""

import argparse
import multiprocessing
import os
import subprocess
import sys

EMULATOR = os.environ.get("CURED_TEST_EMULATOR", "").split()  # what runs a driver for another machine
SHOWN = 256  # bytes, or members of a list, of a case that is replayed

def run_batch(job):
    module, driver, seed, first, count = job
    run = sys.modules[module]
    cases = [run.make_case(seed, first + i) for i in range(count)]
    done = subprocess.run(EMULATOR + [driver], input=b"".join(run.pack_case(c) for c in cases), stdout=subprocess.PIPE)
    answers = done.stdout.decode().split(".\n")
    if done.returncode != 0 or len(answers) != count + 1:
        return count, 0, [(first + min(len(answers) - 1, count - 1), "the driver ended with %d" % done.returncode)]
    failures, refused = [], 0
    for i, c in enumerate(cases):
        complaints = run.check(c, answers[i].splitlines())
        refused += complaints is None
        for complaint in complaints or []:
            failures.append((first + i, "%s\n      %s" % (run.describe(c), complaint)))
    return count, refused, failures


def short(value):
    """Of bytes and of long lists the beginning."""
    more = isinstance(value, (bytes, list)) and len(value) > SHOWN
    kept = value[:SHOWN] if more else value
    return (kept.hex() if isinstance(kept, bytes) else repr(kept)) + ("…" if more else "")


def show(case):
    for name, value in case.items():
        print("%s: %s" % (name, short(value)))


def main(name, module, default_cases):
    run = sys.modules[module]
    p = argparse.ArgumentParser(description=run.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("driver")
    p.add_argument("--cases", type=int, default=default_cases)
    p.add_argument("--seed", type=int, default=int(os.environ.get("CURED_TEST_SEED") or 1))
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--replay", type=int, metavar="K", help="run case K of this seed alone")
    args = p.parse_args()
    if args.replay is not None:
        show(run.make_case(args.seed, args.replay))
        spans = [(args.replay, 1)]
    else:
        spans = [(at, min(run.BATCH, args.cases - at)) for at in range(0, args.cases, run.BATCH)]
    jobs = [(module, args.driver, args.seed, first, count) for first, count in spans]
    total, refused, failed = 0, 0, 0
    with multiprocessing.Pool(min(args.jobs, max(len(jobs), 1))) as pool:
        for count, not_here, failures in pool.imap_unordered(run_batch, jobs):
            total += count
            refused += not_here
            for number, text in failures:
                failed += 1
                if failed <= 20:
                    print("FAIL  %s\n      replay: %s %s --seed %d --replay %d" % (
                        text, sys.argv[0], args.driver, args.seed, number), flush=True)
    print("%s: %d cases, %d of them not implemented, %d failures (seed %d)" % (name, total, refused, failed, args.seed))
    sys.exit(1 if total == refused or failed else 0)
