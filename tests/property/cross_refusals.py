"""What cross_property.py may be told instead of an answer: sentences that docs/PYTHON.md and docs/ARRAYS.md promise. Whatever else is raised
where there is an answer is a failure."""
import re

SENTENCES = [
    # AsyncClient
    r"^AsyncClient takes no (lists|containers)",
    r"^AsyncClient takes no initial",
    r"^ddof: AsyncClient takes a whole number",
    r"^where: prod of floats goes by the places of all, and this mask has to be copied first",
    # Files
    r"^(where|keys|offsets|second): a file is the first array alone: pass numpy.load\(path, mmap_mode='r'\)",
    r"^where: not with keys of a file: reduce numpy.load\(path\)",
    r"^where, initial: only arrays of this process take them",
    r"^the file's array is deflated and in Fortran order, and these ops count in C order: reduce numpy.load\(path\)\[name\]",
    r"^axis: axes of a file go together where they are neighbours and the order of the file is the array's",
    r"^ddof: along an axis of a file a whole number is wanted",
    # Lists
    r"^(axis|keepdims|initial|where|offsets|keys|min_count): a list of arrays (is one array without axes|takes none|takes no mask)",
    r"^prod: of floats in a list, each array but the last must have a multiple of 4096 elements",
    r"^nulls: quantiles of a list take none",
    # By key and by offsets
    r"^ops: op (median|quantile) is answered of whole arrays and along an axis, not by (key|offsets)",
    r"^(offsets|keys|groups|drop)(, \w+)*: a quantile takes none",
    r"op prod of \w+ goes by the places of elements, and there is none by key: of integers there is",
    r"^keys: the array's rows have no elements",  # of partials
    r"^(keys|offsets|groups|drop|initial|second): not with a ddof that is no whole number",
    # cured-client
    r"^cured-client: .*(--where|--second|--keys|--offsets) wants C order, and .* is in Fortran order: numpy.ascontiguousarray turns it",
    r"^cured-client: .*--offsets: .* must have one dimension of i32, i64, u32 or u64",
    r"^cured-client: .*--keys: the rows of .* have no elements",
    r"^cured-client: .*--(keys|offsets): (median|quantile) is of whole arrays and along axes",
    # Containers whose slices, rows or segments are too long for memory
    r"^axis: the blocks of whole slices along it have more than \d+ bytes",
    r"^keys: the blocks of all rows have more than \d+ bytes, so .* by key is not answered",
    r"^keys: a row has more than \d+ bytes: reduce parts of the columns",
    r"^offsets: segment \d+ has more than \d+ bytes, the limit in a container: reduce it by itself",
    r"^\w+: the container has \d+ bytes, and beside an array in memory \d+ are read at most",
    # CUDA tensors
    r"^second: in device memory whole arrays are answered, without (mask|where)",
    r"^second: pairs of \w+ are not reduced in device memory",
    r"^ops: op (quantile|median) of device memory is answered of a whole array alone",
    r"^ops: the GPU has no kernel that finishes one of them over \d+ elements; ask for answers in host memory",
    r"^where: under a mask in device memory op \w+ is not answered yet",
    r"^ops: the GPU has no kernel for \w+ of \w+ (by key|by offsets|under a mask or along an axis|along an axis)",
    r"^initial: not with CUDA tensors",
    r"^arrays\[\d+\]: \d+ elements; of a product of floats in several arrays each but the last has a multiple of 4096",
    r"^ddof: along an axis of a CUDA tensor a whole number is wanted",
    r"^axis: axes of a CUDA tensor go together where they are neighbours",
    # The rest
    r"^prod of floats needs the place of each element, which a masked chunk has not: reduce dask.array.ma.filled",  # of no axes alone
    r"^where: beside the array's own mask a mask that NumPy reads is wanted",
    r"^(first|ops): a part under a mask has no position",  # which a masked array is, whatever is missing
    r"^op digest is of all bytes, and takes no mask",
    r"^min_count: not with nan='skip' and two arrays",
    r"^asked: a daemon counts for no search, such as medians and quantiles of arrays in parts",
    r"^(where|second|keys|offsets): \w+ is no array of NumPy's",  # bools by DLPack alone, which NumPy 1.24 does not take
    r"^ddof: along an axis of elements that NumPy has not a whole number is wanted",
]
KNOWN = [re.compile(sentence) for sentence in SENTENCES]


def known(error):
    """The sentence that an exception is, or None."""
    if not isinstance(error, (TypeError, ValueError, NotImplementedError)):
        return None
    return next((sentence.pattern for sentence in KNOWN if sentence.search(str(error))), None)
