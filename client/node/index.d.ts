// Exact reductions of typed arrays and streams of them, answered by a cured daemon over gRPC.

export type Dtype = 'bool' | 'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'u64' | 'i64' | 'f16' | 'bf16' | 'f32' | 'f64'
    | 'f8_e4m3' | 'f8_e5m2';
export type ResultDtype = Dtype | 'i128' | 'int' | 'digest';
export type Op = // written by scripts/op-lists
    | 'sum' | 'mean' | 'min' | 'max' | 'argmin' | 'argmax' | 'count' | 'count_nonzero'
    | 'count_nan' | 'any' | 'all' | 'sumsq' | 'norm1' | 'norm2' | 'norminf' | 'var'
    | 'std' | 'prod' | 'bit_and' | 'bit_or' | 'bit_xor' | 'quantile' | 'dot' | 'count_inf'
    | 'digest' | 'sqdist' | 'average' | 'median' | 'ptp';

export type Described = // written by scripts/op-lists
    | 'count' | 'count_nan' | 'min' | 'max' | 'argmin' | 'argmax' | 'sum' | 'mean'
    | 'std';

export type TypedArray = Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array
    | BigInt64Array | BigUint64Array | Float32Array | Float64Array;
/** A Float16Array, where Node has it. */
export interface Halves {
    readonly [Symbol.toStringTag]: 'Float16Array';
    readonly buffer: ArrayBufferLike;
    readonly byteLength: number;
    readonly byteOffset: number;
}
/** Bytes without a type (Buffer, ArrayBuffer, SharedArrayBuffer, DataView) need `dtype`. */
export type ArrayData = TypedArray | Halves | ArrayBuffer | SharedArrayBuffer | DataView;
/** Chunks of one type, in order: also a Readable of Buffers, with `dtype`. An element may lie in two chunks of bytes. */
export type ArrayStream = AsyncIterable<ArrayData> | Iterable<ArrayData>;

/** Floats and integers of up to 32 bits are numbers, wider integers bigints, `any` and `all` booleans, a digest is a string. */
export type Value = number | bigint | boolean | string;

export interface Signal {
    readonly aborted: boolean;
    readonly reason?: any;
    addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
    removeEventListener(type: 'abort', listener: () => void): void;
}

export interface CallOptions {
    /** Gives up after so long, with DEADLINE_EXCEEDED: an integer from 1 to 2^32 - 1. */
    timeoutMs?: number;
    /** An AbortSignal: the call ends with CANCELLED, whose `cause` is the signal's reason. */
    signal?: Signal;
}

export interface FinishOptions extends CallOptions {
    nan?: 'propagate' | 'skip';
    /** Of var and std. */
    ddof?: number;
    /** Rounds the exact result to this type instead of the op's own. */
    resultDtype?: Dtype | 'i128';
    /** Of prod of integers. */
    overflow?: 'error' | 'wrap';
}

/** Of the array that is passed. */
export interface InputOptions extends FinishOptions {
    /** The elements' type, where the array does not say it. A Uint8Array holds any type, and a Uint16Array f16 with `dtype: 'f16'`. */
    dtype?: Dtype;
    /** Lengths of the dimensions, in C order; one dimension unless it is said. */
    shape?: readonly number[];
    /** A byte an element, true unless it is 0: only those elements count. */
    where?: Uint8Array | Uint8ClampedArray | Int8Array;
    /** The other array of dot, sqdist and average. Beside a stream it may be one, and `shape` says how long they are. */
    second?: ArrayData | ArrayStream;
    /** Of average: another name of `second`. */
    weights?: ArrayData | ArrayStream;
    /** The array begins with this element of a larger one. */
    first?: number | bigint;
    onProgress?: (bytesDone: number, bytesTotal: number) => void;
}

export interface Options extends InputOptions {
    /** Of quantile: a share from 0 to 1, or several, of which each has an answer; 0.5 unless it is said. */
    q?: number | readonly number[] | Float64Array | Float32Array;
    method?: 'linear' | 'lower' | 'higher' | 'nearest' | 'midpoint';
}

export interface AxisOptions extends Options {
    /** The dimensions that are reduced, one or several; negative: from the end. Those of a stream must lie side by side. */
    axis: number | readonly number[];
    keepdims?: boolean;
}

export type IntegerArray = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array | BigUint64Array;

/** An answer for each group of rows. */
export interface KeyOptions extends Options {
    /** Of each row (index of the first dimension) the number of its group. */
    keys: IntegerArray;
    /** Keys are 0 to groups - 1; up to the greatest key unless it is said. */
    groups?: number;
    /** Rows whose key is outside are for no group; otherwise such a key fails the call. */
    drop?: boolean;
}

/** An answer for each segment: elements from one offset up to the next. */
export interface SegmentOptions extends Options {
    /** One more than there are segments. */
    offsets: Int32Array | Uint32Array | BigInt64Array | BigUint64Array;
}

/** Of a part of an array. */
export interface PartialOptions extends InputOptions {
    /** The part does not know its place: no argmin, argmax and digest. Under a mask it never does. */
    unplaced?: boolean;
    /** The part is a block of `shape` in an array of these lengths, */
    within?: readonly number[];
    /** and begins there along each of its dimensions. */
    start?: readonly number[];
    /** By key: bytes for `cured-client merge` and Python, which merge them; give `groups`, since all parts have as many. */
    keys?: IntegerArray;
    groups?: number;
    drop?: boolean;
}

export type ManyOptions = AxisOptions | KeyOptions | SegmentOptions;

