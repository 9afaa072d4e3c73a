// What test_node.py runs in a project that has installed the package: every way in, against values that are known.
//
// usage: node_calls.js FILE ADDRESS [CA CERTIFICATE KEY]      FILE: float32, 0 to COUNT - 1
'use strict';
const assert = require('assert');
const fs = require('fs');
const { getEventListeners } = require('events');
const { Readable } = require('stream');
const cured = require('cured');

const COUNT = 1000000; // several messages; sums are exact in a double

// local: what the package refuses before it asks.
const rejects = (promise, code, words, local = cured.CuredError) => assert.rejects(promise, (error) => {
    assert(error instanceof local, String(error.stack));
    assert.strictEqual(error.code, code, error.message);
    assert(error.message.includes(words), error.message);
    return true;
});

async function arrays(client) {
    const types = { u8: Uint8Array, i8: Int8Array, u16: Uint16Array, i16: Int16Array, u32: Uint32Array, i32: Int32Array,
        f32: Float32Array, f64: Float64Array, u64: BigUint64Array, i64: BigInt64Array };
    for (const [name, Type] of Object.entries(types)) {
        const big = name.endsWith('64') && !name.startsWith('f');
        const floats = name.startsWith('f');
        const of = (values) => Type.from(big ? values.map(BigInt) : values);
        const array = of([3, 1, 2, 1]);
        const got = await client.reduce(array, ['sum', 'max', 'argmin', 'mean', 'count']);
        assert.deepStrictEqual({ ...got },
            { elements: 4, errors: {}, sum: floats ? 7 : 7n, max: big ? 3n : 3, argmin: 1n, mean: 1.75, count: 4n }, name);
        const whole = of([9, 9, 3, 1, 2, 1, 9]); // a view of a part
        assert.strictEqual(await client.mean(whole.subarray(2, 6)), 1.75, name);
        const rows = await client.reduce(of([1, 2, 3, 4, 5, 6]), ['sum', 'max'], { shape: [2, 3], axis: -1 });
        assert.deepStrictEqual(rows.sum.shape, [2]);
        assert.deepStrictEqual(Array.from(rows.sum.values, Number), [6, 15]);
        assert.strictEqual(rows.max.values.constructor, Type);
        assert.deepStrictEqual(Array.from(rows.max.values, Number), [3, 6]);
        const kept = await client.sum(of([1, 2, 3, 4, 5, 6]), { shape: [2, 3], axis: 0, keepdims: true });
        assert.deepStrictEqual([kept.shape, Array.from(kept.values, Number), kept.statuses], [[1, 3], [5, 7, 9], null]);
    }
    assert.strictEqual(await client.sum(new Float32Array([1e8, 0.5, 0.25, -1e8])), 0.75);
    assert.strictEqual(await client.sum(new BigInt64Array([2n ** 62n, 2n ** 62n, 2n ** 62n])), 3n * 2n ** 62n);
    assert.strictEqual(await client.sum(new Uint8ClampedArray([255, 1])), 256n);
    assert.strictEqual(await client.any(Uint8Array.of(0, 1), { dtype: 'bool' }), true);
    assert.strictEqual(await client.max(new Uint16Array([0x3c00, 0xc000]), { dtype: 'f16' }), 1);
    assert.strictEqual(await client.min(new Uint16Array([0x3f80, 0xc000]), { dtype: 'bf16' }), -2);
    assert.strictEqual(await client.max(Uint8Array.of(0x38, 0x40), { dtype: 'f8_e4m3' }), 2);
    assert.strictEqual(await client.sum(Buffer.from(new Float64Array([1, 2]).buffer), { dtype: 'f64' }), 3);
    assert.strictEqual(await client.sum(new Float64Array([1, 2]).buffer, { dtype: 'f64' }), 3);
    assert.match(await client.digest(Float32Array.of(1, 2)), /^cd1-[0-9a-f]{32}-8$/);
    assert.strictEqual(await client.sum(new Float64Array(0)), 0);
    const none = await client.max(new Float32Array(0), { shape: [2, 0], axis: 1 });
    assert.deepStrictEqual([none.shape, [...none.statuses].map((s) => s !== 0)], [[2], [true, true]]);
}

