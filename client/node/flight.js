// flight: one call on its way. Whatever ends it early (its time, its signal, an error) ends every wait of it, also that for the caller's
// own stream, and cancels it at the daemon.
'use strict';
const grpc = require('@grpc/grpc-js');
const { CuredError } = require('./errors');

const TIMER_MAX_MS = 2 ** 31 - 1; // of Node's timers
const CONNECT_MS = 20000; // gRPC waits for ever for whoever takes a connection and says nothing

class Flight {
    constructor({ signal, timeoutMs }, defaultMs) {
        this.waiting = new Set();
        this.cancel = () => {};
        this.signal = signal;
        this.onAbort = () => this.end(new CuredError('CANCELLED', 'the call was aborted by its signal', { cause: signal.reason }));
        if (signal !== undefined && signal.aborted) this.onAbort();
        if (this.error) throw this.error;
        const ms = timeoutMs ?? defaultMs;
        if (ms !== undefined) this.arm(Date.now() + ms, ms);
        if (signal !== undefined) signal.addEventListener('abort', this.onAbort, { once: true });
    }

    arm(deadline, ms) {
        this.deadline = deadline;
        const left = deadline - Date.now();
        this.timer = setTimeout(() => {
            if (left > TIMER_MAX_MS) this.arm(deadline, ms);
            else this.end(new CuredError('DEADLINE_EXCEEDED', `the call took longer than timeoutMs, ${ms} ms`));
        }, Math.min(left, TIMER_MAX_MS));
    }

    // The options of gRPC's call.
    get options() {
        return this.deadline === undefined ? {} : { deadline: this.deadline };
    }

    // Gives up a call that has no connection by then. One that is on its way may lose its own for new calls, and goes on.
    connecting(channel) {
        const { READY, SHUTDOWN } = grpc.connectivityState;
        const deadline = Date.now() + CONNECT_MS;
        const look = (late) => {
            if (this.over || this.error) return;
            if (late) this.end(new CuredError('UNAVAILABLE', `nobody spoke gRPC at the address within ${CONNECT_MS / 1000} s`));
            const state = channel.getConnectivityState(false);
            if (!late && state !== READY && state !== SHUTDOWN) channel.watchConnectivityState(state, deadline, look);
        };
        look();
    }

    // The first error is the call's.
    end(error) {
        if (this.error || this.over) return;
        this.error = error;
        for (const reject of this.waiting) reject(error);
        this.waiting.clear();
        this.cancel();
    }

    wait(promise) {
        return new Promise((resolve, reject) => {
            if (this.error) reject(this.error);
            else this.waiting.add(reject);
            const settle = (done) => (value) => {
                this.waiting.delete(reject);
                done(value);
            };
            Promise.resolve(promise).then(settle(resolve), settle(reject));
        });
    }

    // A signal may be that of many calls: each lets go of it when it has ended.
    close() {
        this.over = true;
        clearTimeout(this.timer);
        if (this.signal !== undefined) this.signal.removeEventListener('abort', this.onAbort);
    }
}

// What gRPC says.
function failure(error) {
    if (typeof error.code !== 'number') return error;
    const wait = error.metadata && error.metadata.get('grpc-retry-pushback-ms')[0];
    return new CuredError(grpc.status[error.code] || 'UNKNOWN', error.details || error.message,
        wait === undefined ? {} : { retryAfterMs: Number(wait) });
}

// A call of one message each way.
function unary(stub, method, request, metadata, flight) {
    return flight.wait(new Promise((resolve, reject) => {
        const call = stub[method](request, metadata, flight.options, (error, answer) => (error ? reject(failure(error)) : resolve(answer)));
        flight.cancel = () => call.cancel();
        flight.connecting(stub.getChannel());
    }));
}

// MergeStream: one message, and take(answer) has each that comes.
async function answered(stub, request, metadata, flight, take) {
    const call = stub.MergeStream(request, metadata, flight.options);
    flight.cancel = () => call.cancel();
    flight.connecting(stub.getChannel());
    try {
        await flight.wait(answersOf(call, flight, take));
    } catch (error) {
        flight.end(error);
        throw error;
    }
}

// Until the daemon has ended the call.
function answersOf(call, flight, take) {
    return new Promise((resolve, reject) => {
        call.on('data', (answer) => {
            try {
                take(answer);
            } catch (error) {
                flight.end(error);
            }
        });
        call.on('end', resolve);
        call.on('error', (error) => reject(failure(error)));
    });
}

// ReduceStream: feed(write) writes messages, of which one is on its way at a time; take(answer) has each that comes. Ends once the daemon
// has ended the call.
async function streamed(stub, metadata, flight, feed, take) {
    const call = stub.ReduceStream(metadata, flight.options);
    flight.cancel = () => call.cancel();
    flight.connecting(stub.getChannel());
    const over = answersOf(call, flight, take);
    let fed = false;
    over.then(() => fed || flight.end(new CuredError('UNAVAILABLE', 'the server ended the call before it had the whole array')),
        (error) => flight.end(error));
    // What cannot be written any more ends the call, which says why.
    const write = (message) => flight.wait(new Promise((resolve) => call.write(message, (error) => error || resolve())));
    try {
        await feed(write);
        fed = true;
        call.end();
        await flight.wait(over);
    } catch (error) {
        flight.end(error);
        throw error;
    }
}

module.exports = { Flight, unary, streamed, answered };
