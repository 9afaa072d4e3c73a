// What test_node.py runs in a project that has installed the package: what the package refuses, by which sentence, and how calls end whose
// time, signal, stream or memory does.
//
// usage: node_refusals.js ADDRESS
'use strict';
const assert = require('assert');
const { getEventListeners } = require('events');
const { Readable } = require('stream');
const cured = require('cured');

const a = new Float32Array(6);
const keys = Int32Array.of(0, 1, 0, 1, 0, 1);

// local: TypeError or RangeError, what the package refuses before it asks.
async function refused(ask, Type, words, code = 'INVALID_ARGUMENT') {
    let error;
    try {
        await ask();
    } catch (thrown) {
        error = thrown;
    }
    assert(error instanceof Type, `${words}: ${error && error.stack}`);
    assert.strictEqual(error.code, code, String(error.stack));
    assert(error.message.includes(words) && error.message.length > 20, `${words}: ${error.message}`);
    if (process.env.SHOW) console.log(error.message);
}

// Of the array and what goes beside it.
async function arrays(client) {
    const sum = (options, array = a) => client.sum(array, options);
    const cases = [
        [() => sum({ axis: [0, 0] }), RangeError, 'axis names dimension 0 twice: name each once'],
        [() => sum({ axis: [0, -2], shape: [2, 3] }), RangeError, 'axis names dimension 0 twice'],
        [() => sum({ axis: [0, 2], shape: [2, 3] }), RangeError, 'axis is 2, must be an integer from -2 to 1: the shape is [2,3]'],
        [() => sum({ axis: 0.5 }), RangeError, 'axis is 0.5'],
        [() => sum({ axis: 0, shape: [2, 2] }), RangeError, 'shape [2,2] has 4 elements, the array 6'],
        [() => sum({ axis: 0, shape: [-2, -3] }), TypeError, 'shape is [ -2, -3 ], must be an array of integers from 0 on'],
        [() => sum({ shape: 6 }), TypeError, 'shape is 6'],
        [() => client.sum([new Float32Array(12)], { axis: [0, 2], shape: [2, 3, 2] }), RangeError, 'axis [0,2] of a stream: its dimensions must lie side by side'],
        [() => sum({ keepdims: true }), RangeError, 'keepdims goes with axis'],
        [() => sum({ keys, keepdims: true }), RangeError, 'keepdims goes with axis'],
        [() => sum({ keys, axis: 0 }), RangeError, 'axis and keys: they do not go together'],
        [() => sum({ keys, offsets: keys }), RangeError, 'offsets and keys: they do not go together'],
        [() => sum({ groups: 3 }), RangeError, 'groups goes with keys'],
        [() => sum({ drop: true }), RangeError, 'drop goes with keys'],
        [() => sum({ keys, groups: -1 }), RangeError, 'groups is -1, must be an integer from 0'],
        [() => sum({ keys, groups: 1.5 }), RangeError, 'groups is 1.5'],
        [() => sum({ keys: [0, 1] }), TypeError, 'keys is Array, must be a typed array of i8, u8'],
        [() => sum({ keys: new Float64Array(6) }), TypeError, 'keys is Float64Array'],
        [() => sum({ keys: Buffer.alloc(6) }), TypeError, 'keys is Buffer'],
        [() => sum({ keys: null }), TypeError, 'keys is null'],
        [() => sum({ keys: keys.subarray(1) }), RangeError, 'keys has 5 elements, the array 6 rows: give one key for each row, and shape'],
        [() => sum({ keys, shape: [2, 3] }), RangeError, 'keys has 6 elements, the array 2 rows'],
        [() => sum({ offsets: new Int16Array(2) }), TypeError, 'offsets is Int16Array, must be a typed array of i32, i64, u32, u64'],
        [() => sum({ offsets: 7 }), TypeError, 'offsets is 7'],
        [() => sum({ offsets: new Int32Array(0) }), RangeError, 'offsets has no elements'],
        [() => sum({ where: new Float32Array(6) }), TypeError, 'where is Float32Array, must be a Uint8Array'],
        [() => sum({ where: new Uint8Array(5) }), RangeError, 'the mask has 5 bytes, the array 6 elements'],
        [() => sum({ ddof: -1 }), RangeError, 'ddof is -1'],
        [() => sum({ first: 1.5 }), RangeError, 'first is 1.5'],
        [() => client.quantile(a, { q: 2 }), RangeError, 'q is 2, must be a number from 0 to 1'],
        [() => sum({ dtype: 'toString' }), RangeError, "dtype is 'toString'"],
        [() => client.dot([a], { second: a }), RangeError, 'second: a stream needs shape beside it'],
        [() => client.dot(a, { second: new Float64Array(6) }), TypeError, 'second is of f64'],
        [() => client.dot(a, { second: a.subarray(1) }), RangeError, 'second has 5 elements, the array 6: they must be as long'],
        // What the daemon says.
        [() => sum({ keys, groups: 1 }), cured.CuredError, 'keys: '],
        [() => sum({ keys: Int8Array.of(0, -1, 0, 0, 0, 0) }), cured.CuredError, 'keys: '],
        [() => sum({ offsets: Int32Array.of(0, 7) }), cured.CuredError, 'offset'],
        [() => sum({ offsets: Int32Array.of(3, 2) }), cured.CuredError, 'offset'],
        [() => sum({ offsets: BigInt64Array.of(-1n, 2n) }), cured.CuredError, 'offset'],
        [() => client.digest(a, { keys }), cured.CuredError, ''],
        [() => sum({ keys, first: 4 }), cured.CuredError, ''],
        [() => sum({ axis: 0, first: 4 }), cured.CuredError, ''],

        [() => client.sum(7), TypeError, 'the array is 7, must be a typed array, a Buffer, an ArrayBuffer or a DataView, or a stream of these'],
        [() => client.sum(Symbol('x')), TypeError, 'the array is Symbol(x)'],
        [() => client.sum(undefined), TypeError, 'the array is undefined'],
        [() => client.sum(() => 1), TypeError, 'the array is a function'],
        [() => client.sum('text'), TypeError, "the array is 'text'"],
        [() => client.sum({}), TypeError, 'the array is Object'],
        [() => client.sum(Object.create(null)), TypeError, 'the array is an object'],
        [() => client.sum([1, 2], { dtype: 'f64' }), TypeError, 'a chunk of the array is 1, must be'],
        [() => client.sum([a, 'text']), TypeError, "a chunk of the array is 'text'"],
        [() => client.sum(Readable.from(['text']), { dtype: 'u8' }), TypeError, "a chunk of the array is 'text'"],
        [() => client.sum([a, Float64Array.of(1)]), TypeError, 'a chunk of the array holds f64, must hold f32'],
        [async () => { const read = Readable.from([a]); await client.sum(read); return client.sum(read, { dtype: 'f32' }); }, RangeError, 'the array is a stream that was read to its end, or destroyed'],
        [() => { const gone = Readable.from([a]); gone.destroy(); return client.sum(gone); }, RangeError, 'the array is a stream that was read to its end, or destroyed'],
        [() => client.sum({ [Symbol.iterator]: () => undefined }), TypeError, 'the array: its iterator is undefined, must have a method next()'],
        [() => client.sum({ [Symbol.iterator]: () => ({}) }), TypeError, 'the array: its iterator is Object, must have a method next()'],
        [() => client.sum({ [Symbol.iterator]: () => ({ next() {} }) }), TypeError, 'the array: next() of its iterator gave undefined, must give { value, done }'],
        [() => client.sum([]), RangeError, 'dtype: the array is a stream without chunks'],
        [() => client.sum(Buffer.alloc(8)), RangeError, 'dtype: bytes have no type'],
        [() => client.sum(new DataView(new ArrayBuffer(8))), RangeError, 'dtype: bytes have no type'],
        [() => client.sum(new SharedArrayBuffer(8)), RangeError, 'dtype: bytes have no type'],
        [() => client.sum(Buffer.alloc(7), { dtype: 'f32' }), RangeError, 'the array has 7 bytes, which are no whole elements of f32'],
        [() => client.sum(new Float64Array(2), { dtype: 'f32' }), TypeError, "dtype is 'f32', and the array is Float64Array, which holds f64"],
        [() => client.sum(new BigInt64Array(2), { dtype: 'u64' }), TypeError, "dtype is 'u64'"],
        [() => client.sum(a, { dtype: 'i128' }), RangeError, "dtype is 'i128', must be one of bool"],
        [() => client.sum(a, { dtype: Symbol('f32') }), RangeError, 'dtype is Symbol(f32)'],
        [() => client.sum(a, { resultDtype: 'f33' }), RangeError, "resultDtype is 'f33', must be one of bool, u8"],
        [() => sum({ where: new DataView(new ArrayBuffer(6)) }), TypeError, 'where is DataView, must be a Uint8Array'],
        [() => sum({ where: [1, 1, 1, 1, 1, 1] }), TypeError, 'where is Array'],
        [() => sum({ keys: new (class Mine extends Float32Array {})(6) }), TypeError, 'keys is Mine, must be a typed array of i8'],
        [() => sum({ keys, drop: 1 }), TypeError, 'drop is 1, must be true or false'],
        [() => sum({ axis: 0, keepdims: 'no' }), TypeError, "keepdims is 'no', must be true or false"],
        [() => sum({ axis: Symbol('0') }), RangeError, 'axis is Symbol(0)'],
        [() => sum({ axis: '0' }), RangeError, "axis is '0'"],
        [() => sum({ axis: null }), RangeError, 'axis is null'],
        [() => sum({ axis: [] , shape: [2 ** 40, 2 ** 40] }), RangeError, 'its product must be at most 2^53 - 1'],
        [() => sum({ shape: Symbol('x') }), TypeError, 'shape is Symbol(x)'],
        [() => sum({ shape: [2, 2] }), RangeError, 'shape [2,2] has 4 elements, the array 6'],
        [() => client.dot([a], { second: [a, a], shape: [6] }), RangeError, 'second has more elements than the array'],
        [() => client.dot([a], { second: [a.subarray(1)], shape: [6] }), RangeError, 'second ends before the array does'],
        [() => client.dot([a], { second: [new Float64Array(6)], shape: [6] }), TypeError, 'second is of f64, must be'],
        [() => client.average(a, { second: a, weights: a }), RangeError, 'second and weights are two names of one array'],
        [() => client.average(a, { weights: new Float64Array(6) }), TypeError, 'weights is of f64'],
        [() => client.average(a, { weights: 'text' }), TypeError, "weights is 'text'"],
    ];
    for (const one of cases) await refused(...one);
}

