// A handler that survives the faults of webhooks; see docs/testing.md.

import { expect } from "vitest";
import { test as base, type Schemas } from "./mock.js";
import { listen, Shop } from "./webhook-handler.js";

// How often the handler accepts and refuses under each fault: a parcel has five events.
const FAULTS: { plan: Schemas["WebhookFault"]; accepted: number; refused: number }[] = [
  { plan: { fault: "duplicate" }, accepted: 10, refused: 0 },
  { plan: { fault: "reorder", seconds: 1800 }, accepted: 5, refused: 0 },
  { plan: { fault: "delay", seconds: 400 }, accepted: 5, refused: 0 },
  { plan: { fault: "wrongSignature" }, accepted: 5, refused: 5 },
  { plan: { fault: "oldSignature" }, accepted: 5, refused: 5 },
];

const test = base.extend<{ shop: Shop }>({
  shop: async ({ mock }, use) => {
    const shop = new Shop(mock.now); // the mock server's time, with which messages are signed
    const handler = await listen(shop);
    shop.secrets = [(await mock.sendWebhooksTo(handler.url)).secret!];
    await use(shop);
    handler.close();
  },
});

test.for(FAULTS)("each event is processed once and the last status wins: $plan.fault", async (row, { mock, shop }) => {
  await mock.planWebhookFault(row.plan);
  await mock.client.POST("/api/v1/orders/create", { body: await mock.order("SB-SUCCESS-7101") });
  await mock.clock({ advance: "PT30M" }); // it is delivered after 20 minutes
  expect(shop.statuses).toEqual({ "SB-SUCCESS-7101": { sequence: 6, status: "DELIVERED" } });
  const sent = await mock.deliveries();
  expect(shop.processed.sort()).toEqual([...new Set(sent.map(({ id }) => id))].sort());
  const count = (status: number) => sent.filter((one) => one.status === status).length;
  expect([count(204), count(400), sent.length]).toEqual([row.accepted, row.refused, row.accepted + row.refused]);
});

test("webhooks are accepted while the secret is rotated", async ({ mock, shop }) => {
  await mock.client.POST("/api/v1/orders/create", { body: await mock.order("SB-SUCCESS-7102") });
  await mock.clock({ advance: "PT6M" });
  const secret = await mock.rotateWebhookSecret();
  await mock.clock({ advance: "PT5M" }); // the handler has the old secret, which also signs for 24 hours
  shop.secrets = [secret];
  await mock.clock({ advance: "PT19M" });
  expect(shop.statuses).toEqual({ "SB-SUCCESS-7102": { sequence: 6, status: "DELIVERED" } });
  expect((await mock.deliveries()).map(({ status }) => status)).toEqual([204, 204, 204, 204, 204]);
});
