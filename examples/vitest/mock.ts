// A mock server for each test, so that no test sees another's parcels, whatever runs at the same time. The types are
// those of the server's OpenAPI document; `npm run types` writes them.

import createClient from "openapi-fetch";
import { expect, test as base } from "vitest";
import type { components, paths } from "./openapi-mock.js";

export type Schemas = components["schemas"];

const suite = createClient<paths>({ baseUrl: process.env.PARCELO_BASE_URL });

/** Returns the data of a call that must succeed. */
async function done<Data, Refusal>(call: Promise<{ data?: Data; error?: Refusal }>): Promise<Data> {
  const { data, error } = await call;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

/** Starts a mock server with data, clock and faults of its own; `stop` returns what it did twice and unused faults. */
export async function startMock(wanted: Schemas["WantedServer"] = {}) {
  const { port, url, key } = await done(suite.POST("/__mock/servers", { body: wanted }));
  const client = createClient<paths>({ baseUrl: url, headers: { "x-api-key": key } });
  const params = (trackingNumber: string) => ({ params: { path: { trackingNumber } } });
  return {
    url,
    key,
    client,
    order: async (number: string) => (await done(client.GET("/__mock/orders/{trackingNumber}", params(number)))).order,
    now: async () => Date.parse((await done(client.GET("/__mock/clock"))).now),
    clock: (body: Schemas["ClockMove"]) => done(client.POST("/__mock/clock", { body })),
    plan: (body: Schemas["PlannedFault"]) => done(client.POST("/__mock/faults", { body })),
    requests: (order: string) => done(client.GET("/__mock/requests", { params: { query: { order } } })),
    sendWebhooksTo: (url: string, events: Schemas["WantedInbox"]["events"] = []) =>
      done(client.POST("/__mock/webhooks", { body: { url, events } })),
    planWebhookFault: (body: Schemas["WebhookFault"]) => done(client.POST("/__mock/webhooks/faults", { body })),
    rotateWebhookSecret: async () => (await done(client.POST("/__mock/webhooks/rotate"))).secret,
    deliveries: async () => (await done(client.GET("/__mock/webhooks"))).deliveries,
    stop: async () =>
      (await done(suite.DELETE("/__mock/servers/{port}", { params: { path: { port: String(port) } } }))).offences,
  };
}

type Mock = Awaited<ReturnType<typeof startMock>>;

export const test = base.extend<{ mock: Mock }>({
  mock: async ({}, use) => {
    const mock = await startMock();
    await use(mock);
    expect(await mock.stop()).toEqual([]);
  },
});
