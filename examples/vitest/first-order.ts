// Creates an order, sends it again, and saves its label; see docs/start/typescript.md.

import { writeFile } from "node:fs/promises";

const { PARCELO_BASE_URL: url, PARCELO_API_KEY: key = "" } = process.env;

const order = {
  idempotencyKey: "order-1001", // your number of the order: one parcel, however often it is sent
  trackingNumber: "SB-SUCCESS-0001", // the sandbox delivers it; leave it out in production
  sender: {
    fullName: "Ana Ruiz",
    phone: "+13055550100",
    address: { line1: "8400 NW 25th St", city: "Miami", state: "FL", zipCode: "33122", country: "US" },
  },
  receiver: {
    fullName: "Luis Paredes",
    phone: "+593991234567",
    idType: "cedula",
    nationalId: "1714307103",
    address: { line1: "Av. Amazonas N34-451", city: "Quito", province: "Pichincha", country: "EC" },
  },
  parcelDetails: { weightKg: 1.25, declaredValue: 45.5 },
  customsInfo: { description: "Cotton shirts", hsCode: "610910" },
};

async function call(path: string, method = "GET", body?: string): Promise<Response> {
  const headers = { "x-api-key": key, "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method, headers, body });
  if (!answer.ok) throw new Error(await answer.text()); // the body says why
  return answer;
}

let number = "";
for (let time = 0; time < 2; time++) {
  const answer = await call("/api/v1/orders/create", "POST", JSON.stringify(order));
  number = (await answer.json()).parcel.trackingNumber;
  console.log(answer.status, number);
}
const label = await call(`/api/v1/labels/${number}/download?format=PDF`);
await writeFile(`${number}.pdf`, Buffer.from(await label.arrayBuffer()));