// Of ops and of the words that they take.
async function words(client) {
    const cases = [
        [() => client.reduce(a, 'sum'), TypeError, "ops is 'sum', must be an array of names"],
        [() => client.reduce(a), TypeError, 'ops is undefined'],
        [() => client.reduce(a, []), RangeError, 'ops asks for 0 answers, must ask for 1 to 32'],
        [() => client.reduce(a, ['sum', 'sum']), RangeError, 'ops names sum twice: name each once'],
        [() => client.reduce(a, ['quantile', 'quantile']), RangeError, 'ops names quantile twice: name each once, and give q a list'],
        [() => client.reduce(a, [Symbol('sum')]), RangeError, 'unknown op Symbol(sum)'],
        [() => client.reduce(a, ['toString']), RangeError, "unknown op 'toString'"],
        [() => client.reduce(a, [['sum']]), RangeError, 'unknown op [ '],
        [() => client.sum(a, { nan: 'toString' }), RangeError, "nan is 'toString', must be one of propagate, skip"],
        [() => client.sum(a, { nan: Symbol('skip') }), RangeError, 'nan is Symbol(skip)'],
        [() => client.sum(a, { overflow: {} }), RangeError, 'overflow is {}'],
        [() => client.var(a, { ddof: '1' }), RangeError, "ddof is '1', must be an integer from 0"],
        [() => client.var(a, { ddof: true }), RangeError, 'ddof is true'],
        [() => client.var(a, { ddof: -1n }), RangeError, 'ddof is -1n'],
        [() => client.quantile(a, { q: '0.5' }), RangeError, "q is '0.5', must be a number from 0 to 1"],
        [() => client.quantile(a, { q: NaN }), RangeError, 'q is NaN'],
        [() => client.quantile(a, { q: [0, 1.5] }), RangeError, 'q[1] is 1.5'],
        [() => client.quantile(a, { q: [] }), RangeError, 'q has no elements'],
        [() => client.quantile(a, { q: Int32Array.of(0, 1) }), RangeError, 'q is Int32Array'],
        [() => client.quantile(a, { q: new Array(33).fill(0.5) }), RangeError, 'ops asks for 33 answers, must ask for 1 to 32, each element of q counted'],
        [() => client.quantile(a, { q: 0.5, method: 'middle' }), RangeError, "method is 'middle', must be one of linear"],
    ];
    for (const one of cases) await refused(...one);
}

