#!/usr/bin/env python3
"""run: all tests of the Python extension in one process, those of a group (arrays, programs), or those that are named:
run.py test_layouts.Masks

With an extension under AddressSanitizer the program starts itself again with the sanitizer loaded first.
"""
import os
import random
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
GROUPS = {
    "arrays": ["test_values", "test_layouts", "test_masks", "test_floats", "test_nested", "test_cross", "test_cross_ways", "test_cross_more", "test_inputs", "test_numpy",
               "test_out", "test_keys", "test_segments", "test_pairs", "test_alike", "test_complex", "test_parts", "test_quantiles", "test_blocks", "test_blocks_read", "test_arrow", "test_surface", "test_linear", "test_lists", "test_numbers", "test_beside"],
    "programs": ["test_daemon", "test_files", "test_weights", "test_process", "test_threads", "test_credentials", "test_wheel", "test_page", "test_tables", "test_doors"],
}
ALONE = ["test_containers", "test_defaults", "test_cuda_here", "test_cuda_lists", "test_cuda_ways", "test_cuda_pairs", "test_cuda_ranks", "test_cuda_keys", "test_cuda_cells", "test_cuda_placed", "test_cuda_segments", "test_cuda_linear", "test_cuda_arrow", "test_dask", "test_editor", "test_gpu_out", "test_many_regions", "test_torch", "test_torch_digests"]  # tests of their own in CMakeLists.txt


def check_groups():
    """A file that is in no group would run nowhere."""
    known = {name for group in GROUPS.values() for name in group} | set(ALONE)
    lost = {name[:-3] for name in os.listdir(FOLDER) if name.startswith("test_") and name.endswith(".py")} ^ known
    if lost:
        sys.exit("run.py: in a group or in the folder alone: %s" % ", ".join(sorted(lost)))


def load_sanitizer():
    if "address" not in os.environ.get("CURED_TEST_SANITIZE", "") or "LD_PRELOAD" in os.environ:
        return
    # The C++ library is named beside it, or the sanitizer meets torch, which a test imports later, without knowing how C++ throws.
    names = [subprocess.run(["cc", "-print-file-name=" + name], stdout=subprocess.PIPE, text=True).stdout.strip() for name in ("libasan.so", "libstdc++.so.6")]
    # Python keeps memory to its end, so that only what tests/python/test_process.py counts is a leak.
    os.environ.update(LD_PRELOAD=" ".join(filter(os.path.isabs, names)), ASAN_OPTIONS="detect_leaks=0:abort_on_error=0", PYTHONMALLOC="malloc")
    os.execv(sys.executable, [sys.executable] + sys.argv)


def drawn(names):
    """Under a sanitizer, where CURED_TEST_QUARTER is set, a quarter of the files: CURED_TEST_DRAW, which the commit makes, says which.
    What is found there lies in C, which several files reach; without a sanitizer all of them run."""
    if not os.environ.get("CURED_TEST_SANITIZE") or not os.environ.get("CURED_TEST_QUARTER"):
        return names
    chosen = random.Random(int(os.environ.get("CURED_TEST_DRAW", "1"))).sample(names, (len(names) + 3) // 4)
    print("python: under a sanitizer, drawn by CURED_TEST_DRAW: %s" % " ".join(chosen))
    return chosen


def main():
    check_groups()
    load_sanitizer()
    sys.path.insert(0, FOLDER)
    import support  # noqa: F401: it ends the program with 77 where the tests cannot run
    import reasons  # tests/integration, where support leads
    names = [name for word in sys.argv[1:] or GROUPS for name in (drawn(GROUPS[word]) if word in GROUPS else [word])]
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    print("python_extension: %d cases" % result.testsRun)
    return reasons.tell(result)


if __name__ == "__main__":
    sys.exit(main())
