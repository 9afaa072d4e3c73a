"""Advice for arrays of types that are not reduced: an expression that the caller may write, where `a` is the array. Each is tried by
tests/python/test_tables.py."""
import sys

PLAIN = {
    "c": "reduce a.real and a.imag",
    "G": "a.astype('complex128') rounds its parts to a type that is reduced",
    "g": "a.astype('float64') rounds it to a type that is reduced",
    "O": "make it a plain type: a.astype('float64')",
    "V": "reduce its fields one by one: a['name']",
    "M": "a.view('int64') is its count of units; NaT is the lowest of them",
    "m": "a.view('int64') is its count of units; NaT is the lowest of them",
    "S": "text is not a number: a.astype('float64')",
    "U": "text is not a number: a.astype('float64')",
    "T": "text is not a number: a.astype('float64')",
}
TEXTS = "text is not a number: numpy.unique(%s, return_inverse=True)[1] says which of its texts each is"


def advice(kind, a=None):
    """For elements of such a kind (numpy.dtype.kind) of the array a; None: nothing more is known of it."""
    if kind in ("M", "m") and a is not None and not hasattr(a, "view"):  # xarray's, zarr's
        return PLAIN[kind].replace("a.view", "a.astype")
    if kind == "O":
        return of_object(first(a))
    if kind in ("S", "U", "T") and not is_number(first(a)):
        return TEXTS % "numpy.asarray(a)"
    return PLAIN[kind]


def is_there(one):
    """Whether an element is not missing: not None, NaN, NaT, pandas.NA."""
    try:
        return one is not None and bool(one == one)
    except TypeError:  # pandas.NA is neither true nor false
        return False
    except ValueError:  # it is an array
        return True


def first(a):
    """The first element that is there; None: there is none, or nothing to look at. Of what lies elsewhere one element is read."""
    try:
        if type(a).__module__.partition(".")[0] in ("numpy", "pandas"):
            return next(filter(is_there, getattr(a, "flat", a)), None)
        return sys.modules["numpy"].asarray(a[(0,) * len(a.shape)]).item()
    except Exception:  # whatever the library says, the type is not reduced
        return None


def is_number(one):
    if one is None:
        return True
    try:
        float(one)
    except (TypeError, ValueError):
        return False
    return True


def of_object(one):
    """For an array of objects like this one."""
    import datetime
    of = "numpy.asarray(a).ravel()"
    kind = type(one)
    if kind.__module__.partition(".")[0] == "pandas":
        for names, make, what in (("Timestamp", "pandas.to_datetime(%s, utc=True).dropna()", "nanoseconds since 1970 in UTC"),
                                  ("Timedelta", "pandas.to_timedelta(%s).dropna()", "nanoseconds"),
                                  ("Period", "pandas.PeriodIndex(%s).dropna()", "periods since 1970")):
            if kind.__name__ == names:
                return "they are objects: %s.astype('int64') is their count of %s" % (make % of, what)
        if kind.__name__ == "Interval":
            return "they are objects: reduce the ends, pandas.arrays.IntervalArray(%s).left and its .right" % of
    if isinstance(one, datetime.datetime) and one.tzinfo is not None:
        return "they are objects: numpy.array([x.timestamp() for x in %s]) has their seconds since 1970 in UTC" % of
    for of_type, unit, what in ((datetime.datetime, "datetime64[us]", "microseconds since 1970"), (datetime.date, "datetime64[D]", "days since 1970"),
                                (datetime.timedelta, "timedelta64[us]", "microseconds")):
        if isinstance(one, of_type):
            return "they are objects: numpy.asarray(a).astype('%s').view('int64') is their count of %s" % (unit, what)
    if isinstance(one, (str, bytes)) and not is_number(one):
        return TEXTS % "numpy.asarray(a).astype('U')"
    if isinstance(one, complex):
        return "make it a plain type: a.astype('complex128')"
    if not is_number(one):
        return "they are objects of the type %s, which is no number" % kind.__name__
    return PLAIN["O"]
