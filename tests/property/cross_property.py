#!/usr/bin/env python3
"""Property run of what Python can ask: arrays of every kind × containers × who answers × ops × options, drawn at random, each answer held
against the oracle bit by bit. What is refused is refused by a sentence that is known here (cross_refusals.py).

    cross_property.py                        the run for CI
    cross_property.py --cases 100000         a longer one; --seed N starts elsewhere, --jobs N processes, --seconds S ends by time
    cross_property.py --seed N --replay K    one case again, with what it held
With CURED_CUDA_LIBRARY, such as the runtime double's, all arrays are tensors of its GPU.
"""
import argparse
import collections
import faulthandler
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", name) for name in ("python", "integration", "oracle")]
import support  # noqa: E402: it ends the program with 77 where the tests cannot run
from support import NUMPY, numpy as np  # noqa: E402
import oracle  # noqa: E402
import cross_draw  # noqa: E402
import cross_doors  # noqa: E402
import cross_holders  # noqa: E402
import cross_refusals  # noqa: E402
import cross_spoil  # noqa: E402
import cross_truth  # noqa: E402
from cured_daemon import CLIENT, CURED, Daemon  # noqa: E402

WAYS = 3  # of each case that answer or refuse
DRAWN = 8  # ways at most, of which some are not for the case
SPOILED = 2  # each second case is also asked with an argument that is wrong
BATCH = 100
MUTE = 80  # of so many cases that are for a door it has answered some: the least one answers half
HANG_S = 300  # that long one case takes on no machine


def agrees(value, wanted, dtype):
    if isinstance(wanted, tuple):  # a product of floats: between two
        bits = int.from_bytes(np.array(value, NUMPY[dtype]).tobytes(), "little")
        return isinstance(value, float) and wanted[0] <= oracle.order(dtype, bits) <= wanted[1]
    return support.same(value, wanted)


def complaint(answer, wanted, stored):
    """What is wrong with an answer; None: nothing. stored: it lies in the caller's array."""
    if isinstance(wanted, cross_truth.Lacking):
        return "answered %r, where there is none" % (answer,)
    if isinstance(answer, cross_truth.Answer):  # of a door that is not Python's
        shape, values = answer.shape, answer.values
        if answer.dtype not in (None, wanted.dtype) and values:
            return "its type is %s" % answer.dtype
    elif isinstance(answer, np.ndarray):
        shape, values = answer.shape, answer.reshape(-1).tolist()
        if wanted.dtype == "digest":
            values = ["cd1-%016x%016x-%d" % value for value in values]
        elif wanted.dtype in NUMPY and answer.dtype != NUMPY[wanted.dtype] and not stored:
            return "its type is %s" % answer.dtype
    else:
        shape, values = None, [answer]
    if shape != wanted.shape:
        return "its shape is %s" % (shape,)
    if len(values) != len(wanted.values) or not all(agrees(value, one, wanted.dtype) for value, one in zip(values, wanted.values)):
        return "it is %r" % (values[:12],)
    return None


class Run:
    """Cases of one seed, one after the other."""

    def __init__(self, seed, addresses, folder):
        self.seed, self.folder, self.doors = seed, folder, cross_doors.Doors(addresses)
        if os.environ.get("CURED_CUDA_LIBRARY"):
            self.doors.use_cuda()
        self.counts, self.refused, self.failures = collections.Counter(), collections.Counter(), []
        self.asked, self.answered = collections.Counter(), collections.Counter()  # by door

    def fail(self, number, case, what, why):
        self.failures.append((number, "%s\n      by %s\n      %s" % (case, what, why)))

    def look(self, number, case, wanted, what, ask, function):
        """Whether somebody was asked."""
        self.asked[ask.door] += 1
        try:
            answer = function()
        except cross_draw.NotHere:
            self.asked[ask.door] -= 1
            return False
        except Exception as error:
            said = cross_refusals.known(error, ask)
            if isinstance(wanted, cross_truth.Lacking) and wanted.says(error) or said:
                self.counts["refused" if said else "without answer"] += 1
                self.refused[said] += bool(said)
            else:
                where = "".join(traceback.format_tb(error.__traceback__)[-2:])
                self.fail(number, case, what, "raised %s: %s\n      want %r\n%s" % (type(error).__name__, error, wanted, where))
            return True
        self.counts["answered"] += 1
        self.answered[ask.door] += 1
        why = complaint(answer, wanted, what.startswith(("own_array", "cuda.own")))
        if why:
            self.fail(number, case, what, "%s\n      want %r" % (why, wanted))
        return True

    def spoil(self, number, case, wanted, bag):
        """One argument is wrong: who is asked says so, and names it."""
        way = cross_spoil.spoiled_way(self.doors, self.seed, number, bag, case, wanted)
        if way is None:
            return
        what, name, function = way
        try:
            answer = function()
        except cross_draw.NotHere:
            return
        except Exception as error:
            self.counts["wrong"] += 1
            if not cross_spoil.names(error, name):
                where = "".join(traceback.format_tb(error.__traceback__)[-2:])
                self.fail(number, case, what, "raised %s: %s\n      want a sentence of %s\n%s" % (type(error).__name__, error, name, where))
            return
        self.fail(number, case, what, "answered %r" % (answer,))

    def case(self, number, show=False):
        case = cross_draw.draw(self.seed, number)
        wanted = cross_truth.truth(case)
        if show:
            print("%r\nelements %s\nbeside %s\nother %s\nwant %r" % (case, case.raw.hex(), case.beside, case.other, wanted))
        bag = cross_holders.Bag(self.folder)
        cross_holders.cut_blocks(self.seed, number)
        left = WAYS
        for what, ask, function in cross_doors.ways(self.doors, self.seed, number, bag, case, wanted, DRAWN):
            left -= self.look(number, case, wanted, what, ask, function)
            if left == 0:
                break
        if number % SPOILED == 0 and not os.environ.get("CURED_CUDA_LIBRARY"):
            self.spoil(number, case, wanted, bag)
        bag.end()