// Of options as such, of every function that takes them.
async function options(client) {
    const functions = { sum: (o) => client.sum(a, o), reduce: (o) => client.reduce(a, ['sum'], o), describe: (o) => client.describe(a, o),
        partial: (o) => client.partial(a, ['sum'], o), merge: (o) => client.merge([Buffer.alloc(1)], ['sum'], o),
        finish: (o) => client.finish(Buffer.alloc(1), ['sum'], o), mergePartials: (o) => client.mergePartials([Buffer.alloc(1)], ['sum'], o),
        info: (o) => client.info(o), stats: (o) => client.stats(o), slowLog: (o) => client.slowLog(o), connect: (o) => cured.connect('tcp:127.0.0.1:1', o) };
    for (const [name, ask] of Object.entries(functions)) {
        await refused(() => ask(null), TypeError, 'options is null, must be an object with some of ');
        await refused(() => ask('fast'), TypeError, "options is 'fast'");
        await refused(() => ask(a), TypeError, 'options is Float32Array'); // as dot(a, b) would be
        await refused(() => ask([]), TypeError, 'options is Array');
        await refused(() => ask(new Map()), TypeError, 'options is Map');
        await refused(() => ask({ tokenn: 1 }), RangeError, "unknown option 'tokenn'; there are ");
        await refused(() => ask({ [Symbol('axis')]: 1 }), RangeError, 'unknown option Symbol(axis)');
        await refused(() => ask(Object.create({ axes: 0 })), RangeError, "unknown option 'axes'"); // an inherited one
        for (const [value, Type, shown] of [[NaN, RangeError, 'NaN'], [-1, RangeError, '-1'], [0, RangeError, '0'], [1.5, RangeError, '1.5'],
            [Infinity, RangeError, 'Infinity'], [2 ** 32, RangeError, '4294967296'], ['100', TypeError, "'100'"], [100n, TypeError, '100n'],
            [null, TypeError, 'null'], [true, TypeError, 'true'], [Symbol('x'), TypeError, 'Symbol(x)'], [{}, TypeError, 'Object'], [[100], TypeError, 'Array']])
            await refused(() => ask({ timeoutMs: value }), Type, `timeoutMs is ${shown}, must be `);
        if (name === 'connect') continue;
        for (const [value, shown] of [[{}, 'Object'], [null, 'null'], ['stop', "'stop'"], [Symbol('x'), 'Symbol(x)'], [{ aborted: false }, 'Object'],
            [new AbortController(), 'AbortController'], [() => {}, 'a function']])
            await refused(() => ask({ signal: value }), TypeError, `signal is ${shown}, must be an AbortSignal`);
    }
    await refused(() => client.sum(a, { onProgress: 1 }), TypeError, 'onProgress is 1, must be a function');
    await refused(() => client.merge([Buffer.alloc(1)], ['sum'], { axis: 0 }), RangeError, "unknown option 'axis'");
    // Options may be inherited, from an object or a class, whose methods are no options.
    class Mine {
        get nan() { return 'skip'; }

        other() { return this; }
    }
    const gap = Float64Array.of(1, NaN, 2);
    for (const some of [Object.create({ nan: 'skip' }), new Mine(), Object.assign(Object.create(null), { nan: 'skip' }), { nan: 'skip', q: undefined }])
        assert.strictEqual(await client.sum(gap, some), 3);
    assert.strictEqual(await client.sum(gap, { nan: 'skip', timeoutMs: 2 ** 32 - 1 }), 3);
    assert.strictEqual(await client.sum(gap, { nan: 'skip', timeoutMs: 2 ** 31 }), 3);
}

