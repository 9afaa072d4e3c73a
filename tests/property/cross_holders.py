"""What holds the elements of a case of cross_property.py: arrays of every layout, files, containers of libraries, Arrow's capsules. Each maker
takes (r, bag, array, missing) and gives an object, or None where it cannot hold this. A bag keeps what must live, and a folder."""
import array as python_array
import itertools
import os
import random
import warnings

import arrow_producer
import numpy as np
from cured import _blocks
from support import DLPACK, Tensor, cured

try:  # Debian's Python has them
    import dask
    import dask.array
    import h5py
    import netCDF4
    import pandas
    import xarray
    import zarr
    dask.config.set(scheduler="synchronous")
    LACKS = None
except ImportError as error:
    dask, LACKS = None, error
NUMBER = itertools.count()
ALIVE = []


def cut_blocks(seed, number):
    """How containers are read: small arrays have many blocks, and some slices are too long for memory."""
    r = random.Random("cross blocks/%d/%d" % (seed, number))
    _blocks.BLOCK_BYTES = r.choice([64, 256, 4096, 32 << 20])
    _blocks.MOST_BYTES = r.choice([128, 1024, 1 << 20, 1 << 20, 1 << 20])


class Bag:
    """What the objects of one case need: open files, and a folder that is emptied at its end."""

    def __init__(self, folder):
        self.folder, self.open, self.paths = folder, [], []

    def path(self, ending):
        self.paths.append(os.path.join(self.folder, "%d.%s" % (next(NUMBER), ending)))
        return self.paths[-1]

    def end(self):
        for file in self.open:
            file.close()
        for path in self.paths:
            if os.path.exists(path):
                os.unlink(path)


class Sub(np.ndarray):
    pass


def swapped(a):
    return a.astype(a.dtype.newbyteorder(">"))


# ---- Memory ----

def plain(r, bag, a, _):
    return a.copy()


def fortran(r, bag, a, _):
    return np.array(a, order="F")


def stepped(r, bag, a, _):
    return np.repeat(a, 2, -1)[..., ::2] if a.ndim else a.copy()


def backwards(r, bag, a, _):
    axis = r.randrange(a.ndim) if a.ndim else None
    return np.flip(np.flip(a, axis).copy(), axis) if a.ndim else a.copy()


def permuted(r, bag, a, _):
    order = r.sample(range(a.ndim), a.ndim)
    return a.transpose(order).copy().transpose(np.argsort(order)) if a.ndim else a.copy()


def unaligned(r, bag, a, _):
    memory = np.zeros(a.nbytes + 1, "u1")
    made = memory[1:1 + a.nbytes].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


def broadcast(r, bag, a, _):
    """An axis of step 0, where the elements allow it."""
    if not a.ndim or not a.size:
        return None
    same = [k for k in range(a.ndim) if (a == a.take([0], k)).all() and (a == a).all() and not (a == 0).any()]
    return np.broadcast_to(a.take([0], same[0]), a.shape) if same else None


def big_endian(r, bag, a, _):
    return layout(r, swapped(a))


def subclass(r, bag, a, _):
    return layout(r, a).view(Sub)


def read_only(r, bag, a, _):
    made = layout(r, a.copy())
    made.flags.writeable = False
    return made


def shared(r, bag, a, _):
    made = cured.empty(a.shape, a.dtype)
    made[...] = a
    return made


def mapped(r, bag, a, _):
    if not a.size:
        return None
    made = np.memmap(bag.path("map"), r.choice([a, swapped(a)]).dtype, "w+", shape=a.shape, order=r.choice("CF"))
    made[...] = a
    return made


def view(r, bag, a, _):
    return memoryview(layout(r, a)) if a.size else None


def of_python(r, bag, a, _):
    code = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f4": "f", "f8": "d"}.get(a.dtype.str[1:])
    return python_array.array(code, a.tobytes()) if code and a.ndim == 1 else None


class Kept(Tensor):
    """Its functions and memory outlive it, because who took them may end after it."""

    def __dlpack__(self, stream=None):
        capsule = super().__dlpack__(stream)
        ALIVE.append((self.raw, self.managed, self.keep))
        return capsule


def tensor(r, bag, a, _):
    """By DLPack alone."""
    kind = {"i": 0, "u": 1, "f": 2, "b": 6}[a.dtype.kind]
    return Kept(a.tobytes(), kind, 8 * a.itemsize, a.shape, None)


def layout(r, a):
    return r.choice([plain, fortran, stepped, backwards, permuted, unaligned])(r, None, a, None)


# ---- Files ----

def saved(r, a):
    return r.choice([a, np.array(a, order="F"), swapped(a), np.array(swapped(a), order="F")])


def file(r, bag, a, _):
    path = bag.path("npy")
    np.save(path, saved(r, a))
    return cured.file(path)


def archive(r, bag, a, _):
    path = bag.path("npz")
    r.choice([np.savez, np.savez_compressed])(path, x=saved(r, a), y=np.ones(3))
    return cured.file(path + ":x")


