"""python -m cured, and the command cured-client of a wheel: both become the program cured-client, which lies beside this file in a wheel.
Of a Debian package or of a build it is the one that PATH names."""
import os
import shutil
import signal
import sys

UNAVAILABLE = 69  # as cured-client has it


def program():
    """The path of cured-client. None: it is not here. A command that would start this file again is none."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cured-client")
    if os.path.exists(beside):
        return beside
    found = shutil.which("cured-client")
    return None if found is None or os.path.realpath(found) == os.path.realpath(sys.argv[0]) else found


def main():
    path = program()
    if path is None:
        sys.stderr.write("cured: the program cured-client is not installed: it comes with the wheel, or with the package cured-client\n")
        return UNAVAILABLE
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores both, and a program keeps what its parent ignored
        signal.signal(ignored, signal.SIG_DFL)
    try:
        if not os.access(path, os.X_OK):  # whoever unpacked the wheel kept no modes
            os.chmod(path, 0o755)
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        sys.stderr.write("cured: %s cannot be started: %s\n" % (path, error.strerror))
        return UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main())