async function partials(client) {
    const made = await client.partial(a, ['sum']);
    const cases = [
        [() => client.partial(a, ['sum'], { axis: 0 }), RangeError, 'axis: a partial is of one answer'],
        [() => client.partial(a, ['sum'], { keys, first: 1 }), RangeError, 'first: a partial by key has no place'],
        [() => client.partial(a, ['sum'], { keys, within: [6], start: [0] }), RangeError, 'within: a partial by key has no place'],
        [() => client.partial(a, ['sum'], { keys, unplaced: false }), RangeError, 'unplaced: a partial by key has no place'],
        [() => client.partial(a, ['argmax'], { keys }), cured.CuredError, ''],
        [() => client.partial(a, ['sum'], { groups: 2 }), RangeError, 'groups goes with keys'],
        [() => client.partial(a, ['sum'], { offsets: keys }), RangeError, 'offsets: a partial is of one answer'],
        [() => client.partial(a, ['sum'], { q: 0.5 }), RangeError, 'q: quantiles have no partial'],
        [() => client.partial(a, ['median']), cured.CuredError, ''],
        [() => client.partial(a, ['argmax'], { unplaced: true }), cured.CuredError, ''],
        [() => client.partial(a, ['sum'], { unplaced: 1 }), TypeError, 'unplaced is 1'],
        [() => client.partial(a, ['sum'], { first: 1, where: new Uint8Array(6) }), cured.CuredError, ''],
        [() => client.partial(a, ['sum'], { within: [6] }), RangeError, 'start is not given: a block has both'],
        [() => client.partial(a, ['sum'], { start: [6] }), RangeError, 'within is not given: a block has both'],
        [() => client.partial(a, ['sum'], { within: [7], start: [2] }), RangeError, 'start [2]: the block of shape [6] goes beyond dimension 0 of within [7]'],
        [() => client.partial(a, ['sum'], { within: [7, 1], start: [0, 0] }), RangeError, 'within [7,1] and start [0,0] are of a block of shape [6]'],
        [() => client.partial(a, ['sum'], { within: 7, start: [0] }), TypeError, 'within is 7'],
        [() => client.partial(a, ['sum'], { within: [7], start: [-1] }), TypeError, 'start is [ -1 ]'],
        [() => client.partial(a, ['sum'], { within: [7], start: [0], first: 1 }), RangeError, 'first: within and start say where'],
        [() => client.partial(a, ['sum'], { within: [7], start: [0], where: new Uint8Array(6) }), RangeError, 'where: within and start say where'],
        [() => client.partial([a], ['sum'], { within: [7], start: [0] }), RangeError, 'within: a stream needs shape beside it'],
        [() => client.merge(made, ['sum']), TypeError, 'partials is Uint8Array, must be an array'],
        [() => client.merge(undefined, ['sum']), TypeError, 'partials is undefined'],
        [() => client.merge([], ['sum']), RangeError, 'partials has no elements'],
        [() => client.merge([made, 'text'], ['sum']), TypeError, "partials[1] is 'text', must be a Uint8Array"],
        [() => client.merge([made, made], ['sum']), cured.CuredError, ''],
        [() => client.merge([made], ['max']), cured.CuredError, ''],
        [() => client.merge([new Uint8Array(0)], ['sum']), cured.CuredError, ''],
        [() => client.merge([made.subarray(1)], ['sum']), cured.CuredError, ''],
        [() => client.merge([made, Buffer.from('CK')], ['sum']), RangeError, 'partials[1] is by key, unlike partials[0]'],
        [() => client.merge([Buffer.from('CK'), made], ['sum']), RangeError, 'partials[1] is not by key, unlike partials[0]'],
        [() => client.merge([Buffer.from('CK')], ['sum']), cured.CuredError, 'cut short'],
        [() => client.mergePartials([Buffer.from('CK')], ['sum']), cured.CuredError, 'cut short'],
    ];
    for (const one of cases) await refused(...one);
    // Parts in any order: more ranges than a partial may hold, but for the client's sorting.
    const only = await Promise.all(Array.from({ length: 2500 }, (_, i) => client.partial(Int32Array.of(i), ['sum'], { first: i })));
    const mixed = only.filter((_, i) => i % 2).concat(only.filter((_, i) => i % 2 === 0));
    assert.strictEqual((await client.merge(mixed, ['sum'])).sum, BigInt(2499 * 2500 / 2));
}

