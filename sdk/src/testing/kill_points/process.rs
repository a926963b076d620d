//! A process of a run: a program that ships one order, with its journal and its client, whose every step may be its
//! last.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::Bytes;
use http::Request;

use super::{
    Violation,
    world::{Program, Step, World},
};
use crate::{
    ApiKey, Client, Environment, Error, IdempotencyKey, OrderRequest, RateLimit, Retry, Timeouts,
    TrackingNumber,
    calls::Shipped,
    journal::{Entry, Journal, JournalError},
    transport::{ResponseFuture, Transport},
};

/// The end of a process.
pub(super) enum Ended {
    Killed,
    Failed,
    Shipped(TrackingNumber),
}

/// A time for a call that is shorter than every pause before a request is sent again. So nothing waits: what would be
/// sent again is sent by the next process.
const TOTAL_TIME: Duration = Duration::from_secs(4);

/// Runs a program that resumes what an earlier process left, and ships the order.
pub(super) async fn run<J: Journal>(
    world: &World,
    open: &impl AsyncFn(&str) -> Result<J, JournalError>,
    name: &str,
) -> Result<Ended, Violation> {
    let invalid = |error: Error| world.violation(&format!("no client: {error}"));
    let client = client(world).map_err(invalid)?;
    let opened = open(name).await;
    let unreadable = |error| world.violation(&format!("the journal cannot be opened: {error}"));
    let journal = Watched { journal: opened.map_err(unreadable)?, world: world.clone() };
    let mut program = pin!(program(&client, &journal, world));
    let ended = poll_fn(|context| match program.as_mut().poll(context) {
        Poll::Ready(shipped) => Poll::Ready(Some(shipped)),
        Poll::Pending if world.is_killed() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    Ok(match ended.await {
        None => Ended::Killed,
        Some(Ok(shipped)) => Ended::Shipped(shipped.tracking_number),
        Some(Err(_)) => Ended::Failed,
    })
}

async fn program<J: Journal>(
    client: &Client,
    journal: &Watched<J>,
    world: &World,
) -> Result<Shipped, Error> {
    let record = |result: &Result<Shipped, Error>| match result {
        Ok(shipped) => world.record(format_args!("  shipped as {}", shipped.tracking_number)),
        Err(error) => world.record(format_args!("  error: {error}")),
    };
    if world.program() == Program::ResumesAndShips {
        let is_open_expected = world.is_open_expected();
        let resumed = client.orders().resume(journal).await.inspect_err(|error| {
            world.record(format_args!("  error: {error}"));
        })?;
        if is_open_expected && resumed.is_empty() {
            world.record_lost_entry();
        }
        for (_, result) in &resumed {
            record(result);
        }
    }
    let shipped = client.orders().ship(&order(world), journal).await;
    record(&shipped);
    shipped
}

fn client(world: &World) -> Result<Client, Error> {
    let api_key = ApiKey::from_random(Environment::Sandbox, &[world.process().1; 32]);
    let (transport, clock) = (Network(world.clone()), world.clone());
    Client::builder(api_key)
        .transport(transport)
        .rate_limit(RateLimit::off())
        .retry(Retry::none())
        .timeouts(Timeouts::default().total(TOTAL_TIME))
        .service_clock(move || clock.now())
        .build()
}

/// Returns the order as each process makes it: with the same id, and a key of its own.
fn order(world: &World) -> OrderRequest {
    let key = IdempotencyKey::derive("kill points", &world.process().0.to_string());
    crate::testing::order().with_idempotency_key(key)
}

/// The process's connection to the service.
#[derive(Debug)]
struct Network(World);

impl Transport for Network {
    fn send(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async move {
            self.reach("before this request is sent").await;
            let answer = self.0.respond(&request);
            self.reach("before the response arrives").await;
            answer
        })
    }
}

impl Network {
    async fn reach(&self, name: &str) {
        // Only calls of the journal fail.
        let _ = self.0.reach(Step::Request, name).await;
    }
}

/// The user's journal, with a step before and after each call.
struct Watched<J> {
    journal: J,
    world: World,
}

impl<J: Journal> Watched<J> {
    async fn watch<T: Send>(
        &self,
        name: String,
        call: impl Future<Output = Result<T, JournalError>> + Send,
    ) -> Result<T, JournalError> {
        self.world.reach(Step::Journal, &format!("before {name}")).await?;
        let result = call.await;
        match &result {
            Ok(_) => self.world.record(format_args!("  journal: {name}")),
            Err(error) => self.world.record(format_args!("  journal: {name}: {error}")),
        }
        self.world.reach(Step::Journal, &format!("after {name}")).await?;
        result
    }
}

impl<J: Journal> Journal for Watched<J> {
    async fn insert(&self, entry: &Entry) -> Result<Option<Entry>, JournalError> {
        let insert = async {
            self.world.expect_open(None);
            let known = self.journal.insert(entry).await?;
            self.world.expect_open(Some(known.as_ref().unwrap_or(entry).is_open()));
            Ok(known)
        };
        self.watch(format!("insert {}", shown(entry)), insert).await
    }

    async fn update(&self, entry: &Entry) -> Result<(), JournalError> {
        let update = async {
            self.world.expect_open(None);
            self.journal.update(entry).await?;
            self.world.expect_open(Some(entry.is_open()));
            Ok(())
        };
        self.watch(format!("update {}", shown(entry)), update).await
    }

    async fn open(&self) -> Result<Vec<Entry>, JournalError> {
        self.watch("open".to_owned(), self.journal.open()).await
    }
}

fn shown(entry: &Entry) -> String {
    let json = serde_json::to_value(entry).unwrap_or_default();
    match (json.pointer("/state/open/order/1/idempotencyKey"), entry.tracking_number()) {
        (Some(key), _) => format!("(open, with key {})", key.as_str().unwrap_or_default()),
        (None, Some(number)) => format!("(shipped as {number})"),
        (None, None) => "(refused)".to_owned(),
    }
}