async function options(client) {
    const a = new Float64Array([1, 2, NaN, 6]);
    assert.strictEqual(await client.mean(a, { nan: 'skip' }), 3);
    assert.strictEqual(await client.var(new Float64Array([1, 2, 3, 6]), { ddof: 1 }), 14 / 3);
    assert.strictEqual(await client.sum(a, { where: Uint8Array.of(1, 1, 0, 1) }), 9);
    assert.strictEqual(await client.quantile(new Float64Array([1, 2, 3, 6]), { q: 0.25 }), 1.75);
    assert.strictEqual(await client.quantile(new Float64Array([1, 2, 3, 6]), { q: 0.25, method: 'higher' }), 2);
    assert.strictEqual(await client.median(new Float64Array([1, 2, 3, 6])), 2.5);
    assert.strictEqual(await client.argmax(new Float64Array([1, 2]), { first: 10 }), 11n);
    assert.strictEqual(await client.sum(new Int32Array([1, 2]), { resultDtype: 'i128' }), 3n);
    assert.strictEqual(await client.prod(new BigUint64Array([2n ** 63n, 2n]), { overflow: 'wrap' }), 0n);
    for (const length of [4, 100000, 300000]) { // in one message, and in turns
        const x = Float64Array.from({ length }, (_, i) => i % 7);
        assert.strictEqual(await client.dot(x, { second: x }), x.reduce((sum, v) => sum + v * v, 0), String(length));
        const mask = Uint8Array.from(x, (v) => v % 2);
        assert.strictEqual(await client.sum(x, { where: mask }), x.reduce((sum, v) => sum + (v % 2 ? v : 0), 0), String(length));
    }
    const half = await client.partial(new Float32Array([1, 2]), ['sum', 'argmax']);
    const rest = await client.partial(new Float32Array([5, 4]), ['sum', 'argmax'], { first: 2 });
    const both = await client.merge([rest, half], ['sum', 'argmax']);
    assert.deepStrictEqual([both.sum, both.argmax, both.elements], [12, 2n, 4]);
    for (const Type of [Float64Array, Int32Array]) { // by key: test_node.py has cured-client merge them, too
        const x = Type.of(5, 2, 4, -1, 7);
        const keys = BigInt64Array.of(2n, 0n, 2n, 2n, 9n);
        const ops = ['sum', 'count', 'max'];
        const first = await client.partial(x.subarray(0, 2), ops, { keys: keys.subarray(0, 2), groups: 4 });
        const next = await client.partial([x.subarray(2, 3), x.subarray(3)], ops, { keys: keys.subarray(2), groups: 4, drop: true, where: Uint8Array.of(0, 1, 1) });
        const none = await client.partial(x.subarray(0, 2), ops, { keys: Uint8Array.of(7, 9), groups: 4, drop: true }); // of no element, as these:
        assert.deepStrictEqual(await client.partial(x.subarray(0, 2), ops, { keys: keys.subarray(0, 2), groups: 4, where: new Uint8Array(2) }), none);
        assert.deepStrictEqual(await client.partial(new Type(0), ops, { keys: new Int8Array(0), groups: 4 }), none);
        const whole = await client.reduce(x, ops, { keys, groups: 4, drop: true, where: Uint8Array.of(1, 1, 0, 1, 1) });
        const merged = await client.merge([none, next, first], ops);
        assert.deepStrictEqual([merged.elements, whole.elements], [3, 5]);
        assert.deepStrictEqual({ ...merged, elements: 5 }, whole);
        const half = await client.mergePartials([next, none], ops);
        assert.deepStrictEqual(await client.merge([first, half], ops), merged);
        assert.deepStrictEqual(await client.finish(await client.mergePartials([half, first], ops), ops), merged);
        const columns = await client.partial(Type.of(1, 2, 3, 4), ['sum'], { shape: [2, 2], keys: Uint8Array.of(1, 0), groups: 3 });
        assert.deepStrictEqual((await client.merge([columns, columns], ['sum'])).sum.shape, [3, 2]);
        [first, next, none].forEach((bytes, i) => fs.writeFileSync(`${Type.name}-${i}.crp`, bytes));
    }
    const seen = await client.describe(new Float32Array([1, 2]));
    assert.deepStrictEqual([seen.count, seen.std], [2n, 0.5]);
    assert.match((await client.info()).version, /^\d/);
    assert(Number((await client.stats()).requests) > 0);
}