const never = () => new Promise(() => {});

// Calls that end early.
async function ends(client) {
    const stuck = () => (async function* () { await never(); yield a; })();
    const begun = () => (async function* () { yield a; await never(); })();
    const endless = () => (async function* () { for (;;) yield a; })();
    const gone = AbortSignal.abort(new Error('mine'));
    const functions = [(o) => client.sum(a, o), (o) => client.info(o), (o) => client.sum(stuck(), o), (o) => client.merge([Buffer.alloc(1)], ['sum'], o)];
    for (const ask of functions) {
        await refused(() => ask({ signal: gone }), cured.CuredError, 'the call was aborted by its signal', 'CANCELLED');
        await assert.rejects(ask({ signal: gone }), (error) => error.cause.message === 'mine');
    }
    let asked = 0;
    await refused(() => client.sum((function* () { asked++; yield a; })(), { signal: gone }), cured.CuredError, 'aborted', 'CANCELLED');
    assert.strictEqual(asked, 0);
    for (const stream of [stuck, begun, endless]) {
        const stop = new AbortController();
        setTimeout(() => stop.abort(), 30);
        await refused(() => client.sum(stream(), { signal: stop.signal }), cured.CuredError, 'aborted', 'CANCELLED');
        assert.deepStrictEqual(getEventListeners(stop.signal, 'abort'), []);
        await refused(() => client.sum(stream(), { timeoutMs: 30 }), cured.CuredError, '', 'DEADLINE_EXCEEDED');
        await refused(() => client.dot(new Float32Array(6e6), { second: stream(), timeoutMs: 30 }), cured.CuredError, '', 'DEADLINE_EXCEEDED');
    }
    for (const highWaterMark of [0, 1]) { // a stream whose call has ended is let go
        const stream = new Readable({ read() {}, objectMode: true, highWaterMark });
        await refused(() => client.sum(stream, { dtype: 'f32', timeoutMs: 20 }), cured.CuredError, '', 'DEADLINE_EXCEEDED');
        assert(stream.destroyed);
    }
    const unread = new Readable({ read() {} }); // also before its first chunk was asked for
    await refused(() => client.sum(unread, { dtype: 'f32', axis: 0 }), RangeError, 'axis: a stream needs shape');
    assert(unread.destroyed);
    let cancelled = 0;
    const body = new ReadableStream({ cancel() { cancelled++; } });
    await refused(() => client.sum(body, { dtype: 'f32', axis: 0 }), RangeError, 'axis: a stream needs shape');
    assert.strictEqual(cancelled, 1);
    let returned = 0;
    const iterator = { [Symbol.iterator]: () => ({ next: () => ({ value: a, done: false }), return: () => { returned++; return {}; } }) };
    await refused(() => client.sum(iterator, { timeoutMs: 30 }), cured.CuredError, '', 'DEADLINE_EXCEEDED');
    await refused(() => client.sum(iterator, { shape: [2, 3], axis: 1 }), cured.CuredError, ''); // more than the shape
    assert.strictEqual(returned, 2);
    const slow = async function* () { for (;;) { await new Promise((resolve) => { setTimeout(resolve, 20); }); yield a; } };
    await assert.rejects(client.sum(slow(), { onProgress: () => { throw new Error('mine'); } }), { message: 'mine' });
    const closed = cured.connect('tcp:127.0.0.1:1');
    closed.close();
    closed.close();
    await refused(() => closed.sum(a), cured.CuredError, 'the client was closed', 'FAILED_PRECONDITION');
    await refusedEarly(client, closed);
    const nothing = new Float32Array(0); // of which an endless row leaves the timers their turns
    for (const stream of [function* () { for (;;) yield nothing; }, async function* () { for (;;) yield nothing; }]) {
        await refused(() => client.sum(stream(), { timeoutMs: 50 }), cured.CuredError, '', 'DEADLINE_EXCEEDED');
        await refused(() => client.sum(stream(), { signal: AbortSignal.timeout(50), dtype: 'f32' }), cured.CuredError, 'aborted', 'CANCELLED');
    }
    const few = function* () { for (let i = 0; i < 10000; i++) yield i % 1000 ? nothing : a; };
    assert.strictEqual(await client.count(few()), 10n * BigInt(a.length));
}

