"""A webhook handler with the standard library: it verifies each message, processes each event once, and keeps the
newest status of each parcel."""

from __future__ import annotations

import base64
import hmac
import http.server
import json
import threading
import time
from collections.abc import Callable
from email.message import Message
from typing import Any

TOLERANCE_SECONDS = 300


def is_from_parcelo(secrets: list[str], headers: Message, body: bytes, now: float) -> bool:
    """Returns true if one of the signatures is by one of the secrets, and the message is recent."""
    event, timestamp, signatures = (headers.get("webhook-" + name, "") for name in ("id", "timestamp", "signature"))
    if not timestamp.isdecimal() or abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    message = f"{event}.{timestamp}.".encode() + body
    keys = [base64.b64decode(secret.removeprefix("whsec_")) for secret in secrets]
    valid = [b"v1," + base64.b64encode(hmac.digest(key, message, "sha256")) for key in keys]
    # A rotated secret signs too for a while, so there may be several signatures.
    given = signatures.encode().split(b" ")
    return any(hmac.compare_digest(one, other) for one in valid for other in given)


class Shop:
    """A shop's record of its parcels. A real one keeps it in a database, and the ids in the same transaction."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self.now = now  # in Unix seconds
        self.secrets: list[str] = []
        self.processed: list[str] = []  # ids of events
        self.statuses: dict[str, tuple[int, str]] = {}  # sequence and status by tracking number

    def receive(self, headers: Message, body: bytes) -> int:
        """Processes a message, and returns the status to answer with."""
        if not is_from_parcelo(self.secrets, headers, body, self.now()):
            return 400
        event = json.loads(body)
        if headers["webhook-id"] not in self.processed:
            self.processed.append(headers["webhook-id"])
            if event["event"] == "parcel.status_changed":
                self.update(event["data"])
        return 204

    def update(self, change: dict[str, Any]) -> None:
        """Keeps a status, unless a later one was received before."""
        number, new = change["trackingNumber"], (change["sequence"], change["newStatus"])
        self.statuses[number] = max(self.statuses.get(number, (0, "")), new)


def start(shop: Shop) -> http.server.HTTPServer:
    """Serves a shop on a free port in a thread, and returns the server; stop it by `shutdown()`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(shop.receive(self.headers, body))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
