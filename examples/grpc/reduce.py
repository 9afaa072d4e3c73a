#!/usr/bin/env python3
"""Sum and maximum of a file of float32 over gRPC, with grpcio and stubs that protoc made (docs/GRPC.md).

usage: reduce.py TARGET FILE [CA CERTIFICATE KEY]      TARGET: unix:/run/cured/cured.sock, or HOST:PORT
With three PEM files it speaks TLS: the CA of the daemon's certificate, and a certificate of its own.
"""
import struct
import sys

import cured_pb2 as cured
import cured_pb2_grpc
import grpc

WAITS = {"wait_for_ready": True}  # a daemon that is just starting is waited for, up to the call's timeout
PIECE = 1 << 20  # bytes in a message; clients take and send 4 MiB at most unless told otherwise


def chunks(path, ops):
    """One head, then the array in pieces."""
    yield cured.ReduceChunk(head=cured.ReduceRequest(dtype=cured.DTYPE_F32, ops=ops))
    with open(path, "rb") as f:
        while piece := f.read(PIECE):
            yield cured.ReduceChunk(data=piece)


def open_channel(target, files):
    if not files:
        return grpc.insecure_channel(target)
    pem = []
    for path in files:
        with open(path, "rb") as f:
            pem.append(f.read())
    ca, certificate, key = pem
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(ca, key, certificate))


def main(target, path, *files):
    with open_channel(target, files) as channel:
        stub = cured_pb2_grpc.CuredStub(channel)
        ops = [cured.OP_SUM, cured.OP_MAX]
        # A small array fits into its request.
        small = stub.Reduce(cured.ReduceRequest(dtype=cured.DTYPE_F32, ops=ops, data=struct.pack("<3f", 1, 2, 3)), timeout=10, **WAITS)
        print("small: sum", struct.unpack("<d", small.results[0].value)[0], "max", struct.unpack("<f", small.results[1].value)[0])
        # Along an axis each result has all its answers: here those of two rows of three.
        rows = stub.Reduce(cured.ReduceRequest(dtype=cured.DTYPE_F32, ops=ops, axis=cured.Axis(outer=2, n=3, inner=1),
                                               data=struct.pack("<6f", 1, 2, 3, 4, 5, 6)), timeout=10, **WAITS)
        print("rows: sum", *struct.unpack("<2d", rows.results[0].value), "max", *struct.unpack("<2f", rows.results[1].value))
        # A large one is a stream. The last answer has the results.
        for answer in stub.ReduceStream(chunks(path, ops), timeout=60, **WAITS):
            end = answer.end
        for result in end.results:
            if result.status:
                raise SystemExit(result.message)
        print("file: sum", struct.unpack("<d", end.results[0].value)[0], "max", struct.unpack("<f", end.results[1].value)[0])


if __name__ == "__main__":
    if len(sys.argv) not in (3, 6):
        raise SystemExit("usage: reduce.py TARGET FILE [CA CERTIFICATE KEY]")
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        raise SystemExit(f"{error.code().name}: {error.details()}") from None
