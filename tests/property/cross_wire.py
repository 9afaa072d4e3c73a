"""gRPC, a door of cross_property.py that is no Python of cured's: grpcio and protoc's stubs. It gives what the others are held against:
cross_truth's Answer, or an exception."""
import shutil

import cross_request
import grpc_client
import numpy as np
from cross_request import Found, name_of


def lacks_grpc():
    """What is not there for it, or None."""
    try:
        import grpc  # noqa: F401
    except ImportError as error:
        return "%s (scripts/bootstrap --tests installs it)" % error
    return next(("there is no " + name for name in ("protoc", "grpc_python_plugin") if shutil.which(name) is None), None)


class Grpc:
    """A channel to each address of a daemon."""

    def __init__(self, addresses):
        import grpc
        self.grpc, (self.pb, services) = grpc, grpc_client.stubs()
        self.channels = [grpc_client.channel(address) for address in addresses]
        self.stubs = [services.CuredStub(channel) for channel in self.channels]
        self.names = {number: name[6:].lower() for name, number in self.pb.Dtype.items()}

    def end(self):
        for channel in self.channels:
            channel.close()

    def ask(self, r, ask):
        asked = cross_request.of_case(r, ask.case)
        asked.statuses = asked.answers is not None
        return cross_request.answer(ask, asked, self.results(r, asked))

    # ---- What is asked ----

    def dtype(self, name):
        return self.pb.Dtype.Value("DTYPE_" + name.upper())

    def ops(self, names):
        return [self.pb.Op.Value("OP_" + name.upper()) for name in names]

    def finishing(self, options):
        """The fields of a request and of a merge that say how an answer is made."""
        pb = self.pb
        made = {"nan": pb.NAN_SKIP, "overflow": pb.OVERFLOW_WRAP, "ddof": options.get("ddof")}
        fields = {name: value for name, value in made.items() if name in options}
        return dict(fields, result_dtype=self.dtype(options["dtype"])) if "dtype" in options else fields

    def fields(self, r, asked):
        """(the request's fields, the bytes before the array's)."""
        pb, fields, before = self.pb, self.finishing(asked.options), b""
        for name in ("partial", "unplaced"):
            fields[name] = getattr(asked, name)
        fields["statuses"] = getattr(asked, "statuses", False)
        fields["first"] = asked.first or 0
        fields["parameters"] = [pb.Parameter(op=op, share=share, method=pb.Method.Value("METHOD_" + method.upper()))
                                for op, share, method in asked.parameters]
        if asked.axis:
            fields["axis"] = pb.Axis(outer=asked.axis[0], n=asked.axis[1], inner=asked.axis[2])
        if asked.layout:
            fields["layout"] = pb.ArrayLayout(axes=[pb.ArrayAxis(shape=a, start=b, extent=e) for a, b, e in zip(*asked.layout)])
        if asked.keep is not None:
            bits = r.random() < 0.5
            fields["mask"] = pb.Mask(stream=True, count=asked.keep.size, bits=bits)
            before += np.packbits(asked.keep, bitorder="little").tobytes() if bits else asked.keep.tobytes()
        if asked.offsets is not None:
            fields["segments"] = pb.Segments(stream=True, count=asked.offsets.size, dtype=self.dtype(name_of(asked.offsets)))
            before += asked.offsets.tobytes()
        if asked.keys is not None:
            fields["keys"] = pb.Keys(stream=True, count=asked.keys.size, dtype=self.dtype(name_of(asked.keys)), groups=asked.groups, drop=asked.drop,
                                     columns=asked.columns)
            before += asked.keys.tobytes()
        return fields, before

    def request(self, r, asked):
        """(the request, the bytes before the array's, the array's)."""
        (fields, before), data = self.fields(r, asked), asked.data
        if asked.second is not None:
            fields["second"] = self.pb.Second(stream=True, count=asked.count)
            data += asked.second  # less than a block of each
        return self.pb.ReduceRequest(dtype=self.dtype(asked.dtype), ops=self.ops(asked.ops), **fields), before, data

    # ---- What comes ----

    def called(self, function):
        try:
            return function()
        except self.grpc.RpcError as error:
            raise cross_request.exception(error.code().name, error.details()) from None

    def found(self, result, value, statuses):
        return Found(self.names[result.dtype], value, statuses, result.status, result.message)

    def results(self, r, asked):
        request, before, data = self.request(r, asked)
        stub = r.choice(self.stubs)
        if r.random() < 0.5:
            request.data, request.beside = data, before
            end = self.called(lambda: stub.Reduce(request, timeout=300))
            return [self.found(result, result.value, result.statuses) for result in end.results]
        end, parts, statuses = self.called(lambda: self.taken(stub.ReduceStream(self.chunks(r, request, before + data), timeout=300)))
        return [self.found(result, parts.get(k) or result.value, statuses.get(k, b"") + result.statuses) for k, result in enumerate(end.results)]

    def chunks(self, r, request, whole):
        yield self.pb.ReduceChunk(head=request)
        at = 0
        while at < len(whole):
            size = r.choice([1, 7, 100, 4096])
            yield self.pb.ReduceChunk(data=whole[at:at + size])
            at += size

    def taken(self, stream):
        """(the end, the answers of each op, their statuses)."""
        values, statuses, end = {}, {}, None
        for chunk in stream:
            if chunk.HasField("part"):
                part = chunk.part
                values.setdefault(part.op, {})[part.first] = part.values
                statuses[part.op] = statuses.get(part.op, b"") + part.statuses
            elif chunk.HasField("end"):
                end = chunk.end
        return end, {op: b"".join(parts[k] for k in sorted(parts)) for op, parts in values.items()}, statuses

    # ---- Partials ----

    def partial(self, r, asked):
        """The bytes of a part's partial."""
        request, before, data = self.request(r, asked)
        stub = r.choice(self.stubs)
        if asked.keys is None and r.random() < 0.5:
            request.data, request.beside = data, before
            return self.called(lambda: stub.Reduce(request, timeout=300)).partial
        end, parts, _ = self.called(lambda: self.taken(stub.ReduceStream(self.chunks(r, request, before + data), timeout=300)))
        return parts.get(0) or end.partial

    def merge(self, r, ops, partials, options, keyed, partial=False):
        """Partial bytes, or the results."""
        request = self.pb.MergeRequest(ops=self.ops(ops), partials=partials, keyed=keyed, partial=partial, **self.finishing(options))
        stub = r.choice(self.stubs)
        if not keyed and r.random() < 0.5:
            end, parts = self.called(lambda: stub.Merge(request, timeout=300)), {}
        else:
            end, parts, _ = self.called(lambda: self.taken(stub.MergeStream(request, timeout=300)))
        if partial:
            return parts.get(0) or end.partial
        return [self.found(result, parts.get(k) or result.value, result.statuses) for k, result in enumerate(end.results)]
