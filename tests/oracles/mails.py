"""E-mails of the service through a relay that is not ours (aiosmtpd), with kills and refusals at each step of sending.

    python mails.py SERVER FOLDER

SERVER is the program, FOLDER an empty one. An e-mail arrives at least once wherever the server is killed, and once if
the reply to its final dot was recorded; copies have one Message-ID. What the relay refuses is sent again, given up, or
stops the address, as its code says. No address stands in the log.
"""

import asyncio
import datetime
import email
import email.policy
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from aiosmtpd.smtp import SMTP

SERVER, FOLDER = sys.argv[1], Path(sys.argv[2])
DATABASE = FOLDER / "parcelo.db"
ORDER = json.loads(Path(__file__).with_name("orders.json").read_text())[0]
WAITING, SENT, BOUNCED, GIVEN_UP = 0, 1, 2, 3
# The step at which the server is killed, and how many copies may arrive.
KILLS = {
    "220": [1],
    "EHLO": [1],
    "MAIL": [1],
    "RCPT": [1],
    "354": [1, 2],
    "read": [2],
    "250, not recorded": [2],
    "recorded": [1],
}
# Where it is refused, the reply, how the e-mail then stands, and how many copies arrive in the end.
REFUSALS = [
    ("RCPT", "550 5.1.1 no such user", BOUNCED, 0),
    ("RCPT", "450 4.2.0 greylisted", WAITING, 1),
    ("RCPT", "550 5.7.1 nothing of yours", WAITING, 1),
    ("dot", "451 4.3.0 try later", WAITING, 2),
    ("dot", "554 5.6.0 spam", GIVEN_UP, 1),
]


class Relay:
    """Keeps what comes, and calls `at` with each step of a session."""

    def __init__(self):
        self.messages, self.refused, self.at = [], {}, lambda step: None
        relay = self

        class Session(SMTP):
            async def push(self, status):
                text = status if isinstance(status, str) else status.decode()
                await super().push(status)
                for reply in ("220", "354", "250 2.0.0"):
                    if text.startswith(reply):
                        relay.at(reply)

        loop = asyncio.new_event_loop()
        session = lambda: Session(self, hostname="relay.test", loop=loop)
        listener = loop.run_until_complete(loop.create_server(session, "127.0.0.1", 0))
        self.port = listener.sockets[0].getsockname()[1]
        threading.Thread(target=loop.run_forever, daemon=True).start()

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        self.at("EHLO")
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):
        self.at("MAIL")
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        self.at("RCPT")
        envelope.rcpt_tos.append(address)
        return self.refused.pop("RCPT", "250 OK")

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.messages.append(message)
        self.at("read")
        return self.refused.pop("dot", "250 2.0.0 taken")

    def ids(self, number):
        return [one["Message-ID"] for one in self.messages if number in str(one["Subject"])]


