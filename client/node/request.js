// request: what a caller asks, as the daemon's request, with the bytes that go before the array and the shape of the answers. Bad options
// are a RangeError or a TypeError whose sentence names the option, its limit and what to do.
'use strict';
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const { bad, badType, shown, kindOf } = require('./errors');
const { word, whole, flag, lengths, product } = require('./options');
const { DTYPES, dtypeOf } = require('./values');
const { Bytes } = require('./input');

const { cured } = grpc.loadPackageDefinition(
    loader.loadSync(path.join(__dirname, 'cured.proto'), { enums: Number, longs: String, defaults: true }));
const NUMBERS = Object.fromEntries(cured.v1.Op.type.value.filter((value) => value.number !== 0)
    .map((value) => [value.name.slice('OP_'.length).toLowerCase(), value.number]));
const OPS = Object.keys(NUMBERS);
const OPS_MAX = 32; // answers of a call, each quantile of a list counted
const AXES_MAX = 32; // of an array that blocks are of
const OFFSETS = ['i32', 'i64', 'u32', 'u64'];
const KEYS = ['i8', 'u8', 'i16', 'u16', ...OFFSETS];
const MANY = ['axis', 'offsets', 'keys']; // each asks for many answers
const METHODS = ['linear', 'lower', 'higher', 'nearest', 'midpoint'];

function dtypeNumber(name, value, others = {}) {
    if (typeof value === 'string' && Object.hasOwn(others, value)) return others[value];
    if (typeof value !== 'string' || !Object.hasOwn(DTYPES, value))
        throw bad(`${name} is ${shown(value)}, must be one of ${[...Object.keys(DTYPES), ...Object.keys(others)].join(', ')}`);
    return DTYPES[value][0];
}

// The shares that are asked, and whether a list of answers is.
function sharesOf(q) {
    const list = Array.isArray(q) || (ArrayBuffer.isView(q) && /^f(32|64)$/.test(dtypeOf(q)));
    const shares = list ? Array.from(q) : [q === undefined ? 0.5 : q];
    const wrong = shares.findIndex((share) => typeof share !== 'number' || !(share >= 0 && share <= 1));
    if (wrong >= 0) throw bad(`q${list ? `[${wrong}]` : ''} is ${shown(shares[wrong])}, must be a number from 0 to 1, or a list of them`);
    if (shares.length === 0) throw bad('q has no elements, must have 1 or more');
    return { shares, list };
}

// What the daemon is asked: numbers of ops, and of each name the places of its own among them.
function askedOf(ops, options) {
    if (!Array.isArray(ops)) throw badType(`ops is ${kindOf(ops)}, must be an array of names, as ['sum', 'max']`);
    const { shares, list } = sharesOf(options.q);
    const method = word('method', options.method, METHODS);
    const asked = { numbers: [], parameters: [], places: new Map() };
    for (const op of ops) {
        if (typeof op !== 'string' || !Object.hasOwn(NUMBERS, op)) throw bad(`unknown op ${shown(op)}; there are ${OPS.join(', ')}`);
        if (asked.places.has(op)) throw bad(`ops names ${op} twice: name each once${op === 'quantile' ? ', and give q a list' : ''}`);
        const places = (op === 'quantile' ? shares : [0]).map((share) => {
            const place = asked.numbers.push(NUMBERS[op]) - 1;
            if (op === 'quantile') asked.parameters.push({ op: place, share, method });
            return place;
        });
        asked.places.set(op, { places, list: list && op === 'quantile' });
    }
    if (asked.numbers.length < 1 || asked.numbers.length > OPS_MAX)
        throw bad(`ops asks for ${asked.numbers.length} answers, must ask for 1 to ${OPS_MAX}${list ? ', each element of q counted' : ''}: ask in several calls`);
    return asked;
}

// What is asked of the ops, also of those of partials.
function finishOf(asked, options) {
    const request = {
        ops: asked.numbers,
        nan: word('nan', options.nan, ['propagate', 'skip']),
        overflow: word('overflow', options.overflow, ['error', 'wrap']),
        ddof: whole('ddof', options.ddof),
    };
    if (options.resultDtype !== undefined) request.resultDtype = dtypeNumber('resultDtype', options.resultDtype, { i128: 14 });
    return request;
}