/** Answers along axes, by key or by offsets. */
export interface ArrayResult {
    dtype: ResultDtype;
    /** Of a list of quantiles the first dimension is that of the list. */
    shape: number[];
    /** f16, bf16 and f8 are Float32Array; i128 are bigints, digests strings. */
    values: TypedArray | bigint[] | string[];
    /** A byte an answer, 0 where it has a value; null: each has one. */
    statuses: Uint8Array | null;
}

type ValueOf<K, V> = [V] extends [ArrayResult] ? V : K extends 'quantile' ? V | number[] : V;
/** Of each op its answer; undefined where it has none, and `errors` says why. */
export type Result<O extends Op, V = Value> = { readonly [K in O]: ValueOf<K, V> | undefined } & {
    /** Of the array. */
    readonly elements: number;
    readonly errors: { readonly [K in O]?: CuredError };
};

/** What the daemon, the connection or the signal said. An option that cannot be is a RangeError or a TypeError, with the code 'INVALID_ARGUMENT'. */
export class CuredError extends Error {
    /** gRPC's name: 'INVALID_ARGUMENT', 'RESOURCE_EXHAUSTED', … */
    readonly code: string;
    /** The op that has no value, where it is one. */
    readonly op?: Op;
    /** Worth trying again after so long. */
    readonly retryAfterMs?: number;
}

export interface ConnectOptions {
    /** Names of PEM files, for tls: else those in CURED_TLS_CA, CURED_CLIENT_CERTIFICATE and CURED_CLIENT_KEY; '' is none. */
    ca?: string;
    certificate?: string;
    key?: string;
    /** NAME.SECRET, as `cured-client token` writes it, or the file of mode 0600 that has it: else CURED_CLIENT_TOKEN, else CURED_CLIENT_TOKEN_FILE. */
    token?: string;
    tokenFile?: string;
    /** Of every call that says none of its own. */
    timeoutMs?: number;
}

type List = { q: readonly number[] | Float64Array | Float32Array };
type Quantile = {
    (array: ArrayData | ArrayStream, options: ManyOptions): Promise<ArrayResult>;
    (array: ArrayData | ArrayStream, options: Options & List): Promise<number[]>;
    (array: ArrayData | ArrayStream, options?: Options & { q?: number }): Promise<number>;
};
type OneOp<V extends Value> = {
    (array: ArrayData | ArrayStream, options: ManyOptions): Promise<ArrayResult>;
    (array: ArrayData | ArrayStream, options?: Options): Promise<V>;
};

export class Client {
    constructor(address?: string, options?: ConnectOptions);
    // A method an op, written by scripts/op-lists.
    sum: OneOp<number | bigint>;
    mean: OneOp<number>;
    min: OneOp<number | bigint | boolean>;
    max: OneOp<number | bigint | boolean>;
    argmin: OneOp<bigint>;
    argmax: OneOp<bigint>;
    count: OneOp<bigint>;
    count_nonzero: OneOp<bigint>;
    count_nan: OneOp<bigint>;
    any: OneOp<boolean>;
    all: OneOp<boolean>;
    sumsq: OneOp<number | bigint>;
    norm1: OneOp<number | bigint>;
    norm2: OneOp<number>;
    norminf: OneOp<number | bigint>;
    var: OneOp<number>;
    std: OneOp<number>;
    prod: OneOp<number | bigint>;
    bit_and: OneOp<number | bigint | boolean>;
    bit_or: OneOp<number | bigint | boolean>;
    bit_xor: OneOp<number | bigint | boolean>;
    quantile: Quantile;
    dot: OneOp<number | bigint>;
    count_inf: OneOp<bigint>;
    digest: OneOp<string>;
    sqdist: OneOp<number | bigint>;
    average: OneOp<number>;
    median: OneOp<number>;
    ptp: OneOp<number | bigint>;
    /** Several ops from one pass. */
    reduce<O extends Op>(array: ArrayData | ArrayStream, ops: readonly O[], options: ManyOptions): Promise<Result<O, ArrayResult>>;
    reduce<O extends Op>(array: ArrayData | ArrayStream, ops: readonly O[], options?: Options): Promise<Result<O>>;
    describe(array: ArrayData | ArrayStream, options: ManyOptions): Promise<Result<Described, ArrayResult>>;
    describe(array: ArrayData | ArrayStream, options?: Options): Promise<Result<Described>>;
    /** The exact unfinished state of a part, for merge(), mergePartials() and finish(). */
    partial(array: ArrayData | ArrayStream, ops: readonly Op[], options?: PartialOptions): Promise<Uint8Array>;
    /** The answers of all parts, in any order, that were made for these ops. Of partials by key they are arrays: merge<Op, ArrayResult>(…). */
    merge<O extends Op, V = Value>(partials: readonly Uint8Array[], ops: readonly O[], options?: FinishOptions): Promise<Result<O, V>>;
    /** The partial of all parts. */
    mergePartials(partials: readonly Uint8Array[], ops: readonly Op[], options?: FinishOptions): Promise<Uint8Array>;
    /** The answers of one partial. */
    finish<O extends Op, V = Value>(partial: Uint8Array, ops: readonly O[], options?: FinishOptions): Promise<Result<O, V>>;
    /** What cured.proto calls InfoResponse and StatsResponse. */
    info(options?: CallOptions): Promise<Record<string, unknown>>;
    stats(options?: CallOptions): Promise<Record<string, unknown>>;
    /** The slowest calls of the last hour, each what cured.proto calls SlowCall. */
    slowLog(options?: CallOptions): Promise<Record<string, unknown>[]>;
    close(): void;
}

/** unix:PATH, tcp:HOST:PORT or tls:HOST:PORT; else CURED_CONNECT, else the daemon of the user or of the machine. */
export function connect(address?: string, options?: ConnectOptions): Client;
export const ops: readonly Op[];
export const dtypes: readonly Dtype[];
