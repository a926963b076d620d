"""A suite in Python against the mock server; see docs/testing-python.md.

    parcelo-server mock --clock frozen=2026-01-05T08:00:00Z --exec 'pytest examples/pytest'
"""

import json

import pytest
from parcelo_mock import Mock


def test_a_parcel_is_delivered(mock: Mock) -> None:
    assert mock.create(mock.order("SB-SUCCESS-7001"))[0] == 201
    fired = mock.clock({"advance": "PT20M"})["fired"]
    assert fired[-1]["status"] == "DELIVERED"
    assert mock.track("SB-SUCCESS-7001")["status"] == "DELIVERED"


def test_an_answer_that_is_lost_makes_no_second_parcel(mock: Mock) -> None:
    order = mock.order("SB-NORMAL-7002")
    mock.plan({"operation": "CreateOrder", "nth": 1, "afterCommit": True, "fault": "close"})
    with pytest.raises(OSError):
        mock.create(order)
    status, answer = mock.create(order)
    assert (status, answer["parcel"]["trackingNumber"]) == (200, "SB-NORMAL-7002")


def test_a_proxy_that_answers_for_the_service_is_seen_through(mock: Mock) -> None:
    number = "SB-NORMAL-7004"
    mock.plan(
        {
            "order": number,
            "nth": 1,
            "fault": "reply",
            "status": 502,
            "headers": {"content-type": "text/html"},
            "body": "<h1>Bad Gateway</h1>",
        }
    )
    with pytest.raises(json.JSONDecodeError):
        mock.create(mock.order(number))
    assert mock.create(mock.order(number))[0] == 201
    assert mock.requests(number)["count"] == 2


def test_a_refusal_names_the_field(mock: Mock) -> None:
    wrong = mock.order("SB-NORMAL-7003")
    wrong["receiver"]["address"]["province"] = "Atlantis"
    status, answer = mock.call("POST", "/api/v1/orders/create", wrong)
    assert status == 400
    assert answer["error"]["details"]["errors"][0]["field"] == "receiver.address.province"
