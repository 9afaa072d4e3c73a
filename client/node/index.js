// cured: asks a cured daemon over gRPC. index.d.ts says what each function takes and gives.
'use strict';
const os = require('os');
const grpc = require('@grpc/grpc-js');
const { CuredError, bad, badType, kindOf } = require('./errors');
const { placeOf } = require('./address');
const { CALL, FINISH, REDUCE, PARTIAL, NO_PARTIAL, optionsOf, product } = require('./options');
const { Flight, unary, streamed, answered } = require('./flight');
const { PIECE, Bytes, isBytes, inputOf, feed, letGo } = require('./input');
const { DTYPES } = require('./values');
const { cured, OPS, dtypeNumber, askedOf, finishOf, placed, partOf, turned } = require('./request');
const { Answers, KeyedPartial, isKeyed, groupsOf, resultOf, partialOf, counted } = require('./answers');

const DESCRIBED = [ // written by scripts/op-lists
    'count', 'count_nan', 'min', 'max', 'argmin', 'argmax', 'sum', 'mean', 'std',
];

// The second array of dot, sqdist and average: as many elements of the same type.
async function secondOf(options, { dtype, count }, flight) {
    const name = options.weights === undefined ? 'second' : 'weights';
    if (options.second !== undefined && options.weights !== undefined) throw bad('second and weights are two names of one array: give one');
    const array = options[name];
    if (array === undefined) return undefined;
    if (count === undefined) throw bad(`${name}: a stream needs shape beside it, the lengths of its dimensions`);
    const second = await inputOf(name, array, options.dtype, flight);
    if (second.dtype !== dtype) {
        second.input.close();
        throw badType(`${name} is of ${second.dtype}, must be of the array's type, ${dtype}`);
    }
    if (second.count !== undefined && second.count !== count)
        throw bad(`${name} has ${second.count} elements, the array ${count}: they must be as long`);
    return second.input;
}

// Whatever a call fails of, its streams are closed.
async function owning(array, options, call) {
    try {
        return await call();
    } catch (error) {
        letGo(array, options);
        throw error;
    }
}

class Client {
    #stub;
    #token;
    #timeoutMs;
    #closed = false;

    constructor(address, options) {
        if (os.endianness() !== 'LE') throw new Error('cured: this machine is big-endian, arrays are little-endian');
        const { target, credentials, token, timeoutMs } = placeOf(address, options);
        this.#token = token;
        this.#timeoutMs = timeoutMs;
        this.#stub = new cured.v1.Cured(target, credentials);
    }

    close() {
        this.#closed = true;
        this.#stub.close();
    }

    [Symbol.dispose || Symbol.for('Symbol.dispose')]() {
        this.close();
    }

