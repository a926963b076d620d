// A webhook handler with node:http: it verifies each message, processes each event once, and keeps the newest status
// of each parcel.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

const TOLERANCE_MILLIS = 300_000;

/** Returns true if one of the signatures is by one of the secrets, and the message is recent. */
export function isFromParcelo(secrets: string[], headers: IncomingHttpHeaders, body: Buffer, now: number): boolean {
  const header = (name: string) => String(headers[`webhook-${name}`]);
  const message = `${header("id")}.${header("timestamp")}.`;
  // With `>`, a timestamp that is not a number would pass.
  if (!(Math.abs(now - Number(header("timestamp")) * 1000) <= TOLERANCE_MILLIS)) return false;
  const valid = secrets.map((secret) => {
    const key = Buffer.from(secret.replace("whsec_", ""), "base64");
    return Buffer.from("v1," + createHmac("sha256", key).update(message).update(body).digest("base64"));
  });
  // A rotated secret signs too for a while, so there may be several signatures.
  const given = header("signature").split(" ").map((signature) => Buffer.from(signature));
  return valid.some((one) => given.some((other) => one.length === other.length && timingSafeEqual(one, other)));
}

/** A shop's record of its parcels. A real one keeps it in a database, and the ids in the same transaction. */
export class Shop {
  secrets: string[] = [];
  /** Ids of events. */
  processed: string[] = [];
  /** By tracking number. */
  statuses: Record<string, { sequence: number; status: string }> = {};

  /** `now` returns Unix milliseconds. */
  constructor(readonly now: () => number | Promise<number> = Date.now) {}

  /** Processes a message, and returns the status to answer with. */
  async receive(headers: IncomingHttpHeaders, body: Buffer): Promise<number> {
    if (!isFromParcelo(this.secrets, headers, body, await this.now())) return 400;
    const { event, data } = JSON.parse(body.toString());
    const id = String(headers["webhook-id"]);
    if (this.processed.includes(id)) return 204;
    this.processed.push(id);
    const { trackingNumber, sequence, newStatus: status } = data;
    // An earlier status may arrive after a later one.
    if (event === "parcel.status_changed" && sequence > (this.statuses[trackingNumber]?.sequence ?? 0)) {
      this.statuses[trackingNumber] = { sequence, status };
    }
    return 204;
  }
}

/** Serves a shop on a free port, and returns its URL and a function that stops it. */
export async function listen(shop: Shop) {
  const server = createServer((request, response) => {
    const status = request.toArray().then((parts) => shop.receive(request.headers, Buffer.concat(parts)));
    status.then((status) => response.writeHead(status).end(), (error) => response.destroy(error));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() };
}
