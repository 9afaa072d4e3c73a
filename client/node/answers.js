// answers: what the daemon sends back, as the caller gets it. A server may send anything, so nothing is believed: parts must cover each
// answer once, and values must be of their type.
'use strict';
const { constants } = require('buffer');
const grpc = require('@grpc/grpc-js');
const { CuredError, nonsense } = require('./errors');
const { RESULTS, sizeOf, valueOf, arrayOf } = require('./values');

const WIDEST = 24; // bytes of an answer

// The answers of a call that has many, or the one of each op: from all messages of ReduceStream.
class Answers {
    // count: of each op; undefined: there is one
    constructor(ops, count, onProgress) {
        this.count = count;
        this.onProgress = onProgress;
        this.parts = ops.map(() => []);
        this.bytes = ops.map(() => 0);
    }

    take(message) {
        if (this.end !== undefined) throw nonsense('there is a message behind the end of the answer');
        if (message.part) this.takePart(message.part);
        else if (message.end) this.end = message.end;
        else if (message.progress && this.onProgress) this.onProgress(Number(message.progress.bytesDone), Number(message.progress.bytesTotal));
    }

    takePart(part) {
        const first = Number(part.first);
        if (this.count === undefined) throw nonsense('there are parts of answers to a call that has one');
        if (this.parts[part.op] === undefined) throw nonsense(`there is a part of op ${part.op}, which was not asked`);
        this.bytes[part.op] += part.values.length;
        if (!(first < this.count) || part.values.length === 0 || part.statuses.length > part.values.length || this.bytes[part.op] > WIDEST * this.count)
            throw nonsense(`a part of op ${part.op} at answer ${part.first} has ${part.values.length} bytes, of ${this.count} answers`);
        this.parts[part.op].push({ first, values: part.values, statuses: part.statuses });
    }

    // What came last.
    whole() {
        if (this.end === undefined) throw new CuredError('UNAVAILABLE', 'the server ended the call without an answer');
        return this.end;
    }

    // The bytes of op i's answers, and their statuses or null.
    gathered(i, size) {
        const parts = this.parts[i].sort((a, b) => a.first - b.first);
        const values = Buffer.alloc(this.count * size);
        let statuses = null;
        let at = 0;
        for (const part of parts) {
            const n = part.values.length / size;
            if (part.first !== at || !Number.isInteger(n) || at + n > this.count || ![0, n].includes(part.statuses.length))
                throw nonsense(`the parts of op ${i} do not cover each of ${this.count} answers once`);
            part.values.copy(values, at * size);
            if (part.statuses.length) {
                statuses = statuses || new Uint8Array(this.count);
                statuses.set(part.statuses, at);
            }
            at += n;
        }
        if (at !== this.count) throw nonsense(`the parts of op ${i} are ${at} of ${this.count} answers`);
        return { values, statuses };
    }

    array(i, dtype, shape) {
        if (dtype === undefined || dtype === 'int') throw nonsense(`the answers of op ${i} are of no type that arrays have`);
        const size = sizeOf(dtype);
        if (this.count * size > constants.MAX_LENGTH)
            throw new CuredError('RESOURCE_EXHAUSTED', `${this.count} answers of ${dtype} are more bytes than Node has in a Buffer, ${constants.MAX_LENGTH}`);
        const { values, statuses } = this.gathered(i, size);
        return { dtype, shape, values: arrayOf(dtype, values), statuses };
    }
}

const KEYED_HEAD = 32; // bytes of a partial by key before its cells, and the most of a cell: docs/PARTIALS.md has the form
const KEYED_CELL = 4096;

// A partial by key, whose bytes come one behind the other. Of so many cells it has no more than some bytes.
class KeyedPartial extends Answers {
    constructor(cells, onProgress) {
        super([], undefined, onProgress);
        this.most = Math.min(KEYED_HEAD + KEYED_CELL * cells, constants.MAX_LENGTH);
        this.pieces = [];
        this.length = 0;
    }

