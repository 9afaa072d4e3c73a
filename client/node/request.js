// request: what a caller asks, as the daemon's request, with the bytes that go before the array and the shape of the answers. Bad options
// are a RangeError or a TypeError whose sentence names the option, its limit and what to do.
'use strict';
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const { DTYPES, bytesOf, dtypeOf } = require('./values');

const { cured } = grpc.loadPackageDefinition(
    loader.loadSync(path.join(__dirname, 'cured.proto'), { enums: Number, longs: String, defaults: true }));
const NUMBERS = Object.fromEntries(cured.v1.Op.type.value.filter((value) => value.number !== 0)
    .map((value) => [value.name.slice('OP_'.length).toLowerCase(), value.number]));
const OPS = Object.keys(NUMBERS);
const OFFSETS = ['i32', 'i64', 'u32', 'u64'];
const KEYS = ['i8', 'u8', 'i16', 'u16', ...OFFSETS];
const MANY = ['axis', 'offsets', 'keys']; // each asks for many answers
const KNOWN = ['dtype', 'shape', 'axis', 'keepdims', 'nan', 'ddof', 'resultDtype', 'overflow', 'where', 'second', 'q', 'method',
    'keys', 'groups', 'drop', 'offsets', 'first', 'timeoutMs', 'signal', 'onProgress'];

const coded = (error) => Object.assign(error, { code: 'INVALID_ARGUMENT' });
const bad = (sentence) => coded(new RangeError(sentence));
const badType = (sentence) => coded(new TypeError(sentence));
const product = (lengths) => lengths.reduce((a, b) => a * b, 1);
const kindOf = (value) => (value === null || typeof value !== 'object' ? String(value) : value.constructor ? value.constructor.name : 'object');

// One of the words, or its default.
function word(name, value, words) {
    if (value === undefined) return 0;
    const index = words.indexOf(value);
    if (index < 0) throw bad(`${name} is '${value}', must be one of ${words.join(', ')}`);
    return index;
}

function whole(name, value) {
    if (value === undefined) return 0;
    if (!Number.isSafeInteger(Number(value)) || Number(value) < 0)
        throw bad(`${name} is ${value}, must be an integer from 0 to 2^53 - 1`);
    return Number(value);
}

function dtypeNumber(name, value) {
    if (value === 'i128') return 14;
    if (!Object.hasOwn(DTYPES, value)) throw bad(`${name} is '${value}', must be one of ${Object.keys(DTYPES).join(', ')}`);
    return DTYPES[value][0];
}

// What all requests have; dtype: the elements' type.
function requestOf(ops, dtype, options) {
    for (const name of Object.keys(options))
        if (!KNOWN.includes(name)) throw bad(`unknown option '${name}'; there are ${KNOWN.join(', ')}`);
    const request = {
        dtype: dtypeNumber('dtype', dtype),
        ops: ops.map((op) => {
            if (!Object.hasOwn(NUMBERS, op)) throw bad(`unknown op '${op}'; there are ${OPS.join(', ')}`);
            return NUMBERS[op];
        }),
        nan: word('nan', options.nan, ['propagate', 'skip']),
        overflow: word('overflow', options.overflow, ['error', 'wrap']),
        ddof: whole('ddof', options.ddof),
        first: whole('first', options.first),
    };
    if (options.resultDtype !== undefined) request.resultDtype = dtypeNumber('resultDtype', options.resultDtype);
    const method = word('method', options.method, ['linear', 'lower', 'higher', 'nearest', 'midpoint']);
    const share = options.q ?? 0.5;
    if (typeof share !== 'number' || !(share >= 0 && share <= 1)) throw bad(`q is ${share}, must be a number from 0 to 1`);
    ops.forEach((op, index) => {
        if (op === 'quantile') request.parameters = [...(request.parameters || []), { op: index, share, method }];
    });
    return request;
}

function shapeOf(options, count) {
    const { shape } = options;
    if (shape === undefined) return count === undefined ? undefined : [count];
    if (!Array.isArray(shape) || !shape.every((n) => Number.isSafeInteger(n) && n >= 0))
        throw badType(`shape is ${shape}, must be an array of integers from 0 on, the lengths of the dimensions`);
    if (count !== undefined && product(shape) !== count)
        throw bad(`shape [${shape}] has ${product(shape)} elements, the array ${count}: give the lengths of all its dimensions`);
    return shape;
}

// The dimensions that are reduced, in order.
function dimensionsOf(axis, shape) {
    const axes = (Array.isArray(axis) ? axis : [axis]).map((a) => {
        const at = a < 0 ? a + shape.length : a;
        if (!Number.isInteger(at) || at < 0 || at >= shape.length)
            throw bad(`axis is ${a}, must be an integer from ${-shape.length} to ${shape.length - 1}: the shape is [${shape}]`);
        return at;
    });
    const twice = axes.find((a, i) => axes.indexOf(a) !== i);
    if (twice !== undefined) throw bad(`axis names dimension ${twice} twice: name each once`);
    return axes.sort((a, b) => a - b);
}

