"""What cross_property.py may be told instead of an answer: sentences that docs/PYTHON.md and docs/ARRAYS.md promise, each with what has to be asked
for it: a door, who holds the arrays, an option. Whatever else is raised where there is an answer is a failure."""
import math
import re

import cross_holders as holders
from cross_draw import PAIRS, RANKED
from support import NUMPY

FILES = {make.__name__ for make in holders.FILES}
CONTAINERS = {make.__name__ for make in holders.BLOCKS + holders.ARROWS}  # they are read in blocks
DASK = {"of_dask", "xarray_on_dask"}
MISSING = {make.__name__ for make in holders.MISSING}
PARTS = ("parts", "parts_together", "listed", "parts_anywhere", "blocks_anywhere")
CLIENTS = ("command_line", "lacking", "parts_anywhere", "blocks_anywhere")  # who may ask cured-client
PLACED = ("parts_anywhere", "blocks_anywhere")  # which say where a part is
INDICES = ("argmin", "argmax")


class Asked:
    """What was asked, in the words of the ties below. role: the argument that a sentence begins with."""

    def __init__(self, ask, match):
        self.ask, self.case, self.match = ask, ask.case, match
        self.options, self.beside, self.op = ask.case.options, ask.case.beside, ask.case.op

    def held(self, kinds, role="array"):
        return bool(self.ask.roles[role] & kinds)

    def named(self, kinds):
        return self.held(kinds, self.match[1])

    def gives(self, name):
        return name in self.options or name in self.beside or name == "second" and self.op in PAIRS

    @property
    def cuda(self):
        return self.ask.door.startswith("cuda.")

    @property
    def listed(self):
        return self.ask.door in ("listed", "cuda.listed")

    @property
    def via(self):
        return self.ask.via == "descriptor"

    @property
    def ranked(self):
        return self.op in RANKED

    @property
    def grouped(self):
        return "keys" in self.beside or "offsets" in self.beside

    @property
    def along(self):
        return self.options.get("axis") is not None or "keepdims" in self.options

    @property
    def masked(self):
        return self.case.missing is not None or "where" in self.beside or self.held({"masked"})

    @property
    def float_product(self):
        return self.op == "prod" and self.case.is_float

    @property
    def fraction(self):
        return self.options.get("ddof", 0) not in (0, 1, 2, 3)  # -1, too

    @property
    def no_rows(self):
        return "keys" in self.beside and math.prod(self.case.shape[1:]) == 0


