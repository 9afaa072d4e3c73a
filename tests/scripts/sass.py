"""sass: what GPU kernels are made of. Reads the machine code (SASS) that an object file holds for each chip: its instructions, where its
branches go, its loops, and the cheapest way round a loop.

A module, which test_sass.py and test_chips.py use; nothing that decodes need be installed. Its opcodes are proven, not believed: test_sass.py
assembles known instructions for each chip and looks for them.
"""
import collections
import ctypes
import ctypes.util
import struct

FATBIN, PTX, CUBIN, ZSTD = 0xBA55ED50, 1, 2, 0x8000

# The low 9 bits of an instruction say what it does; the 3 bits above them say where its operands lie.
OPCODES = {
    0x028: "DMUL", 0x029: "DADD", 0x02a: "DSETP", 0x02b: "DFMA",
    0x110: "F2F.64", 0x111: "F2I.64", 0x112: "I2F.64", 0x113: "FRND.64",
    0x105: "F2I", 0x106: "I2F", 0x045: "I2FP", 0x030: "HADD2",
    0x020: "FMUL", 0x021: "FADD", 0x023: "FFMA", 0x024: "IMAD", 0x025: "IMAD.WIDE", 0x027: "IMAD.HI",
    0x007: "SEL", 0x008: "FSEL", 0x009: "FMNMX", 0x00b: "FSETP", 0x00c: "ISETP", 0x010: "IADD3", 0x012: "LOP3", 0x016: "PRMT",
    0x017: "IMNMX", 0x019: "SHF", 0x048: "VIMNMX",
    0x181: "LDG", 0x1ae: "LDGSTS", 0x147: "BRA", 0x14d: "EXIT", 0x118: "NOP",
}
ADDS64 = ("DMUL", "DADD", "DSETP", "DFMA")               # on the float64 pipe
CONVERTS64 = ("F2F.64", "F2I.64", "I2F.64", "FRND.64")   # to or from 64 bits
FLOAT64 = ADDS64 + CONVERTS64
# A copy into shared memory (LDGSTS) has 16: the kernels make no others.
LOADED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}     # bytes, by the field of a load


def sections(elf):
    """{name: bytes} of a 64-bit ELF file."""
    if elf[:5] != b"\x7fELF\x02":
        raise ValueError("no 64-bit ELF file")
    at, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, at + size * i) for i in range(count)]
    found = {}
    for name, kind, _, _, offset, length, *_ in heads:
        start = heads[names][4] + name
        found[elf[start:elf.index(b"\0", start)].decode()] = b"" if kind == 8 else elf[offset:offset + length]  # 8: not in the file
    return found


def unzstd(packed, length):
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    room = ctypes.create_string_buffer(length)
    if library.ZSTD_decompress(room, length, packed, len(packed)) != length:
        raise ValueError("kernels are not packed as their header says")
    return room.raw


def codes(fatbin):
    """Of a section .nv_fatbin: (kind, chip, bytes, how many when unpacked or 0) of each code in it; the chip as 90."""
    at = 0
    while at + 16 <= len(fatbin):
        magic, _, head, length = struct.unpack_from("<IHHQ", fatbin, at)
        if magic != FATBIN:
            raise ValueError("no fatbin where one should begin")
        at += head
        end = at + length
        while at < end:
            kind, _, head, padded, packed, _, _, _, chip, _, _, flags, _, whole = struct.unpack_from("<HHIQIIHHIIIQQQ", fatbin, at)
            yield kind, chip, fatbin[at + head:at + head + (packed or padded)], whole if flags & ZSTD else 0
            at += head + padded
        at += -at % 8


def cubins(fatbin):
    """(chip, cubin) of each native code."""
    for kind, chip, body, whole in codes(fatbin):
        if kind == CUBIN:
            yield chip, unzstd(body, whole) if whole else body


class Instruction:
    """One instruction: its `name`, the `target` of a branch, the `bytes` of a load, whether it is done `always`."""

    def __init__(self, pc, low, high, chip):
        code = low & 0x1ff
        self.name = OPCODES.get(code, f"{code:03x}")
        self.always = low >> 12 & 0xf == 7 and (self.name != "BRA" or high >> 23 & 0xf == 7)
        self.bytes = 16 if self.name == "LDGSTS" else LOADED.get(high >> 9 & 7, 0) if self.name == "LDG" else 0
        self.target = None
        if self.name == "BRA":
            far = (high & 0x3ffff) << 32 | low >> 32
            far -= (far >> 49) << 50
            if chip >= 90:  # of words, whose low 8 bits lie apart
                far = (far >> 2 << 8 | low >> 16 & 0xff) * 4
            self.target = pc + 16 + far


def kernels(cubin, chip):
    """{name: [Instruction]} of a cubin."""
    found = {}
    for name, code in sections(cubin).items():
        if name.startswith(".text."):
            found[name[6:]] = [Instruction(at, *struct.unpack_from("<QQ", code, at), chip) for at in range(0, len(code), 16)]
    return found


