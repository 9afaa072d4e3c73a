"""Arrays, batches and streams by Arrow's C data interface, made by the format's own rules with ctypes: for test_arrow.py. Debian has no
library of Arrow for Python. Each struct counts how often it is released."""
import ctypes as c

import numpy

FORMATS = {"i1": "c", "u1": "C", "i2": "s", "u2": "S", "i4": "i", "u4": "I", "i8": "l", "u8": "L", "f2": "e", "f4": "f", "f8": "g"}


class Schema(c.Structure):
    pass


class Array(c.Structure):
    pass


class Stream(c.Structure):
    pass


RELEASE_SCHEMA, RELEASE_ARRAY, RELEASE_STREAM = (c.CFUNCTYPE(None, c.POINTER(kind)) for kind in (Schema, Array, Stream))
Schema._fields_ = [("format", c.c_char_p), ("name", c.c_char_p), ("metadata", c.c_char_p), ("flags", c.c_int64), ("n_children", c.c_int64),
                   ("children", c.POINTER(c.POINTER(Schema))), ("dictionary", c.POINTER(Schema)), ("release", RELEASE_SCHEMA),
                   ("private_data", c.c_void_p)]
Array._fields_ = [("length", c.c_int64), ("null_count", c.c_int64), ("offset", c.c_int64), ("n_buffers", c.c_int64), ("n_children", c.c_int64),
                  ("buffers", c.POINTER(c.c_void_p)), ("children", c.POINTER(c.POINTER(Array))), ("dictionary", c.POINTER(Array)),
                  ("release", RELEASE_ARRAY), ("private_data", c.c_void_p)]
GET_SCHEMA, GET_NEXT = c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Schema)), c.CFUNCTYPE(c.c_int, c.POINTER(Stream), c.POINTER(Array))
GET_ERROR = c.CFUNCTYPE(c.c_void_p, c.POINTER(Stream))
Stream._fields_ = [("get_schema", GET_SCHEMA), ("get_next", GET_NEXT), ("get_last_error", GET_ERROR), ("release", RELEASE_STREAM),
                   ("private_data", c.c_void_p)]


class Device(c.Structure):
    _fields_ = [("array", Array), ("device_id", c.c_int64), ("device_type", c.c_int32), ("sync_event", c.c_void_p), ("reserved", c.c_int64 * 3)]


class DeviceStream(c.Structure):
    pass


RELEASE_DEVICES = c.CFUNCTYPE(None, c.POINTER(DeviceStream))
GET_SCHEMA_THERE = c.CFUNCTYPE(c.c_int, c.POINTER(DeviceStream), c.POINTER(Schema))
GET_NEXT_THERE = c.CFUNCTYPE(c.c_int, c.POINTER(DeviceStream), c.POINTER(Device))
GET_ERROR_THERE = c.CFUNCTYPE(c.c_void_p, c.POINTER(DeviceStream))
DeviceStream._fields_ = [("device_type", c.c_int32), ("get_schema", GET_SCHEMA_THERE), ("get_next", GET_NEXT_THERE), ("get_last_error", GET_ERROR_THERE),
                         ("release", RELEASE_DEVICES), ("private_data", c.c_void_p)]

ALIVE = []  # functions and memory that a consumer may come to after the object that handed them out has gone
capsule_new = c.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]


def capsule(struct, name):
    """Without a destructor: who takes the struct must release it."""
    return capsule_new(c.addressof(struct), name, None)


class Node:
    """A type and the memory of an array: what Schema and Array structs are made of. Nodes of batches have columns."""

    def __init__(self, values=None, mask=None, offset=0, name="", nulls=None, format=None, columns=(), length=None, **lies):
        """values: NumPy's, of which those from `offset` on count; mask: where elements are missing; nulls: null_count, or it is counted."""
        self.name, self.columns, self.lies, self.offset = name, columns, lies, offset
        self.released = {"schema": 0, "array": 0}
        if values is None:
            self.format, buffers, self.length = format or "+s", [mask_bits(mask)], length
        else:
            self.format = format or ("b" if values.dtype == bool else FORMATS[values.dtype.str[1:]])
            memory = numpy.packbits(values, bitorder="little") if self.format == "b" else numpy.ascontiguousarray(values)
            buffers, self.length = [mask_bits(mask), memory], (len(values) - offset if length is None else length)
        if nulls is None:
            nulls = 0 if mask is None else int(numpy.asarray(mask)[offset:offset + self.length].sum())
        self.nulls, self.buffers = nulls, buffers

    def schema(self):
        s = Schema(self.format.encode(), self.name.encode(), None, 2, len(self.columns))
        s.keep = [column.schema() for column in self.columns]
        s.pointers = (c.POINTER(Schema) * max(1, len(s.keep)))(*map(c.pointer, s.keep))
        s.children = c.cast(s.pointers, c.POINTER(c.POINTER(Schema))) if s.keep else None
        s.release = s.own = RELEASE_SCHEMA(lambda pointer: self.end("schema", pointer))
        for name, value in self.lies.get("schema", {}).items():
            setattr(s, name, value)
        ALIVE.append(s)
        return s

    def array(self):
        a = Array(self.length, self.nulls, self.offset, len(self.buffers), len(self.columns))
        a.addresses = (c.c_void_p * max(1, len(self.buffers)))(*(None if b is None else b.ctypes.data for b in self.buffers))
        a.buffers = c.cast(a.addresses, c.POINTER(c.c_void_p))
        a.keep = [column.array() for column in self.columns]
        a.pointers = (c.POINTER(Array) * max(1, len(a.keep)))(*map(c.pointer, a.keep))
        a.children = c.cast(a.pointers, c.POINTER(c.POINTER(Array))) if a.keep else None
        a.release = a.own = RELEASE_ARRAY(lambda pointer: self.end("array", pointer))
        for name, value in self.lies.get("array", {}).items():
            setattr(a, name, value)
        ALIVE.append((a, self.buffers))
        return a

    def end(self, what, pointer):
        self.released[what] += 1
        pointer.contents.release = type(pointer.contents.release)()


