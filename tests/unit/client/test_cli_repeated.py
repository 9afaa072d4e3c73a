#!/usr/bin/env python3
"""Answers of cured-client that would have one name, and folders where a file is wanted."""
import json

from cli_daemon import CliTest, main


class Repeated(CliTest):
    def test_a_share_is_named_once(self):
        """Two answers of one name are one for whoever reads the JSON, and one file for --output."""
        for shares, name in (("0.5,0.5", "0.5"), ("0.1,0.9,0.10", "0.1"), ("1,1e0", "1"), ("0,-0", "0")):
            self.fails(64, "--q names %s twice" % name, "quantile", self.raw, "--q", shares)
        got = json.loads(self.client("quantile", self.raw, "--q", "-0,1", "--json").out)["results"]
        self.assertEqual(["quantile_0", "quantile_1"], list(got))
        self.assertEqual(min(self.values), got["quantile_0"]["value"])

    def test_what_is_wrong_with_ops_is_shown_whole(self):
        for ops in ("sum,", "sum,,max", "", ",", "sum max", "sum, "):
            self.fails(64, "--ops is '%s', must be names of ops with commas between them" % ops, "reduce", self.raw, "--ops", ops)

    def test_folders_are_no_input(self):
        for words in (("sum", self.npy, "--keys"), ("sum", self.npy, "--offsets"), ("sum", self.npy, "--where"), ("dot", self.npy, "--second"),
                      ("sum", self.npy, "--where=bits:" + self.dir), ("weights", self.npy, "--check")):
            folder = [] if "=" in words[-1] else [self.dir]
            self.fails(66, "%s is a directory, not a file" % self.dir, *words, *folder)


if __name__ == "__main__":
    main()
