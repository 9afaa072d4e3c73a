#!/usr/bin/env python3
"""test_chips: whether docs/CHIPS.md says what the kernels are made of, and what follows from that.

  test_chips.py page                the shares of memory's speed follow from the page's other two tables
  test_chips.py BUILD [--update]    the instructions for an element are those of this build's machine code, for the chips that it has.
                                    Needs a build with CUDA by the compiler that the page names, but no GPU; skipped (77) otherwise
  test_chips.py library BUILD       each kernel in libcured-cuda has code for just the chips that the build was configured for, and all of
                                    it is small; skipped (77) without CUDA
"""
import collections
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import sass  # noqa: E402
from test_kernel_usage import compiler_of  # noqa: E402

PAGE = os.path.join(HERE, "..", "..", "docs", "CHIPS.md")
CODES = (80, 90, 100, 120)
WALK, BURST, STRIPS = ("_Z7cr_walkI12cr_float_sumI{}Li{}ELi4ELi4EEEv12cr_fold_args", "_Z18cr_burst_float_sumI{}Li4ELb1ELb0EEv13cr_burst_args",
                       "_Z14cr_axis_stripsIL8cr_dtype{}ELb0E{}Ev12cr_axis_args")
SQUARES = "_Z7cr_walkI16cr_whole_squaresI{}{}Li0ELi4ELi4EEEv12cr_fold_args"
NARROW, SECOND_WAYS, F16, BF16 = "../walk/narrow", "../walk/second", "9cr_narrowI6cr_f16E", "9cr_narrowI7cr_bf16E"
COLUMNS, PIECES = "_Z12cr_axis_walkI13cr_axis_floatIL8cr_dtype{}ELi{}ELi16ELb{}E{}EEv12cr_axis_args", "_Z21cr_segments_by_piecesIL8cr_dtype{}ELi{}E{}Ev16cr_segments_args"
WITHOUT64 = "_Z7cr_walkI9cr_secondI{}Li{}EEEv12cr_fold_args"
# name of a row: unit, kernel, bytes of a turn of its loop, bytes of an element, and float64 instructions and conversions for each: what
# adds up all elements of a turn has as many of each at least. None of both: it has none at all; then the name of an instruction and how
# many of it an element takes.
KERNELS = {
    "sum f32": ("sums_floats", WALK.format("6cr_f32", 0), 64, 4, 1, 1),
    "sum bf16": ("sums_halves", WALK.format("7cr_bf16", 0), 64, 2, 1, 0),
    "sum f16": ("sums_halves", WALK.format("6cr_f16", 0), 64, 2, 1, 0),
    "sum f64": ("sums_floats", WALK.format("6cr_f64", 0), 64, 8, 4, 0),
    "sumsq f32": ("sums_floats", WALK.format("6cr_f32", 2), 64, 4, 4, 1),
    "sumsq bf16": ("sums_halves", SQUARES.format("7cr_bf16", "12cr_bf16_once"), 64, 2, 1, 1),
    "sumsq f16": ("sums_halves", SQUARES.format("6cr_f16", "11cr_f16_once"), 64, 2, 1, 1),
    "sumsq f64": ("sums_floats", WALK.format("6cr_f64", 2), 64, 8, 10, 0),
    "sum f32, up to 66 MiB": ("sums_floats", BURST.format("6cr_f32"), 64, 4, 0, 1),
    "sum f16, second way": (NARROW, "_Z7cr_walkI13cr_narrow_f16Ev12cr_fold_args", 64, 2, 0, 0, "FADD", 4),
    "sum bf16, second way": (NARROW, "_Z7cr_walkI14cr_narrow_bf16Ev12cr_fold_args", 64, 2, 0, 0, "FADD", 4),
    "sum f32, second way": (SECOND_WAYS, WITHOUT64.format("6cr_f32", 0), 64, 4, 0, 0, "FADD", 4),
    "sum f64, second way": (SECOND_WAYS, WITHOUT64.format("6cr_f64", 0), 64, 8, 0, 0, "IMAD.WIDE", 2),
    "sumsq f32, second way": (SECOND_WAYS, WITHOUT64.format("6cr_f32", 2), 64, 4, 0, 0, "IMAD.WIDE", 4),
    "sumsq f64, second way": (SECOND_WAYS, WITHOUT64.format("6cr_f64", 2), 64, 8, 0, 0, "IMAD.WIDE", 8),
    "sum bf16, up to 66 MiB": ("sums_halves", BURST.format("7cr_bf16"), 64, 2, 1, 0),
    "sum f64, up to 66 MiB": ("sums_floats", BURST.format("6cr_f64"), 64, 8, 4, 0),
    "rows f32": ("axis_floats", STRIPS.format(12, "6cr_f32"), 128, 4, 1, 1),
    "rows bf16": ("axis_halves", STRIPS.format(11, "7cr_bf16"), 128, 2, 1, 0),
    "rows f64": ("axis_floats", STRIPS.format(13, "6cr_f64"), 128, 8, 4, 0),
    "sumsq bf16, second way": (NARROW, WALK.format(BF16, 2), 64, 2, 0, 0, "FADD", 5),
    "sumsq f16, second way": (NARROW, WALK.format(F16, 2), 64, 2, 0, 0, "FADD", 5),
    "rows bf16, second way": ("axis_narrow", STRIPS.format(11, BF16), 128, 2, 0, 0, "FADD", 4),
    "rows f16, second way": ("axis_narrow", STRIPS.format(10, F16), 128, 2, 0, 0, "FADD", 4),
    "columns bf16, second way": ("axis_narrow", COLUMNS.format(11, 0, 1, BF16), 64, 2, 0, 0, "FADD", 4),
    "columns f16, second way": ("axis_narrow", COLUMNS.format(10, 0, 1, F16), 64, 2, 0, 0, "FADD", 4),
    "columns' squares bf16, second way": ("axis_narrow", COLUMNS.format(11, 2, 0, BF16), 64, 2, 0, 0, "FADD", 5),
    "columns' squares f16, second way": ("axis_narrow", COLUMNS.format(10, 2, 0, F16), 64, 2, 0, 0, "FADD", 5),
    "segments bf16, second way": ("offsets_narrow", PIECES.format(11, 0, BF16), 128, 2, 0, 0, "FADD", 4),
    "segments f16, second way": ("offsets_narrow", PIECES.format(10, 0, F16), 128, 2, 0, 0, "FADD", 4),
    "segments' squares bf16, second way": ("offsets_narrow", PIECES.format(11, 1, BF16), 128, 2, 0, 0, "FADD", 5),
    "segments' squares f16, second way": ("offsets_narrow", PIECES.format(10, 1, F16), 128, 2, 0, 0, "FADD", 5),
}
SHARED = ("sum f32", "sum bf16", "sum f16", "sum f64", "sumsq f32", "sumsq bf16", "sumsq f64")  # columns of the table of shares
# Their loops have no float64 instruction at all, not even where elements fit no window.
NONE_AT_ALL = ("sum f16, second way", "sum f64, second way", "sumsq f32, second way", "sumsq f64, second way")
MOST_BYTES = 30 << 20                                          # of the library with all chips
ISSUED = 0.7                                                   # of what can be issued: an allowance
# The second ways: bytes of an element, and the row that has their instructions.
SECOND = ((4, "sum f32, second way"), (2, "sum bf16, second way"), (2, "sum f16, second way"), (8, "sum f64, second way"),
          (4, "sumsq f32, second way"), (8, "sumsq f64, second way"))