    takePart(part) {
        if (part.op !== 0 || Number(part.first) !== this.length || part.values.length === 0 || part.statuses.length !== 0)
            throw nonsense(`a piece of a partial has ${part.values.length} bytes at ${part.first}, where byte ${this.length} follows`);
        this.length += part.values.length;
        if (this.length > this.most) throw nonsense(`a partial by key has ${this.length} bytes, and its groups come to ${this.most} at most`);
        this.pieces.push(part.values);
    }

    whole() {
        const end = super.whole();
        const bytes = Buffer.concat(this.pieces);
        if (bytes.length < KEYED_HEAD || !isKeyed(bytes) || end.results.length !== 0) throw nonsense('the pieces are no partial by key');
        return { ...end, partial: bytes };
    }
}

const isKeyed = (bytes) => bytes[0] === 0x43 && bytes[1] === 0x4b; // "CK"

// Of partials by key: the shape of the answers, as the first says, and how many cells they have together at most. The daemon checks the rest.
function groupsOf(partials) {
    const number = (bytes, at) => (bytes.length >= KEYED_HEAD ? Number(bytes.readBigUInt64LE(at)) : 0);
    const [groups, columns] = [number(partials[0], 8), number(partials[0], 16)];
    const cells = partials.reduce((sum, bytes) => sum + number(bytes, 24), 0);
    return { shape: columns === 1 ? [groups] : [groups, columns], cells: Math.min(cells, groups * columns) };
}

// Whether the response answers the ops that were asked.
function checkResponse(response, numbers) {
    const { results } = response;
    if (results.length !== numbers.length || results.some((result, i) => result.op !== numbers[i]))
        throw nonsense(`${numbers.length} ops were asked, and the answer has ${results.length} of them, or others`);
}

// The response, if it is of as many elements as were sent. Under a mask and by offsets it counts fewer.
function counted(response, { where, offsets }, elements) {
    if (where === undefined && offsets === undefined && Number(response.count) !== elements)
        throw nonsense(`it answers for ${response.count} elements, and ${elements} were sent`);
    return response;
}

function errorOf(result, name) {
    return new CuredError(grpc.status[result.status] || 'UNKNOWN', result.message || `${name}: the server gave no reason`, { op: name });
}

function one(result, name) {
    const value = valueOf(RESULTS[result.dtype], result.value);
    if (value === undefined) throw nonsense(`the answer of ${name} is no value of its type`);
    return value;
}

// The answers to a list of quantiles: along axes another dimension, before the others.
function listed(arrays, shape) {
    const count = arrays[0].values.length;
    const first = arrays[0].values;
    const values = Array.isArray(first) ? arrays.flatMap((array) => array.values) : new first.constructor(count * arrays.length);
    if (!Array.isArray(first)) arrays.forEach((array, i) => values.set(array.values, i * count));
    const some = arrays.some((array) => array.statuses !== null);
    const statuses = some ? new Uint8Array(count * arrays.length) : null;
    if (some) arrays.forEach((array, i) => array.statuses && statuses.set(array.statuses, i * count));
    return { dtype: arrays[0].dtype, shape: [arrays.length, ...shape], values, statuses };
}

// What reduce() gives. asked.places: of each name the places of its ops; shape: of the answers, unless each op has one.
function resultOf(asked, response, answers, shape) {
    checkResponse(response, asked.numbers);
    const out = { elements: Number(response.count), errors: {} };
    for (const [name, { places, list }] of asked.places) {
        const results = places.map((i) => response.results[i]);
        const failed = results.find((result) => result.status !== 0);
        if (failed !== undefined) out.errors[name] = errorOf(failed, name);
        if (shape && (failed === undefined || places.every((i) => answers.parts[i].length > 0))) {
            const arrays = places.map((i) => answers.array(i, RESULTS[response.results[i].dtype], shape));
            out[name] = list ? listed(arrays, shape) : arrays[0];
        } else if (!shape && failed === undefined) {
            const values = results.map((result) => one(result, name));
            out[name] = list ? values : values[0];
        }
    }
    return out;
}

function partialOf(response) {
    if (response.partial.length === 0) throw nonsense('there is no partial');
    return new Uint8Array(response.partial); // apart from the message, whose memory it would keep
}

module.exports = { Answers, KeyedPartial, isKeyed, groupsOf, resultOf, partialOf, counted };
