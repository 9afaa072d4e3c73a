// What test_node.py runs in a project that has installed the package: every way to many answers (axes, keys, offsets) with every type, with
// and without a mask and a second array, against a model that adds index by index.
//
// usage: node_cross.js ADDRESS
'use strict';
const assert = require('assert');
const { Readable } = require('stream');
const cured = require('cured');

const SHAPE = [3, 4, 5];
const COUNT = 60;
// 0 to 3 in each type: the typed array, and the words that mean them where they are others.
const TYPES = { u8: [Uint8Array], i8: [Int8Array], u16: [Uint16Array], i16: [Int16Array], u32: [Uint32Array], i32: [Int32Array],
    u64: [BigUint64Array, [0n, 1n, 2n, 3n]], i64: [BigInt64Array, [0n, 1n, 2n, 3n]], f32: [Float32Array], f64: [Float64Array],
    f16: [Uint16Array, [0, 0x3c00, 0x4000, 0x4200]], bf16: [Uint16Array, [0, 0x3f80, 0x4000, 0x4040]],
    f8_e4m3: [Uint8Array, [0, 0x38, 0x40, 0x44]], f8_e5m2: [Uint8Array, [0, 0x3c, 0x40, 0x42]], bool: [Uint8Array] };
const INTEGERS = { i8: Int8Array, u8: Uint8Array, i16: Int16Array, u16: Uint16Array, i32: Int32Array, u32: Uint32Array,
    i64: BigInt64Array, u64: BigUint64Array };
const integers = (type, values) => INTEGERS[type].from(type.endsWith('64') ? values.map(BigInt) : values);
const indices = Array.from({ length: COUNT }, (_, i) => i);

// Of each answer the indices of its elements.
function gather(count, answerOf) {
    const groups = Array.from({ length: count }, () => []);
    for (const i of indices) if (answerOf(i) >= 0 && answerOf(i) < count) groups[answerOf(i)].push(i);
    return groups;
}

function alongAxes(axis) {
    const axes = [axis].flat().map((a) => (a + SHAPE.length) % SHAPE.length);
    const kept = SHAPE.map((_, i) => i).filter((i) => !axes.includes(i));
    const shape = kept.map((i) => SHAPE[i]);
    const place = (i) => [Math.floor(i / 20), Math.floor(i / 5) % 4, i % 5];
    const groups = gather(shape.reduce((a, b) => a * b, 1), (i) => kept.reduce((at, d) => at * SHAPE[d] + place(i)[d], 0));
    return { options: { shape: SHAPE, axis }, shape, groups };
}

// Every way to many answers. The integers' type changes from way to way.
function* ways() {
    for (const axis of [0, 1, -1, [0, 1], [1, 2], [2, 0], [0, -1], [0, 1, 2], []]) yield alongAxes(axis);
    for (const type of Object.keys(INTEGERS)) {
        const rows = integers(type, [2, 0, 2]);
        yield { options: { keys: rows, shape: SHAPE }, shape: [3, 4, 5], groups: gather(60, (i) => Number(rows[Math.floor(i / 20)]) * 20 + i % 20) };
        const each = integers(type, indices.map((i) => i % 7));
        yield { options: { keys: each, groups: 4, drop: true }, shape: [4], groups: gather(4, (i) => i % 7) };
    }
    for (const type of ['i32', 'i64', 'u32', 'u64'])
        yield { options: { offsets: integers(type, [1, 4, 4, 60]) }, shape: [3],
            groups: [indices.slice(1, 4), [], indices.slice(4)] };
}

const sorted = (values) => Array.from(values).sort((a, b) => a - b);
const middle = (v) => (v.length % 2 ? v[(v.length - 1) / 2] : (v[v.length / 2 - 1] + v[v.length / 2]) / 2);
const total = (values) => values.reduce((a, b) => a + b, 0);

// Compares a result with the model's: undefined where there is no value.
function compare(got, shape, wanted, what) {
    assert.deepStrictEqual(got.shape, shape, what);
    assert.strictEqual(got.values.length, wanted.length, what);
    wanted.forEach((value, i) => {
        const status = got.statuses ? got.statuses[i] : 0;
        assert.strictEqual(status !== 0, value === undefined, `${what} [${i}]`);
        if (value !== undefined) assert.strictEqual(Number(got.values[i]), value, `${what} [${i}]`);
    });
}

