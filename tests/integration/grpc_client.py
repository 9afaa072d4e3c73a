"""grpc_client: what a Python program that calls cured over gRPC has: grpcio, and stubs that protoc made from cured.proto.

Debian has grpcio for its own Python; where another Python comes first, the test starts anew under that one.
"""
import atexit
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

# At each fork grpcio stops its threads, and waits for ever where calls go on. Whatever this says, its core stops those of its pool, and
# aborts where the pool is ending. So a test that uses it must not fork: subprocess does not, without preexec_fn, user and group.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
SOURCE = os.environ.get("CURED_TEST_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DEBIAN_PYTHON = "/usr/bin/python3"
PROTOS = "/usr/share/grpc-proto"


def need(*modules):
    """Starts the running test under Debian's Python where this one lacks a module; exit status 77 where that one does too."""
    try:
        for module in modules:
            importlib.import_module(module)
        return
    except ImportError as missing:
        why = missing
    if os.path.exists(DEBIAN_PYTHON) and not os.environ.get("CURED_TEST_PYTHON_TRIED"):
        os.environ["CURED_TEST_PYTHON_TRIED"] = "1"
        os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON] + sys.argv)
    print("skipped: %s (scripts/bootstrap --tests installs it)" % why)
    sys.exit(77)


def stubs():
    """(messages, services) of cured.proto, made by protoc as any program's are."""
    folder = tempfile.mkdtemp(prefix="cured-stubs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    plugin = shutil.which("grpc_python_plugin")
    subprocess.run(["protoc", "-I" + os.path.join(SOURCE, "proto"), "--python_out=" + folder, "--grpc_python_out=" + folder,
                    "--plugin=protoc-gen-grpc_python=" + plugin, "cured.proto"], check=True)
    sys.path.insert(0, folder)
    return importlib.import_module("cured_pb2"), importlib.import_module("cured_pb2_grpc")


# Before 1.61 grpc tells a connection that is under way by an errno that its other calls may overwrite (grpc/grpc#35064). Where there
# is no /sys, as in a bare root, glibc's own look at the processors does so now and then. Such a call waits for the next attempt.
WAITS = ("grpc.service_config", '{"methodConfig": [{"name": [{}], "waitForReady": true}]}')


def channel(address, *options, credentials=None, waits=True):
    """A channel to unix:PATH, tcp:HOST:PORT or HOST:PORT with a connection of its own, whose calls wait for the daemon, unless they are to
    hear that it lets nobody in."""
    import grpc
    options = [WAITS] * waits + [("grpc.use_local_subchannel_pool", 1), *options]
    address = address.replace("tcp:", "")
    if credentials:
        return grpc.secure_channel(address, credentials, options=options)
    return grpc.insecure_channel(address, options=options)


def messages_of(path):
    """The message types of one of gRPC's own protos, such as grpc/health/v1/health.proto, by their name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    with tempfile.NamedTemporaryFile() as f:
        subprocess.run(["protoc", "-I" + PROTOS, "--descriptor_set_out=" + f.name, path], check=True)
        found = descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(found.file[0])
    factory = message_factory.MessageFactory(pool)
    package = found.file[0].package
    return {m.name: factory.GetPrototype(pool.FindMessageTypeByName(package + "." + m.name))
            for m in found.file[0].message_type}