# ---- Containers of libraries ----

def cut(r, a):
    """Chunks of some extent along each axis."""
    return tuple(r.randint(1, max(n, 1)) for n in a.shape)


def hdf5(r, bag, a, _):
    made = h5py.File("%d" % next(NUMBER), "w", driver="core", backing_store=False)
    bag.open.append(made)
    return made.create_dataset("x", data=r.choice([a, swapped(a)]), chunks=cut(r, a) if a.ndim and a.size and r.random() < 0.7 else None)


def of_zarr(r, bag, a, _):
    return zarr.array(r.choice([a, swapped(a)]), chunks=cut(r, a) if a.ndim else True)


def net_cdf(r, bag, a, missing):
    if a.dtype.kind == "b" or a.dtype.str[1:] == "f2" or not a.size:
        return None
    made = netCDF4.Dataset("%d" % next(NUMBER), "w", diskless=True, persist=False)
    bag.open.append(made)
    names = ["d%d" % k for k in range(a.ndim)]
    for name, n in zip(names, a.shape):
        made.createDimension(name, n)
    variable = made.createVariable("x", a.dtype, names, **({"chunksizes": cut(r, a)} if a.ndim else {}))
    variable.set_auto_maskandscale(False)
    variable[...] = a
    return variable


def of_xarray(r, bag, a, _):
    return r.choice([xarray.DataArray, lambda x: xarray.DataArray(x).variable])(layout(r, a))


def of_dask(r, bag, a, missing):
    whole = a if missing is None else np.ma.masked_array(a, missing)
    return dask.array.from_array(whole, chunks=cut(r, a) if a.ndim else -1, asarray=False)


def xarray_on_dask(r, bag, a, _):
    return xarray.DataArray(of_dask(r, bag, a, None))


def series(r, bag, a, _):
    return r.choice([pandas.Series, lambda x: pandas.Series(x).array])(a.copy()) if a.ndim == 1 else None


def nullable(r, bag, a, missing):
    kind = {"b": "BooleanArray", "u": "IntegerArray", "i": "IntegerArray", "f": "FloatingArray"}[a.dtype.kind]
    if a.ndim != 1 or a.dtype.str[1:] == "f2":
        return None
    return pandas.Series(getattr(pandas.arrays, kind)(a.copy(), np.zeros(a.shape, bool) if missing is None else missing.copy()))


def masked(r, bag, a, missing):
    mask = r.choice([np.array, np.asfortranarray])(np.zeros(a.shape, bool) if missing is None else missing)
    return np.ma.masked_array(r.choice([a, layout(r, a), swapped(a)]), mask)


# ---- Arrow ----

def node(r, a, missing):
    """With elements before the first one."""
    before = r.choice([0, 0, 1, 5, 9])
    mask = None if missing is None else np.concatenate([np.ones(before, bool), missing])
    return arrow_producer.Node(np.concatenate([np.zeros(before, a.dtype), a]), mask, before, name="x")


def arrow(r, bag, a, missing):
    return arrow_producer.OfArray(node(r, a, missing)) if a.ndim == 1 else None


def arrow_chunks(r, bag, a, missing):
    if a.ndim != 1:
        return None
    cuts = [0, *sorted(r.randint(0, len(a)) for _ in range(r.randint(0, 3))), len(a)]
    return arrow_producer.OfStream([node(r, a[x:y], None if missing is None else missing[x:y]) for x, y in zip(cuts, cuts[1:])])


def arrow_column(r, bag, a, missing):
    if a.ndim != 1:
        return None
    column = node(r, a, missing)
    column.name = "price"
    return cured.column(arrow_producer.OfArray(arrow_producer.Node(columns=[column], length=len(a))), r.choice(["price", 0]))


# ---- Which there are ----

MEMORY = [plain, fortran, stepped, backwards, permuted, unaligned, broadcast, big_endian, subclass, read_only, shared, mapped, view, of_python, tensor]
FILES = [file, archive]
BLOCKS = [hdf5, of_zarr, net_cdf, of_xarray, of_dask, xarray_on_dask] if dask else []
TABLES = [series, nullable] if dask else []
ARROWS = [arrow, arrow_chunks, arrow_column]
MISSING = [masked, arrow, arrow_chunks, arrow_column] + ([of_dask, nullable] if dask else [])


def hold(r, bag, a, missing=None, files=True):
    """(the maker's name, an object that holds the array)."""
    while True:
        kinds = MISSING if missing is not None else r.choice([MEMORY, FILES if files else MEMORY, BLOCKS or MEMORY, BLOCKS or ARROWS, TABLES + ARROWS + [masked]])
        make = r.choice(kinds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = make(r, bag, a, missing)
        if made is not None:
            return make.__name__, made


def hold_case(r, bag, c):
    """(name, object) of a case's first array; types that NumPy has not go by DLPack."""
    if c.dtype in DLPACK:
        return "tensor", Kept(c.raw, *DLPACK[c.dtype], c.shape, None)
    return hold(r, bag, c.array, c.missing)
