"""Creates an order, sends it again, and saves its label; see docs/start/python.md."""

import json
import os
import urllib.request
from pathlib import Path

URL, KEY = os.environ["PARCELO_BASE_URL"], os.environ["PARCELO_API_KEY"]

ORDER = {
    "idempotencyKey": "order-1001",  # your number of the order: one parcel, however often it is sent
    "trackingNumber": "SB-SUCCESS-0001",  # the sandbox delivers it; leave it out in production
    "sender": {
        "fullName": "Ana Ruiz",
        "phone": "+13055550100",
        "address": {"line1": "8400 NW 25th St", "city": "Miami", "state": "FL", "zipCode": "33122", "country": "US"},
    },
    "receiver": {
        "fullName": "Luis Paredes",
        "phone": "+593991234567",
        "idType": "cedula",
        "nationalId": "1714307103",
        "address": {"line1": "Av. Amazonas N34-451", "city": "Quito", "province": "Pichincha", "country": "EC"},
    },
    "parcelDetails": {"weightKg": 1.25, "declaredValue": 45.50},
    "customsInfo": {"description": "Cotton shirts", "hsCode": "610910"},
}


def call(path: str, body: object = None) -> tuple[int, bytes]:
    """Returns the status and the body of an answer; a refusal is a urllib.error.HTTPError, whose body says why."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"X-API-Key": KEY, "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.status, answer.read()


for _ in range(2):
    status, created = call("/api/v1/orders/create", ORDER)
    number = json.loads(created)["parcel"]["trackingNumber"]
    print(status, number)
label = call(f"/api/v1/labels/{number}/download?format=PDF")[1]
Path(f"{number}.pdf").write_bytes(label)
