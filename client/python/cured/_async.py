"""AsyncClient: the ops as coroutines of asyncio, by one connection and without threads.

The connection's descriptor is watched by the event loop, whichever it is after a reconnect, and a timer stands for the
connection's own deadlines and retries.
"""
import asyncio
import functools
import inspect
import select

from . import _cured, _methods


class AsyncClient:
    """AsyncClient(address=None, *, threads=1, timeout=None, tls_ca=None, tls_certificate=None, tls_key=None, token=None,
    token_file=None): as Client, but each op is awaited. It belongs to one event loop.

    Many calls may be under way at once. Cancelling the task that awaits a call ends the call.
    """

    def __init__(self, address=None, *, threads=1, timeout=None, tls_ca=None, tls_certificate=None, tls_key=None, token=None,
                 token_file=None):
        self._link = _cured._Link(address, threads=threads, timeout=timeout, tls_ca=tls_ca, tls_certificate=tls_certificate,
                                  tls_key=tls_key, token=token, token_file=token_file)
        self._futures = {}
        self._watched = (-1, 0, 0)
        self._timer = None
        self._loop = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()

    @property
    def server(self):
        """Who answers, once something was asked: "cured/0.2.0"."""
        return self._link.server

    def close(self):
        """Ends the connection; calls under way end with CancelledError."""
        self._unwatch()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        futures, self._futures = self._futures, {}
        for future in futures.values():
            future.cancel()
        self._link.close()

    async def _answer(self, call):
        if isinstance(call, functools.partial):  # of several calls
            return await call(self)
        if not isinstance(call, _cured._Call):  # an answer of no elements
            return call
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._futures:
                call.cancel()
                raise RuntimeError("this AsyncClient has calls in another event loop")
            self._unwatch()
            self._loop = loop
        future = loop.create_future()
        self._futures[call] = future
        self._process()
        try:
            return await future
        except asyncio.CancelledError:
            if self._futures.pop(call, None) is not None:
                call.cancel()
                self._process()
            raise

    def _process(self):
        for call in self._link.process():
            future = self._futures.pop(call, None)
            if future is None or future.done():
                continue
            try:
                future.set_result(call.result())
            except Exception as error:
                future.set_exception(error)
        self._watch()

    def _unwatch(self):
        fd = self._watched[0]
        if fd >= 0 and self._loop is not None and not self._loop.is_closed():
            for remove in (self._loop.remove_reader, self._loop.remove_writer):
                try:
                    remove(fd)
                except OSError:  # both were watched, and the descriptor was closed or is another connection's
                    pass
        self._watched = (-1, 0, 0)

    def _watch(self):
        """Watches the descriptor that there is now, for what the connection waits for."""
        fd, inode, events, timeout = self._link.watch()
        if (fd, inode, events) != self._watched:
            self._unwatch()
            self._watched = (fd, inode, events)
            if fd >= 0 and events & select.POLLIN:
                self._loop.add_reader(fd, self._process)
            if fd >= 0 and events & select.POLLOUT:
                self._loop.add_writer(fd, self._process)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if timeout >= 0 and self._futures:
            self._timer = self._loop.call_later(timeout / 1000, self._process)


def _method(name):
    async def method(self, *args, **kwargs):
        return await self._answer(getattr(self._link, name)(*args, **kwargs))

    method.__name__ = name
    method.__qualname__ = "AsyncClient." + name
    method.__doc__, method.__signature__ = getattr(_cured, name).__doc__, _signature(getattr(_cured.Client, name))
    return method


def _signature(function):
    """Of a method of Client: without client=."""
    own = inspect.signature(function)
    return own.replace(parameters=[p for p in own.parameters.values() if p.name != "client"])


for _name in dir(_cured._Link):
    if hasattr(_cured.File, _name) and not _name.startswith("_"):
        setattr(AsyncClient, _name, _method(_name))


async def _quantile(self, a, /, q, *args, out=None, **kwargs):
    if isinstance(q, (int, float)):
        return await self._answer(self._link.quantile(a, q, *args, out=out, **kwargs))
    from . import _order
    from ._beside import kept
    q, answers, kwargs = _order.shares(q), [], kept(kwargs, a)
    for piece in _order.pieces(q):
        answers += await self._answer(self._link.quantile(a, piece, *args, out=out, **kwargs))
    return _order.stacked(answers, q, kwargs.get("dtype"))


_quantile.__name__, _quantile.__qualname__, _quantile.__doc__ = "quantile", "AsyncClient.quantile", _cured.quantile.__doc__
_quantile.__signature__ = _signature(_cured.Client.quantile)
AsyncClient.quantile = _quantile


for _name in _methods.NAMES:
    setattr(AsyncClient, _name, _methods.method(AsyncClient, _name, True))
