//! SDK of Parcelo, a cross-border parcel shipping service: create an order with its label, track
//! the parcel, and never ship anything twice.
//!
//! ```
//! use parcelo::{
//!     CountryCode, IdType, IdempotencyKey, LabelFormat, OrderRequest, Product, Receiver,
//!     ReceiverAddress, Sender, SenderAddress,
//! };
//! # use parcelo_server::mock::MockServer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US).state("FL");
//! let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC);
//! let receiver = Receiver::new("Luis Paredes", "+593991234567", to.province("Pichincha"));
//! let order = OrderRequest::builder()
//!     .idempotency_key(IdempotencyKey::derive("my-shop", "order 1001"))
//!     .sender(Sender::new("Ana Ruiz", "+13055550100", from))
//!     .receiver(receiver.national_id(IdType::Cedula, "1714307103"))
//!     .weight_kg("1.25".parse()?)
//!     .declared_value("45.50".parse()?)
//!     .product(Product::new("Cotton shirt", 2, "22.75".parse()?).hs_code("610910"))
//!     .build()?; // by the server's own rules, before anything is sent
//!
//! # let server = MockServer::start().await;
//! # let client = server.client(&server.key().issue());
//! # #[cfg(any())]
//! let client = parcelo::Client::from_env()?; // PARCELO_API_KEY, PARCELO_BASE_URL
//! let created = client.orders().create(&order).await?;
//! let number = &created.parcel.tracking_number;
//! let label = client.labels().download(number, LabelFormat::Pdf).bytes().await?;
//! assert!(label.starts_with(b"%PDF"));
//! println!("{number} is {}", client.tracking().get(number).await?.status);
//! # Ok(())
//! # }
//! ```
//!
//! # What is where
//!
//! - [`model`] is the vocabulary: every request, answer, status and error, one type for each.
//! - [`rules`] is the validator: all faults of an order at once, in English and Spanish, the same
//!   function that the server runs.
//! - [`client`] (feature `client`, on by default) sends: it repeats what is safe to repeat, waits
//!   as long as the server asks, and says whether a failed call may have been carried out.
//! - [`webhook`] (feature `webhooks`, on by default) tells whether a message is from Parcelo.
//!
//! Without default features there is no HTTP client and no runtime, and the crate compiles to
//! wasm32.
//!
//! # When a call fails
//!
//! An [`IdempotencyKey`] is made with the request. When [`Error::may_have_executed`] is true, send
//! the same request again with the same key, within 24 hours: if the first call was carried out,
//! its answer comes back ([`Outcome::Replayed`]) and nothing is made twice. After that time the key
//! is refused ([`ErrorKind::KeyExpired`]), as far as the process knows when it was first sent
//! ([`IdempotencyKey::sent_before`]).
//!
//! [`Error::kind`] says what can be done about a failure, [`Error::stop_reason`] why the client did
//! not try again. Neither `Display` nor `Debug` of an error holds secrets or personal data.
//!
//! # Trying again, and when
//!
//! | what happened | tried again |
//! |---|---|
//! | nothing was sent: no address, no connection | always |
//! | a used connection was closed without an answer | at once, if repeating changes nothing |
//! | no whole answer came; 408, 500, 502, 503, 504 | if repeating changes nothing |
//! | 429 | always |
//! | 409 `IDEMPOTENCY_IN_PROGRESS` | yes |
//! | any other answer, a bad certificate | never |
//!
//! Repeating changes nothing for reads and for writes with a key, which is every call but
//! [`Sandbox::reset`]. [`Retry`] says how often and how patiently; a budget that clones share keeps
//! retries few when most calls fail. [`Timeouts::total`] bounds a call with all its waits.
//!
//! Requests go in even gaps under the key's rate limit, which every answer tells ([`RateLimit`]). A
//! single call may have settings of its own: `client.with_retry(Retry::none()).orders()…`.
//!
//! # Many at once
//!
//! [`Orders::create_many`] creates the orders of an iterator several at a time, [`ListParcels::stream`]
//! reads a whole list, [`Tracking::batch`] asks for any number of parcels.
//!
//! ```
//! use parcelo::{IdempotencyKey, OrderRequest};
//! # use parcelo_server::mock::MockServer;
//!
//! # async fn import(rows: Vec<(String, OrderRequest)>) -> Result<(), parcelo::Error> {
//! # let server = MockServer::start().await;
//! # let client = server.client(&server.key().issue());
//! let orders = rows.into_iter().map(|(id, mut order)| {
//!     order.idempotency_key = IdempotencyKey::derive("my-shop", &id); // run twice, created once
//!     order
//! });
//! let mut created = client.orders().create_many(orders).concurrency(16);
//! while let Some((row, created)) = created.next().await {
//!     println!("{row}: {}", created?.parcel.tracking_number);
//! }
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "blocking")]
pub mod blocking;
#[cfg(feature = "client")]
pub mod client;
pub mod model;
pub mod rules;
#[cfg(feature = "webhooks")]
pub mod webhook;

#[cfg(feature = "client")]
pub use client::*;
pub use model::*;
pub use rules::{OrderBuilder, Rejected};
pub use rust_decimal::Decimal;
#[cfg(feature = "client")]
pub use url::Url;
#[cfg(feature = "webhooks")]
pub use webhook::{Webhook, WebhookError};
