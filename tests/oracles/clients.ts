// The client that openapi-typescript makes of docs/openapi.json, with openapi-fetch, against the mock server:
//
//     node clients.js URL ORDERS
//
// URL is that of `parcelo-server mock`, ORDERS the file beside this one. It is compiled first, so that the types of the document are
// checked too. What it says is compared with what fetch alone, which knows no document, gets.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];
type Order = Schemas["OrderRequest"];

const url = process.argv[2] ?? "";
const orders: Order[] = JSON.parse(readFileSync(process.argv[3] ?? "", "utf8"));
const formats: Schemas["LabelFormat"][] = ["PDF", "PNG", "ZPL"];

const made = await fetch(`${url}/__mock/keys`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ account: "TypeScript" }),
});
const key: string = (await made.json()).key;
const client = createClient<paths>({ baseUrl: url, headers: { "x-api-key": key } });

async function plainly(path: string): Promise<Buffer> {
  const answer = await fetch(url + path, { headers: { "x-api-key": key } });
  assert.equal(answer.status, 200, path);
  return Buffer.from(await answer.arrayBuffer());
}

const create = (body: Order) => client.POST("/api/v1/orders/create", { body });

async function createsAndRepeats(): Promise<string[]> {
  const numbers: string[] = [];
  for (const order of orders) {
    const first = await create(order);
    assert.equal(first.response.status, 201, JSON.stringify(first.error));
    const again = await create(order);
    assert.equal(again.response.status, 200);
    assert.equal(again.response.headers.get("idempotent-replayed"), "true");
    assert.deepEqual(again.data?.parcel, first.data?.parcel);
    numbers.push(first.data?.parcel.trackingNumber ?? "");
  }
  const other = await create({ ...orders[0]!, customerReference: "another order under the same key" });
  assert.equal(other.error?.error.code, "IDEMPOTENCY_CONFLICT");
  return numbers;
}

async function faultsAreTyped(): Promise<void> {
  const order = structuredClone(orders[0]!);
  order.idempotencyKey = "order-faulty-1";
  order.sender.fullName = "";
  order.receiver.phone = "12";
  const { response, error } = await create(order);
  assert.equal(response.status, 400);
  const faults = error?.error.details?.errors ?? [];
  assert.deepEqual(
    faults.map((fault) => [fault.field, fault.code, typeof fault.message_es]),
    [
      ["sender.fullName", "REQUIRED", "string"],
      ["receiver.phone", "INVALID_FORMAT", "string"],
    ],
  );
}

async function lists(numbers: string[]): Promise<void> {
  const parcels = (query: NonNullable<paths["/api/v1/parcels"]["get"]["parameters"]["query"]>) =>
    client.GET("/api/v1/parcels", { params: { query } });
  const one = await parcels({ country: "EC", status: "LABEL_GENERATED" });
  assert.deepEqual(one.data?.data.map((parcel) => parcel.trackingNumber), [numbers[0]]);
  const page = await parcels({ limit: 3 });
  assert.deepEqual([page.data?.meta.total, page.data?.meta.totalPages, page.data?.data.length], [4, 2, 3]);
  assert.match(page.data?.meta.requestId ?? "", /^req_/);
}

async function tracksMany(numbers: string[]): Promise<void> {
  const body = { trackingNumbers: [...numbers, "SB-ABSENT-0001"], includeHistory: true };
  const { data } = await client.POST("/api/v1/tracking/batch", { body });
  assert.deepEqual([data?.data.summary.found, data?.data.summary.notFound], [4, 1]);
  assert.ok(data?.data.results.slice(0, 4).every((result) => result.tracking?.history?.length));
  assert.equal(data?.data.results[4]?.error?.code, "PARCEL_NOT_FOUND");
}

async function labelBytesAreTheSame(numbers: string[]): Promise<void> {
  for (const number of numbers) {
    for (const format of formats) {
      const plain = await plainly(`/api/v1/labels/${number}/download?format=${format}`);
      const { data, response } = await client.GET("/api/v1/labels/{trackingNumber}/download", {
        params: { path: { trackingNumber: number }, query: { format } },
        parseAs: "arrayBuffer",
      });
      assert.ok(Buffer.from(data!).equals(plain), format);
      assert.ok(response.headers.get("etag"));
      const file = `${number}.${format.toLowerCase()}`;
      const legacy = await client.GET("/api/labels/{file}", {
        params: { path: { file } },
        parseAs: "arrayBuffer",
      });
      assert.ok(Buffer.from(legacy.data!).equals(plain), file);
    }
  }
}

async function submitsAManifest(trackingNumbers: string[]): Promise<void> {
  const submit = (awbNumber: string, trackingNumbers: string[]) =>
    client.POST("/api/v1/manifests/submit", { body: { awbNumber, trackingNumbers } });
  const first = await submit("176-12345675", trackingNumbers);
  assert.equal(first.response.status, 201);
  const again = await submit("176-12345675", trackingNumbers);
  assert.deepEqual([again.response.status, again.data?.data], [200, first.data?.data]);
  const manifestId = first.data?.data.manifestId ?? "";
  const read = await client.GET("/api/v1/manifests/{manifestId}", { params: { path: { manifestId } } });
  assert.deepEqual(read.data?.data.trackingNumbers, trackingNumbers);
  const refused = await submit("176-12345686", ["SB-ABSENT-0001"]);
  assert.equal(refused.error?.error.details?.errors?.[0]?.field, "trackingNumbers[0]");
}

async function voids(number: string): Promise<void> {
  const body = { idempotencyKey: "void-0001", trackingNumbers: [number, "SB-ABSENT-0001"] };
  const { data } = await client.POST("/api/v1/orders/void", { body });
  assert.deepEqual(data?.data.results.map((result) => result.voided), [true, false]);
}

const numbers = await createsAndRepeats();
await faultsAreTyped();
await lists(numbers);
await tracksMany(numbers);
await labelBytesAreTheSame(numbers);
await submitsAManifest(numbers.slice(0, 3));
await voids(numbers[3]!);
const files = numbers.length * formats.length * 2;
console.log(`openapi-typescript: ${numbers.length} orders, ${files} label files, no difference`);