def mask_bits(mask):
    return None if mask is None else numpy.packbits(~numpy.asarray(mask, bool), bitorder="little")


class OfArray:
    """An object of one array: __arrow_c_array__."""

    def __init__(self, node):
        self.node, self.asked = node, 0

    def __arrow_c_array__(self, requested_schema=None):
        self.asked += 1
        self.structs = self.node.schema(), self.node.array()
        return capsule(self.structs[0], b"arrow_schema"), capsule(self.structs[1], b"arrow_array")

    def ended(self):
        return self.node.released == {"schema": self.asked, "array": self.asked}


class OfDevice:
    """event: a cudaEvent_t, after which the memory is written."""

    def __init__(self, node, device=1, event=None):
        self.node, self.device, self.asked = node, device, 0
        self.event = None if event is None else c.pointer(c.c_void_p(event))

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        self.asked += 1
        self.schema, self.array = self.node.schema(), self.node.array()
        self.whole = Device(self.array, 0, self.device, None if self.event is None else c.cast(self.event, c.c_void_p))
        ALIVE.append(self.whole)
        return capsule(self.schema, b"arrow_schema"), capsule(self.whole, b"arrow_device_array")


class OfDevices:
    """Several arrays of one type on a device: __arrow_c_device_stream__. of: the device of each array, if not the stream's."""

    def __init__(self, nodes, device=2, type_of=None, of=None):
        self.nodes, self.device, self.type_of, self.of, self.released = nodes, device, type_of or nodes[0], of or device, 0

    def __arrow_c_device_stream__(self, requested_schema=None, **options):
        at = iter(self.nodes)

        def get_schema(_, out):
            self.schema = self.type_of.schema()
            c.memmove(out, c.addressof(self.schema), c.sizeof(Schema))
            return 0

        def get_next(_, out):
            node = next(at, None)
            if node is None:
                c.memset(out, 0, c.sizeof(Device))
                return 0
            if node == "fails":
                return 5
            given = Device(node.array(), 0, self.of, None)
            ALIVE.append(given)
            c.memmove(out, c.addressof(given), c.sizeof(Device))
            return 0

        def end(pointer):
            self.released += 1
            pointer.contents.release = RELEASE_DEVICES()

        self.says = c.create_string_buffer(b"the GPU is gone")
        self.functions = (GET_SCHEMA_THERE(get_schema), GET_NEXT_THERE(get_next), GET_ERROR_THERE(lambda _: c.addressof(self.says)),
                          RELEASE_DEVICES(end))
        self.stream = DeviceStream(self.device, *self.functions)
        ALIVE.append((self.functions, self.stream, self.says))
        return capsule(self.stream, b"arrow_device_array_stream")


class OfStream:
    """An object of several arrays of one type: __arrow_c_stream__. fails: the number of the array in whose place an error comes."""

    def __init__(self, nodes, type_of=None, fails=None, says=b"the disk is gone", **lies):
        self.nodes, self.type_of, self.fails, self.lies, self.says = nodes, type_of or nodes[0], fails, lies, c.create_string_buffer(says)
        self.released, self.asked, self.given = 0, 0, []

    def __arrow_c_stream__(self, requested_schema=None):
        self.asked += 1
        at = iter(range(len(self.nodes) + 1))

        def get_schema(_, out):
            self.schema = self.type_of.schema()
            c.memmove(out, c.addressof(self.schema), c.sizeof(Schema))
            return self.lies.get("schema_status", 0)

        def get_next(_, out):
            n = next(at)
            if n == self.fails:
                return 5
            if n == len(self.nodes):
                c.memset(out, 0, c.sizeof(Array))
                return 0
            self.given.append(self.nodes[n].array())
            c.memmove(out, c.addressof(self.given[-1]), c.sizeof(Array))
            return 0

        def end(pointer):
            self.released += 1
            pointer.contents.release = RELEASE_STREAM()

        self.functions = GET_SCHEMA(get_schema), GET_NEXT(get_next), GET_ERROR(lambda _: c.addressof(self.says)), RELEASE_STREAM(end)
        self.stream = Stream(*self.functions)
        ALIVE.append((self.functions, self.stream, self.says))
        for name, value in self.lies.get("stream", {}).items():
            setattr(self.stream, name, value)
        return capsule(self.stream, b"arrow_array_stream")
