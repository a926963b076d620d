"""Writes signatures.tsv: messages for the target webhook_signature, signed with Python's hmac instead of the SDK."""

import base64
import hashlib
import hmac
import pathlib
import random

SECRET = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
IDS = ["evt_1", "msg_p5jXN8AQM9LWM0D4loKWxJek", "!", "~" * 256]
BODIES = [b"", b"{}", '{"name":"Ñandú 深圳"}'.encode(), b"\x00\xff\n.", b".", b"a" * 5000]

rows = []
rng = random.Random(17)
for event in IDS:
    for body in BODIES:
        sent = str(rng.choice([0, 1, 1768057500, 2**33, 2**31]))
        message = b".".join([event.encode(), sent.encode(), body])
        tag = hmac.new(SECRET, message, hashlib.sha256).digest()
        signature = "v1," + base64.b64encode(tag).decode()
        # Some lines also have a signature by another secret or of another version, as during a secret rotation.
        line = rng.choice([signature, "v1,AAAA " + signature, "v2,x " + signature + " v1,"])
        rows.append("\t".join([event, sent, base64.b64encode(body).decode(), line]))
pathlib.Path(__file__).with_name("signatures.tsv").write_text("\n".join(rows) + "\n")
