#!/usr/bin/env python3
"""cured.torch.digest where ranks disagree: other orders of names make the same digests, other names, types and shapes one ValueError on
every rank. No rank waits for another that raised, and the group goes on after each. What has no bytes, as sparse tensors, is refused."""
import multiprocessing
import os
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import torch
except ImportError as error:
    print("skipped: %s (package python3-torch: scripts/bootstrap --torch)" % error)
    sys.exit(77)
from support import Case, oracle  # noqa: E402
import reasons  # noqa: E402: tests/integration
import torch.distributed as dist  # noqa: E402

import cured.torch  # noqa: E402

RANKS = 3
HANG_S = 100
A, B, C = torch.arange(6.0).reshape(2, 3), torch.arange(6.0, 12.0).reshape(2, 3), torch.arange(5)


class Model:
    """A module that fails while its tensors are looked at."""

    def state_dict(self):
        raise OSError("the disk is gone")


class Unreadable(dict):
    def items(self):
        raise KeyError("no names")


# What each rank passes, and what all must say: digests, or (error, words). Of a tuple each rank has its own.
SCENES = {
    "orders": ([{"a": A, "b": B}, {"b": B, "a": A}, {"a": A, "b": B}], {"a": A, "b": B}),
    "the first rank has another order": ([{"b": B, "a": A}, {"a": A, "b": B}, {"a": A, "b": B}], {"a": A, "b": B}),
    "no names": ([{}, {}, {}], {}),
    "what is no tensor does not count": ([{"a": A, "n": 5}, {"a": A}, {"x": "y", "a": A}], {"a": A}),
    "other names": ([{"a": A}, {"b": A}, {"a": A}], ("ValueError", "digest: rank 1 lacks tensor 'a', which rank 0 has")),
    "fewer names": ([{"a": A, "b": B}, {"a": A, "b": B}, {"a": A}], ("ValueError", "digest: rank 2 lacks tensor 'b', which rank 0 has")),
    "more names": ([{"a": A}, {"a": A}, {"a": A, "b": B}], ("ValueError", "digest: rank 0 lacks tensor 'b', which rank 2 has")),
    "one rank has none": ([{"a": A}, {}, {"a": A}], ("ValueError", "digest: rank 1 lacks tensor 'a', which rank 0 has")),
    "as many of other names": ([{"a": A, "c": C}, {"a": A, "b": C}, {"a": A, "c": C}], ("ValueError", "digest: rank 1 lacks tensor 'c', which rank 0 has")),
    "another type": ([{"a": A}, {"a": A}, {"a": A.double()}], ("ValueError", "digest: tensor 'a' is torch.float32 [2, 3] on rank 0, and torch.float64 [2, 3] on rank 2")),
    "another shape": ([{"a": A}, {"a": A.reshape(3, 2)}, {"a": A}], ("ValueError", "digest: tensor 'a' is torch.float32 [2, 3] on rank 0, and torch.float32 [3, 2] on rank 1")),
    "a rank whose model fails": ([{"a": A}, Model(), {"a": A}], (("RuntimeError", "another rank of the group could not"), ("OSError", "the disk is gone"),
                                                                 ("RuntimeError", "another rank of the group could not"))),
    "a rank whose names fail": ([Unreadable(), {"a": A}, {"a": A}], (("KeyError", "no names"), ("RuntimeError", "another rank"), ("RuntimeError", "another rank"))),
    "a tensor that has no digest": ([{"a": A, "q": torch.empty(3, device="meta")}] * 3,
                                    (("TypeError", "on meta is not reduced"), ("RuntimeError", "another rank"), ("RuntimeError", "another rank"))),
    "names that are no strings": ([{1: A, "1": B}, {"1": B, 1: A}, {1: A, "1": B}], {1: A, "1": B}),
    "the group goes on": ([{"a": A}] * 3, {"a": A}),
}


def digest_of(tensor):
    raw = tensor.contiguous().view(torch.uint8).numpy().tobytes()
    return "cd1-%016x%016x-%d" % (*oracle.digest(raw), len(raw))


def asked(given, group=None):
    try:
        return {name: str(digest) for name, digest in cured.torch.digest(given, group).items()}
    except Exception as error:
        return type(error).__name__, str(error)


