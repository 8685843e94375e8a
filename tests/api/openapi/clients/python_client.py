"""A user of the client that openapi-python-client generates: `python_client.py <url>`."""

# mypy: disable-error-code="import-not-found, import-untyped"
import json
import sys
from io import BytesIO
from typing import Any

from annals_client import Client
from annals_client.api.schemagroups import (
    delete_schemagroup,
    get_schemagroup_schema,
    get_schemagroup_schema_document,
    list_schemagroup_schemas,
    put_schemagroup,
    put_schemagroup_schema_document,
)
from annals_client.api.subscriptions import create_subscription
from annals_client.models import OwnProblem, Problem, Schemagroup, SchemagroupInput, SubscriptionSettings
from annals_client.types import File

DOCUMENT = b'{"type": "string"}'


def main(url: str) -> None:
    print(json.dumps(dict(_seen(Client(base_url=url)))))


def _seen(client: Client) -> Any:
    created = put_schemagroup.sync("g", client=client, body=SchemagroupInput(name="Orders"))
    assert isinstance(created, Schemagroup)
    yield "created", [created.xid, created.epoch, created.name, created.createdat.year > 2000]

    body = File(BytesIO(DOCUMENT))
    put = put_schemagroup_schema_document.sync_detailed(
        "g", "s", client=client, body=body, x_registry_format="JsonSchema/draft-07"
    )
    yield "document written", int(put.status_code)
    yield "document", get_schemagroup_schema_document.sync("g", "s", client=client).payload.read().decode()
    schema = get_schemagroup_schema.sync("g", "s", client=client)
    yield "schema", [schema.schemaid, schema.versionid, schema.format_]
    yield "listed", list_schemagroup_schemas.sync("g", client=client).additional_keys

    refused = put_schemagroup.sync("g", client=client, body=SchemagroupInput(epoch=9))
    assert isinstance(refused, Problem)
    yield "refused", [refused.type_.rpartition("#")[2], refused.subject, refused.args["bad_epoch"]]
    settings = SubscriptionSettings.from_dict({"sink": "https://sink.example", "protocol": "HTTP", "types": []})
    refused = create_subscription.sync(client=client, body=settings)
    assert isinstance(refused, OwnProblem)
    yield "refused below /-/", [refused.type_.rpartition("#")[2], refused.status]

    yield "deleted", int(delete_schemagroup.sync_detailed("g", client=client).status_code)
    missing = get_schemagroup_schema.sync("g", "s", client=client)
    assert isinstance(missing, Problem)
    yield "missing", missing.type_.rpartition("#")[2]


if __name__ == "__main__":
    main(sys.argv[1])
