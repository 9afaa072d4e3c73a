"""The functions that are not of one op, as methods: of Client, of File, which is the array itself, and of AsyncClient, which awaits them."""
import inspect

from . import _cured, _nan, _pairs

NAMES = {name: getattr(_nan, name) for name in _nan.ASYNC} | {"average": _pairs.average, "vecdot": _pairs.vecdot}


def _signature(function, is_file):
    own = list(inspect.signature(function).parameters.values())
    kept = own[1:] if is_file else [one for one in own if one.name != "client"]
    first = inspect.Parameter("self", own[0].kind)  # the array goes without its name, where that does
    return inspect.Signature([first, *kept])


def method(owner, name, awaited=False):
    """The function as a method of a class."""
    function, is_file = NAMES[name], owner is _cured.File

    def ask(self, /, *args, **options):
        return function(self, *args, **options) if is_file else function(*args, client=self, **options)

    async def ask_later(self, /, *args, **options):
        return await function(*args, client=self, **options)

    made = ask_later if awaited else ask
    made.__name__, made.__qualname__, made.__doc__ = name, "%s.%s" % (owner.__name__, name), function.__doc__
    made.__signature__ = _signature(function, is_file)
    return made


for _owner in (_cured.Client, _cured.File):
    for _name in NAMES:
        setattr(_owner, _name, method(_owner, _name))
