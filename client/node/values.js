// values: bytes of arrays and answers. Types have the names that cured-client has: "f32".
'use strict';

// name: [number in cured.proto, bytes of an element, the typed array that holds it]
const DTYPES = {
    bool: [1, 1, Uint8Array],
    u8: [2, 1, Uint8Array],
    i8: [3, 1, Int8Array],
    u16: [4, 2, Uint16Array],
    i16: [5, 2, Int16Array],
    u32: [6, 4, Uint32Array],
    i32: [7, 4, Int32Array],
    u64: [8, 8, BigUint64Array],
    i64: [9, 8, BigInt64Array],
    f16: [10, 2, Uint16Array],
    bf16: [11, 2, Uint16Array],
    f32: [12, 4, Float32Array],
    f64: [13, 8, Float64Array],
    f8_e4m3: [16, 1, Uint8Array],
    f8_e5m2: [17, 1, Uint8Array],
};
const RESULTS = { 14: 'i128', 15: 'int', 20: 'digest' }; // of answers only
for (const [name, [number]] of Object.entries(DTYPES)) RESULTS[number] = name;

const VIEW = Object.getPrototypeOf(Uint8Array.prototype); // what all typed arrays inherit
const CLASS = Object.getOwnPropertyDescriptor(VIEW, Symbol.toStringTag).get; // of whatever realm, also of what inherits from one
const OWN = { Int8Array: 'i8', Uint8Array: 'u8', Uint8ClampedArray: 'u8', Int16Array: 'i16', Uint16Array: 'u16', Int32Array: 'i32',
    Uint32Array: 'u32', BigInt64Array: 'i64', BigUint64Array: 'u64', Float16Array: 'f16', Float32Array: 'f32', Float64Array: 'f64' };

// The type of a typed array's elements; undefined: bytes alone.
const dtypeOf = (array) => (Buffer.isBuffer(array) ? undefined : OWN[CLASS.call(array)]);

// Whether what holds `own` may be said to hold dtype: bytes may hold all types, and 16 bits a float.
const takes = (own, dtype) => own === undefined || own === dtype || own === 'u8' || (own === 'u16' && (dtype === 'f16' || dtype === 'bf16'));

// Whether a view or buffer still has its memory: a buffer that was transferred has none, and one that got smaller ends before some views.
function isValid(array) {
    try {
        if (CLASS.call(array) !== undefined) VIEW.keys.call(array);
        else if (!ArrayBuffer.isView(array)) new Uint8Array(array);
        return array.byteLength >= 0; // of a DataView this throws
    } catch {
        return false;
    }
}

// A float of few bits: exponent bits, mantissa bits; `finite`: no infinities, and one NaN of each sign (E4M3).
function small(bits, exponent, mantissa, finite) {
    const sign = bits >> (exponent + mantissa) ? -1 : 1;
    const e = (bits >> mantissa) & ((1 << exponent) - 1);
    const m = bits & ((1 << mantissa) - 1);
    const bias = (1 << (exponent - 1)) - 1;
    if (e === (1 << exponent) - 1 && !finite) return m === 0 ? sign * Infinity : NaN;
    if (finite && e === (1 << exponent) - 1 && m === (1 << mantissa) - 1) return NaN;
    const fraction = m / (1 << mantissa);
    return sign * (e === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (e - bias));
}

// Two's complement of any length, little-endian.
function wide(bytes) {
    let n = 0n;
    for (let i = bytes.length - 1; i >= 0; i--) n = (n << 8n) | BigInt(bytes[i]);
    return BigInt.asIntN(8 * bytes.length, n);
}

function digest(bytes) {
    const word = (i) => bytes.readBigUInt64LE(8 * i);
    const hex = (i) => word(i).toString(16).padStart(16, '0');
    return `cd1-${hex(0)}${hex(1)}-${word(2)}`;
}

const READERS = {
    bool: (b, at) => b[at] !== 0,
    u8: (b, at) => b.readUInt8(at),
    i8: (b, at) => b.readInt8(at),
    u16: (b, at) => b.readUInt16LE(at),
    i16: (b, at) => b.readInt16LE(at),
    u32: (b, at) => b.readUInt32LE(at),
    i32: (b, at) => b.readInt32LE(at),
    u64: (b, at) => b.readBigUInt64LE(at),
    i64: (b, at) => b.readBigInt64LE(at),
    f16: (b, at) => small(b.readUInt16LE(at), 5, 10, false),
    bf16: (b, at) => small(b.readUInt16LE(at), 8, 7, false),
    f32: (b, at) => b.readFloatLE(at),
    f64: (b, at) => b.readDoubleLE(at),
    f8_e4m3: (b, at) => small(b.readUInt8(at), 4, 3, true),
    f8_e5m2: (b, at) => small(b.readUInt8(at), 5, 2, false),
    i128: (b, at) => wide(b.subarray(at, at + 16)),
    int: (b) => wide(b),
    digest: (b, at) => digest(b.subarray(at, at + 24)),
};

const sizeOf = (dtype) => (dtype === 'i128' ? 16 : dtype === 'digest' ? 24 : DTYPES[dtype][1]);

// An answer, or undefined where the bytes are none of that type.
function valueOf(dtype, bytes) {
    const fits = dtype === undefined ? false : dtype === 'int' ? bytes.length >= 1 && bytes.length <= 32 : bytes.length === sizeOf(dtype);
    return fits ? READERS[dtype](bytes, 0) : undefined;
}

// Answers along an axis: a typed array where there is one of that type; floats of fewer bits as Float32Array, others as a plain array.
function arrayOf(dtype, bytes) {
    const size = sizeOf(dtype);
    const count = bytes.length / size;
    if (/^(f16|bf16|f8)/.test(dtype)) return Float32Array.from({ length: count }, (_, i) => READERS[dtype](bytes, i * size));
    if (!(dtype in DTYPES)) return Array.from({ length: count }, (_, i) => READERS[dtype](bytes, i * size));
    const copy = new Uint8Array(bytes); // aligned
    return new DTYPES[dtype][2](copy.buffer, 0, count);
}

module.exports = { DTYPES, RESULTS, dtypeOf, takes, isValid, sizeOf, valueOf, arrayOf };