// A call that is refused before it begins lets go of its streams, as one that fails later does.
async function refusedEarly(client, closed) {
    const asks = [
        (s) => client.sum(s, { nope: 1 }), (s) => client.sum(s, 7), (s) => client.reduce(s, ['summ']), (s) => client.reduce(s, 7), (s) => client.sum(s, { dtype: 'f33' }),
        (s) => client.sum(s, { ddof: -1 }), (s) => client.sum(s, { timeoutMs: 0 }), (s) => client.sum(s, { signal: AbortSignal.abort() }), (s) => client.quantile(s, { q: 2 }),
        (s) => client.partial(s, ['sum'], { axis: 0 }), (s) => client.describe(s, { nope: 1 }), (s) => closed.sum(s, { dtype: 'f32' }), (s) => closed.partial(s, ['sum']),
        (s) => client.dot(a, { second: s, nope: 1 }), (s) => client.dot(a, { second: s, shape: [1] }), (s) => client.average(a, { weights: s, second: a }), (s) => client.dot(7, { second: s }),
        (s) => client.dot(s, { second: a, dtype: 'f32' }), (s) => client.dot(new Uint8Array(3), { second: s, dtype: 'f32' }), (s) => client.partial(a, ['dot'], { second: s, q: 1 }),
        (s) => closed.dot(a, { second: s }), (s) => client.dot([a], { second: s }), (s) => client.sum(s, { second: a, dtype: 'f32' }),
    ];
    for (const [n, ask] of asks.entries()) {
        const stream = new Readable({ read() {} });
        await assert.rejects(ask(stream), `ask ${n}`);
        assert(stream.destroyed, `ask ${n} left its stream open`);
        let cancelled = 0;
        await assert.rejects(ask(new ReadableStream({ cancel() { cancelled++; } })), `ask ${n}`);
        assert.strictEqual(cancelled, 1, `ask ${n} left its body open`);
    }
    let returned = 0;
    const second = { [Symbol.iterator]: () => ({ next: () => ({ value: new Float64Array(2), done: false }), return: () => { returned++; return {}; } }) };
    await refused(() => client.dot(new Float32Array(2), { second }), TypeError, 'second is of f64');
    assert.strictEqual(returned, 1);
    for (const wrong of [{ destroy() { throw new Error('mine'); }, [Symbol.iterator]() {} }, new Proxy({}, { get() { throw new Error('mine'); } }), { destroy: 7, [Symbol.asyncIterator]() {} }])
        await assert.rejects(client.sum(wrong, { nope: 1 }), { message: /unknown option/ });
    const kept = { destroyed: 0, destroy() { this.destroyed++; } }; // no stream
    await assert.rejects(client.sum(kept, { nope: 1 }), { message: /unknown option/ });
    assert.strictEqual(kept.destroyed, 0);
}