    // Does a call: its flight ends when `go` does.
    async #fly(options, go) {
        if (this.#closed) throw new CuredError('FAILED_PRECONDITION', 'the client was closed: connect() makes another');
        const flight = new Flight(options, this.#timeoutMs);
        const metadata = new grpc.Metadata();
        if (this.#token !== undefined) metadata.set('authorization', `Bearer ${this.#token}`);
        try {
            return await go(flight, metadata);
        } finally {
            flight.close();
        }
    }

    #unary(method, request, options) {
        return this.#fly(options, (flight, metadata) => unary(this.#stub, method, request, metadata, flight));
    }

    // The response to a request, with the answers of one that asks for many, and their shape. partial: there is another answer in place of them.
    #ask(array, asked, options, partial) {
        return this.#fly(options, async (flight, metadata) => {
            const finish = finishOf(asked, options);
            if (options.dtype !== undefined) dtypeNumber('dtype', options.dtype);
            const taken = await inputOf('the array', array, options.dtype, flight);
            let second;
            try {
                const { beside, shape, turn, elements, request: more } = placed(options, taken.count);
                const request = { dtype: dtypeNumber('dtype', taken.dtype), ...finish, parameters: asked.parameters, ...more, ...partial(taken.count) };
                second = await secondOf(options, { dtype: taken.dtype, count: elements }, flight);
                if (second) request.second = { stream: true, count: elements };
                const size = DTYPES[taken.dtype][1];
                const change = (input) => (turn && input instanceof Bytes ? turned(input.name, input, size, turn) : input);
                const input = change(taken.input);
                const before = beside.reduce((sum, part) => sum + part.length, 0);
                if (input instanceof Bytes && !second && !shape && !options.onProgress && before + input.length <= PIECE) {
                    const bytes = { ...(before ? { beside: Buffer.concat(beside.map((part) => part.all())) } : {}), data: input.all() };
                    const response = await unary(this.#stub, 'Reduce', { ...request, ...bytes }, metadata, flight);
                    return { response: counted(response, options, taken.count) };
                }
                if (elements !== undefined) request.input = { stream: { bytes: elements * size } };
                const count = shape && product(shape);
                const answers = shape && request.partial ? new KeyedPartial(Math.min(count, elements ?? count), options.onProgress)
                    : new Answers(asked.numbers, count, options.onProgress);
                await streamed(this.#stub, metadata, flight, async (write) => {
                    await write({ head: request, progressMs: options.onProgress ? 100 : 0 });
                    for (const part of beside) await feed(write, part);
                    await feed(write, input, second && change(second));
                }, (answer) => answers.take(answer));
                return { response: counted(answers.whole(), options, taken.input.length / size), answers, shape };
            } finally {
                taken.input.close();
                if (second) second.close();
            }
        });
    }

    reduce(array, ops, options) {
        return owning(array, options, async () => {
            const own = optionsOf(options, REDUCE);
            const asked = askedOf(ops, own);
            const { response, answers, shape } = await this.#ask(array, asked, own, () => ({}));
            return resultOf(asked, response, answers, shape);
        });
    }

    partial(array, ops, options) {
        return owning(array, options, async () => {
            const own = optionsOf(options, PARTIAL, NO_PARTIAL);
            const { response } = await this.#ask(array, askedOf(ops, own), own, (count) => partOf(own, count));
            return partialOf(response);
        });
    }

    async #merged(partials, ops, options, partial) {
        const own = optionsOf(options, FINISH);
        const asked = askedOf(ops, own);
        const given = inOrder(partials);
        const request = { ...finishOf(asked, own), partial, partials: given };
        if (!isKeyed(given[0])) return { asked, response: await this.#unary('Merge', request, own) };
        return this.#fly(own, async (flight, metadata) => {
            const { shape, cells } = groupsOf(given);
            const answers = partial ? new KeyedPartial(cells) : new Answers(asked.numbers, product(shape));
            await answered(this.#stub, { ...request, keyed: true, statuses: !partial }, metadata, flight, (answer) => answers.take(answer));
            return { asked, response: answers.whole(), answers, shape };
        });
    }

    async merge(partials, ops, options) {
        const { asked, response, answers, shape } = await this.#merged(partials, ops, options, false);
        return resultOf(asked, response, answers, shape);
    }

    async mergePartials(partials, ops, options) {
        return partialOf((await this.#merged(partials, ops, options, true)).response);
    }

    async finish(partial, ops, options) {
        return this.merge([partial], ops, options);
    }

    async describe(array, options) {
        return this.reduce(array, DESCRIBED, options);
    }

    async info(options) {
        return this.#unary('Info', {}, optionsOf(options, CALL));
    }

    async stats(options) {
        return this.#unary('Stats', {}, optionsOf(options, CALL));
    }

    async slowLog(options) {
        return (await this.#unary('SlowLog', {}, optionsOf(options, CALL))).calls;
    }
}

// Bytes of partials by their places, since neighbours always merge; those without a place come last, as they are. docs/PARTIALS.md has
// the form.
function inOrder(partials) {
    if (!Array.isArray(partials)) throw badType(`partials is ${kindOf(partials)}, must be an array of what partial() gives`);
    if (partials.length === 0) throw bad('partials has no elements, must have 1 or more');
    const NOWHERE = 2n ** 64n;
    const placedAt = partials.map((partial, i) => {
        if (!isBytes(partial)) throw badType(`partials[${i}] is ${kindOf(partial)}, must be a Uint8Array, as partial() gives it`);
        const bytes = new Bytes(`partials[${i}]`, partial).all();
        return { bytes, at: bytes.length >= 32 && bytes[2] === 1 && bytes.readUInt32LE(16) > 0 ? bytes.readBigUInt64LE(24) : NOWHERE };
    });
    const other = placedAt.findIndex(({ bytes }) => isKeyed(bytes) !== isKeyed(placedAt[0].bytes));
    if (other > 0) throw bad(`partials[${other}] is ${isKeyed(placedAt[other].bytes) ? '' : 'not '}by key, unlike partials[0]: partials of one kind merge`);
    return placedAt.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).map(({ bytes }) => bytes);
}

for (const op of OPS) {
    Client.prototype[op] = async function (array, options) {
        const out = await this.reduce(array, [op], options);
        if (out[op] === undefined) throw out.errors[op];
        return out[op];
    };
}

const connect = (address, options) => new Client(address, options);
const ops = OPS;
const dtypes = Object.keys(DTYPES);

module.exports = { connect, Client, CuredError, ops, dtypes };
