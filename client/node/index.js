// cured: asks a cured daemon over gRPC. index.d.ts says what each function takes and gives.
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');
const { pipeline } = require('stream/promises');
const grpc = require('@grpc/grpc-js');
const { DTYPES, RESULTS, dtypeOf, sizeOf, bytesOf, valueOf, arrayOf } = require('./values');
const { cured, OPS, bad, badType, dtypeNumber, requestOf, placed, turned } = require('./request');

const DESCRIBED = [ // written by scripts/op-lists
    'count', 'count_nan', 'min', 'max', 'argmin', 'argmax', 'sum', 'mean', 'std',
];
const PIECE = 1 << 20; // bytes of an array in a message; more than that go as a stream
const TURN = 256 * 1024; // bytes of an array, and then of the second one

class CuredError extends Error {
    constructor(code, message, more = {}) {
        super(message);
        this.name = 'CuredError';
        this.code = code;
        Object.assign(this, more);
    }
}

function failure(error) {
    if (error instanceof CuredError || typeof error.code !== 'number') return error;
    const wait = error.metadata && error.metadata.get('grpc-retry-pushback-ms')[0];
    return new CuredError(grpc.status[error.code], error.details || error.message,
        wait === undefined ? {} : { retryAfterMs: Number(wait) });
}

// An array and a second one in turns, as the daemon takes them.
function* turns(array, second) {
    for (let at = 0; at < array.length; at += TURN) {
        yield array.subarray(at, at + TURN);
        yield second.subarray(at, at + TURN);
    }
}

function* cut(bytes) {
    for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
}

// Chunks of a stream, of one type. first: the chunk that was looked at, or undefined where the stream has none.
async function* chunksOf(first, rest, dtype, given) {
    for (let chunk = first; chunk !== undefined;) {
        const own = dtypeOf(chunk);
        if (!given && own !== dtype) throw bad(`a chunk holds ${own || 'bytes'}, the chunks before it ${dtype}`);
        yield* cut(bytesOf(chunk));
        const next = await rest.next();
        chunk = next.done ? undefined : next.value;
    }
}

// The array's type, and its bytes and elements, or chunks where it is a stream.
async function inputOf(array, options) {
    const streams = array !== null && typeof array === 'object' && !ArrayBuffer.isView(array) && !(array instanceof ArrayBuffer);
    let dtype = options.dtype;
    let first, iterator, bytes;
    if (streams) {
        iterator = (array[Symbol.asyncIterator] || array[Symbol.iterator] || (() => {
            throw badType('an array is a typed array, a Buffer, an ArrayBuffer, or a stream of these');
        })).call(array);
        const { value, done } = await iterator.next();
        first = done ? undefined : value;
        dtype = dtype || (first === undefined ? undefined : dtypeOf(first));
    } else {
        bytes = bytesOf(array);
        dtype = dtype || dtypeOf(array);
    }
    if (dtype === undefined) throw bad('dtype: bytes have no type, say which they hold');
    dtypeNumber('dtype', dtype);
    if (streams) return { dtype, chunks: chunksOf(first, iterator, dtype, options.dtype !== undefined) };
    if (!Object.hasOwn(DTYPES, dtype)) throw bad(`dtype is '${dtype}', which answers have, and no array`);
    const size = DTYPES[dtype][1];
    if (bytes.length % size !== 0) throw bad(`the array has ${bytes.length} bytes, which are no whole elements of ${dtype}`);
    return { dtype, bytes, count: bytes.length / size };
}

// The bytes of the second array.
function secondOf(options, { dtype, bytes }) {
    if (bytes === undefined) throw badType('second: it goes with an array in memory, and this one is a stream: pass an array');
    const { second } = options;
    const typed = ArrayBuffer.isView(second) && !Buffer.isBuffer(second);
    if (typed && options.dtype === undefined && dtypeOf(second) !== dtype)
        throw badType(`second is of ${dtypeOf(second)}, must be of the array's type, ${dtype}`);
    const own = bytesOf(second);
    if (own.length !== bytes.length) throw bad(`second has ${own.length} bytes, the array ${bytes.length}: they must be as long`);
    return own;
}

class Client {
    constructor(address, options = {}) {
        if (os.endianness() !== 'LE') throw new Error('cured: this machine is big-endian, arrays are little-endian');
        const [, scheme, rest] = /^(unix|tcp|tls):(.+)$/.exec(address) || [];
        if (!scheme) throw bad(`address is '${address}', must be unix:PATH, tcp:HOST:PORT or tls:HOST:PORT`);
        const read = (name) => (options[name] === undefined ? undefined : fs.readFileSync(options[name]));
        const credentials = scheme === 'tls'
            ? grpc.credentials.createSsl(read('ca') || null, read('key') || null, read('certificate') || null)
            : grpc.credentials.createInsecure();
        this.token = options.token;
        this.timeoutMs = options.timeoutMs;
        this.stub = new cured.v1.Cured(scheme === 'unix' ? address : rest, credentials);
    }

    close() {
        this.stub.close();
    }

    [Symbol.dispose || Symbol.for('Symbol.dispose')]() {
        this.close();
    }

    // The metadata and the options of a call.
    with(options) {
        const metadata = new grpc.Metadata();
        if (this.token !== undefined) metadata.set('authorization', `Bearer ${this.token}`);
        const ms = options.timeoutMs ?? this.timeoutMs;
        return [metadata, ms === undefined ? {} : { deadline: Date.now() + ms }];
    }

    unary(method, request, options = {}) {
        return new Promise((resolve, reject) => {
            const call = this.stub[method](request, ...this.with(options), (error, answer) =>
                (error ? reject(failure(error)) : resolve(answer)));
            listen(options.signal, call);
        });
    }

