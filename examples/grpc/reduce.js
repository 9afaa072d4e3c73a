#!/usr/bin/env node
// Sum and maximum of a file of float32 over gRPC, with @grpc/grpc-js; it reads cured.proto beside it (docs/GRPC.md).
//
// usage: reduce.js TARGET FILE [CA CERTIFICATE KEY]      TARGET: unix:/run/cured/cured.sock, or HOST:PORT
// With three PEM files it speaks TLS: the CA of the daemon's certificate, and a certificate of its own.
'use strict';
const fs = require('fs');
const path = require('path');
const { pipeline } = require('stream/promises');
const { promisify } = require('util');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const { cured } = grpc.loadPackageDefinition(
    loader.loadSync(path.join(__dirname, 'cured.proto'), { enums: String, longs: String, defaults: true }));

const PIECE = 1 << 20; // bytes in a message; clients take and send 4 MiB at most unless told otherwise
const WANTED = { dtype: 'DTYPE_F32', ops: ['OP_SUM', 'OP_MAX'] };

// A daemon that is just starting is waited for, up to the call's deadline.
const WAITS = new grpc.Metadata({ waitForReady: true });
const after = (seconds) => ({ deadline: Date.now() + 1000 * seconds });

function print(what, results, count = 1) {
    for (const result of results) {
        if (result.status) throw new Error(result.message);
    }
    const text = (value) => (Number.isInteger(value) ? value.toFixed(1) : String(value));
    const answers = (read) => Array.from({ length: count }, (_, i) => text(read(i))).join(' ');
    const sums = answers((i) => results[0].value.readDoubleLE(8 * i));
    console.log(`${what}: sum ${sums} max ${answers((i) => results[1].value.readFloatLE(4 * i))}`);
}

// One head, then the array in pieces.
async function* chunks(file) {
    yield { head: WANTED };
    for await (const data of fs.createReadStream(file, { highWaterMark: PIECE })) yield { data };
}

async function lastOf(answers) {
    let last;
    for await (const answer of answers) last = answer;
    return last;
}

function credentials(files) {
    if (files.length === 0) return grpc.credentials.createInsecure();
    const [ca, certificate, key] = files.map((name) => fs.readFileSync(name));
    return grpc.credentials.createSsl(ca, key, certificate);
}

async function main(target, file, ...files) {
    if (!file) throw new Error('usage: reduce.js TARGET FILE [CA CERTIFICATE KEY]');
    const client = new cured.v1.Cured(target, credentials(files));
    try {
        // A small array fits into its request.
        const data = Buffer.from(new Float32Array([1, 2, 3]).buffer);
        const small = await promisify(client.Reduce.bind(client))({ ...WANTED, data }, WAITS, after(10));
        print('small', small.results);
        // Along an axis each result has all its answers: here those of two rows of three.
        const six = Buffer.from(new Float32Array([1, 2, 3, 4, 5, 6]).buffer);
        const axis = { outer: 2, n: 3, inner: 1 };
        const rows = await promisify(client.Reduce.bind(client))({ ...WANTED, axis, data: six }, WAITS, after(10));
        print('rows', rows.results, 2);
        // A large one is a stream: pipeline waits while the daemon is behind. The last answer has the results.
        const call = client.ReduceStream(WAITS, after(60));
        const [last] = await Promise.all([lastOf(call), pipeline(chunks(file), call)]);
        print('file', last.end.results);
    } finally {
        client.close();
    }
}

main(...process.argv.slice(2)).catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
});