def work(rank, store, pipe):
    try:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=RANKS)
        for name, (given, _) in SCENES.items():
            pipe.send(asked(given[rank]))
        pair = dist.new_group([1, 2])
        pipe.send(asked({"a": A} if rank != 2 else {"b": A}, pair))
        pipe.send(asked({"a": A}, pair))
    except BaseException:
        pipe.send(traceback.format_exc())
    finally:
        pipe.close()
        os._exit(0)


class Ranks(Case):
    @classmethod
    def setUpClass(cls):
        context = multiprocessing.get_context("fork")
        with tempfile.TemporaryDirectory() as folder:
            ends = []
            for rank in range(RANKS):
                mine, theirs = context.Pipe(duplex=False)
                process = context.Process(target=work, args=(rank, os.path.join(folder, "store"), theirs), daemon=True)
                process.start()
                theirs.close()
                ends.append((process, mine))
            cls.answers = [cls.received(mine, len(SCENES) + 2) for _, mine in ends]
            for process, _ in ends:
                process.kill()

    @staticmethod
    def received(pipe, count):
        """What a rank says of each scene; None once it hangs or has ended."""
        found = []
        try:
            while len(found) < count and pipe.poll(HANG_S):
                found.append(pipe.recv())
        except EOFError:
            pass
        return found + [None] * (count - len(found))

    def test_scenes(self):
        for k, (name, (_, wanted)) in enumerate(SCENES.items()):
            for rank in range(RANKS):
                got = self.answers[rank][k]
                with self.subTest(name, rank=rank):
                    if isinstance(wanted, dict):
                        self.assertEqual({n: digest_of(t) for n, t in wanted.items()}, got)
                        continue
                    kind, words = wanted[rank] if isinstance(wanted[0], tuple) else wanted
                    self.assertEqual((kind, True), (got[0], words in got[1]), got)

    def test_order_is_kept(self):
        """The answer has a rank's own order of names."""
        self.assertEqual([["a", "b"], ["b", "a"], ["a", "b"]], [list(self.answers[rank][0]) for rank in range(RANKS)])

    def test_group(self):
        """Ranks are called by their numbers in the world; a rank that the group lacks is told so."""
        differ, same = ([answers[k] for answers in self.answers] for k in (-2, -1))
        for rank in (1, 2):
            self.assertEqual("ValueError", differ[rank][0])
            self.assertIn("digest: rank 2 lacks tensor 'a', which rank 1 has", differ[rank][1])
            self.assertEqual({"a": digest_of(A)}, same[rank])
        for given in (differ[0], same[0]):
            self.assertEqual(("ValueError", "digest: this rank is not in the group"), given)


class Sparse(Case):
    """Sparse tensors with other indices have the same values: a digest of these would collide."""
    whole = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    layouts = {"torch.sparse_coo": whole.to_sparse(), "torch.sparse_csr": whole.to_sparse_csr(),
               "torch._mkldnn": whole.to_mkldnn() if torch.backends.mkldnn.is_available() else None}

    def test_digests(self):
        for layout, tensor in self.layouts.items():
            if tensor is None:
                continue
            for given in (tensor, {"w": tensor, "x": A}):
                with self.subTest(layout), self.assertRaisesRegex(TypeError, "digest: a tensor of layout %s has no bytes in C order: pass t.to_dense" % layout):
                    cured.torch.digest(given)
        self.assertEqual(digest_of(self.whole), cured.torch.digest(self.whole.to_sparse().to_dense()))

    def test_stats(self):
        """Of a COO tensor the stored values; other layouts have a Result that says why there is none, beside those of other tensors."""
        for layout, tensor in self.layouts.items():
            if tensor is None:
                continue
            found = cured.torch.stats({"w": tensor, "x": A})
            self.assertEqual(5.0, found["x"].max)
            if layout == "torch.sparse_coo":
                self.assertEqual((2, 1.0, 2.0), (found["w"].count, found["w"].min, found["w"].max))
            else:
                with self.assertRaisesRegex(TypeError, "stats: a tensor of layout %s is not reduced: pass t.to_dense" % layout):
                    found["w"].max

    def test_norms(self):
        self.assertEqual(torch.tensor(5.0).sqrt(), cured.torch.total_norm([self.layouts["torch.sparse_coo"]]))
        with self.assertRaisesRegex(TypeError, "tensors: a tensor of layout torch.sparse_csr is not reduced: pass t.to_dense"):
            cured.torch.total_norm([self.layouts["torch.sparse_csr"]])


if __name__ == "__main__":
    reasons.main()
