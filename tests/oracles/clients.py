"""The client that openapi-python-client makes of docs/openapi.json, against the mock server.

    python clients.py URL

URL is that of `parcelo-server mock`; the client is imported as `parcelo_api`. What it says is compared
with what urllib, which knows no document, gets from the same server.
"""

import json
import sys
import urllib.request
from pathlib import Path

from parcelo_api import AuthenticatedClient
from parcelo_api.api.labels import download_label
from parcelo_api.api.legacy import legacy_label
from parcelo_api.api.manifests import get_manifest, submit_manifest
from parcelo_api.api.orders import create_order, void_orders
from parcelo_api.api.parcels import list_parcels
from parcelo_api.api.tracking import batch_tracking
from parcelo_api.models import (
    BatchTrackingRequest,
    ErrorEnvelope,
    FieldFault,
    LabelFormat,
    LegacyError,
    ManifestRequest,
    OrderRequest,
    RejectedParcel,
    VoidRequest,
)

URL = sys.argv[1]
ORDERS = json.loads(Path(__file__).with_name("orders.json").read_text())
BEGINS = {"PDF": b"%PDF-", "PNG": b"\x89PNG", "ZPL": b"^XA"}


def plainly(path, key=None, body=None):
    request = urllib.request.Request(URL + path, data=body and json.dumps(body).encode())
    request.add_header("content-type", "application/json")
    if key:
        request.add_header("x-api-key", key)
    with urllib.request.urlopen(request) as answer:
        return answer.read()


KEY = json.loads(plainly("/__mock/keys", body={"account": "Python"}))["key"]
CLIENT = AuthenticatedClient(base_url=URL, token=KEY, prefix="", auth_header_name="x-api-key")


def call(operation, status, *arguments, **named):
    answer = operation.sync_detailed(*arguments, client=CLIENT, **named)
    assert answer.status_code == status, (answer.status_code, answer.content)
    return answer


def create(order, status):
    return call(create_order, status, body=OrderRequest.from_dict(order))


def creates_and_repeats():
    numbers = []
    for order in ORDERS:
        first = create(order, 201)
        number = first.parsed.parcel.tracking_number
        again = create(order, 200)
        assert again.headers["idempotent-replayed"] == "true"
        assert again.parsed.parcel.tracking_number == number
        numbers.append(number)
    other = {**ORDERS[0], "customerReference": "another order under the same key"}
    assert create(other, 409).parsed.error.code == "IDEMPOTENCY_CONFLICT"
    return numbers


def faults_are_typed():
    order = json.loads(json.dumps(ORDERS[0]))
    order["idempotencyKey"] = "order-faulty-1"
    order["sender"]["fullName"] = ""
    order["receiver"]["phone"] = "12"
    refused = create(order, 400).parsed
    assert isinstance(refused, ErrorEnvelope) and refused.error.code == "VALIDATION_FAILED"
    faults = refused.error.details.errors
    assert all(isinstance(fault, FieldFault) for fault in faults)
    found = [(fault.field, fault.code.value) for fault in faults]
    assert found == [("sender.fullName", "REQUIRED"), ("receiver.phone", "INVALID_FORMAT")], found


def lists(numbers):
    page = call(list_parcels, 200, limit=3, country="EC").parsed
    assert [parcel.tracking_number for parcel in page.data] == [numbers[0]]
    page = call(list_parcels, 200, limit=3).parsed
    assert (page.meta.total, page.meta.total_pages, len(page.data)) == (4, 2, 3)
    assert page.meta.request_id.startswith("req_")


def tracks_many(numbers):
    asked = BatchTrackingRequest(tracking_numbers=[*numbers, "SB-ABSENT-0001"], include_history=True)
    batch = call(batch_tracking, 200, body=asked).parsed.data
    assert (batch.summary.found, batch.summary.not_found) == (4, 1)
    assert [result.tracking_number for result in batch.results[:4]] == numbers
    assert all(result.tracking.history for result in batch.results[:4])
    assert batch.results[4].error.code == "PARCEL_NOT_FOUND"


def label_bytes_are_the_same(numbers):
    for number in numbers:
        for name, beginning in BEGINS.items():
            path = f"/api/v1/labels/{number}/download?format={name}"
            plain = plainly(path, KEY)
            assert plain.startswith(beginning), name
            answer = call(download_label, 200, number, format_=LabelFormat(name))
            assert answer.parsed.payload.read() == plain, name
            assert answer.headers["etag"] and number in answer.headers["content-disposition"]
            file = call(legacy_label, 200, f"{number}.{name.lower()}").parsed
            assert file.payload.read() == plain, name
    refused = call(legacy_label, 404, "SB-ABSENT-0001.pdf").parsed
    assert isinstance(refused, LegacyError) and refused.error == "PARCEL_NOT_FOUND"


def submits_a_manifest(numbers):
    asked = ManifestRequest(awb_number="176-12345675", tracking_numbers=numbers)
    manifest = call(submit_manifest, 201, body=asked).parsed.data
    assert call(submit_manifest, 200, body=asked).parsed.data.manifest_id == manifest.manifest_id
    read = call(get_manifest, 200, manifest.manifest_id).parsed.data
    assert read.tracking_numbers == numbers
    asked = ManifestRequest(awb_number="176-12345686", tracking_numbers=["SB-ABSENT-0001"])
    refused = call(submit_manifest, 409, body=asked).parsed.error
    assert refused.code == "MANIFEST_PARCELS_REJECTED"
    assert isinstance(refused.details.errors[0], RejectedParcel)


def voids(number):
    asked = VoidRequest(idempotency_key="void-0001", tracking_numbers=[number, "SB-ABSENT-0001"])
    done = call(void_orders, 200, body=asked).parsed.data
    assert [result.voided for result in done.results] == [True, False]
    assert done.results[1].error.code == "PARCEL_NOT_FOUND"
    asked = VoidRequest(idempotency_key="void-0002", tracking_numbers=["SB-ABSENT-0001"])
    refused = call(void_orders, 404, body=asked).parsed.error
    assert refused.details.results[0].error.code == "PARCEL_NOT_FOUND"


numbers = creates_and_repeats()
faults_are_typed()
lists(numbers)
tracks_many(numbers)
label_bytes_are_the_same(numbers)
submits_a_manifest(numbers[:3])
voids(numbers[3])
print(f"openapi-python-client: {len(numbers)} orders, {len(numbers) * len(BEGINS) * 2} label files, no difference")
