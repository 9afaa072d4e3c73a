"""for_others: a program or a folder where other users can run and read it. A checkout often lies in a closed folder, as /root is,
and then a test that becomes somebody else takes a copy."""
import atexit
import os
import shutil
import stat
import tempfile


def reachable(path):
    """Whether the modes of the folders above path let everybody through, and the file or folder itself be used."""
    path = os.path.realpath(path)
    if not os.stat(path).st_mode & stat.S_IXOTH:
        return False
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
    return True


def for_others(path):
    """path, or that of a copy, which goes when this process ends."""
    if not os.path.exists(path) or reachable(path):
        return path
    folder = tempfile.mkdtemp(prefix="cured-for-others-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    copy = os.path.join(folder, os.path.basename(os.path.normpath(path)))
    if os.path.isdir(path):
        shutil.copytree(path, copy)
        for parent, folders, files in os.walk(copy):
            for name in [".", *folders, *files]:
                one = os.path.join(parent, name)
                os.chmod(one, os.stat(one).st_mode | (0o055 if os.path.isdir(one) else 0o044))
    else:
        shutil.copy(path, copy)
        os.chmod(copy, 0o755)
    return copy
