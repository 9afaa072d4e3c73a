// input: bytes of what the caller passes. Arrays in memory and streams of them are read alike, piece by piece, so that one piece is on its
// way at a time and a stream is asked for no more than the daemon takes.
'use strict';
const { isAnyArrayBuffer } = require('util').types;
const { bad, badType, kindOf } = require('./errors');
const { DTYPES, dtypeOf, takes, isValid } = require('./values');

const PIECE = 1 << 20; // bytes of an array in a message; more than that go as a stream
const TURN = 256 * 1024; // bytes of an array, and then of the second one
const EMPTY_AT_ONCE = 64; // chunks without elements, after which timers have their turn
const ARE = 'a typed array, a Buffer, an ArrayBuffer or a DataView';

const isBytes = (array) => ArrayBuffer.isView(array) || isAnyArrayBuffer(array);

// Bytes in the caller's memory: of a view, an ArrayBuffer or a SharedArrayBuffer.
class Bytes {
    constructor(name, array) {
        if (!isBytes(array)) throw badType(`${name} is ${kindOf(array)}, must be ${ARE}`);
        if (!isValid(array)) throw badType(`${name}: its buffer was transferred or made smaller: pass an array that has its elements`);
        const view = ArrayBuffer.isView(array);
        this.name = name;
        this.array = array;
        this.buffer = view ? array.buffer : array;
        this.offset = view ? array.byteOffset : 0;
        this.length = array.byteLength;
        this.at = 0;
    }

    // No Buffer has all bytes of an array beyond 4 GiB, so there is one for each piece.
    piece(at, length) {
        if (!isValid(this.array) || this.array.byteLength !== this.length)
            throw bad(`${this.name} had ${this.length} bytes when the call began, and has others now: leave its buffer as it is until the answer`);
        return Buffer.from(this.buffer, this.offset + at, length);
    }

    all() {
        return this.piece(0, this.length);
    }

    read(most) {
        const length = Math.min(most, this.length - this.at);
        if (length === 0) return undefined;
        this.at += length;
        return this.piece(this.at - length, length);
    }

    close() {}
}

// A stream of chunks of one type. An element may lie in two chunks.
class Chunks {
    constructor(name, stream, flight) {
        const begin = iteratorOf(stream);
        if (typeof begin !== 'function') throw badType(`${name} is ${kindOf(stream)}, must be ${ARE}, or a stream of these`);
        if (stream.readableEnded === true || stream.destroyed === true) // no array, and not one of no elements
            throw bad(`${name} is a stream that was read to its end, or destroyed, before: pass one that has its elements`);
        this.name = name;
        this.stream = stream;
        this.flight = flight;
        this.begin = begin;
        this.length = 0; // bytes that came
    }

    // Looks at the first chunk where the type is not given.
    async typed(given) {
        this.dtype = given;
        if (given !== undefined) return given;
        const first = await this.next();
        if (first === undefined) throw bad(`dtype: ${this.name} is a stream without chunks, which has no type: say which it has`);
        this.dtype = dtypeOf(first.array);
        if (this.dtype === undefined) throw bad('dtype: bytes have no type, say which they hold');
        this.chunk = first;
        return this.dtype;
    }

    // The next chunk, which is not empty.
    async next() {
        this.iterator = this.iterator || this.begin.call(this.stream);
        if (typeof (this.iterator ?? {}).next !== 'function')
            throw badType(`${this.name}: its iterator is ${kindOf(this.iterator)}, must have a method next()`);
        for (let empty = 1; ; empty++) {
            if (empty % EMPTY_AT_ONCE === 0) await this.flight.wait(new Promise(setImmediate));
            const step = await this.flight.wait(this.iterator.next());
            if (step === null || typeof step !== 'object')
                throw badType(`${this.name}: next() of its iterator gave ${kindOf(step)}, must give { value, done }`);
            const { value, done } = step;
            if (done) {
                this.ended = true;
                return undefined;
            }
            if (!isBytes(value)) throw badType(`a chunk of ${this.name} is ${kindOf(value)}, must be ${ARE}`);
            const own = dtypeOf(value);
            if (this.dtype !== undefined && !takes(own, this.dtype)) throw badType(`a chunk of ${this.name} holds ${own}, must hold ${this.dtype}`);
            const chunk = new Bytes(`a chunk of ${this.name}`, value);
            this.length += chunk.length;
            if (chunk.length !== 0 || this.dtype === undefined) return chunk;
        }
    }

    async read(most) {
        for (;;) {
            const piece = this.chunk && this.chunk.read(most);
            if (piece !== undefined) return piece;
            this.chunk = this.ended ? undefined : await this.next();
            if (this.chunk === undefined) return undefined;
        }
    }

    // Lets go of a stream that is not read to its end, or not at all. Its next chunk may never come, so this waits for nothing.
    close() {
        if (!this.ended) closeStream(this.stream, this.iterator);
    }
}

const iteratorOf = (stream) => (stream !== null && typeof stream === 'object' ? stream[Symbol.asyncIterator] || stream[Symbol.iterator] : undefined);

// iterator: what has read of the stream; undefined: nobody has.
function closeStream(stream, iterator) {
    if (typeof stream.destroy === 'function') stream.destroy();
    else if (iterator !== undefined) (async () => iterator.return && iterator.return())().catch(() => {});
    else if (typeof stream.cancel === 'function') (async () => stream.cancel())().catch(() => {}); // the body of a fetch
}

// Lets go of what may be streams of a call that is refused. What they are and throw is nobody's matter any more.
function letGo(array, options) {
    for (const given of [() => array, () => options?.second, () => options?.weights]) {
        try {
            const stream = given();
            if (!isBytes(stream) && typeof iteratorOf(stream) === 'function') closeStream(stream);
        } catch { /* the call has its error */ }
    }
}

// The caller's array: `input` reads its bytes; of a stream count is undefined.
async function inputOf(name, array, dtype, flight) {
    if (!isBytes(array)) {
        const input = new Chunks(name, array, flight);
        try {
            return { input, dtype: await input.typed(dtype), count: undefined };
        } catch (error) {
            input.close();
            throw error;
        }
    }
    const own = dtypeOf(array);
    if (dtype === undefined && own === undefined) throw bad('dtype: bytes have no type, say which they hold');
    if (dtype !== undefined && !takes(own, dtype))
        throw badType(`dtype is '${dtype}', and ${name} is ${kindOf(array)}, which holds ${own}: leave dtype out, or pass the bytes as a Uint8Array`);
    const input = new Bytes(name, array);
    const size = DTYPES[dtype || own][1];
    if (input.length % size !== 0) throw bad(`${name} has ${input.length} bytes, which are no whole elements of ${dtype || own}`);
    return { input, dtype: dtype || own, count: input.length / size };
}

// Writes an array, and a second one in turns with it, as the daemon takes them.
async function feed(write, input, second) {
    for (;;) {
        let turn = 0;
        for (let piece; turn < (second ? TURN : PIECE) && (piece = await input.read((second ? TURN : PIECE) - turn)) !== undefined; turn += piece.length)
            await write({ data: piece });
        for (let left = second ? turn : 0, piece; left > 0; left -= piece.length) {
            piece = await second.read(left);
            if (piece === undefined) throw bad('second ends before the array does: they must be as long');
            await write({ data: piece });
        }
        if (turn === 0) break;
    }
    if (second && (await second.read(1)) !== undefined) throw bad('second has more elements than the array: they must be as long');
}

module.exports = { PIECE, Bytes, isBytes, inputOf, feed, letGo };