async function check(client, name, way, masked, paired) {
    const [Type, words] = TYPES[name];
    const numbers = indices.map((i) => (name === 'bool' ? i % 3 % 2 : (i * i + 1) % 4));
    const others = indices.map((i) => (name === 'bool' ? i % 2 : (3 * i) % 4));
    const array = (values) => Type.from(words ? values.map((v) => words[v]) : values);
    const where = Uint8Array.from(indices, (i) => (i % 5 === 1 || i > 50 ? 0 : 1 + i % 200));
    const ops = paired ? ['dot', 'sqdist'] : ['sum', 'max', 'count', 'any', 'median', 'quantile'];
    const options = { dtype: name, q: 0.5, ...way.options, ...(masked ? { where } : {}), ...(paired ? { second: array(others) } : {}) };
    const got = await client.reduce(array(numbers), ops, options);
    const groups = way.groups.map((group) => (masked ? group.filter((i) => where[i]) : group));
    const of = (f) => groups.map(f);
    const model = { sum: of((g) => total(g.map((i) => numbers[i]))), count: of((g) => g.length),
        any: of((g) => Number(g.some((i) => numbers[i]))), max: of((g) => (g.length ? Math.max(...g.map((i) => numbers[i])) : undefined)),
        dot: of((g) => total(g.map((i) => numbers[i] * others[i]))), median: of((g) => (g.length ? middle(sorted(g.map((i) => numbers[i]))) : NaN)) };
    model.quantile = model.median;
    model.sqdist = of((g) => total(g.map((i) => (numbers[i] - others[i]) ** 2)));
    for (const op of ops) {
        const what = `${op} ${name} ${JSON.stringify(way.options, (_, v) => (ArrayBuffer.isView(v) ? v.constructor.name : v))} ${masked} ${paired}`;
        assert(got[op] !== undefined, `${what}: ${got.errors[op]}`);
        compare(got[op], way.shape, model[op], what);
    }
}

async function cross(client) {
    const all = [...ways()];
    let k = 0; // every type with every kind of way, and every way with some types
    for (const name of Object.keys(TYPES))
        for (const way of all) {
            if (++k % 5 && !way.options.axis) continue;
            for (const masked of [false, true]) await check(client, name, way, masked, false);
            if (name !== 'bool') await check(client, name, way, k % 2 === 0, true);
        }
}

// Larger than a message, and streams.
async function large(client) {
    const rows = 150000;
    const x = Float64Array.from({ length: 2 * rows }, (_, i) => i % 9);
    const keys = Int32Array.from({ length: rows }, (_, i) => i % 3);
    const where = Uint8Array.from(x, (_, i) => Number(i % 2 === 0 || i % 3 === 0));
    const model = [0, 0, 0, 0, 0, 0];
    x.forEach((v, i) => { if (where[i]) model[(Math.floor(i / 2) % 3) * 2 + i % 2] += v; });
    const options = { keys, where, shape: [rows, 2] };
    assert.deepStrictEqual([...(await client.sum(x, options)).values], model);
    const chunks = Readable.from([x.subarray(0, 7), x.subarray(7)]);
    assert.deepStrictEqual([...(await client.sum(chunks, options)).values], model);
    const offsets = BigInt64Array.of(0n, 10n, BigInt(x.length));
    const parts = [total(x.subarray(0, 10)), total(x.subarray(10))];
    assert.deepStrictEqual([...(await client.sum([x], { offsets })).values], parts);
    assert.deepStrictEqual([...(await client.sum(x, { offsets: Uint32Array.from(offsets, Number) })).values], parts);
    assert.deepStrictEqual([...(await client.dot(x, { second: x, offsets })).values], [0, 10].map((at, i) =>
        total(x.subarray(at, i ? x.length : 10).map((v) => v * v))));
    const odd = new Uint8Array(1 + 8 * x.length).subarray(1); // elements at no multiple of their size
    odd.set(new Uint8Array(x.buffer));
    const turned = await client.sum(odd, { dtype: 'f64', shape: [2, rows / 2, 2], axis: [0, 2] });
    const wanted = new Array(rows / 2).fill(0);
    x.forEach((v, i) => { wanted[Math.floor(i / 2) % (rows / 2)] += v; });
    assert.deepStrictEqual([...turned.values], wanted);
    assert.deepStrictEqual((await client.sum(x, { shape: [2, rows / 2, 2], axis: [0, 2], keepdims: true })).shape, [1, rows / 2, 1]);
    assert.deepStrictEqual((await client.sum([x], { shape: [2, rows / 2, 2], axis: [0, 1] })).shape, [2]);
    const seen = await client.describe(x, options);
    assert.deepStrictEqual([Object.keys(seen).length, seen.std.shape], [11, [3, 2]]);
    const none = await client.max(new Float32Array(0), { keys: new Uint8Array(0), groups: 2 });
    assert.deepStrictEqual([none.shape, [...none.statuses].map((s) => s !== 0)], [[2], [true, true]]);
    assert.deepStrictEqual((await client.sum(new Float32Array(0), { keys: new Uint8Array(0) })).shape, [0]);
}

async function main(address) {
    const client = cured.connect(address);
    try {
        await cross(client);
        await large(client);
    } finally {
        client.close();
    }
    console.log('good');
}

main(...process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
