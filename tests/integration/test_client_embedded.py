"""test_client_embedded: cured-client without a daemon (embedded:) answers every op and type as it does with one, equal to the
oracle."""
import os
import subprocess
import sys

import test_client
from cured_daemon import CLIENT, environment, main


class Answers(test_client.Answers):
    ADDRESS = "embedded:"


if __name__ == "__main__":
    if os.path.exists(CLIENT):
        asked = subprocess.run([CLIENT, "count", "/dev/null", "--connect", "embedded:"], env=environment(), capture_output=True)
        if asked.returncode == 69:  # a build without
            print("skipped:", asked.stderr.decode().strip())
            sys.exit(77)
    print("seed", test_client.SEED)
    main()
