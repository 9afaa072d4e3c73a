"""test_docs.py finds what it is for: each case is a document with one fault, or with none."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_docs  # noqa: E402


def read(text):
    return list(test_docs.parts(text))


class Faults(unittest.TestCase):
    def test_commands_that_are_not_shown(self):
        for hidden in ("setup\ntouch file.bin\n", "run\n$ touch file.bin\n", "\nsetup\ntouch file.bin\n"):
            with self.assertRaisesRegex(test_docs.Failure, "the reader does not see"):
                read(f"<!-- doctest: {hidden}-->\n```sh\nls\n```\n")

    def test_marker_apart_from_its_block(self):
        with self.assertRaisesRegex(test_docs.Failure, "right before its block"):
            read("<!-- doctest: run -->\ntext\n```sh\nls\n```\n")

    def test_block(self):
        self.assertEqual([(2, "run", "sh", "ls")], read("<!-- doctest: run -->\n```sh\nls\n```\n"))

    def test_console(self):
        self.assertEqual([["{\nls\n}", "a\nb"], ["pwd", ""]],
                         [list(c) for c in test_docs.commands("console", "$ {\n> ls\n> }\na\nb\n$ pwd")])
        with self.assertRaises(test_docs.Failure):
            test_docs.commands("console", "a\n$ ls")

    def test_output(self):
        self.assertTrue(test_docs.matches("sum 1...", "sum 1.5"))
        self.assertFalse(test_docs.matches("sum 1", "sum 1.5"))
        self.assertFalse(test_docs.matches("", "a word"))

    def test_links(self):
        good = "[a](../README.md#quickstart) [b](NUMERICS.md) [c](#here)\n\n# Here\n"
        for link, said in (("NUMERIC.md", "nowhere"), ("../README.md#quickstop", "no heading"), ("#there", "no heading")):
            with self.assertRaisesRegex(test_docs.Failure, said):
                test_docs.check_links("docs/NUMERICS.md", f"{good}[d]({link})\n")

    def test_command_that_never_ends(self):
        session = test_docs.Session("/nowhere")
        session.hang_s = 1
        with self.assertRaisesRegex(test_docs.Failure, "until false; do sleep 0.1; done` does not end within 1 s"):
            session.run("until false; do sleep 0.1; done")
        session.close()
        self.assertIsNotNone(session.bash.returncode)

    def test_tools_that_are_not_here(self):
        """Of "run where" CI must have them, of "try where" it need not."""
        before = os.environ.pop("CI", None)
        try:
            for kind in ("run", "try"):
                self.assertEqual((True, False), (test_docs.lacks(kind, "type no-such-tool"), test_docs.lacks(kind, "type sh")))
            os.environ["CI"] = "true"
            self.assertTrue(test_docs.lacks("try", "type no-such-tool"))
            with self.assertRaisesRegex(test_docs.Failure, "where CI is set this must run, but it fails: type no-such-tool"):
                test_docs.lacks("run", "type no-such-tool")
        finally:
            os.environ.pop("CI")
            if before is not None:
                os.environ["CI"] = before

    def test_readme_starts_a_daemon(self):
        self.assertIn("cured --listen", test_docs.start_block())


if __name__ == "__main__":
    unittest.main()
