// A mock server for each test, so that no test sees another's parcels, whatever runs at the same time. The types are
// those of the server's OpenAPI document; `npm run types` writes them.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import createClient from "openapi-fetch";
import { expect, test as base } from "vitest";
import type { components, paths } from "./openapi-mock.js";

export type Schemas = components["schemas"];
export type Delivery = { headers: NodeJS.Dict<string | string[]>; body: string };

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
    clock: (body: Schemas["ClockMove"]) => done(client.POST("/__mock/clock", { body })),
    plan: (body: Schemas["PlannedFault"]) => done(client.POST("/__mock/faults", { body })),
    requests: (order: string) => done(client.GET("/__mock/requests", { params: { query: { order } } })),
    sendWebhooksTo: (url: string, events: Schemas["WantedInbox"]["events"] = []) =>
      done(client.POST("/__mock/webhooks", { body: { url, events } })),
    stop: async () =>
      (await done(suite.DELETE("/__mock/servers/{port}", { params: { path: { port: String(port) } } }))).offences,
  };
}

/** Listens on a free port, hands each request to `received`, and answers 200. */
export async function listen(received: (delivery: Delivery) => void) {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    received({ headers: request.headers, body });
    response.end();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() };
}

type Mock = Awaited<ReturnType<typeof startMock>>;

export const test = base.extend<{ mock: Mock }>({
  mock: async ({}, use) => {
    const mock = await startMock();
    await use(mock);
    expect(await mock.stop()).toEqual([]);
  },
});