def tables(text):
    """{first heading cell: [rows of cells]} of a page."""
    found, rows = {}, None
    for line in text.split("\n"):
        if not line.startswith("|"):
            rows = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if rows is None:
            rows = found[cells[0]] = []
        rows.append(cells)
    return {name: [rows[0]] + rows[2:] for name, rows in found.items()}


def cell(adds, converts, whole):
    return f"{adds:.1f} + {converts:.1f} of {whole:.1f}"


def numbers(text):
    """(float64 instructions, conversions, all) of a cell; None: not known."""
    found = re.fullmatch(r"([\d.]+) \+ ([\d.]+) of ([\d.]+)", text)
    return tuple(float(n) for n in found.groups()) if found else None


def count(objects, name, code):
    """The cell of a kernel's row; None: this build has no such code."""
    _, kernel, turn, size, adds, converts, *also = KERNELS[name]
    found = objects.get((code, kernel))
    if found is None:
        return None
    flow = sass.Flow(found)
    if name in NONE_AT_ALL and any(one.name in sass.FLOAT64 for body in flow.loops().values() for at in body for one in flow.blocks[at]):
        return "float64"
    elements = turn // size
    way = flow.cheapest(int(adds * elements), int(converts * elements), turn, also[:1], sum(also[1:]) * elements)
    if way is None:
        return "rolled"
    of = [sum(one.name in names for one in way) / elements for names in (sass.ADDS64, sass.CONVERTS64)]
    return cell(*of, len(way) / elements)


