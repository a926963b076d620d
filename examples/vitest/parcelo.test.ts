// A suite in TypeScript against the mock server; see docs/testing-typescript.md.
//
//     parcelo-server mock --clock frozen=2026-01-05T08:00:00Z --exec 'npm --prefix examples/vitest test'

import { expect } from "vitest";
import { test } from "./mock.js";

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
