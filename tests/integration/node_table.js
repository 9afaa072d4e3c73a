// What test_node.py runs in a project that has installed the package: a table of input × type × way × mask × ops, whose answers
// node_cases.py has from the oracle.
//
// usage: node_table.js CASES ADDRESS
'use strict';
const assert = require('assert');
const fs = require('fs');
const { Readable } = require('stream');
const vm = require('vm');
const cured = require('cured');

const TYPES = { bool: Uint8Array, u8: Uint8Array, i8: Int8Array, u16: Uint16Array, i16: Int16Array, u32: Uint32Array, i32: Int32Array,
    u64: BigUint64Array, i64: BigInt64Array, f16: Uint16Array, bf16: Uint16Array, f32: Float32Array, f64: Float64Array, f8_e4m3: Uint8Array,
    f8_e5m2: Uint8Array };
const OWN = ['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'u64', 'i64', 'f32', 'f64']; // what a typed array says itself
const foreign = vm.createContext({});

function* cut(bytes, lengths) {
    for (let at = 0, k = 0; at < bytes.length; k++) {
        yield bytes.subarray(at, at + lengths[k % lengths.length]);
        at += lengths[k % lengths.length];
    }
}

// Each way in which an array is passed: [the array, dtype or undefined]. A stream is one for each call.
const INPUTS = {
    typed: (bytes, dtype) => [new TYPES[dtype](copy(bytes)), OWN.includes(dtype) ? undefined : dtype],
    view: (bytes, dtype) => { // of a part of a buffer
        const size = TYPES[dtype].BYTES_PER_ELEMENT;
        const larger = new Uint8Array(bytes.length + 3 * size);
        larger.set(bytes, 2 * size);
        return [new TYPES[dtype](larger.buffer, 2 * size, bytes.length / size), dtype];
    },
    subclass: (bytes, dtype) => [new (class Mine extends TYPES[dtype] {})(copy(bytes)), OWN.includes(dtype) ? undefined : dtype],
    realm: (bytes, dtype) => {
        const Type = vm.runInContext(TYPES[dtype].name, foreign);
        const buffer = vm.runInContext(`new ArrayBuffer(${bytes.length})`, foreign);
        new Uint8Array(buffer).set(bytes);
        return [new Type(buffer), OWN.includes(dtype) ? undefined : dtype];
    },
    buffer: (bytes, dtype) => [Buffer.concat([Buffer.alloc(1), bytes]).subarray(1), dtype], // elements at no multiple of their size
    arrayBuffer: (bytes, dtype) => [copy(bytes), dtype],
    shared: (bytes, dtype) => [new TYPES[dtype](shared(bytes)), OWN.includes(dtype) ? undefined : dtype],
    sharedBuffer: (bytes, dtype) => [shared(bytes), dtype],
    dataView: (bytes, dtype) => [new DataView(copy(Buffer.concat([Buffer.alloc(1), bytes])), 1), dtype],
    chunks: (bytes, dtype) => {
        const whole = new TYPES[dtype](copy(bytes));
        return [[whole.subarray(0, 5), whole.subarray(5, 5), whole.subarray(5)], OWN.includes(dtype) ? undefined : dtype];
    },
    readable: (bytes, dtype) => [Readable.from(cut(bytes, [1, 13, 7])), dtype], // elements lie in two chunks
    reused: (bytes, dtype) => [(async function* () { // one memory for all chunks
        const memory = Buffer.alloc(16);
        for (const piece of cut(bytes, [16])) yield memory.subarray(0, piece.copy(memory));
    })(), dtype],
    web: (bytes, dtype) => [new Blob([bytes]).stream(), dtype],
};
if (typeof Float16Array !== 'undefined') INPUTS.float16 = (bytes, dtype) => (dtype === 'f16' ? [new Float16Array(copy(bytes)), undefined] : INPUTS.typed(bytes, dtype));
const STREAMS = ['chunks', 'readable', 'reused', 'web'];

const copy = (bytes) => Uint8Array.from(bytes).buffer;
function shared(bytes) {
    const buffer = new SharedArrayBuffer(bytes.length);
    new Uint8Array(buffer).set(bytes);
    return buffer;
}

function text(value) {
    if (typeof value !== 'number') return typeof value === 'bigint' ? `${value}n` : String(value);
    if (Number.isNaN(value)) return 'nan';
    if (!Number.isFinite(value)) return value > 0 ? '+inf' : '-inf';
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(value);
    return bytes.toString('hex');
}
// Of numbers that are integers by their type.
const whole = (value) => (typeof value === 'number' ? String(value) : text(value));

function integers([type, values]) {
    return TYPES[type].from(type.endsWith('64') ? values.map(BigInt) : values);
}

function optionsOf(test) {
    const { keys, offsets, ...options } = test.options;
    if (keys) options.keys = integers(keys);
    if (offsets) options.offsets = integers(offsets);
    if (test.where) options.where = Uint8Array.from(test.where);
    if (test.q) Object.assign(options, { q: test.q, method: test.method });
    if (test.nan) options.nan = test.nan;
    return options;
}

const INTEGER = /^(bool|[ui](8|16|32))$/;
const CODES = { 3: 'INVALID_ARGUMENT', 11: 'OUT_OF_RANGE' }; // a status is a number, every answer a text: "3" is three

function check(test, got, what) {
    for (const op of test.ops) {
        const wanted = test.wanted[op];
        const list = wanted.length > 1 && !test.shape;
        if (test.shape) {
            assert.deepStrictEqual(got[op].shape, test.shape, `${what} ${op}`);
            const write = INTEGER.test(got[op].dtype) ? whole : text;
            const found = Array.from(got[op].values, write).map((one, i) => (got[op].statuses && got[op].statuses[i]) || one);
            assert.deepStrictEqual(found, wanted, `${what} ${op}`);
        } else {
            const values = list ? got[op] : [got[op]];
            const found = values.map((value) => (value === undefined ? got.errors[op].code : text(value)));
            const integer = (one) => (/^-?\d{1,10}$/.test(one) && !/^[0-9a-f]{16}$/.test(one) ? text(Number(one)) : one);
            assert.deepStrictEqual(found, wanted.map((one) => (typeof one === 'number' ? CODES[one] : integer(one))), `${what} ${op}`);
        }
    }
}

// Elements a to b, as the input has them.
function part(input, bytes, dtype, a, b) {
    const size = TYPES[dtype].BYTES_PER_ELEMENT;
    return INPUTS[input](bytes.subarray(a * size, b * size), dtype);
}

async function parts(client, test, input, bytes) {
    const { where } = test;
    const made = [];
    for (let k = 0; k + 1 < test.parts.length; k++) {
        const [a, b] = [test.parts[k], test.parts[k + 1]];
        const [array, dtype] = part(input, bytes, test.dtype, a, b);
        made.push(await client.partial(array, test.ops, { dtype, ...(where ? { where: Uint8Array.from(where.slice(a, b)) } : { first: a }) }));
    }
    const half = await client.mergePartials([made[2], made[0]], test.ops);
    const both = await client.merge([made[1], half], test.ops);
    const once = await client.finish(await client.mergePartials(made, test.ops), test.ops);
    assert.deepStrictEqual(once, both);
    return both;
}

async function blocks(client, test, input, bytes) {
    const size = TYPES[test.dtype].BYTES_PER_ELEMENT;
    const made = [];
    for (const block of test.blocks) {
        const inside = Buffer.concat(block.numbers.map((i) => bytes.subarray(i * size, (i + 1) * size)));
        const [array, dtype] = INPUTS[input](inside, test.dtype);
        made.push(await client.partial(array, test.ops, { dtype, shape: block.shape, start: block.start, within: test.within }));
    }
    return client.merge(made.reverse(), test.ops);
}

async function ask(client, test, input, bytes, second) {
    const { dtype } = test;
    let got;
    if (test.parts) got = await parts(client, test, input, bytes);
    else if (test.blocks) got = await blocks(client, test, input, bytes);
    else {
        const [array, said] = INPUTS[input](bytes, dtype);
        const options = { dtype: said, ...optionsOf(test) };
        if (test.pair) options.second = INPUTS[input](second, dtype)[0];
        if (test.pair && STREAMS.includes(input) && !options.shape) options.shape = [60];
        got = await client.reduce(array, test.ops, options);
    }
    check(test, got, `${input} ${dtype} ${JSON.stringify(test.options)} ${test.where ? 'masked' : ''} ${test.pair ? 'pair' : ''} ${test.q || ''}`);
}

async function main(file, address) {
    const client = cured.connect(address);
    let calls = 0;
    for (const { data, other, cases } of JSON.parse(fs.readFileSync(file))) {
        const [bytes, second] = [data, other].map((base64) => Buffer.from(base64, 'base64'));
        for (const test of cases) {
            const inputs = Object.keys(INPUTS).filter((input) => !STREAMS.includes(input) || String(test.options.axis) !== '0,2'); // refused
            await Promise.all(inputs.map((input) => ask(client, test, input, bytes, second)));
            calls += inputs.length;
        }
    }
    client.close();
    console.log(`good: ${calls} calls`);
}

main(...process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
