//! Sandboxes that are filled and reset in rounds, through all servers, while faults are injected. Once a reset is
//! answered, nothing from before exists, and every order acknowledged since does, whichever server accepted it.

use std::{sync::atomic::Ordering, time::Duration};

use fastrand::Rng;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::{
    fault_injector::FaultInjector, requests::order_body, servers::Server, test_bed::TestBed,
};

/// Number of orders in a round. All rounds use the same idempotency keys, so that a late attempt creates no additional
/// parcel.
const ORDERS: u64 = 6;
/// Maximum time until a reset without an answer is executed.
const MAX_RESET_DELAY: Duration = Duration::from_secs(90);

/// A sandbox, the number of its resets, and the violations found.
pub(crate) struct Sandbox {
    http: Client,
    addresses: Vec<String>,
    key: String,
    pub(crate) resets: u64,
    pub(crate) violations: Vec<String>,
}

impl Sandbox {
    pub(crate) fn new(test_bed: &TestBed, index: usize) -> Self {
        let name = format!("Sandbox {index}");
        let key = ["keys", "create", "--account", &name, "--name", &name, "--countries", "*"];
        let key = test_bed.servers[0].run(&key, "sandbox")["key"].as_str().map(str::to_owned);
        Self {
            http: Client::builder().timeout(Duration::from_secs(12)).build().expect("a client"),
            addresses: test_bed.servers.iter().map(Server::sandbox_address).collect(),
            key: key.expect("a key"),
            resets: 0,
            violations: Vec::new(),
        }
    }

    pub(crate) async fn fill_and_reset(
        mut self,
        injector: &FaultInjector,
        random: &mut Rng,
    ) -> Self {
        while injector.is_running.load(Ordering::SeqCst) {
            for index in 0..ORDERS {
                let body = order_body(&format!("reset-order-{index:04}")).to_string();
                self.send_until_answered("orders/create", Some(body), random).await;
            }
            let list = self.send_until_answered("parcels?limit=1", None, random).await;
            let listed = list["meta"]["total"].as_u64();
            if listed != Some(ORDERS) {
                self.violations.push(format!("a sandbox with {ORDERS} orders lists {listed:?}"));
            }
            match self.send_once("sandbox/reset", Some(String::new()), random).await {
                None => tokio::time::sleep(MAX_RESET_DELAY).await,
                Some(reset) => {
                    let deleted = reset["data"]["deleted"]["parcels"].as_u64();
                    if deleted != Some(ORDERS) {
                        self.violations
                            .push(format!("a reset of {ORDERS} orders says {deleted:?}"));
                    }
                    self.resets += 1;
                }
            }
        }
        self
    }

    async fn send_until_answered(
        &self,
        path: &str,
        body: Option<String>,
        random: &mut Rng,
    ) -> Value {
        loop {
            if let Some(answer) = self.send_once(path, body.clone(), random).await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(random.u64(20..200))).await;
        }
    }

    /// Sends a request to one of the servers, and returns the response if it is a success.
    async fn send_once(&self, path: &str, body: Option<String>, random: &mut Rng) -> Option<Value> {
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