def rates(rows):
    """{chip: (code, bytes/s, float64 instructions/s, instructions issued/s)}."""
    found = {}
    for chip, code, memory, f64, f32, lanes, *_ in rows[1:]:
        plain = [float(text.replace(",", "")) for text in (memory, f64, f32, lanes)]
        found[chip] = (int(code), plain[0] * 1e9, plain[1] * 1e12 / 2, plain[2] * 1e12 / 2 * 128 / plain[3])
    return found


def share(rate, size, counted):
    """Of memory's speed: where conversions take turns with the float64 instructions, and where they cost nothing."""
    _, memory, slow, issued = rate
    adds, converts, whole = counted
    ends = []
    for pipe in (adds + converts, adds):
        speed = [memory, ISSUED * issued / whole * size] + ([slow / pipe * size] if pipe else [])
        ends.append(f"{min(speed) / memory:.2f}")
    return ends[0] if ends[0] == ends[1] else " … ".join(ends)


def shares(made, rate_of):
    """The rows of the table of shares."""
    codes = {int(head): i for i, head in enumerate(made[0]) if head.isdigit()}
    row_of = {row[0]: row for row in made[1:]}
    for chip, rate in rate_of.items():
        row = [chip]
        for name in SHARED:
            counted = numbers(row_of[name][codes[rate[0]]])
            row.append(share(rate, KERNELS[name][3], counted) if counted else "?")
        for size, planned in SECOND:
            planned = numbers(row_of[planned][codes[rate[0]]])[2]
            fits = ISSUED * rate[3] * size / rate[1]
            row.append(f"{fits:.1f}: {min(1, fits / planned):.2f}")
        yield row


def check_page(text):
    found = tables(text)
    told, wrong = found["share"][1:], 0
    for row in shares(found["kernel"], rates(found["chip"])):
        if row not in told:
            wrong += 1
            print("docs/CHIPS.md should have: | " + " | ".join(row) + " |")
    if len(told) != len(found["chip"]) - 1 or {row[0] for row in found["kernel"][1:]} != set(KERNELS):
        wrong += 1
        print("docs/CHIPS.md: there are too many or too few rows")
    for row in found["chip"][1:]:
        if "](http" not in row[-1]:
            wrong += 1
            print(f"docs/CHIPS.md: {row[0]} has no source")
    print(f"{len(told)} chips, {wrong} wrong")
    return 1 if wrong else 0


