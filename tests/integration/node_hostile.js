// What test_node.py runs in a project that has installed the package: servers that answer nonsense, break off, or say nothing. Each call ends
// in a CuredError, and the program goes on.
//
// usage: node_hostile.js
'use strict';
const assert = require('assert');
const net = require('net');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const cured = require('cured');

const proto = path.join(path.dirname(require.resolve('cured')), 'cured.proto');
const { service } = grpc.loadPackageDefinition(loader.loadSync(proto, { enums: Number, longs: Number })).cured.v1.Cured;
const SUM = 1, MAX = 4, F64 = 13, I64 = 9, DIGEST = 20, INT = 15;
const f64 = (...values) => Buffer.from(Float64Array.from(values).buffer);
const good = (op, values, dtype = F64) => ({ op, dtype, value: values });
const part = (op, first, values, statuses) => ({ part: { op, first, values, statuses } });
const end = (count, ...results) => ({ end: { count, results } });
const sums = end(6, { op: SUM, dtype: F64 });

// What a server says to a Reduce of two elements, for sum. Bytes go out as they are.
const MESSAGES = {
    'nothing at all': {},
    'no result': { count: 2, results: [] },
    'a result too many': { count: 2, results: [good(SUM, f64(1)), good(MAX, f64(1))] },
    'another op': { count: 2, results: [good(MAX, f64(1))] },
    'an op that is none': { count: 2, results: [good(99, f64(1))] },
    'no type': { count: 2, results: [good(SUM, f64(1), 0)] },
    'a type that is none': { count: 2, results: [good(SUM, f64(1), 77)] },
    'a value too short': { count: 2, results: [good(SUM, Buffer.alloc(7))] },
    'a value too long': { count: 2, results: [good(SUM, Buffer.alloc(900000))] },
    'no value': { count: 2, results: [good(SUM, Buffer.alloc(0))] },
    'an integer without bytes': { count: 2, results: [good(SUM, Buffer.alloc(0), INT)] },
    'an integer without end': { count: 2, results: [good(SUM, Buffer.alloc(3e6, 255), INT)] },
    'half a digest': { count: 2, results: [good(SUM, Buffer.alloc(12), DIGEST)] },
    'other elements': { count: 3, results: [good(SUM, f64(1))] },
    'a status that is none': { count: 2, results: [{ op: SUM, status: 4000000000, dtype: F64 }] },
    'no text': { count: 2, results: [{ op: SUM, status: 3 }] },
    'random bytes': Buffer.from('ffffffffffffffffffff01', 'hex'),
    'a length beyond the message': Buffer.from('0aff7f00', 'hex'),
    'more than a client takes': { count: 2, results: [good(SUM, Buffer.alloc(5e6))] },
};
// And to a ReduceStream, for sum of the rows of (2, 3).
const STREAMS = {
    'nothing at all': [],
    'empty messages': [{}, {}],
    'no parts': [sums],
    'a part too few': [part(0, 0, f64(1)), sums],
    'a part twice': [part(0, 0, f64(1)), part(0, 0, f64(1)), part(0, 1, f64(1)), sums],
    'overlapping parts': [part(0, 0, f64(1, 2)), part(0, 1, f64(1)), sums],
    'an empty part': [part(0, 0, f64()), part(0, 0, f64(1, 2)), sums],
    'a part beyond': [part(0, 2, f64(1)), sums],
    'a part far beyond': [part(0, 2 ** 53, f64(1)), sums],
    'a part too long': [part(0, 0, f64(1, 2, 3)), sums],
    'a part of another op': [part(1, 0, f64(1, 2)), sums],
    'a part of an op far away': [part(4294967295, 0, f64(1, 2)), sums],
    'half an element': [part(0, 0, Buffer.alloc(12)), sums],
    'other statuses': [part(0, 0, f64(1, 2), Buffer.alloc(3)), sums],
    'no end': [part(0, 0, f64(1, 2))],
    'two ends': [part(0, 0, f64(1, 2)), sums, sums],
    'a part behind the end': [sums, part(0, 0, f64(1, 2))],
    'another type than the parts': [part(0, 0, f64(1, 2)), end(6, { op: SUM, dtype: DIGEST })],
    'a type that arrays have not': [part(0, 0, f64(1, 2)), end(6, { op: SUM, dtype: INT })],
    'a type that is none': [part(0, 0, f64(1, 2)), end(6, { op: SUM, dtype: 77 })],
    'no result': [part(0, 0, f64(1, 2)), end(6)],
    'other elements': [part(0, 0, f64(1, 2)), end(7, { op: SUM, dtype: F64 })],
    'random bytes': [Buffer.from('ffffffffffffffffffff01', 'hex')],
};
const HEAD = Buffer.concat([Buffer.from('CK'), Buffer.alloc(30)]);
const done = end(2);
// And to one that asks for a partial by key of two elements.
const KEYED = {
    'nothing at all': [],
    'no pieces': [done],
    'no head': [part(0, 0, Buffer.from('CK')), done],
    'less than a head': [part(0, 0, HEAD.subarray(0, 31)), done],
    'another form': [part(0, 0, Buffer.alloc(60, 67)), done],
    'a gap': [part(0, 0, HEAD), part(0, 33, Buffer.alloc(8)), done],
    'a piece twice': [part(0, 0, HEAD), part(0, 0, HEAD), done],
    'an empty piece': [part(0, 0, HEAD), part(0, 32, Buffer.alloc(0)), done],
    'another op': [part(1, 0, HEAD), done],
    'statuses': [part(0, 0, HEAD, Buffer.alloc(1)), done],
    'no end': [part(0, 0, HEAD)],
    'results': [part(0, 0, HEAD), end(2, { op: SUM, dtype: F64 })],
    'other elements': [part(0, 0, HEAD), end(3)],
    'more than so few groups come to': [part(0, 0, Buffer.concat([HEAD, Buffer.alloc(100000)])), done],
};
let answer; // what the server says now

