// A suite in TypeScript against the mock server; see docs/testing-typescript.md.
//
//     parcelo-server mock --clock frozen=2026-01-05T08:00:00Z --exec 'npm --prefix examples/vitest test'

import { createHmac } from "node:crypto";
import { expect } from "vitest";
import { listen, test, type Delivery } from "./mock.js";

test("a parcel is delivered", async ({ mock }) => {
  const created = await mock.client.POST("/api/v1/orders/create", { body: await mock.order("SB-SUCCESS-7001") });
  expect(created.response.status).toBe(201);
  const { fired } = await mock.clock({ advance: "PT20M" });
  expect(fired.at(-1)?.status).toBe("DELIVERED");
  const params = { path: { trackingNumber: "SB-SUCCESS-7001" } };
  const { data } = await mock.client.GET("/api/v1/tracking/{trackingNumber}", { params });
  expect(data?.status).toBe("DELIVERED");
});

test("an answer that is lost makes no second parcel", async ({ mock }) => {
  const create = { body: await mock.order("SB-NORMAL-7002") };
  await mock.plan({ operation: "CreateOrder", nth: 1, afterCommit: true, fault: "close" });
  await expect(mock.client.POST("/api/v1/orders/create", create)).rejects.toThrow();
  const { data, response } = await mock.client.POST("/api/v1/orders/create", create);
  expect([response.status, data?.parcel.trackingNumber]).toEqual([200, "SB-NORMAL-7002"]);
  expect((await mock.requests("SB-NORMAL-7002")).count).toBe(2);
});

test("a refusal names the field", async ({ mock }) => {
  const body = await mock.order("SB-NORMAL-7003");
  body.receiver.address.province = "Atlantis";
  const { error } = await mock.client.POST("/api/v1/orders/create", { body });
  expect(error?.error.details?.errors?.[0]?.field).toBe("receiver.address.province");
});

test("webhooks reach the suite's own handler, signed", async ({ mock }) => {
  const deliveries: Delivery[] = [];
  const handler = await listen((delivery) => deliveries.push(delivery));
  const { secret } = await mock.sendWebhooksTo(handler.url, ["parcel.created"]);
  await mock.client.POST("/api/v1/orders/create", { body: await mock.order("SB-SUCCESS-7004") });
  await mock.clock({ advance: "PT20M" }); // answered once the handler has answered
  handler.close();
  const key = Buffer.from(secret!.replace("whsec_", ""), "base64");
  for (const { headers, body } of deliveries) {
    const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    const signature = createHmac("sha256", key).update(signed).digest("base64");
    expect(headers["webhook-signature"]).toBe(`v1,${signature}`);
  }
  const events = deliveries.map(({ body }) => JSON.parse(body));
  expect([events[0].event, events.at(-1).data.newStatus]).toEqual(["parcel.created", "DELIVERED"]);
});