def run_batch(job):
    seed, addresses, first, count, until, mark = job
    warnings.simplefilter("ignore")
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(seed, addresses, folder)
        done = 0
        for number in range(first, first + count):
            if until is not None and time.monotonic() > until:
                break
            with open(mark, "w") as file:  # what a crash or a hang is of
                file.write(str(number))
            faulthandler.dump_traceback_later(HANG_S, exit=True)
            run.case(number)
            done += 1
        faulthandler.cancel_dump_traceback_later()
        run.doors.end()
    return done, run.counts, run.refused, run.asked, run.answered, run.failures


def work(jobs, results):
    """A process of its own: a crash is told by its end."""
    for job in jobs:
        results.send(run_batch(job))
    results.close()


def rounds(args, addresses, folder):
    """The results of each process, or (the case, its exit status) of one that ended."""
    until = None if args.seconds is None else time.monotonic() + args.seconds
    count = (args.cases + args.jobs - 1) // args.jobs
    context, started = multiprocessing.get_context("spawn"), []
    for i in range(args.jobs):
        mark = os.path.join(folder, "case%d" % i)
        with open(mark, "w") as file:
            file.write(str(i * count))
        spans = [(at, min(BATCH, (i + 1) * count - at)) for at in range(i * count, min((i + 1) * count, args.cases), BATCH)]
        here, there = context.Pipe(False)
        process = context.Process(target=work, args=([(args.seed, addresses, first, n, until, mark) for first, n in spans], there))
        process.start()
        there.close()
        started.append((process, here, mark))
    for process, here, mark in started:
        try:
            while True:
                yield here.recv()
        except EOFError:
            process.join()
        if process.exitcode:
            with open(mark) as file:
                yield int(file.read()), process.exitcode


def report(args, found):
    """Prints what the rounds found; whether all is well."""
    total, failed, sums = 0, 0, [collections.Counter() for _ in range(4)]
    counts, refused, asked, answered = sums
    for result in found:
        if len(result) == 2:
            failures = [(result[0], "the process ended with %d: a crash, or no end within %d s" % (result[1], HANG_S))]
        else:
            done, *more, failures = result
            total += done
            for to, these in zip(sums, more):
                to.update(these)
        for number, text in failures:
            failed += 1
            if failed <= args.most:
                print("FAIL  %s\n      replay: %s --seed %d --replay %d" % (text, sys.argv[0], args.seed, number), flush=True)
    if args.refusals:
        for words, count in refused.most_common():
            print("%6d  %s" % (count, words))
        for door, count in asked.most_common():
            print("%6d  of %d answered by %s" % (answered[door], count, door))
    for door in sorted(door for door, count in asked.items() if count >= MUTE and not answered[door] and door != "lacking"):
        failed += 1
        print("FAIL  %s has answered none of %d ways" % (door, asked[door]))
    print("cross property: %d cases (seed %d), asked in %s ways, %d failures" % (
        total, args.seed, ", ".join("%d %s" % (n, word) for word, n in sorted(counts.items())), failed))
    return not failed and counts["answered"] > counts["refused"]


def skipped():
    """What is not asked here."""
    if os.environ.get("CURED_CUDA_LIBRARY"):
        return []
    wants = [("the daemon, and gRPC: there is no %s" % CURED, not os.path.exists(CURED)),
             ("gRPC: %s" % cross_doors.wire.lacks_grpc(), os.path.exists(CURED) and cross_doors.wire.lacks_grpc()),
             ("the command line: there is no %s" % CLIENT, not cross_doors.cross_command.here()),
             ("containers: %s (scripts/bootstrap --tests installs it)" % cross_holders.LACKS, cross_holders.LACKS)]
    return [what for what, lacks in wants if lacks]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", type=int, default=1000)
    p.add_argument("--seconds", type=float)
    p.add_argument("--seed", type=int, default=int(os.environ.get("CURED_TEST_SEED") or 1))
    p.add_argument("--jobs", type=int, default=min(2, os.cpu_count()))
    p.add_argument("--most", type=int, default=20, help="failures that are printed")
    p.add_argument("--refusals", action="store_true", help="print what was refused, and how often")
    p.add_argument("--replay", type=int, metavar="K", help="run case K of this seed alone")
    args = p.parse_args()
    for what in skipped():
        print("skipped: %s" % what, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(folder) if os.path.exists(CURED) else None
        addresses = [] if daemon is None else daemon.addresses
        if args.replay is not None:
            warnings.simplefilter("ignore")
            run = Run(args.seed, addresses, folder)
            run.case(args.replay, show=True)
            good = report(args, [(1, run.counts, run.refused, run.asked, run.answered, run.failures)])
            good = not run.failures
        else:
            good = report(args, rounds(args, addresses, folder))
        if daemon is not None:
            daemon.process.terminate()
            daemon.process.wait()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
