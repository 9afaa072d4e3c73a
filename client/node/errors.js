// errors: what the package throws. Its sentences show values that can be anything: a Symbol, a proxy, an object without a prototype.
'use strict';
const { inspect } = require('util');

// What the daemon, the connection or the caller's signal said. code: gRPC's name.
class CuredError extends Error {
    constructor(code, message, { cause, ...more } = {}) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'CuredError';
        this.code = code;
        Object.assign(this, more);
    }
}

const SHOWN = { depth: 0, maxArrayLength: 6, maxStringLength: 60, breakLength: Infinity, customInspect: false };
const coded = (error) => Object.assign(error, { code: 'INVALID_ARGUMENT' });
const bad = (sentence) => coded(new RangeError(sentence));
const badType = (sentence) => coded(new TypeError(sentence));
const nonsense = (what) => new CuredError('INTERNAL', `the server broke the protocol: ${what}; is a cured daemon of this version at the address?`);
const shown = (value) => inspect(value, SHOWN);

// An object by the name of its class, another value as itself.
function kindOf(value) {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return shown(value);
    const name = typeof value === 'function' ? 'a function' : value.constructor && value.constructor.name;
    return typeof name === 'string' && name !== '' ? name : 'an object';
}

module.exports = { CuredError, bad, badType, nonsense, shown, kindOf };
