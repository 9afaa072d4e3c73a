"""tls_files: certificates for a test, made by openssl, and a way for clients without TLS to speak it: a tunnel."""
import os
import select
import socket
import ssl
import subprocess
import threading
import time


def local_host():
    """A name for this machine that its certificates have. Where nothing says what localhost is, it is the number."""
    try:
        socket.getaddrinfo("localhost", None, socket.AF_INET)
    except OSError:
        return "127.0.0.1"
    return "localhost"


HOST = local_host()


class Authority:
    """A CA in folder, and what it signs: P-256 keys, certificates good for some days."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.certificate, self.key = self.path(name + ".pem"), self.path(name + ".key")
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                 "-out", self.certificate, "-days", "30", "-subj", "/CN=" + name)

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def run(*arguments, **options):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, **options)

    def sign(self, name, days=30, names=b"DNS:localhost,IP:127.0.0.1", seconds=None, subject=None):
        """(certificate, key) of that name, for hosts of those names. It is good for so many days or seconds; negative: it was."""
        certificate, key, request = (self.path(name + end) for end in (".pem", ".key", ".csr"))
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
                 "-subj", subject or "/CN=" + name)
        if seconds is not None:
            self.sign_until(time.time() + seconds, request, certificate, names)
            return certificate, key
        self.run("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                 "-days", str(days), "-out", certificate, "-extfile", "/dev/stdin",
                 input=b"subjectAltName=" + names)
        return certificate, key

    def sign_until(self, end, request, certificate, names):
        """As x509 does, to the second."""
        open(self.path("index"), "w").close()
        rules = ("[ca]\ndefault_ca=own\n[own]\ndatabase=%s\nrand_serial=yes\nnew_certs_dir=%s\ndefault_md=sha256\npolicy=any\n"
                 "x509_extensions=more\n[any]\ncommonName=optional\n[more]\nsubjectAltName=%s\n"
                 % (self.path("index"), self.folder, names.decode()))
        stamps = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(t)) for t in (end - 86400, end)]
        self.run("ca", "-batch", "-notext", "-config", "/dev/stdin", "-cert", self.certificate, "-keyfile", self.key,
                 "-in", request, "-out", certificate, "-startdate", stamps[0], "-enddate", stamps[1], input=rules.encode())

    def context(self, client=None):
        """For a client that trusts this CA; client: the certificate and key that it shows."""
        context = ssl.create_default_context(cafile=self.certificate)
        if client:
            context.load_cert_chain(*client)
        return context


class Tunnel:
    """Clients without TLS connect to address; their bytes go to port under TLS, and back."""

    def __init__(self, context, port):
        self.context, self.port = context, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "tcp:127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        try:
            with plain, socket.create_connection(("127.0.0.1", self.port)) as raw:
                with self.context.wrap_socket(raw, server_hostname="localhost") as sealed:
                    self.pump(plain, sealed)
        except OSError:
            pass  # either side has left; whoever waits sees that

    @staticmethod
    def pump(plain, sealed):
        plain.setblocking(False)
        sealed.setblocking(False)
        waiting = {plain: bytearray(), sealed: bytearray()}  # to be written to each
        open_to = {plain, sealed}
        while open_to:
            poller = select.poll()
            poller.register(plain, (select.POLLIN if sealed in open_to and len(waiting[sealed]) < 1 << 20 else 0)
                            | (select.POLLOUT if waiting[plain] else 0))
            poller.register(sealed, (select.POLLIN if plain in open_to else 0) | (select.POLLOUT if waiting[sealed] else 0))
            if not sealed.pending():
                poller.poll(1000)
            for source, target in ((plain, sealed), (sealed, plain)):
                try:
                    data = source.recv(1 << 18)
                    if not data:
                        return
                    waiting[target] += data
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
                try:
                    if waiting[target]:
                        del waiting[target][:target.send(waiting[target])]
                except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass

    def close(self):
        self.listener.close()
