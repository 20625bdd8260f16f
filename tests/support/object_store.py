"""An S3-compatible server beside a command: `python -m tests.support.object_store COMMAND…`."""

import logging
import os
import subprocess
import sys
from collections.abc import Sequence

BUCKET = "lamina-test"


def run_beside_server(command: Sequence[str]) -> int:
    """Run a command whose environment names a bucket of a new server; return its status."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        named = {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "lamina",
            "AWS_SECRET_ACCESS_KEY": "lamina",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        os.environ.update(named)
        S3FileSystem().mkdir(BUCKET)
        return subprocess.run(
            command, env=os.environ | {"LAMINA_TEST_S3_URL": f"s3://{BUCKET}"}, check=False
        ).returncode
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(run_beside_server(sys.argv[1:]))