const encoder = (serialize) => (message) => (Buffer.isBuffer(message) ? message : serialize(message));
function served() {
    const server = new grpc.Server();
    const methods = Object.fromEntries(Object.entries(service).map(([name, method]) =>
        [name, { ...method, responseSerialize: encoder(method.responseSerialize) }]));
    const unary = (call, done) => done(null, answer);
    server.addService(methods, { Reduce: unary, Merge: unary, Info: unary, Stats: unary, SlowLog: unary,
        ReduceStream: (call) => {
            call.on('error', () => {});
            if (typeof answer === 'function') {
                answer(call);
                return;
            }
            call.on('data', () => {});
            call.on('end', () => {
                for (const message of answer) call.write(message);
                call.end();
            });
        } });
    return new Promise((resolve, reject) => server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(),
        (error, port) => (error ? reject(error) : resolve({ server, port }))));
}

async function ends(call, what, code) {
    let error, value;
    try {
        value = await call();
    } catch (thrown) {
        error = thrown;
    }
    assert(error instanceof cured.CuredError, `${what}: ${error ? error.stack : `it gave ${require('util').inspect(value)}`}`);
    assert(error.code in grpc.status && error.message.length > 3, `${what}: ${error.code} ${error.message}`);
    if (code) assert.strictEqual(error.code, code, `${what}: ${error.message}`);
    else assert.notStrictEqual(error.code, 'DEADLINE_EXCEEDED', what);
    if (process.env.SHOW) console.log(`${what}: ${error.code} ${error.message}`);
}

async function messages(client) {
    const two = new Float64Array(2);
    for (const [what, message] of Object.entries(MESSAGES)) {
        answer = message;
        await ends(() => client.sum(two), what);
    }
    answer = { count: 2, results: [good(SUM, f64(5))] };
    assert.strictEqual(await client.sum(two), 5);
    for (answer of [{}, { partial: Buffer.alloc(0) }]) {
        await ends(() => client.partial(two, ['sum'], {}), 'no partial');
        await ends(() => client.mergePartials([two], ['sum']), 'no partial');
        await ends(() => client.merge([two], ['sum']), 'no result');
        await ends(() => client.reduce(two, ['sum', 'max']), 'no result');
    }
    answer = MESSAGES['random bytes'];
    for (const method of ['info', 'stats', 'slowLog']) await ends(() => client[method](), `${method}: random bytes`);
}

