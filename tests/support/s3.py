"""An S3 store in one process, S3Proxy from Maven's artifacts, which stores its buckets in a local folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from tests.support.downloads.maven import jars, java
from tests.support.ports import free_port, wait_for_port

PROXY: Final = "org.gaul:s3proxy:2.6.0"
BUCKET: Final = "lake"
#: The environment of its clients. S3Proxy does not support the newer checksums of S3.
CLIENT: Final[Mapping[str, str]] = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "known to the tester",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
}
_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class S3(NamedTuple):
    """The port of the store, and the folder with the objects of its bucket."""

    port: int
    bucket: Path

    def uri(self, scheme: str, key: str) -> str:
        """The URI of a key in the bucket."""
        endpoint = quote(f"127.0.0.1:{self.port}", safe="")
        return f"{scheme}://{BUCKET}/{key}?endpoint_override={endpoint}&scheme=http&region=us-east-1"


@contextmanager
def s3_store(home: Path) -> Iterator[S3]:
    """A running store. home: an empty folder for it. Skips the test if there is no Java or Maven."""
    port, bucket, settings = free_port(), home / "buckets" / BUCKET, home / "s3proxy.conf"
    bucket.mkdir(parents=True)
    settings.write_text(
        f"s3proxy.endpoint=http://127.0.0.1:{port}\ns3proxy.authorization=none\ns3proxy.ignore-unknown-headers=true\n"
        f"jclouds.provider=filesystem\njclouds.filesystem.basedir={bucket.parent}\n"
    )
    classpath = os.pathsep.join(map(str, jars(PROXY)))
    command: list[str | Path] = [java(), *_OPTIONS, "-cp", classpath, "org.gaul.s3proxy.Main", "--properties", settings]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for_port(port, lambda: process.poll() is None, 60)
            yield S3(port, bucket)
        finally:
            process.kill()
            process.wait()