// Memory that goes away, or is shared.
async function memory(client) {
    const moved = Float64Array.of(1, 2);
    const view = new DataView(moved.buffer);
    const { buffer } = moved;
    structuredClone(buffer, { transfer: [buffer] });
    for (const array of [moved, view, buffer])
        await refused(() => client.sum(array, { dtype: 'f64' }), TypeError, 'the array: its buffer was transferred or made smaller');
    const mask = new Uint8Array(6);
    structuredClone(mask.buffer, { transfer: [mask.buffer] });
    await refused(() => client.sum(a, { where: mask }), TypeError, 'where: its buffer was transferred');
    const large = new Float64Array(4e6).fill(1);
    const call = client.sum(large);
    setImmediate(() => structuredClone(large.buffer, { transfer: [large.buffer] }));
    await refused(() => call, RangeError, 'the array had 32000000 bytes when the call began, and has others now');
    if (ArrayBuffer.prototype.resize) {
        const room = new ArrayBuffer(64, { maxByteLength: 128 });
        const fixed = new Float64Array(room, 0, 8).fill(1);
        const open = new Float64Array(room);
        room.resize(128);
        assert.deepStrictEqual([await client.sum(fixed), await client.count(open)], [8, 16n]);
        room.resize(32);
        assert.strictEqual(await client.count(open), 4n);
        await refused(() => client.sum(fixed), TypeError, 'the array: its buffer was transferred or made smaller');
    }
    // A view of length 0, and what there is of none.
    const none = await client.describe(new Float32Array(0));
    assert.deepStrictEqual([none.count, none.sum, none.min, none.errors.min.code, Number.isNaN(none.mean)], [0n, 0, undefined, 'INVALID_ARGUMENT', true]);
    assert.strictEqual(await client.sum(new Float32Array(0), { where: new Uint8Array(0) }), 0);
    assert.strictEqual(await client.dot(new Float32Array(0), { second: new Float32Array(0) }), 0);
    assert.deepStrictEqual((await client.sum(new Float32Array(0), { offsets: Int32Array.of(0) })).shape, [0]);
    assert.deepStrictEqual((await client.quantile(new Float32Array(0), { q: [0, 1] })).map(Number.isNaN), [true, true]);
    assert.strictEqual((await client.finish(await client.partial(new Float32Array(0), ['sum']), ['sum'])).sum, 0);
}

