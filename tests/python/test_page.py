"""docs/PYTHON.md: its examples give what the page says, and its commands run."""
import doctest
import os
import re
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, ROOT, Case

COMMANDS = """
export PYTHONPATH="$PWD/build/quickstart/python"
python3 -c 'import cured; print(cured.sum(b"abc"))'
"""


class Page(Case):
    def test_examples(self):
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                page = os.path.join(ROOT, "docs", "PYTHON.md")
                text = open(page, encoding="utf-8").read()
                text = re.sub("\n<!-- doctest: (?:by|not run,) .*?\n```\n", "\n", text, flags=re.S)  # another test runs it, or none
                text = text.replace("\n```", "\n\n")  # a fence ends an answer
                test = doctest.DocTestParser().get_doctest(text, {}, "PYTHON.md", page, 0)
                runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
                runner.run(test)
            finally:
                os.chdir(before)
        self.assertEqual(0, runner.failures)
        self.assertGreater(runner.tries, 25)

    def test_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "build"))
            os.symlink(BUILD, os.path.join(folder, "build", "quickstart"))
            os.symlink(sys.executable, os.path.join(folder, "python3"))
            run = subprocess.run(["bash", "-e", "-c", COMMANDS], cwd=folder, stdout=subprocess.PIPE,
                                 env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]))
        self.assertEqual((0, b"294\n"), (run.returncode, run.stdout))


if __name__ == "__main__":
    unittest.main()