// (outer, n, inner) of the axes, the shape of the answers, and `turn` where the reduced dimensions do not lie side by side: dimensions in
// the order in which elements are to be.
function axisOf(options, count) {
    const shape = shapeOf(options, count);
    if (shape === undefined) throw bad('axis: a stream needs shape beside it, the lengths of its dimensions');
    const axes = dimensionsOf(options.axis, shape);
    const answers = options.keepdims ? shape.map((n, i) => (axes.includes(i) ? 1 : n)) : shape.filter((_, i) => !axes.includes(i));
    const long = axes.filter((i) => shape[i] !== 1);
    if (long.length === 0) return { axis: { outer: product(shape), n: 1, inner: 1 }, shape: answers };
    const [begin, end] = [long[0], long[long.length - 1] + 1];
    if (shape.every((n, i) => i < begin || i >= end || n === 1 || long.includes(i))) {
        const axis = { outer: product(shape.slice(0, begin)), n: product(shape.slice(begin, end)), inner: product(shape.slice(end)) };
        return { axis, shape: answers };
    }
    if (count === undefined)
        throw bad(`axis [${axes}] of a stream: its dimensions must lie side by side: reduce one after the other, or pass an array`);
    const kept = shape.map((_, i) => i).filter((i) => !axes.includes(i));
    const axis = { outer: product(kept.map((i) => shape[i])), n: product(axes.map((i) => shape[i])), inner: 1 };
    return { axis, shape: answers, turn: { shape, order: [...kept, ...axes] } };
}

// The bytes of an array with its dimensions in another order.
function turned(bytes, size, { shape, order }) {
    const Type = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array }[size];
    const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
    const from = new Type(aligned.buffer, aligned.byteOffset, bytes.length / size);
    const to = new Type(from.length);
    const steps = order.map((i) => product(shape.slice(i + 1)));
    const lengths = order.map((i) => shape[i]);
    const place = lengths.map(() => 0);
    const last = lengths.length - 1;
    for (let at = 0, base = 0; at < to.length;) {
        for (let i = 0; i < lengths[last]; i++) to[at++] = from[base + i * steps[last]];
        for (let d = last - 1; d >= 0; d--) {
            base += steps[d];
            if (++place[d] < lengths[d]) break;
            base -= steps[d] * lengths[d];
            place[d] = 0;
        }
    }
    return Buffer.from(to.buffer);
}

// Bytes and type of a typed array of integers.
function integersOf(name, array, types) {
    const dtype = ArrayBuffer.isView(array) && !(array instanceof DataView) && !Buffer.isBuffer(array) ? dtypeOf(array) : undefined;
    if (!types.includes(dtype))
        throw badType(`${name} is ${kindOf(array)}, must be a typed array of ${types.join(', ')}: convert it, as by Int32Array.from()`);
    return { bytes: bytesOf(array), dtype };
}

function segmentsOf(options) {
    const { bytes, dtype } = integersOf('offsets', options.offsets, OFFSETS);
    const count = options.offsets.length;
    if (count === 0) throw bad('offsets has no elements, must have 1 or more: one more than there are segments');
    return { request: { segments: { stream: true, count, dtype: DTYPES[dtype][0] } }, bytes, shape: [count - 1] };
}

// Without groups there are as many as the greatest key asks for.
function keysOf(options, count) {
    const { bytes, dtype } = integersOf('keys', options.keys, KEYS);
    const shape = shapeOf(options, count) || [options.keys.length];
    if (shape.length === 0 || shape[0] !== options.keys.length)
        throw bad(`keys has ${options.keys.length} elements, the array ${shape.length ? shape[0] : 0} rows: give one key for each row`
            + (options.shape ? '' : ', and shape where rows have several elements'));
    const groups = options.groups === undefined ? options.keys.reduce((most, key) => (key >= most ? Number(key) + 1 : most), 0)
        : whole('groups', options.groups);
    const columns = product(shape.slice(1));
    const keys = { stream: true, count: options.keys.length, dtype: DTYPES[dtype][0], groups, drop: Boolean(options.drop), columns };
    return { request: { keys }, bytes, shape: [groups, ...shape.slice(1)], columns };
}

function maskOf(where, count, turn) {
    if (!ArrayBuffer.isView(where) || where.BYTES_PER_ELEMENT !== 1)
        throw badType(`where is ${kindOf(where)}, must be a Uint8Array: a byte for each element, true unless it is 0`);
    const bytes = bytesOf(where);
    if (count !== undefined && bytes.length !== count)
        throw bad(`where: the mask has ${bytes.length} bytes, the array ${count} elements: give one byte for each`);
    return turn ? turned(bytes, 1, turn) : bytes;
}

// What the options ask beside the ops: fields of the request, bytes that go before the array, and, of many answers, their shape. count: of
// elements, unless they are a stream.
function placed(options, count) {
    const many = MANY.filter((name) => options[name] !== undefined);
    if (many.length > 1) throw bad(`${many.join(' and ')}: they do not go together: ask for one of ${MANY.join(', ')}`);
    if (options.keepdims && many[0] !== 'axis') throw bad('keepdims goes with axis, which is not given: leave it out');
    for (const name of ['groups', 'drop'])
        if (options[name] !== undefined && many[0] !== 'keys') throw bad(`${name} goes with keys, which are not given: leave it out`);
    let asked = {};
    if (many[0] === 'axis') {
        const { axis, shape, turn } = axisOf(options, count);
        asked = { request: { axis }, shape, turn };
    } else if (many[0] === 'offsets') {
        asked = segmentsOf(options);
    } else if (many[0] === 'keys') {
        asked = keysOf(options, count);
    } else {
        shapeOf(options, count);
    }
    const request = { ...asked.request, ...(many.length ? { statuses: true } : {}) };
    const beside = [];
    if (options.where !== undefined) {
        const bytes = maskOf(options.where, count, asked.turn);
        request.mask = { stream: true, count: bytes.length };
        beside.push(bytes);
    }
    if (asked.bytes !== undefined) beside.push(asked.bytes);
    return { request, beside, shape: asked.shape, turn: asked.turn };
}

module.exports = { cured, OPS, bad, badType, dtypeNumber, requestOf, placed, turned };
