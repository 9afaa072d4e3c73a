"""sass: what GPU kernels are made of. Reads the machine code (SASS) that an object file holds for each chip: its instructions, where its
branches go, and how many instructions of each kind a way round a loop takes.

A module, which test_sass.py and chips.py use; nothing that decodes need be installed. Its opcodes are proven, not believed: test_sass.py
assembles known instructions for each chip and looks for them.
"""
import ctypes
import ctypes.util
import struct

FATBIN, CUBIN, ZSTD = 0xBA55ED50, 2, 0x8000

# The low 9 bits of an instruction say what it does; the 3 bits above them say where its operands lie.
OPCODES = {
    0x028: "DMUL", 0x029: "DADD", 0x02a: "DSETP", 0x02b: "DFMA",
    0x104: "F2F", 0x110: "F2F.64", 0x105: "F2I", 0x111: "F2I.64", 0x106: "I2F", 0x112: "I2F.64",
    0x020: "FMUL", 0x021: "FADD", 0x023: "FFMA", 0x024: "IMAD", 0x025: "IMAD.WIDE", 0x027: "IMAD.HI",
    0x008: "FSEL", 0x009: "FMNMX", 0x00b: "FSETP", 0x00c: "ISETP", 0x010: "IADD3", 0x012: "LOP3", 0x016: "PRMT", 0x019: "SHF",
    0x181: "LDG", 0x147: "BRA", 0x14d: "EXIT",
}
FLOAT64 = ("DMUL", "DADD", "DSETP", "DFMA", "F2F.64", "F2I.64", "I2F.64")  # what a chip whose float64 is slow does slowly
LDG_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}


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


def cubins(fatbin):
    """Of a section .nv_fatbin: (chip, cubin) of each native code in it, as 90."""
    at = 0
    while at + 16 <= len(fatbin):
        magic, _, head, length = struct.unpack_from("<IHHQ", fatbin, at)
        if magic != FATBIN:
            raise ValueError("no fatbin where one should begin")
        at += head
        end = at + length
        while at < end:
            kind, _, head, padded, packed, _, _, _, chip, _, _, flags, _, whole = struct.unpack_from("<HHIQIIHHIIIQQQ", fatbin, at)
            body = fatbin[at + head:at + head + (packed or padded)]
            if kind == CUBIN:
                yield chip, unzstd(body, whole) if flags & ZSTD else body
            at += head + padded
        at += -at % 8


class Instruction:
    """One instruction: `pc`, `name`, `target` of a branch, `bytes` of a load, whether it is done `always`."""

    def __init__(self, pc, low, high, chip):
        self.pc, code = pc, low & 0x1ff
        self.name = OPCODES.get(code, f"{code:03x}")
        self.always = low >> 12 & 0xf == 7 and (code != 0x147 or high >> 23 & 0xf == 7)
        self.target = self.bytes = None
        if self.name == "BRA":
            far = (high & 0x3ffff) << 32 | low >> 32
            if chip < 90:
                far -= (far >> 49) << 50
            else:  # in words, 8 bits of them apart
                far = ((far >> 2) - ((far >> 49) << 48)) * 256 + (low >> 16 & 0xff)
                far *= 4
            self.target = pc + 16 + far
        if self.name == "LDG":
            self.bytes = LDG_BYTES.get(high >> 9 & 7)


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
