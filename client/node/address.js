// address: where a client asks, and the secrets that it shows there: those of its options, else those of the environment, as cured-client
// has them.
'use strict';
const fs = require('fs');
const path = require('path');
const grpc = require('@grpc/grpc-js');
const { bad, badType, shown, kindOf } = require('./errors');
const { CONNECT, optionsOf } = require('./options');

const FILES = { ca: 'CURED_TLS_CA', certificate: 'CURED_CLIENT_CERTIFICATE', key: 'CURED_CLIENT_KEY' };
const TOKEN_MAX_BYTES = 128;

// Where cured-client finds a daemon.
function defaultAddress() {
    if (process.env.CURED_CONNECT) return process.env.CURED_CONNECT;
    const own = process.env.XDG_RUNTIME_DIR ? path.join(process.env.XDG_RUNTIME_DIR, 'cured.sock') : undefined;
    const system = '/run/cured/cured.sock';
    const order = process.getuid && process.getuid() === 0 ? [system, own] : [own, system];
    return `unix:${order.find((place) => place !== undefined && fs.existsSync(place)) || system}`;
}

// The first word of a file that is the user's own.
function readToken(file) {
    const open = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    try {
        const { mode } = fs.fstatSync(open);
        if ((mode & fs.constants.S_IFMT) !== fs.constants.S_IFREG || mode & 0o077) throw bad(`tokenFile: ${shown(file)} may be read by others: chmod 600 it`);
        const bytes = Buffer.alloc(TOKEN_MAX_BYTES + 2);
        return bytes.toString('latin1', 0, fs.readSync(open, bytes)).split(/[ \t\r\n]/)[0];
    } finally {
        fs.closeSync(open);
    }
}

// A secret does not go where others can read it. An empty one is none, and looks for no other.
function tokenOf(options, scheme, rest) {
    if (options.token !== undefined && options.tokenFile !== undefined) throw bad('token and tokenFile are two ways to give one: leave one out');
    const said = options.token !== undefined || options.tokenFile !== undefined;
    const given = said ? options.token : process.env.CURED_CLIENT_TOKEN;
    const file = said || given !== undefined ? options.tokenFile : process.env.CURED_CLIENT_TOKEN_FILE;
    const token = given === undefined && file ? readToken(file) : given;
    if (!token) return undefined;
    if (!/^[\x21-\x7e]+$/.test(token) || token.length > TOKEN_MAX_BYTES)
        throw bad(`token is no NAME.SECRET of 1 to ${TOKEN_MAX_BYTES} letters, digits and signs, as \`cured-client token\` writes it`);
    if (scheme === 'tcp' && !/^(localhost|127\.[0-9.]+|\[?::1\]?):[0-9]+$/.test(rest))
        throw bad('token: it is not sent to another host without TLS: use tls:HOST:PORT');
    return token;
}

function credentialsOf(options, scheme) {
    for (const name of Object.keys(FILES))
        if (options[name] && scheme !== 'tls') throw bad(`${name} goes with tls:HOST:PORT, and the address begins with ${scheme}: leave it out`);
    if (scheme !== 'tls') return grpc.credentials.createInsecure();
    const [ca, certificate, key] = Object.entries(FILES).map(([name, variable]) => options[name] ?? process.env[variable]);
    if (!certificate !== !key) throw bad('certificate and key go together: give the names of both files');
    const read = (file) => (file ? fs.readFileSync(file) : null);
    return grpc.credentials.createSsl(read(ca), read(key), read(certificate));
}

// gRPC's address and credentials, the token, and how long calls wait.
function placeOf(given, connectOptions) {
    const address = given === undefined ? defaultAddress() : given;
    const [, scheme, rest] = (typeof address === 'string' && /^(unix|tcp|tls):(.+)$/s.exec(address)) || [];
    if (!scheme)
        throw (typeof address === 'string' ? bad : badType)(`address is ${shown(address)}, must be unix:PATH, tcp:HOST:PORT or tls:HOST:PORT`);
    const options = optionsOf(connectOptions, CONNECT);
    for (const name of [...Object.keys(FILES), 'token', 'tokenFile'])
        if (options[name] !== undefined && typeof options[name] !== 'string') throw badType(`${name} is ${kindOf(options[name])}, must be a string`);
    return { target: scheme === 'unix' ? address : rest, credentials: credentialsOf(options, scheme), token: tokenOf(options, scheme, rest),
        timeoutMs: options.timeoutMs };
}

module.exports = { placeOf };
