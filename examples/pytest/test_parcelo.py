"""A suite in another language against the mock server; see docs/testing.md.

    parcelo-server mock --clock frozen=2026-01-05T08:00:00Z --exec 'pytest examples/pytest'
"""

import json
import os
import urllib.error
import urllib.request

import pytest

BASE_URL = os.environ["PARCELO_BASE_URL"]
API_KEY = os.environ["PARCELO_API_KEY"]


def call(method, path, body=None):
    """The status and the JSON of an answer."""
    headers = {"X-API-Key": API_KEY, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE_URL + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def order(number):
    return {
        "idempotencyKey": "order-" + number,
        "trackingNumber": number,
        "sender": {
            "fullName": "Ana Ruiz",
            "phone": "+13055550100",
            "address": {"line1": "8400 NW 25th St", "city": "Miami", "state": "FL", "zipCode": "33122", "country": "US"},
        },
        "receiver": {
            "fullName": "Luis Paredes",
            "phone": "+593991234567",
            "nationalId": "1714307103",
            "address": {"line1": "Av. Amazonas N34-451", "city": "Quito", "province": "Pichincha", "zipCode": "170515", "country": "EC"},
        },
        "parcelDetails": {"weightKg": 1.25, "declaredValue": 45.5},
        "customsInfo": {"description": "Cotton shirts", "hsCode": "610910"},
    }


@pytest.fixture(autouse=True)
def no_faults_are_left_over():
    yield
    assert call("DELETE", "/__mock/faults")[1]["unused"] == []


def test_a_parcel_is_delivered():
    assert call("POST", "/api/v1/orders/create", order("SB-SUCCESS-7001"))[0] == 201
    fired = call("POST", "/__mock/clock", {"advance": "PT20M"})[1]["fired"]
    assert fired[-1]["status"] == "DELIVERED"
    assert call("GET", "/api/v1/tracking/SB-SUCCESS-7001")[1]["status"] == "DELIVERED"


def test_an_answer_that_is_lost_makes_no_second_parcel():
    fault = {"operation": "CreateOrder", "nth": 1, "afterCommit": True, "fault": "close"}
    call("POST", "/__mock/faults", fault)
    with pytest.raises(OSError):
        call("POST", "/api/v1/orders/create", order("SB-NORMAL-7002"))
    status, answer = call("POST", "/api/v1/orders/create", order("SB-NORMAL-7002"))
    assert (status, answer["parcel"]["trackingNumber"]) == (200, "SB-NORMAL-7002")


def test_a_refusal_names_the_field():
    wrong = order("SB-NORMAL-7003")
    wrong["receiver"]["address"]["province"] = "Atlantis"
    status, answer = call("POST", "/api/v1/orders/create", wrong)
    assert status == 400
    assert answer["error"]["details"]["errors"][0]["field"] == "receiver.address.province"
