"""A handler that survives the faults of webhooks; see docs/testing.md."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator
from typing import Any

import pytest
import webhook_handler
from parcelo_mock import Mock

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
FAULTS: list[dict[str, Any]] = [
    {"fault": "duplicate"},
    {"fault": "reorder", "seconds": 1800},
    {"fault": "delay", "seconds": 400},
    {"fault": "wrongSignature"},
    {"fault": "oldSignature"},
]


@pytest.fixture
def shop(mock: Mock) -> Iterator[webhook_handler.Shop]:
    def server_time() -> float:
        """The mock server's time in Unix seconds: messages are signed with it."""
        now = mock.control("GET", "clock")["now"]
        return datetime.datetime.fromisoformat(now.replace("Z", "+00:00")).timestamp()

    shop = webhook_handler.Shop([SECRET], server_time)
    server = webhook_handler.start(shop)
    wanted = {"url": f"http://127.0.0.1:{server.server_port}/", "secret": SECRET}
    assert mock.control("POST", "webhooks", wanted) == wanted
    yield shop
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["fault"])
def test_each_event_is_processed_once_and_the_last_status_wins(
    mock: Mock, shop: webhook_handler.Shop, fault: dict[str, Any]
) -> None:
    number = "SB-SUCCESS-7100"
    mock.control("POST", "webhooks/faults", fault)
    assert mock.create(mock.order(number))[0] == 201
    mock.clock({"advance": "PT30M"})  # it is delivered after 20 minutes
    assert shop.statuses[number] == (6, "DELIVERED")
    sent = mock.control("GET", "webhooks")["deliveries"]
    assert {one["id"] for one in sent} == shop.processed and len(shop.processed) == 5
    for one in sent:
        must_refuse = one.get("fault") in ("wrongSignature", "oldSignature")
        assert one["status"] == (400 if must_refuse else 204)


def test_webhooks_are_accepted_while_the_secret_is_rotated(mock: Mock, shop: webhook_handler.Shop) -> None:
    number = "SB-SUCCESS-7110"
    assert mock.create(mock.order(number))[0] == 201
    mock.clock({"advance": "PT6M"})
    new = mock.control("POST", "webhooks/rotate")["secret"]
    mock.clock({"advance": "PT5M"})  # the handler has the old secret, which also signs for 24 hours
    shop.secrets = [new]
    mock.clock({"advance": "PT19M"})
    assert (shop.statuses[number], shop.refused) == ((6, "DELIVERED"), 0)