class Server:
    """A server, started again after each kill, and parcels that are picked up, of which their receivers hear."""

    def __init__(self, relay):
        self.relay, self.parcels = relay, 0
        self.start()
        self.key = self.admin("keys", "create", "--countries", "*")
        self.carrier = self.admin("carriers", "create")

    def start(self):
        ready = FOLDER / "ready.json"
        ready.unlink(missing_ok=True)
        arguments = ["serve", "--database", f"sqlite:{DATABASE}", "--ready-file", ready]
        for listener in ("--listen", "--sandbox-listen", "--admin-listen"):
            arguments += [listener, "127.0.0.1:0"]
        arguments += ["--smtp-url", f"smtp://127.0.0.1:{self.relay.port}", "--mail-from", "parcels@shop.example"]
        arguments += ["--base-url", "https://parcelo.example"]
        with (FOLDER / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [SERVER, *arguments], stdout=log, stderr=log, env={"PARCELO_LOG": "debug"}
            )
        while not ready.exists():
            assert self.process.poll() is None, (FOLDER / "log").read_text()[-2_000:]
            time.sleep(0.02)
        self.url = json.loads(ready.read_text())["production"]

    def restart(self):
        """Ends it, unless it was killed, and starts it again, so that it looks at what this script has made due."""
        self.process.terminate()
        self.process.wait(120)
        self.start()

    def admin(self, *command):
        where = ["--database", f"sqlite:{DATABASE}", "--environment", "production"]
        said = subprocess.check_output([SERVER, *command, *where, "--name", "mails", "--json"])
        return json.loads(said)["key"]

    def post(self, path, body, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers["content-type"] = "application/json"
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        return json.load(urllib.request.urlopen(request))

    def parcel(self):
        self.parcels += 1
        number, address = f"EC-MAIL-{self.parcels:05}", f"receiver-{self.parcels}@shop.example"
        order = ORDER | {"idempotencyKey": f"mails-{self.parcels:05}", "trackingNumber": number}
        order["receiver"] = ORDER["receiver"] | {"email": address}
        self.post("/api/v1/orders/create", order, X_API_Key=self.key)
        now = datetime.datetime.now(datetime.UTC).isoformat()
        event = {"eventId": number, "trackingNumber": number, "status": "PICKED_UP"}
        event |= {"occurredAt": now, "location": "Quito, EC"}
        answer = self.post("/carrier/v1/events", {"events": [event]}, X_Carrier_Key=self.carrier)
        assert answer["data"]["results"][0]["outcome"] == "APPLIED", answer
        return number

    def sql(self, statement):
        database = sqlite3.connect(DATABASE, timeout=60)
        with database:
            rows = database.execute(statement).fetchall()
        database.close()
        return rows

    def make_due(self):
        self.sql("UPDATE mails SET due = 1 WHERE due IS NOT NULL")

    def newest(self):
        return self.sql("SELECT status FROM mails ORDER BY id DESC LIMIT 1")[0][0]

    def settle(self):
        """Waits until nothing waits to be sent; what is to be sent later is sent now."""

        def settled():
            self.make_due()
            return not self.sql("SELECT 1 FROM mails WHERE status = 0")

        until("all e-mails are settled", settled)


def until(what, is_so):
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)


def kill_at(server, relay, step):
    server.restart()
    number = server.parcel()

    def at(now):
        if step == "250, not recorded":
            # Stopped while the reply is on its way, it cannot record it.
            if now == "read":
                server.process.send_signal(signal.SIGSTOP)
            elif now == "250 2.0.0":
                server.process.kill()
        elif now == step:
            server.process.kill()

    relay.at = at
    server.make_due()
    if step == "recorded":
        until("it is recorded", lambda: server.newest() == SENT)
        server.process.kill()
    server.process.wait(120)
    relay.at = lambda step: None
    server.restart()
    server.settle()
    ids = relay.ids(number)
    print(f"killed at {step}: {len(ids)} arrived, with {len(set(ids))} Message-ID", flush=True)
    assert len(ids) in KILLS[step] and len(set(ids)) == 1, ids


def refuse(server, relay, where, reply, then, copies):
    server.restart()
    relay.refused = {where: reply}
    number = server.parcel()
    server.make_due()
    until("it was refused", lambda: not relay.refused)
    server.restart()
    status = server.newest()
    server.settle()
    ids = relay.ids(number)
    print(f"refused at {where} with {reply}: {len(ids)} arrived", flush=True)
    assert status == then, (reply, status)
    assert len(ids) == copies and len(set(ids)) <= 1, (reply, ids)


relay = Relay()
server = Server(relay)
for step in KILLS:
    kill_at(server, relay, step)
for refusal in REFUSALS:
    refuse(server, relay, *refusal)
server.process.terminate()
assert server.process.wait(120) == 0
message = relay.messages[0]
for header in ("From", "To", "Subject", "Date", "List-Unsubscribe", "List-Unsubscribe-Post"):
    assert message[header], header
assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
assert "@shop.example" not in (FOLDER / "log").read_text().replace("parcels@shop.example", "")