def of_object(path):
    """{(chip, kernel): [Instruction]} of an object file of nvcc."""
    with open(path, "rb") as f:
        fatbin = sections(f.read()).get(".nv_fatbin", b"")
    return {(chip, name): code for chip, cubin in cubins(fatbin) for name, code in kernels(cubin, chip).items()}


class Flow:
    """A kernel's basic blocks, by the place of their first instruction, and its natural loops. A call is taken for its return."""

    def __init__(self, code):
        first = {0}
        for at, one in enumerate(code):
            if one.target is not None:
                first |= {one.target // 16, at + 1}
            elif one.name == "EXIT":
                first.add(at + 1)
        first = sorted(at for at in first if at < len(code))
        self.blocks, self.next = {}, {}
        for at, end in zip(first, first[1:] + [len(code)]):
            last = code[end - 1]
            self.blocks[at] = code[at:end]
            self.next[at] = [] if last.target is None else [last.target // 16]
            if end < len(code) and not (last.always and last.name in ("BRA", "EXIT")):
                self.next[at].append(end)
        self._order()
        self._dominate()

    def _order(self):
        """Blocks in reverse postorder, and who comes before each."""
        seen, done, work = {0}, [], [(0, iter(self.next[0]))]
        while work:
            at, after = work[-1]
            to = next((block for block in after if block not in seen), None)
            if to is None:
                done.append(at)
                work.pop()
            else:
                seen.add(to)
                work.append((to, iter(self.next[to])))
        self.order = done[::-1]
        self.rank = {at: i for i, at in enumerate(self.order)}
        self.before = collections.defaultdict(list)
        for at in self.order:
            for to in self.next[at]:
                self.before[to].append(at)

    def _meet(self, a, b):
        while a != b:
            a, b = (self.above[a], b) if self.rank[a] > self.rank[b] else (a, self.above[b])
        return a

    def _dominate(self):
        self.above, changed = {0: 0}, True
        while changed:
            changed = False
            for at in self.order[1:]:
                known = [block for block in self.before[at] if block in self.above]
                new = known[0]
                for block in known[1:]:
                    new = self._meet(new, block)
                changed = changed or self.above.get(at) != new
                self.above[at] = new

    def dominates(self, a, b):
        while b not in (a, 0):
            b = self.above[b]
        return a == b

    def loops(self):
        """{first block: the blocks of the loop}."""
        found = collections.defaultdict(set)
        for at in self.order:
            for head in self.next[at]:
                if self.dominates(head, at):
                    body, work = found[head], [at]
                    body.add(head)
                    while work:
                        block = work.pop()
                        if block not in body:
                            body.add(block)
                            work += self.before[block]
        return dict(found)

    def ways(self, head, body, also=(), most=(1 << 30,) * 4):
        """Ways once round a loop, of which loops in it are taken once: {(float64 instructions, conversions, bytes loaded): the shortest}; with
        names in `also` a fourth number says how many instructions of these names are on the way. most: more of each is not told apart."""
        begin = (0, 0, 0, 0) if also else (0, 0, 0)
        best, done = {head: {begin: (0, None)}}, {}
        for at in sorted(body, key=self.rank.get):
            code = self.blocks[at]
            here = (sum(one.name in ADDS64 for one in code), sum(one.name in CONVERTS64 for one in code), sum(one.bytes for one in code))
            here += (sum(one.name in also for one in code),) if also else ()
            for sofar, (length, way) in best.get(at, {}).items():
                key = tuple(min(a + b, cap) for a, b, cap in zip(sofar, here, most))
                new = (length + sum(one.name != "NOP" for one in code), (at, way))
                for to in self.next[at]:
                    if to == head:
                        into = done
                    elif to in body and not self.dominates(to, at):
                        into = best.setdefault(to, {})
                    else:
                        continue
                    if key not in into or into[key][0] > new[0]:
                        into[key] = new
        return {key: self._instructions(way) for key, (_, way) in done.items()}

    def _instructions(self, way):
        blocks = []
        while way:
            blocks.append(way[0])
            way = way[1]
        return [one for at in reversed(blocks) for one in self.blocks[at]]

    def cheapest(self, adds, converts, loads, also=(), many=0):
        """The shortest way round any loop that has so many float64 instructions, conversions and bytes, and so many instructions of the names
        in `also`, without its NOPs; if 0 and 0 are asked for, no more of these. None: there is none."""
        found, none = None, adds + converts == 0
        for head, body in self.loops().items():
            for (a, c, b, *others), way in self.ways(head, body, also, (max(adds, 1), max(converts, 1), loads, many)).items():
                if also and others[0] < many:
                    continue
                way = [one for one in way if one.name != "NOP"]
                if a >= adds and c >= converts and b >= loads and not (none and a + c) and (found is None or len(way) < len(found)):
                    found = way
        return found
