"""Result: the answers of several operations over one pass, by name: r.sum, r["sum"], dict(r). Results of many arrays are the extension's."""
from collections.abc import Mapping, Sequence

from ._cured import Results, _ops

Sequence.register(Results)


class Result(Mapping):
    """Answers in the order in which they were asked for. One that has no value (min of nothing) raises when it is asked for."""

    __slots__ = ("_answers",)

    def __init__(self, answers):
        self._answers = answers

    def __getitem__(self, op):
        answer = self._answers[op]
        if isinstance(answer, Exception):
            raise type(answer)(*answer.args)
        return answer

    def __getattr__(self, op):
        """Of what no property below has an answer."""
        if op.startswith("_") or op not in self._answers:
            raise AttributeError("op '%s' was not asked for" % op)
        return self[op]

    def __iter__(self):
        return iter(self._answers)

    def __len__(self):
        return len(self._answers)

    def __dir__(self):
        return list(self._answers)

    def __reduce__(self):
        return Result, (self._answers,)

    def __repr__(self):
        return "Result(%s)" % ", ".join("%s=%s" % (op, "<%s>" % answer if isinstance(answer, Exception) else repr(answer))
                                        for op, answer in self._answers.items())


def _reader(op):
    def read(self):
        answer = self._answers.get(op, AttributeError)
        if answer is AttributeError:
            raise answer  # and __getattr__ says why
        if isinstance(answer, Exception):
            raise type(answer)(*answer.args)
        return answer
    return property(read, doc="The answer of %s, if it was asked for." % op)


for _op in _ops.split():  # Python finds these at once, where __getattr__ comes after an exception of its own
    setattr(Result, _op, _reader(_op))