function shapeOf(options, count) {
    if (options.shape === undefined) return count === undefined ? undefined : [count];
    const shape = lengths('shape', options.shape, 'the lengths of the dimensions');
    if (count !== undefined && product(shape) !== count)
        throw bad(`shape [${shape}] has ${product(shape)} elements, the array ${count}: give the lengths of all its dimensions`);
    return shape;
}

// The dimensions that are reduced, in order.
function dimensionsOf(axis, shape) {
    const axes = (Array.isArray(axis) ? axis : [axis]).map((a) => {
        const at = typeof a === 'number' && a < 0 ? a + shape.length : a;
        if (!Number.isInteger(at) || at < 0 || at >= shape.length)
            throw bad(`axis is ${shown(a)}, must be an integer from ${-shape.length} to ${shape.length - 1}: the shape is [${shape}]`);
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
    const answers = flag('keepdims', options.keepdims) ? shape.map((n, i) => (axes.includes(i) ? 1 : n)) : shape.filter((_, i) => !axes.includes(i));
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

// Elements with their dimensions in another order.
function turned(name, bytes, size, { shape, order }) {
    const Type = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array }[size];
    const from = bytes.offset % size === 0 ? new Type(bytes.buffer, bytes.offset, bytes.length / size)
        : new Type(Uint8Array.from(new Uint8Array(bytes.buffer, bytes.offset, bytes.length)).buffer);
    const to = new Type(from.length);
    const steps = order.map((i) => product(shape.slice(i + 1)));
    const extents = order.map((i) => shape[i]);
    const place = extents.map(() => 0);
    const last = extents.length - 1;
    for (let at = 0, base = 0; at < to.length;) {
        for (let i = 0; i < extents[last]; i++) to[at++] = from[base + i * steps[last]];
        for (let d = last - 1; d >= 0; d--) {
            base += steps[d];
            if (++place[d] < extents[d]) break;
            base -= steps[d] * extents[d];
            place[d] = 0;
        }
    }
    return new Bytes(name, to);
}

// Bytes and type of a typed array of integers.
function integersOf(name, array, types) {
    const dtype = dtypeOf(array);
    if (!types.includes(dtype))
        throw badType(`${name} is ${kindOf(array)}, must be a typed array of ${types.join(', ')}: convert it, as by Int32Array.from()`);
    const bytes = new Bytes(name, array);
    const Type = DTYPES[dtype][2];
    return { bytes, dtype, values: new Type(bytes.buffer, bytes.offset, bytes.length / DTYPES[dtype][1]) };
}

function segmentsOf(options) {
    const { bytes, dtype, values } = integersOf('offsets', options.offsets, OFFSETS);
    const count = values.length;
    if (count === 0) throw bad('offsets has no elements, must have 1 or more: one more than there are segments');
    return { request: { segments: { stream: true, count, dtype: DTYPES[dtype][0] } }, bytes, shape: [count - 1] };
}

// Without groups there are as many as the greatest key asks for.
function keysOf(options, count) {
    const { bytes, dtype, values } = integersOf('keys', options.keys, KEYS);
    const rows = values.length;
    const shape = shapeOf(options, count) || [rows];
    if (shape.length === 0 || shape[0] !== rows)
        throw bad(`keys has ${rows} elements, the array ${shape.length ? shape[0] : 0} rows: give one key for each row`
            + (options.shape ? '' : ', and shape where rows have several elements'));
    const groups = options.groups === undefined ? values.reduce((most, key) => (key >= most ? Number(key) + 1 : most), 0)
        : whole('groups', options.groups);
    const columns = product(shape.slice(1));
    const keys = { stream: true, count: rows, dtype: DTYPES[dtype][0], groups, drop: flag('drop', options.drop), columns };
    return { request: { keys }, bytes, shape: [groups, ...shape.slice(1)] };
}

function maskOf(where, count, turn) {
    if (!ArrayBuffer.isView(where) || where.BYTES_PER_ELEMENT !== 1)
        throw badType(`where is ${kindOf(where)}, must be a Uint8Array: a byte for each element, true unless it is 0`);
    const bytes = new Bytes('where', where);
    if (count !== undefined && bytes.length !== count)
        throw bad(`where: the mask has ${bytes.length} bytes, the array ${count} elements: give one byte for each`);
    return turn ? turned('where', bytes, 1, turn) : bytes;
}

function manyOf(options, count) {
    const many = MANY.filter((name) => options[name] !== undefined);
    if (many.length > 1) throw bad(`${many.join(' and ')}: they do not go together: ask for one of ${MANY.join(', ')}`);
    if (options.keepdims && many[0] !== 'axis') throw bad('keepdims goes with axis, which is not given: leave it out');
    for (const name of ['groups', 'drop'])
        if (options[name] !== undefined && many[0] !== 'keys') throw bad(`${name} goes with keys, which are not given: leave it out`);
    if (many[0] === 'axis') {
        const { axis, ...rest } = axisOf(options, count);
        return { request: { axis }, ...rest };
    }
    if (many[0] === 'offsets') return segmentsOf(options);
    if (many[0] === 'keys') return keysOf(options, count);
    return {};
}

// What the options ask beside the ops: fields of the request, bytes that go before the array, and, of many answers, their shape. count: of
// elements, unless they are a stream.
function placed(options, count) {
    const asked = manyOf(options, count);
    const shape = shapeOf(options, count);
    const request = { ...asked.request, ...(asked.shape ? { statuses: true } : {}), first: whole('first', options.first) };
    const elements = shape === undefined ? count : product(shape);
    const beside = [];
    if (options.where !== undefined) {
        const bytes = maskOf(options.where, elements, asked.turn);
        request.mask = { stream: true, count: bytes.length };
        beside.push(bytes);
    }
    if (asked.bytes !== undefined) beside.push(asked.bytes);
    return { request, beside, shape: asked.shape, turn: asked.turn, elements };
}

// Of a partial: whether it knows its place, in the array that it is a part of or as a block of one of several dimensions.
function partOf(options, count) {
    const { within, start, first, where, keys } = options;
    if (keys !== undefined) {
        for (const name of ['first', 'within', 'start'])
            if (options[name] !== undefined) throw bad(`${name}: a partial by key has no place: leave it out`);
        if (options.unplaced === false) throw bad('unplaced: a partial by key has no place: leave it out');
        return { partial: true, unplaced: true, statuses: false };
    }
    const unplaced = options.unplaced === undefined ? where !== undefined && first === undefined : flag('unplaced', options.unplaced);
    if (within === undefined && start === undefined) return { partial: true, unplaced };
    if (within === undefined || start === undefined)
        throw bad(`${within ? 'start' : 'within'} is not given: a block has both, the lengths of the larger array and where the block begins in it`);
    for (const name of ['first', 'where', 'second', 'weights', 'unplaced'])
        if (options[name] !== undefined) throw bad(`${name}: within and start say where a block lies, and go with no ${name}: leave it out`);
    const shape = shapeOf(options, count);
    if (shape === undefined) throw bad('within: a stream needs shape beside it, the lengths of the block');
    const outer = lengths('within', within, 'the lengths of the larger array');
    lengths('start', start, 'where the block begins along each dimension');
    if (outer.length !== shape.length || start.length !== shape.length || shape.length > AXES_MAX)
        throw bad(`within [${outer}] and start [${start}] are of a block of shape [${shape}]: all three have as many dimensions, at most ${AXES_MAX}`);
    const wrong = shape.findIndex((n, i) => start[i] + n > outer[i]);
    if (wrong >= 0)
        throw bad(`start [${start}]: the block of shape [${shape}] goes beyond dimension ${wrong} of within [${outer}]`);
    return { partial: true, layout: { axes: shape.map((extent, i) => ({ shape: outer[i], start: start[i], extent })) } };
}

module.exports = { cured, OPS, dtypeNumber, askedOf, finishOf, placed, partOf, turned };