SENTENCES = [
    # AsyncClient
    (r"^AsyncClient takes no containers", lambda a: a.ask.awaits and a.held(CONTAINERS)),
    (r"^AsyncClient takes no initial", lambda a: a.ask.awaits and (a.gives("initial") or a.masked and a.along)),
    (r"^ddof: AsyncClient takes a whole number", lambda a: a.ask.awaits and a.fraction),
    (r"^where: prod of floats goes by the places of all, and this mask has to be copied first",
     lambda a: a.ask.awaits and a.float_product and a.masked),
    # Files
    (r"^(where|keys|offsets|second): a file is the first array alone: pass numpy.load\(path, mmap_mode='r'\)", lambda a: a.named(FILES)),
    (r"^where: not with keys of a file: reduce numpy.load\(path\)", lambda a: a.held(FILES) and "keys" in a.beside and a.masked),
    (r"^where, initial: only arrays of this process take them", lambda a: a.held(FILES) and (a.gives("where") or a.gives("initial"))),
    (r"^the file's array is deflated and in Fortran order, and these ops count in C order: reduce numpy.load\(path\)\[name\]",
     lambda a: a.held({"archive"})),
    (r"^axis: axes of a file go together where they are neighbours and the order of the file is the array's", lambda a: a.held(FILES) and a.along),
    (r"^ddof: (along an axis|by key|by offsets) of a file a whole number is wanted", lambda a: a.held(FILES) and (a.along or a.grouped) and a.fraction),
    # Lists
    (r"^(axis|keepdims|initial|where|offsets|keys|min_count|nulls): a list of arrays (is one array without axes|takes none|takes no mask)",
     lambda a: a.listed and a.gives(a.match[1])),
    (r"^prod: of floats in a list, each array but the last must have a multiple of 4096 elements", lambda a: a.listed and a.float_product),
    (r"^ops: (prod|argmin|argmax) goes by the places of elements, which a list with masked arrays has not",
     lambda a: a.ask.door in PARTS and a.held(MISSING) and (a.op in INDICES or a.float_product)),
    (r"^partial: without a position there is no arg(min|max) of",  # of no elements, which says so in other words
     lambda a: a.ask.door in PARTS and a.op in INDICES and 0 in a.case.shape),
    # By key and by offsets
    (r"op prod of \w+ goes by the places of elements, and there is none by key: of integers there is",
     lambda a: a.float_product and "keys" in a.beside),
    (r"^keys: the array's rows have no elements", lambda a: a.no_rows and (a.cuda or a.ask.door in PARTS)),
    (r"^(initial|second): not with a ddof that is no whole number", lambda a: a.fraction and a.gives(a.match[1])),
    # cured-client
    (r"^cured-client: .*--(where|second|keys|offsets) wants C order, and .* is in Fortran order: numpy.ascontiguousarray turns it",
     lambda a: a.gives(a.match[1]) or a.match[1] == "where" and a.masked),
    (r"^cured-client: .*--offsets: .* must have one dimension of i32, i64, u32 or u64", lambda a: "offsets" in a.beside),
    (r"^cured-client: .*--keys: the rows of .* have no elements", lambda a: a.no_rows),
    (r"^cured-client: .*unknown option '--(initial|min-count|nulls)'; see cured-client --help", lambda a: a.ask.door == "lacking"),
    (r"^cured-client: .*--via descriptor wants a regular file, which standard input is not", lambda a: a.via and a.ask.files.is_piped),
    (r"^cured-client: .*--via descriptor wants a regular file or an array that is not deflated", lambda a: a.via and a.ask.files.is_deflated),
    (r"^cured-client: .*--via descriptor wants little-endian elements, .* has big-endian ones", lambda a: a.via and a.ask.files.is_big),
    (r"^cured-client: .* is in Fortran order, and indices, products of floats and keys count in C order: that takes a regular file that is not "
     "deflated, without --via descriptor", lambda a: a.via or a.ask.files.is_piped or a.ask.files.is_deflated),
    (r"^cured-client: .*--axis: dimensions that do not lie side by side are read to memory, which goes with no --via descriptor",
     lambda a: a.via and a.along),
    # Regions
    (r"^ops: medians and quantiles are of one array, and not of several regions together", lambda a: a.ask.door == "Native.ask" and a.ranked),
    # Containers whose slices, rows or segments are too long for memory
    (r"^axis: the blocks of whole slices along it have more than \d+ bytes", lambda a: a.held(CONTAINERS) and a.along and a.case.raw),
    (r"^keys: the blocks of all rows have more than \d+ bytes, so .* by key is not answered",
     lambda a: a.held(CONTAINERS) and "keys" in a.beside and a.case.raw),
    (r"^keys: a row has more than \d+ bytes: reduce parts of the columns", lambda a: a.held(CONTAINERS) and "keys" in a.beside),
    (r"^offsets: segment \d+ has more than \d+ bytes, the limit in a container: reduce it by itself",
     lambda a: a.held(CONTAINERS) and "offsets" in a.beside),
    (r"^(\w+): the container has \d+ bytes, and beside an array in memory \d+ are read at most", lambda a: a.named(CONTAINERS)),
    # CUDA tensors
    (r"^second: in device memory whole arrays are answered, without (mask|where)",
     lambda a: a.cuda and a.op in PAIRS and (a.masked or a.along or a.grouped)),
    (r"^second: pairs of (\w+) are not reduced in device memory", lambda a: a.cuda and a.op in PAIRS and a.match[1] == a.case.dtype),
    (r"^ops: op (quantile|median) of device memory is answered of a whole array alone",
     lambda a: a.cuda and a.op == a.match[1] and (a.masked or a.along or a.grouped)),
    (r"^ops: the GPU has no kernel that finishes one of them over \d+ elements; ask for answers in host memory", lambda a: a.cuda),
    (r"^where: under a mask in device memory op \w+ is not answered yet", lambda a: a.cuda and a.masked),
    (r"^ops: the GPU has no kernel for \w+ of (\w+) (by key|by offsets|under a mask or along an axis|along an axis)",
     lambda a: a.cuda and a.match[1] == a.case.dtype and (a.match[2][3:] in ("key", "offsets") and a.grouped or a.masked or a.along)),
    (r"^initial: not with CUDA tensors", lambda a: a.cuda and a.gives("initial")),
    (r"^arrays\[\d+\]: \d+ elements; of a product of floats in several arrays each but the last has a multiple of 4096",
     lambda a: a.cuda and a.float_product),
    (r"^ddof: (along an axis|by key|by offsets) of a CUDA tensor a whole number is wanted", lambda a: a.cuda and a.fraction and (a.along or a.grouped)),
    (r"^axis: axes of a CUDA tensor go together where they are neighbours", lambda a: a.cuda and a.along),
    # The rest
    (r"^prod of floats needs the place of each element, which a masked chunk has not: reduce dask.array.ma.filled",  # of no axes alone
     lambda a: a.float_product and a.held(DASK) and a.masked),
    (r"^where: beside the array's own mask a mask that NumPy reads is wanted", lambda a: a.held(MISSING) and a.held({"tensor"}, "where")),
    (r"^(first|ops|shape, start): a part under a mask has no position",  # which a masked array is, whatever is missing
     lambda a: a.ask.door in PARTS and (a.held(MISSING) or "where" in a.beside)
     and (a.ask.door in PLACED or a.op in INDICES or a.op == "digest" or a.float_product)),
    (r"^op digest is of all bytes, and takes no mask", lambda a: a.op == "digest" and a.held(MISSING)),
    (r"^min_count: not with nan='skip' and two arrays", lambda a: a.op in PAIRS and a.gives("min_count") and a.gives("nan")),
    (r"^asked: a daemon counts for no search, such as medians and quantiles of arrays in parts",
     lambda a: a.ranked and a.held(CONTAINERS) and a.ask.door != "module"),
    (r"^(where|second|keys|offsets): \w+ is no array of NumPy's", lambda a: a.named({"tensor"})),  # bools, which NumPy 1.24 does not take so
    (r"^ddof: (along an axis|by key|by offsets) of elements that NumPy has not a whole number is wanted",  # bools by DLPack alone, too
     lambda a: (a.along or a.grouped) and a.fraction and (a.case.dtype not in NUMPY or a.case.dtype == "bool" and a.held({"tensor"}))),
]
KNOWN = [(re.compile(sentence), tie) for sentence, tie in SENTENCES]


def known(error, ask):
    """The sentence that an exception is, where what was asked can meet it; or None."""
    if not isinstance(error, (TypeError, ValueError, NotImplementedError)):
        return None
    if str(error).startswith("cured-client: ") and ask.door not in CLIENTS:
        return None
    said = re.sub("^weights: ", "second: ", str(error)) if ask.case.op == "average" else str(error)
    for sentence, tie in KNOWN:
        match = sentence.search(said)
        if match and tie(Asked(ask, match)):
            return sentence.pattern
    return None