async function streams(client, file) {
    const total = COUNT * (COUNT - 1) / 2;
    const got = await client.reduce(fs.createReadStream(file, { highWaterMark: 65537 }), ['sum', 'argmax'], { dtype: 'f32' });
    assert.deepStrictEqual([got.sum, got.argmax, got.elements], [total, BigInt(COUNT - 1), COUNT]);
    async function* chunks() {
        for (let at = 0; at < COUNT; at += 12345)
            yield Float32Array.from({ length: Math.min(12345, COUNT - at) }, (_, i) => at + i);
    }
    assert.strictEqual(await client.sum(chunks()), total);
    assert.strictEqual(await client.sum([Int16Array.of(1, 2), Int16Array.of(3)]), 6n);
    assert.strictEqual(await client.sum([], { dtype: 'f32' }), 0);
    const data = fs.readFileSync(file);
    let told = 0;
    assert.strictEqual(await client.sum(data, { dtype: 'f32', onProgress: (done, all) => { told = all ? done / all : 0; } }), total);
    assert(told <= 1);
    const rows = await client.sum(fs.createReadStream(file), { dtype: 'f32', shape: [1000, 1000], axis: 0 });
    assert.deepStrictEqual([rows.values.length, rows.values[1]], [1000, 1000 * 999 / 2 * 1000 + 1000]);
    const many = await client.max(data, { dtype: 'f32', shape: [COUNT / 2, 2], axis: 1 }); // in many parts
    assert(many.values.every((v, i) => v === 2 * i + 1));
    await assert.rejects(client.sum(fs.createReadStream('/nowhere'), { dtype: 'f32' }), { code: 'ENOENT' });
    await assert.rejects(client.sum(Readable.from((function* () { yield new Float32Array(3); throw new RangeError('mine'); })())), RangeError);
    await rejects(client.sum([Float32Array.of(1), Float64Array.of(1)]), 'INVALID_ARGUMENT', 'a chunk of the array holds f64, must hold f32', TypeError);
    await rejects(client.sum(fs.createReadStream(file)), 'INVALID_ARGUMENT', 'dtype: bytes have no type', RangeError);
    await rejects(client.sum([Buffer.alloc(3)], { dtype: 'f32' }), 'INVALID_ARGUMENT', '');
}

async function refusals(client) {
    const a = new Float32Array([1]);
    await rejects(client.min(new Float32Array(0)), 'INVALID_ARGUMENT', 'no elements');
    const mixed = await client.reduce(new Float32Array(0), ['min', 'sum']);
    assert.deepStrictEqual([mixed.min, mixed.sum, mixed.errors.min.op], [undefined, 0, 'min']);
    await rejects(client.prod(new BigUint64Array([2n ** 63n, 2n])), 'OUT_OF_RANGE', 'does not fit');
    await rejects(client.reduce(a, ['summ']), 'INVALID_ARGUMENT', "unknown op 'summ'", RangeError);
    await rejects(client.sum(a, { axes: 0 }), 'INVALID_ARGUMENT', "unknown option 'axes'", RangeError);
    await rejects(client.sum(a, { nan: 'ignore' }), 'INVALID_ARGUMENT', 'propagate, skip', RangeError);
    await rejects(client.sum(a, { dtype: 'f33' }), 'INVALID_ARGUMENT', "dtype is 'f33'", RangeError);
    await rejects(client.sum(a, { axis: 1 }), 'INVALID_ARGUMENT', 'axis is 1', RangeError);
    await rejects(client.sum(a, { shape: [7], axis: 0 }), 'INVALID_ARGUMENT', 'shape [7]', RangeError);
    await rejects(client.sum(a, { where: Uint8Array.of(1, 1) }), 'INVALID_ARGUMENT', 'mask', RangeError);
    await rejects(client.dot(a), 'INVALID_ARGUMENT', 'two arrays');
    await rejects(client.dot(a, { second: new Float64Array(1) }), 'INVALID_ARGUMENT', 'second', TypeError);
    await assert.rejects(client.sum('text'), TypeError);
    await assert.rejects(client.sum(null), TypeError);
    assert.throws(() => cured.connect('http://x'), { code: 'INVALID_ARGUMENT' });
    async function* slow() {
        yield new Float32Array(1);
        await new Promise((resolve) => setTimeout(resolve, 400).unref());
        yield new Float32Array(1);
    }
    await rejects(client.sum(slow(), { timeoutMs: 100 }), 'DEADLINE_EXCEEDED', '');
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 50);
    await rejects(client.sum(slow(), { signal: stop.signal }), 'CANCELLED', '');
    const kept = new AbortController(); // of many calls, none of which keeps hold of it
    for (let k = 0; k < 3; k++) await client.sum(new Float64Array([1, 2]), { signal: kept.signal });
    await client.sum(Readable.from([new Float64Array([1, 2])]), { signal: kept.signal });
    assert.deepStrictEqual(getEventListeners(kept.signal, 'abort'), []);
    const nobody = cured.connect('unix:/nowhere/cured.sock', { timeoutMs: 500 });
    await assert.rejects(nobody.sum(a), cured.CuredError);
    nobody.close();
}

async function main(file, address, ca, certificate, key) {
    const client = cured.connect(address, ca ? { ca, certificate, key } : {});
    try {
        await arrays(client);
        await options(client);
        await streams(client, file);
        await refusals(client);
    } finally {
        client.close();
    }
    console.log('good');
}

main(...process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