    // The array as chunks of bytes goes behind the request; parts of answers are gathered by op.
    async stream(request, chunks, options) {
        const call = this.stub.ReduceStream(...this.with(options));
        const parts = request.ops.map(() => []);
        listen(options.signal, call);
        let broken; // what the caller's own stream threw
        async function* messages() {
            yield { head: request, progressMs: options.onProgress ? 100 : 0 };
            try {
                for await (const data of chunks) yield { data };
            } catch (error) {
                broken = error;
                call.cancel();
                throw error;
            }
        }
        const reading = (async () => {
            let end;
            for await (const answer of call) {
                if (answer.part) parts[answer.part.op].push(answer.part);
                else if (answer.progress) options.onProgress(Number(answer.progress.bytesDone), Number(answer.progress.bytesTotal));
                else end = answer.end;
            }
            return end;
        })();
        const [read, written] = await Promise.allSettled([reading, pipeline(messages, call)]);
        if (broken !== undefined) throw broken;
        if (read.status === 'rejected') throw failure(read.reason);
        if (read.value === undefined) throw failure(written.reason || new CuredError('UNAVAILABLE', 'the stream ended without an answer'));
        return { end: read.value, parts };
    }

    async ask(array, ops, options, more) {
        const input = await inputOf(array, options);
        const { dtype, count } = input;
        let { bytes, chunks } = input;
        const { request: asked, beside, shape, turn } = placed(options, count);
        const request = { ...requestOf(ops, dtype, options), ...asked, ...more };
        const before = beside.reduce((sum, part) => sum + part.length, 0);
        if (turn) bytes = turned(bytes, DTYPES[dtype][1], turn);
        if (options.second !== undefined) {
            const second = secondOf(options, input);
            request.second = { stream: true, count };
            chunks = turns(bytes, turn ? turned(second, DTYPES[dtype][1], turn) : second);
            bytes = undefined;
        } else if (bytes !== undefined && (before + bytes.length > PIECE || shape || options.onProgress)) {
            chunks = cut(bytes);
        }
        if (chunks === undefined) {
            const answer = await this.unary('Reduce', { ...request, ...(before ? { beside: Buffer.concat(beside) } : {}), data: bytes }, options);
            return { answer };
        }
        const all = (async function* () {
            for (const part of beside) yield* cut(part);
            yield* chunks;
        })();
        const { end, parts } = await this.stream(request, all, options);
        return { answer: end, parts, shape };
    }

    async reduce(array, ops, options = {}) {
        const { answer, parts, shape } = await this.ask(array, ops, options, {});
        const out = { elements: Number(answer.count), errors: {} };
        answer.results.forEach((result, i) => {
            const name = ops[i];
            if (result.status) out.errors[name] = new CuredError(grpc.status[result.status], result.message, { op: name });
            const dtype = RESULTS[result.dtype];
            if (shape) out[name] = arrayAnswer(dtype, parts[i], shape);
            else if (!result.status) out[name] = valueOf(dtype, result.value);
        });
        return out;
    }

    async partial(array, ops, options = {}) {
        const { answer } = await this.ask(array, ops, options, { partial: true });
        return answer.partial;
    }

    async merge(partials, ops, options = {}) {
        const { dtype, first, ...request } = requestOf(ops, 'f64', options);
        const answer = await this.unary('Merge', { ...request, partials: partials.map(bytesOf) }, options);
        const out = { elements: Number(answer.count), errors: {} };
        answer.results.forEach((result, i) => {
            if (result.status) out.errors[ops[i]] = new CuredError(grpc.status[result.status], result.message, { op: ops[i] });
            else out[ops[i]] = valueOf(RESULTS[result.dtype], result.value);
        });
        return out;
    }

    describe(array, options) {
        return this.reduce(array, DESCRIBED, options);
    }

    info(options) {
        return this.unary('Info', {}, options);
    }

    stats(options) {
        return this.unary('Stats', {}, options);
    }
}

// A signal may be that of many calls: each lets go of it when it has ended.
function listen(signal, call) {
    if (signal === undefined) return;
    const cancel = () => call.cancel();
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
    call.on('status', () => signal.removeEventListener('abort', cancel));
}

// An op's answers along an axis, whose parts came in any order.
function arrayAnswer(dtype, parts, shape) {
    const count = shape.reduce((a, b) => a * b, 1);
    if (dtype === undefined || (count !== 0 && parts.length === 0)) return undefined;
    const size = sizeOf(dtype);
    const bytes = Buffer.alloc(count * size);
    let statuses = null;
    for (const part of parts) {
        part.values.copy(bytes, Number(part.first) * size);
        if (part.statuses.length) {
            statuses = statuses || new Uint8Array(count);
            statuses.set(part.statuses, Number(part.first));
        }
    }
    return { dtype, shape, values: arrayOf(dtype, bytes), statuses };
}

for (const op of OPS) {
    Client.prototype[op] = async function (array, options = {}) {
        const out = await this.reduce(array, [op], options);
        if (out[op] === undefined) throw out.errors[op];
        return out[op];
    };
}

// Where cured-client finds a daemon.
function defaultAddress() {
    if (process.env.CURED_CONNECT) return process.env.CURED_CONNECT;
    const own = process.env.XDG_RUNTIME_DIR ? path.join(process.env.XDG_RUNTIME_DIR, 'cured.sock') : undefined;
    const system = '/run/cured/cured.sock';
    const order = process.getuid && process.getuid() === 0 ? [system, own] : [own, system];
    return `unix:${order.find((place) => place !== undefined && fs.existsSync(place)) || system}`;
}

const connect = (address = defaultAddress(), options = {}) => new Client(address, options);

module.exports = { connect, Client, CuredError, ops: OPS, dtypes: Object.keys(DTYPES) };
