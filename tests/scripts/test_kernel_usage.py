#!/usr/bin/env python3
"""test_kernel_usage: registers, stack, spills and shared memory of every GPU kernel, as ptxas told when it was built, against
kernel_usage.txt. A kernel that spills more than its line says, or takes more registers, fails; so does a new one that spills much,
and a build that has not the kernels of the rows in kernels/cuda/instance/*.def, or more than MOST.
Needs a build with CUDA by the compiler that the list was made with, but no GPU; skipped (77) otherwise.

usage: test_kernel_usage.py BUILD_DIR [--update]
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "kernel_usage.txt")
ROWS = os.path.join(HERE, "..", "..", "kernels", "cuda", "instance")
MOST = 713  # kernels for one chip; who adds more says why: the last are short sums whose last block answers, extrema along an axis beside a mask, looks at what maxima lack, segments by teams of lanes, walks along an axis beside a mask, swaths without what does not count, folds of cells that rise and bits by key in shared memory, sums and squares of floats without float64, also along an axis and in segments, rows by one launch, digests of rows and columns, indices, bits and products by key, a look at offsets, reductions by key, reads of quantiles, sums of pairs, segments by offsets, walks under masks, linear forms, and bytes of bools
PACK = 192  # kernels/cuda/pack/pack.cu, bits/bits.cu, axis/answer.cu, axis/linear.cu, digests/digests.cu, walk/narrow.cu, walk/second.cu, keys/*.cu, offsets/*.cu, quantile/count.cu and swaths/hide.cu have no rows
UNLISTED = (255, 64, 64, 0)  # a new kernel may spill so much outside its loop; more wants a look and --update
HEAD = """# What each GPU kernel takes: chip, registers, bytes of stack, of spill stores, of static shared memory, name.
# Written by tests/scripts/test_kernel_usage.py --update; a kernel that spills more than is listed fails the test.
"""


def parse(text):
    """{(chip, kernel): (registers, stack, spill, shared)} of one .usage file."""
    found = {}
    kernel = last = stack = spill = None
    for line in text.split("\n"):
        match = re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line)
        if match:
            # Names of one file only carry a hash of its path.
            kernel = (match.group(2), re.sub(r"_GLOBAL__N__[0-9a-f]{8}_\d+_(\w+?)_cu_[0-9a-f]{8}(_\d+)?", r"_\1_", match.group(1)))
        match = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line)
        if match:
            stack, spill = int(match.group(1)), int(match.group(2))
            if last and not kernel:  # a function that the kernel calls, listed after it
                registers, most_stack, most_spill, shared = found[last]
                found[last] = (registers, max(most_stack, stack), max(most_spill, spill), shared)
        match = re.search(r"Used (\d+) registers", line)
        if match and kernel:
            shared = re.search(r"(\d+) bytes smem", line)
            found[kernel] = (int(match.group(1)), stack or 0, spill or 0, int(shared.group(1)) if shared else 0)
            last = kernel
            kernel = stack = spill = None
    return found


def lengths_of_lists():
    """How many types each list of product.h has."""
    with open(os.path.join(ROWS, "product.h"), encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    found = {}
    for name, body in re.findall(r"^#define CR_TYPES_(\w+)\(row, unit, kind, \.\.\.\)(.*)$", text, re.M):
        others = re.findall(r"CR_TYPES_(\w+)\(", body)  # lists that are defined before
        found[name] = len(re.findall(r"\brow\(", body)) + sum(found[other] for other in others)
    return found


def kernels_of_rows():
    count, lists = PACK, lengths_of_lists()
    for name in ("fold.def", "axis.def", "offsets.def"):
        with open(os.path.join(ROWS, name), encoding="utf-8") as f:
            text = f.read()
        count += sum(int(n) for n in re.findall(r"^CR_(?:FOLD|AXIS|OFFSETS)\(\w+, \w+, \w+, (\d+), ", text, re.M))
        rows = re.findall(r"^CR_(?:FOLDS|AXES|SEGMENTS)\(\w+, \w+, (\w+), (\d+), ", text, re.M)
        count += sum(lists[types] * int(n) for types, n in rows)
    return count


def collect(build):
    found = {}
    for folder, _, names in os.walk(os.path.join(build, "kernels")):
        for name in names:
            if name.endswith(".usage"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    found.update(parse(f.read()))
    return found


def compiler_of(build):
    """The version of the nvcc that this build was configured with, whole: 13.0.88."""
    for path in glob.glob(os.path.join(build, "CMakeFiles", "*", "CMakeCUDACompiler.cmake")):
        with open(path, encoding="utf-8") as f:
            found = re.search(r'CMAKE_CUDA_COMPILER_VERSION "([\d.]+)"', f.read())
        if found:
            return found.group(1)
    return None


def listed():
    """The list's compiler version, and its lines."""
    version, lines = None, {}
    with open(LIST, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if line.startswith("nvcc "):
                version = words[1]
            elif words and not line.startswith("#"):
                lines[(words[0], words[5])] = tuple(int(w) for w in words[1:5])
    return version, lines


def update(found, version):
    with open(LIST, "w", encoding="utf-8") as f:
        f.write(HEAD + f"nvcc {version}\n")
        for (chip, kernel), numbers in sorted(found.items()):
            f.write(f"{chip} {' '.join(str(n) for n in numbers)} {kernel}\n")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 64
    found, version = collect(sys.argv[1]), compiler_of(sys.argv[1])
    if not found:
        print("skipped: this build has no kernels")
        return 77
    if "--update" in sys.argv:
        update(found, version)
        return 0
    made_with, lines = listed()
    if made_with != version:
        print(f"skipped: the list was made with nvcc {made_with}, this is {version}")
        return 77
    wrong = 0
    for (chip, kernel), (registers, stack, spill, _) in sorted(found.items()):
        most = lines.get((chip, kernel), UNLISTED)
        if registers > most[0] or spill > most[2]:
            wrong += 1
            print(f"{chip} {kernel}: {registers} registers, {stack} bytes of stack, {spill} spilled; "
                  f"listed are {most[0]}, {most[1]}, {most[2]}")
    rows = kernels_of_rows()
    for chip in sorted({chip for chip, _ in found}):
        kernels = sum(1 for key in found if key[0] == chip)
        if kernels != rows or kernels > MOST:
            wrong += 1
            print(f"{chip}: {kernels} kernels were built; the rows say {rows}, and {MOST} are the most")
    print(f"{len(found)} kernels, {sum(1 for n in found.values() if n[2])} with spills, {wrong} worse than listed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
