"""A mock server for one test, over HTTP; nothing has to be installed.

Its types are those of the server's OpenAPI document. Only mypy reads them: docs/testing-python.md says how to make
openapi_mock.py.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openapi_mock import (
        ClockMove,
        ClockShown,
        CreatedOrder,
        OrderRequest,
        PlannedFault,
        RequestLog,
        StartedServer,
        TrackingRecord,
    )


class Mock:
    """A mock server's address and an API key of it."""

    def __init__(self, url: str, key: str = "") -> None:
        self.url, self.key = url, key

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Returns the status and the JSON of an answer."""
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Returns the JSON of a call under /__mock/; a refusal fails the test."""
        status, answer = self.call(method, "/__mock/" + path, body)
        assert status == 200, answer
        return answer

    def start(self) -> StartedServer:
        """Starts a further server, with data, clock and faults of its own."""
        return self.control("POST", "servers")

    def stop(self, port: int) -> list[str]:
        """Stops a further server; returns what it did twice, and faults that hit no request."""
        return self.control("DELETE", f"servers/{port}")["offences"]

    def order(self, number: str) -> OrderRequest:
        """Returns a valid order for a tracking number, whose beginning selects the parcel's journey."""
        return self.control("GET", "orders/" + number)["order"]

    def create(self, order: OrderRequest) -> tuple[int, CreatedOrder]:
        return self.call("POST", "/api/v1/orders/create", order)

    def track(self, number: str) -> TrackingRecord:
        return self.call("GET", "/api/v1/tracking/" + number)[1]

    def clock(self, move: ClockMove) -> ClockShown:
        """Moves the clock; everything that falls due on the way is executed."""
        return self.control("POST", "clock", move)

    def plan(self, fault: PlannedFault) -> None:
        self.control("POST", "faults", fault)

    def requests(self, number: str) -> RequestLog:
        """Returns the requests about an order so far."""
        return self.control("GET", "requests?order=" + number)
