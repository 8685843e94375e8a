"""ClickHouse against a registry: writes records in Avro and registers their schema, and reads them by its id.

Arguments: the URL of the registry with a credential, the same URL without it, and a file. Prints the results as JSON.
"""

from __future__ import annotations

import json
import sys

import chdb


def main(registry: str, anonymous: str, file: str) -> None:
    table = f"file('{file}', AvroConfluent, 'id Int64, note Nullable(String)')"
    insert = (
        f"INSERT INTO FUNCTION {table} {settings(registry)}, output_format_avro_confluent_subject = 'numbers-value'"
    )
    chdb.query(f"{insert} SELECT number, if(number = 1, NULL, 'x') FROM numbers(3)")
    rows = chdb.query(f"SELECT * FROM {table} {settings(registry)}", "JSONCompactEachRow").data()
    try:
        chdb.query(f"SELECT * FROM {table} {settings(anonymous)}")
        refused = ""
    except RuntimeError as error:
        refused = str(error).partition("HTTP status code: ")[2][:3]
    json.dump({"rows": [json.loads(row) for row in rows.splitlines()], "without a credential": refused}, sys.stdout)


def settings(registry: str) -> str:
    """The settings of a query. A refusal is not tried again."""
    return f"SETTINGS format_avro_schema_registry_url = '{registry}', format_avro_schema_registry_max_retries = 0"


main(*sys.argv[1:])
