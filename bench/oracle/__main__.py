"""Runs the oracle for one format and prints its report; ends with 1 where there is a counterexample."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib import import_module
from typing import Final

from bench.oracle.run import run

SUBJECTS: Final = {"JsonSchema": "jsonschema", "Avro": "avro", "XSD": "xsd"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.oracle", description=__doc__)
    parser.add_argument("--format", choices=SUBJECTS, default="JsonSchema")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    subject = import_module(f"bench.oracle.{SUBJECTS[wanted.format]}")
    report = run(subject.family, wanted.pairs, wanted.seed, partial(print, flush=True))
    print(f"{wanted.format}, seed {wanted.seed}:", *report.lines(), sep="\n")
    sys.exit(bool(report.closed))


if __name__ == "__main__":
    main()