async function streams(client) {
    const rows = () => client.sum(new Float64Array(6), { shape: [2, 3], axis: 1 });
    for (const [what, list] of Object.entries(STREAMS)) {
        answer = list;
        await ends(rows, what);
    }
    const keyed = () => client.partial(new Float64Array(2), ['sum'], { keys: Uint8Array.of(0, 1) });
    for (const [what, list] of Object.entries(KEYED)) {
        answer = list;
        await ends(keyed, `by key, ${what}`);
    }
    answer = [part(0, 0, HEAD), part(0, 32, Buffer.alloc(20)), done];
    assert.strictEqual((await keyed()).length, 52);
    answer = [part(0, 0, HEAD), done]; // of groups without elements
    assert.strictEqual((await keyed()).length, 32);
    answer = [part(0, 1, f64(2)), part(0, 0, f64(1)), sums];
    assert.deepStrictEqual([...(await rows()).values], [1, 2]);
    answer = [part(0, 0, f64(1, 2)), end(2, { op: SUM, dtype: F64, value: f64(1) })];
    await ends(() => client.sum([new Float64Array(2)]), 'parts to a call with one answer');
    const bytes = 64 * 1024;
    let sent = 0;
    answer = (call) => { // parts for ever: the client must not keep them
        const more = () => {
            while (!call.cancelled && !call.destroyed && call.write(part(0, 0, Buffer.alloc(bytes))) && sent < 2 ** 28) sent += bytes;
        };
        call.on('drain', more);
        call.on('data', () => {});
        more();
    };
    await ends(rows, 'parts for ever');
    assert(sent < 2 ** 28, 'the client took all of them');
    const large = new Float64Array(4e6);
    answer = (call) => call.end(); // before it has the array
    await ends(() => client.sum(large), 'an end before the array');
    answer = (call) => call.emit('error', { code: grpc.status.RESOURCE_EXHAUSTED, details: 'full' });
    await ends(() => client.sum(large), 'an error before the array', 'RESOURCE_EXHAUSTED');
    answer = () => {}; // reads nothing, says nothing
    await ends(() => client.sum(large, { timeoutMs: 100 }), 'silence', 'DEADLINE_EXCEEDED');
    async function* endless() { for (;;) yield new Float64Array(1000); }
    let chunks = 0; // that the client has asked the stream for, while the server took none
    await ends(() => client.sum((function* () { for (;;) { chunks++; yield new Float64Array(2 ** 17); } })(), { timeoutMs: 300 }), 'silence', 'DEADLINE_EXCEEDED');
    assert(chunks <= 8, `${chunks} MiB`);
    answer = (call) => { call.write({ progress: { bytesDone: 1, bytesTotal: 2 } }); call.end(); };
    await ends(() => client.sum(endless()), 'an end before the stream');
}

// A stream whose first chunk takes longer than a connection may. It says the type, so nothing is sent before.
async function late(port) {
    const client = cured.connect(`tcp:127.0.0.1:${port}`);
    answer = [end(1, good(SUM, f64(5)))];
    async function* slow() {
        await new Promise((resolve) => { setTimeout(resolve, 21000); });
        yield new Float64Array(1);
    }
    assert.strictEqual(await client.sum(slow()), 5);
    client.close();
}

// No gRPC at all. Of who says nothing the client has enough after 20 s.
async function sockets() {
    const talks = { 'says nothing': () => {}, 'a closed door': (socket) => socket.destroy(), 'HTTP/1': (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
        'random bytes': (socket) => socket.write(Buffer.alloc(100, 255)), 'frames without end': (socket) => socket.write(Buffer.from('ffffff0400ffffffff', 'hex')) };
    await Promise.all(Object.entries(talks).map(async ([what, talk]) => {
        const server = net.createServer((socket) => {
            socket.on('error', () => {});
            talk(socket);
        });
        await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
        const client = cured.connect(`tcp:127.0.0.1:${server.address().port}`);
        await Promise.all([ends(() => client.sum(new Float64Array(2)), what, 'UNAVAILABLE'), ends(() => client.sum(new Float64Array(1e6)), what, 'UNAVAILABLE')]);
        client.close();
        server.close();
    }));
    const mute = net.createServer((socket) => socket.on('error', () => {}));
    await new Promise((resolve) => { mute.listen(0, '127.0.0.1', resolve); });
    const client = cured.connect(`tcp:127.0.0.1:${mute.address().port}`, { timeoutMs: 200 });
    await ends(() => client.sum(new Float64Array(2)), 'a mute socket', 'DEADLINE_EXCEEDED');
    client.close();
    mute.close();
    const nobody = cured.connect('unix:/nowhere/cured.sock');
    await ends(() => nobody.sum(new Float64Array(2)), 'nobody', 'UNAVAILABLE');
    nobody.close();
}

async function main() {
    process.on('unhandledRejection', (error) => { console.error('unhandled', error); process.exitCode = 1; });
    const { server, port } = await served();
    const client = cured.connect(`tcp:127.0.0.1:${port}`, { timeoutMs: 20000 });
    await messages(client);
    await streams(client);
    client.close();
    await Promise.all([late(port), sockets()]);
    server.forceShutdown();
    console.log('good');
    process.exit(); // the servers here have sockets left
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
