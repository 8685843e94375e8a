"""Certificates that the program `openssl` makes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Issued(NamedTuple):
    """The PEM files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority with its files in a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.certificate, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        request = ("req", "-x509", *_new_key(self.key), "-subj", f"/CN={name}", "-days", "9")
        _openssl(*request, "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", self.certificate)

    def issue(self, name: str, subject: str, *alternatives: str, days: int = 9) -> Issued:
        """A new certificate. subject: such as `/O=Example/CN=ci`. alternatives: such as `DNS:ci.example`."""
        files = Issued(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        names = [f"subjectAltName={','.join(alternatives)}"] if alternatives else []
        extensions.write_text("\n".join([*names, "authorityKeyIdentifier=keyid", ""]))
        _openssl("req", "-new", *_new_key(files.key), "-out", request, "-subj", subject)
        signer = ("-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, *signer, "-out", files.certificate, "-days", str(days))
        return files


def _new_key(file: Path) -> tuple[str | Path, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
