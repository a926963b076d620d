"""A handler that survives the faults of webhooks; see docs/testing.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
import webhook_handler
from parcelo_mock import Mock

if TYPE_CHECKING:
    from openapi_mock import InboxDelivery, WebhookFault

# Each fault, and how often the handler answers which status: a parcel has five events.
FAULTS: list[tuple[WebhookFault, dict[int, int]]] = [
    ({"fault": "duplicate"}, {204: 10}),
    ({"fault": "reorder", "seconds": 1800}, {204: 5}),
    ({"fault": "delay", "seconds": 400}, {204: 5}),
    ({"fault": "wrongSignature"}, {204: 5, 400: 5}),
    ({"fault": "oldSignature"}, {204: 5, 400: 5}),
]


@pytest.fixture
def shop(mock: Mock) -> Iterator[webhook_handler.Shop]:
    def now() -> float:
        """Returns the mock server's time, with which messages are signed."""
        text: str = mock.control("GET", "clock")["now"]
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

    shop = webhook_handler.Shop(now)
    with webhook_handler.start(shop) as server:
        handler = {"url": f"http://127.0.0.1:{server.server_port}/"}
        shop.secrets = [mock.control("POST", "webhooks", handler)["secret"]]
        yield shop
        server.shutdown()


@pytest.mark.parametrize("fault, answers", FAULTS, ids=[fault["fault"] for fault, _ in FAULTS])
def test_each_event_is_processed_once_and_the_last_status_wins(
    mock: Mock, shop: webhook_handler.Shop, fault: WebhookFault, answers: dict[int, int]
) -> None:
    mock.control("POST", "webhooks/faults", fault)
    assert mock.create(mock.order("SB-SUCCESS-7101"))[0] == 201
    mock.clock({"advance": "PT30M"})  # it is delivered after 20 minutes
    assert shop.statuses == {"SB-SUCCESS-7101": (6, "DELIVERED")}
    sent: list[InboxDelivery] = mock.control("GET", "webhooks")["deliveries"]
    assert sorted(shop.processed) == sorted({one["id"] for one in sent})
    assert Counter(one["status"] for one in sent) == answers


def test_webhooks_are_accepted_while_the_secret_is_rotated(mock: Mock, shop: webhook_handler.Shop) -> None:
    assert mock.create(mock.order("SB-SUCCESS-7102"))[0] == 201
    mock.clock({"advance": "PT6M"})
    new = mock.control("POST", "webhooks/rotate")["secret"]
    mock.clock({"advance": "PT5M"})  # the handler has the old secret, which also signs for 24 hours
    shop.secrets = [new]
    mock.clock({"advance": "PT19M"})
    assert shop.statuses == {"SB-SUCCESS-7102": (6, "DELIVERED")}
    sent: list[InboxDelivery] = mock.control("GET", "webhooks")["deliveries"]
    assert [one["status"] for one in sent] == [204] * 5
