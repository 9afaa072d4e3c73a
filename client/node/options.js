// options: takes the caller's options over, own and inherited ones, and says which there are not, and which of their values cannot be.
'use strict';
const { bad, badType, shown, kindOf } = require('./errors');

const CALL = ['timeoutMs', 'signal'];
const FINISH = ['nan', 'ddof', 'resultDtype', 'overflow', ...CALL];
const ARRAY = ['dtype', 'shape', 'where', 'second', 'weights', 'first', 'onProgress', ...FINISH];
const REDUCE = [...ARRAY, 'axis', 'keepdims', 'keys', 'groups', 'drop', 'offsets', 'q', 'method'];
const PARTIAL = [...ARRAY, 'unplaced', 'within', 'start', 'keys', 'groups', 'drop'];
// What partials do not take, and why.
const NO_PARTIAL = {
    axis: 'a partial is of one answer: answers along an axis need no merging, so reduce() each block of the array',
    offsets: 'a partial is of one answer: answers to segments need no merging, so reduce() those of each part',
    q: 'quantiles have no partial: reduce() the whole array',
};
const CONNECT = ['ca', 'certificate', 'key', 'token', 'tokenFile', 'timeoutMs'];
const TIMEOUT_MAX_MS = 2 ** 32 - 1;

// A copy of those that are given. An option is inherited as any property is; what a class has beside options (methods) is none.
function optionsOf(given, known, refused = {}) {
    if (given === undefined) return {};
    if (given === null || typeof given !== 'object' || Array.isArray(given) || ArrayBuffer.isView(given) || Symbol.iterator in given)
        throw badType(`options is ${kindOf(given)}, must be an object with some of ${known.join(', ')}`);
    for (const [name, why] of Object.entries(refused))
        if (given[name] !== undefined) throw bad(`${name}: ${why}`);
    for (let at = given; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
        for (const name of Reflect.ownKeys(at))
            if (!known.includes(name) && Object.prototype.propertyIsEnumerable.call(at, name))
                throw bad(`unknown option ${shown(name)}; there are ${known.join(', ')}`);
    const options = {};
    for (const name of known) {
        const value = given[name];
        if (value !== undefined) options[name] = value;
    }
    checkCall(options);
    return options;
}

function checkCall({ timeoutMs, signal, onProgress }) {
    if (timeoutMs !== undefined && typeof timeoutMs !== 'number')
        throw badType(`timeoutMs is ${kindOf(timeoutMs)}, must be a number: an integer from 1 to ${TIMEOUT_MAX_MS} (2^32 - 1)`);
    if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= TIMEOUT_MAX_MS))
        throw bad(`timeoutMs is ${timeoutMs}, must be an integer from 1 to ${TIMEOUT_MAX_MS} (2^32 - 1): leave it out to wait without an end`);
    if (signal !== undefined && !(signal !== null && typeof signal === 'object' && typeof signal.aborted === 'boolean'
        && typeof signal.addEventListener === 'function' && typeof signal.removeEventListener === 'function'))
        throw badType(`signal is ${kindOf(signal)}, must be an AbortSignal, as new AbortController().signal`);
    if (onProgress !== undefined && typeof onProgress !== 'function')
        throw badType(`onProgress is ${kindOf(onProgress)}, must be a function of the bytes that are done and of all bytes`);
}

// One of the words, as its number; the first unless it is given.
function word(name, value, words) {
    if (value === undefined) return 0;
    const index = words.indexOf(value);
    if (index < 0) throw bad(`${name} is ${shown(value)}, must be one of ${words.join(', ')}`);
    return index;
}

// An integer that a double holds, 0 unless it is given.
function whole(name, value) {
    if (value === undefined) return 0;
    const number = typeof value === 'bigint' ? Number(value) : value;
    if (!Number.isSafeInteger(number) || number < 0) throw bad(`${name} is ${shown(value)}, must be an integer from 0 to 2^53 - 1`);
    return number;
}

function flag(name, value) {
    if (value !== undefined && typeof value !== 'boolean') throw badType(`${name} is ${shown(value)}, must be true or false`);
    return value === true;
}

const product = (lengths) => lengths.reduce((a, b) => a * b, 1);

// A list of lengths, or of places in them.
function lengths(name, value, what) {
    if (!Array.isArray(value) || !value.every((n) => Number.isSafeInteger(n) && n >= 0))
        throw badType(`${name} is ${shown(value)}, must be an array of integers from 0 on, ${what}`);
    if (!Number.isSafeInteger(product(value))) throw bad(`${name} is ${shown(value)}: its product must be at most 2^53 - 1`);
    return value;
}

module.exports = { CALL, FINISH, REDUCE, PARTIAL, NO_PARTIAL, CONNECT, optionsOf, word, whole, flag, lengths, product };