// Of connect().
async function addresses() {
    const cases = [
        [() => cured.connect('http://x'), RangeError, "address is 'http://x', must be unix:PATH, tcp:HOST:PORT or tls:HOST:PORT"],
        [() => cured.connect(7), TypeError, 'address is 7'],
        [() => cured.connect(null), TypeError, 'address is null'],
        [() => cured.connect(Symbol('x')), TypeError, 'address is Symbol(x)'],
        [() => cured.connect('tcp:127.0.0.1:1', { ca: 'ca.pem' }), RangeError, 'ca goes with tls:HOST:PORT'],
        [() => cured.connect('tls:127.0.0.1:1', { ca: 7 }), TypeError, 'ca is 7, must be a string'],
        [() => cured.connect('tls:127.0.0.1:1', { key: 'key.pem' }), RangeError, 'certificate and key go together'],
        [() => cured.connect('tcp:192.0.2.1:7737', { token: 'a.b' }), RangeError, 'token: it is not sent to another host without TLS'],
        [() => cured.connect('tcp:127.0.0.1.example.org:7737', { token: 'a.b' }), RangeError, 'token: it is not sent to another host'],
        [() => cured.connect('tcp:127.0.0.1:7737', { token: 'a\nb' }), RangeError, 'token is no NAME.SECRET'],
        [() => cured.connect('tcp:127.0.0.1:7737', { token: 7 }), TypeError, 'token is 7'],
        [() => cured.connect('tcp:127.0.0.1:7737', { token: 'a'.repeat(129) }), RangeError, 'token is no NAME.SECRET of 1 to 128'],
        [() => cured.connect('tcp:127.0.0.1:7737', { token: 'a.b', tokenFile: 'x' }), RangeError, 'token and tokenFile are two ways'],
        [() => cured.connect('tcp:127.0.0.1:7737', { tokenFile: __filename }), RangeError, 'may be read by others: chmod 600 it'],
    ];
    for (const one of cases) await refused(...one);
    assert.throws(() => cured.connect('tls:127.0.0.1:1', { ca: '/nowhere/ca.pem' }), { code: 'ENOENT' });
    process.env.CURED_CLIENT_TOKEN = 'a.b';
    process.env.CURED_CLIENT_KEY = 'key.pem';
    await refused(() => cured.connect('tcp:192.0.2.1:1'), RangeError, 'token: it is not sent to another host');
    await refused(() => cured.connect('tls:192.0.2.1:1'), RangeError, 'certificate and key go together');
    cured.connect('tcp:192.0.2.1:1', { token: '' }).close(); // says that there is none
    cured.connect('tls:192.0.2.1:1', { token: '', key: '' }).close();
    delete process.env.CURED_CLIENT_TOKEN;
    delete process.env.CURED_CLIENT_KEY;
    for (const address of ['tcp:localhost:1', 'tcp:127.0.0.1:1', 'tcp:[::1]:1', 'unix:/nowhere/cured.sock']) cured.connect(address, { token: 'a.b' }).close();
}

async function main(address) {
    const client = cured.connect(address);
    try {
        for (const part of [arrays, words, options, partials, ends, memory, addresses]) await part(client);
    } finally {
        client.close();
    }
    console.log('good');
}

main(...process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