def update(text, counted):
    """The page with what was counted, and what follows from it."""
    lines = text.split("\n")
    head = next(i for i, line in enumerate(lines) if line.startswith("| kernel |"))
    columns = [word.strip() for word in lines[head].strip("|").split("|")]
    for at in range(head + 2, head + 2 + len(KERNELS)):
        cells = [word.strip() for word in lines[at].strip("|").split("|")]
        for i, column in enumerate(columns):
            if column.isdigit():
                cells[i] = counted.get((cells[0], int(column))) or cells[i]
        lines[at] = "| " + " | ".join(cells) + " |"
    found = tables("\n".join(lines))
    head = next(i for i, line in enumerate(lines) if line.startswith("| share |"))
    last = next(i for i in range(head, len(lines)) if not lines[i].startswith("|"))
    rows = shares(found["kernel"], rates(found["chip"]))
    lines[head + 2:last] = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def check_library(build):
    path, cache = os.path.join(build, "lib", "libcured-cuda.so.0"), os.path.join(build, "CMakeCache.txt")
    with open(cache, encoding="utf-8") as f:
        asked = re.search(r"^CMAKE_CUDA_ARCHITECTURES:\w+=(.*)$", f.read(), re.M)
    if not asked or not os.path.exists(path):
        print("skipped: this build has no kernels")
        return 77
    entries = re.findall(r"(\d+)(-real|-virtual|)(?:;|$)", asked.group(1))
    if len(entries) != len(asked.group(1).split(";")):
        print(f"skipped: which chips {asked.group(1)} means, nvcc alone knows")
        return 77
    wanted = {(sass.CUBIN, int(chip)) for chip, form in entries if form != "-virtual"}
    wanted |= {(sass.PTX, int(chip)) for chip, form in entries if form != "-real"}
    with open(path, "rb") as f:
        found = sass.sections(f.read())
    units = collections.Counter(code[:2] for code in sass.codes(found[".nv_fatbin"]))
    size = sum(len(body) for name, body in found.items() if not name.startswith((".debug", ".symtab", ".strtab")))
    print(f"{dict(units)} and {size:,} bytes without debug information")
    if set(units) != wanted or len(set(units.values())) != 1:
        print(f"wanted are {wanted}, as many of each")
        return 1
    return 1 if size > MOST_BYTES else 0


def object_of(folder, unit):
    """The object that has a unit of instance/*.def: its own, or that of a file which includes it (kernels/cuda/CMakeLists.txt)."""
    source = os.path.normpath(os.path.join("instance", unit)) + ".cu"
    for name in glob.glob(os.path.join(folder, "together", "*.cu")):
        with open(name, encoding="utf-8") as f:
            if f'/{source}"' in f.read():
                return os.path.join(folder, "CMakeFiles", "cured_cuda.dir", "together", os.path.basename(name) + ".o")
    return os.path.join(folder, "CMakeFiles", "cured_cuda.dir", source + ".o")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 64
    if sys.argv[1] == "library":
        return check_library(sys.argv[2])
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    if sys.argv[1] == "page":
        return check_page(text)
    folder = os.path.join(sys.argv[1], "kernels", "cuda")
    objects = {}
    for path in sorted({object_of(folder, row[0]) for row in KERNELS.values()}):
        if not os.path.exists(path):
            print("skipped: this build has no kernels")
            return 77
        objects.update(sass.of_object(path))
    version, told = compiler_of(sys.argv[1]), re.search(r"nvcc ([\d.]+\d)", text).group(1)
    counted = {(name, code): count(objects, name, code) for name in KERNELS for code in CODES}
    counted = {key: value for key, value in counted.items() if value}
    built = {code for _, code in counted}
    lacking = [(name, code) for name in KERNELS for code in sorted(built) if (name, code) not in counted]
    for name, code in lacking:
        print(f"{name}, chip {code}: the build has no such kernel; mend its name in KERNELS")
    if lacking:
        return 1
    if "--update" in sys.argv:
        text = re.sub(r"nvcc [\d.]+\d", f"nvcc {version}", update(text, counted))
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    if version != told:
        print(f"skipped: the page was made with nvcc {told}, this is {version}")
        return 77
    made, wrong = tables(text)["kernel"], 0
    codes = {int(head): i for i, head in enumerate(made[0]) if head.isdigit()}
    row_of = {row[0]: row for row in made[1:]}
    for (name, code), value in counted.items():
        if row_of[name][codes[code]] != value:
            wrong += 1
            print(f"{name}, chip {code}: {value}; docs/CHIPS.md says {row_of[name][codes[code]]}. --update writes it anew")
    print(f"{len(counted)} loops, {wrong} other than docs/CHIPS.md says")
    return 1 if wrong or not counted else 0


if __name__ == "__main__":
    sys.exit(main())
