"""A handler that survives the faults of webhooks; see docs/testing.md."""

import base64
import datetime

import pytest
import webhook_handler
from test_parcelo import call, order

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
FAULTS = [
    {"fault": "duplicate"},
    {"fault": "reorder", "seconds": 1800},
    {"fault": "delay", "seconds": 400},
    {"fault": "wrongSignature"},
    {"fault": "oldSignature"},
]


def server_time():
    """The mock server's time in Unix seconds: messages are signed with it."""
    now = call("GET", "/__mock/clock")[1]["now"]
    return datetime.datetime.fromisoformat(now.replace("Z", "+00:00")).timestamp()


def advance(by):
    """Moves the clock; everything that falls due on the way is sent and answered."""
    assert call("POST", "/__mock/clock", {"advance": by})[0] == 200


def deliveries(number):
    """The deliveries about a parcel."""
    listed = call("GET", "/__mock/webhooks")[1]["deliveries"]
    return [one for one in listed if one["body"]["data"].get("trackingNumber") == number]


@pytest.fixture
def shop():
    shop = webhook_handler.Shop([SECRET], server_time)
    server = webhook_handler.start(shop)
    wanted = {"url": f"http://127.0.0.1:{server.server_port}/", "secret": SECRET}
    assert call("POST", "/__mock/webhooks", wanted) == (200, wanted)
    yield shop
    call("DELETE", "/__mock/webhooks/faults")
    call("POST", "/__mock/webhooks")  # the mock server's own inbox, in the place of this handler
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("number, fault", enumerate(FAULTS), ids=[one["fault"] for one in FAULTS])
def test_each_event_is_processed_once_and_the_last_status_wins(shop, number, fault):
    number = f"SB-SUCCESS-{7100 + number}"
    assert call("POST", "/__mock/webhooks/faults", fault)[0] == 200
    assert call("POST", "/api/v1/orders/create", order(number))[0] == 201
    advance("PT30M")  # it is delivered after 20 minutes
    assert shop.statuses[number] == (6, "DELIVERED")
    sent = deliveries(number)
    assert {one["id"] for one in sent} <= shop.processed and len({one["id"] for one in sent}) == 5
    for one in sent:
        must_refuse = one.get("fault") in ("wrongSignature", "oldSignature")
        assert one["status"] == (400 if must_refuse else 204)


def test_webhooks_are_accepted_while_the_secret_is_rotated(shop):
    number = "SB-SUCCESS-7110"
    assert call("POST", "/api/v1/orders/create", order(number))[0] == 201
    advance("PT6M")
    new = call("POST", "/__mock/webhooks/rotate")[1]["secret"]
    advance("PT5M")  # the handler has the old secret, which also signs for 24 hours
    shop.secrets = [new]
    advance("PT19M")
    assert (shop.statuses[number], shop.refused) == ((6, "DELIVERED"), 0)
