//! Sandboxes that are filled and reset again and again, through all servers, while faults happen. Writes acknowledged
//! after a reset's answer exist, whichever server acknowledges them, and nothing from before the reset does.

use std::{sync::atomic::Ordering, time::Duration};

use fastrand::Rng;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::{calls::an_order, faults::Troubles, servers::Server, world::World};

/// Number of orders in a round. Every round has the same keys, so that a late attempt does not make another parcel.
const ORDERS: u64 = 6;
/// Time after which a reset without an answer can no longer be executed.
const FORGOTTEN: Duration = Duration::from_secs(90);

/// A sandbox, and the outcome of its rounds.
pub(crate) struct Sandbox {
    http: Client,
    addresses: Vec<String>,
    key: String,
    pub(crate) resets: u64,
    pub(crate) faults: Vec<String>,
}

impl Sandbox {
    pub(crate) fn new(world: &World, at: usize) -> Self {
        let name = format!("Sandbox {at}");
        let key = ["keys", "create", "--account", &name, "--name", &name, "--countries", "*"];
        let key = world.servers[0].run(&key, "sandbox")["key"].as_str().map(str::to_owned);
        Self {
            http: Client::builder().timeout(Duration::from_secs(12)).build().expect("a client"),
            addresses: world.servers.iter().map(Server::sandbox).collect(),
            key: key.expect("a key"),
            resets: 0,
            faults: Vec::new(),
        }
    }

    pub(crate) async fn work(mut self, troubles: &Troubles, random: &mut Rng) -> Self {
        while troubles.go_on.load(Ordering::SeqCst) {
            for at in 0..ORDERS {
                let body = an_order(&format!("reset-order-{at:04}")).to_string();
                self.until_answered("orders/create", Some(body), random).await;
            }
            let list = self.until_answered("parcels?limit=1", None, random).await;
            let there = list["meta"]["total"].as_u64();
            if there != Some(ORDERS) {
                self.faults.push(format!("a sandbox with {ORDERS} orders lists {there:?}"));
            }
            match self.ask("sandbox/reset", Some(String::new()), random).await {
                None => tokio::time::sleep(FORGOTTEN).await,
                Some(reset) => {
                    let deleted = reset["data"]["deleted"]["parcels"].as_u64();
                    if deleted != Some(ORDERS) {
                        self.faults.push(format!("a reset of {ORDERS} orders says {deleted:?}"));
                    }
                    self.resets += 1;
                }
            }
        }
        self
    }

    async fn until_answered(&self, path: &str, body: Option<String>, random: &mut Rng) -> Value {
        loop {
            if let Some(answer) = self.ask(path, body.clone(), random).await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(random.u64(20..200))).await;
        }
    }

    /// Sends a request to one of the servers and returns the answer if it is a success.
    async fn ask(&self, path: &str, body: Option<String>, random: &mut Rng) -> Option<Value> {
        let address = &self.addresses[random.usize(..self.addresses.len())];
        let url = format!("{address}/api/v1/{path}");
        let request: RequestBuilder = match body {
            Some(body) => self.http.post(url).header("content-type", "application/json").body(body),
            None => self.http.get(url),
        };
        let answer = request.header("X-API-Key", &self.key).send().await.ok()?;
        let bytes = answer.error_for_status().ok()?.bytes().await.ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}
