"""reasons: main() of test programs in Python. It prints a line "skipped: TEST: WHY" for each test that could not run, which
scripts/test repeats at its end."""
import os
import sys
import unittest


def name_of(test):
    return test.id().replace("__main__.", "")


def skip_part(test, why):
    """For a test that goes on without a part of it."""
    print("\nskipped: %s: %s" % (name_of(test), why))


def tell(result):
    """Prints why tests were skipped. The exit status, as ctest wants it: 77 when none ran."""
    for test, reason in result.skipped:
        print("skipped: %s: %s" % (name_of(test), " ".join(reason.split())))
    sys.stdout.flush()
    if not result.wasSuccessful():
        return 1
    # Of a class that is skipped as a whole no test is counted; a part of a test (subTest) is no test.
    whole = [test for test, _ in result.skipped if isinstance(test, unittest.TestCase) and not hasattr(test, "test_case")]
    return 77 if result.testsRun == len(whole) else 0


def main():
    """For `if __name__ == "__main__"`."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    program = unittest.main(module="__main__", exit=False, verbosity=int(os.environ.get("CURED_TEST_VERBOSE", "1")))
    sys.exit(tell(program.result))
