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
    """A valid order for a tracking number, whose beginning chooses the parcel's journey."""
    return call("GET", "/__mock/orders/" + number)[1]["order"]


@pytest.fixture(autouse=True)
def no_faults_are_left_over():
    yield
    assert call("GET", "/__mock/verify")[1]["offences"] == []  # nothing was shipped twice either
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


def test_a_proxy_that_answers_for_the_service_is_seen_through():
    number = "SB-NORMAL-7004"
    headers = {"content-type": "text/html"}
    body = "<h1>Bad Gateway</h1>"
    fault = {"order": number, "nth": 1, "fault": "reply", "status": 502, "headers": headers, "body": body}
    call("POST", "/__mock/faults", fault)
    with pytest.raises(json.JSONDecodeError):
        call("POST", "/api/v1/orders/create", order(number))
    assert call("POST", "/api/v1/orders/create", order(number))[0] == 201
    assert call("GET", "/__mock/requests?order=" + number)[1]["count"] == 2


def test_a_refusal_names_the_field():
    wrong = order("SB-NORMAL-7003")
    wrong["receiver"]["address"]["province"] = "Atlantis"
    status, answer = call("POST", "/api/v1/orders/create", wrong)
    assert status == 400
    assert answer["error"]["details"]["errors"][0]["field"] == "receiver.address.province"
