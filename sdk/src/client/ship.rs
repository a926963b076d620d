//! Shipping an order once, whatever happens to its calls and to the process: [`Orders::ship`]. It follows
//! [`Error::next_step`], and a [`Journal`] remembers the order.

use std::{fmt, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, future::BoxFuture, stream};
use parcelo_types::{
    IdempotencyKey, OrderRequest, ParcelStatus, TrackingNumber,
    internal::hex,
    model::{CreatedOrder, Saved},
};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::{
    Client, Error, ErrorKind, IfAbsent, NextStep, Orders, Reply, Timeouts, clock,
    error::Texts,
    journal::{Entry, Journal, JournalError, OpenOrder, State},
};

/// Maximum time from an attempt's beginning until the service has executed it or never will: that of
/// `parcelo_types::model::key_state`.
const MAX_EXECUTION: TimeDelta = TimeDelta::minutes(10);

/// Default number of orders that are resumed at once.
const DEFAULT_CONCURRENCY: usize = 8;

impl Orders {
    /// Ships an order once: returns its only parcel, no matter how often and how late this is called, and in which
    /// process.
    ///
    /// The order is saved in the journal before it is sent. Then it is created, and whatever the response is, the
    /// next step is taken: it is sent again after a wait, looked up ([`Orders::find`]), sent with a new idempotency key
    /// once the old one cannot have been executed, or settled. An order that the journal has already is not new: it
    /// continues with the journal's idempotency key, or its number is returned without a request. This goes by the
    /// order's `external_order_id`, which must not be the id of another order of the account.
    ///
    /// It ends within about the [total time](crate::Timeouts::total) of one call. An order that is not settled by then
    /// stays open in the journal ([`Error::order_stays_open`]): ship it again later, or [`resume`](Self::resume). One that
    /// is refused, and cannot have been executed, is settled: correct it, and ship it again under the same id.
    ///
    /// With another API key than before, even of the same account, an open order is looked up and not sent again until
    /// its last attempt has certainly ended, ten minutes later. An order whose parcel was voided needs another
    /// `external_order_id` to be shipped again.
    ///
    /// Errors: `Validation` if the order has no `external_order_id`, `Journal` if the journal fails, and those of
    /// [`Orders::create`] and [`Orders::find`]. If the journal cannot save the order, it is not sent.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let folder = tempfile::tempdir()?;
    /// use parcelo::journal::JournalFile;
    ///
    /// let journal = JournalFile::open(folder.path().join("orders.journal"))?;
    /// let order = order.with_external_order_id("1001");
    /// match client.orders().ship(&order, &journal).await {
    ///     Ok(shipped) => println!("{}", shipped.tracking_number),
    ///     Err(error) if error.order_stays_open() => println!("later: {error}"),
    ///     Err(error) => println!("refused: {error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn ship<'j, J: Journal>(&self, order: &OrderRequest, journal: &'j J) -> Ship<'j, J> {
        Ship { client: self.client.clone(), order: order.clone(), journal }
    }

    /// Ships the orders that are open in the journal, left by a crash or by errors: each order's id in your system, and
    /// its result, as of [`ship`](Self::ship). Orders that are shipped at the same time are no obstacle.
    ///
    /// Errors: `Journal` if the journal cannot be read.
    pub fn resume<'j, J: Journal>(&self, journal: &'j J) -> Resume<'j, J> {
        Resume { client: self.client.clone(), journal, concurrency: DEFAULT_CONCURRENCY }
    }
}

/// An order that was shipped: the result of [`Orders::ship`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Shipped {
    /// The number of the order's parcel.
    pub tracking_number: TrackingNumber,
    /// The response with the parcel, its warnings and its label; `None` if the parcel was found by its order's id, or
    /// the journal knew it.
    pub created: Option<Reply<CreatedOrder>>,
}

/// The shipment of an order; from [`Orders::ship`].
#[must_use = "nothing is shipped until it is awaited"]
pub struct Ship<'j, J> {
    client: Client,
    order: OrderRequest,
    journal: &'j J,
}

impl<J> fmt::Debug for Ship<'_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ship").field("order", &self.order).finish_non_exhaustive()
    }
}

impl<'j, J: Journal> IntoFuture for Ship<'j, J> {
    type Output = Result<Shipped, Error>;
    type IntoFuture = BoxFuture<'j, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let id = self.order.external_order_id.as_deref().unwrap_or_default().trim().to_owned();
            if id.is_empty() {
                return Err(Error::new(ErrorKind::Validation, NO_ID).with(|inner| {
                    inner.nothing_sent = true;
                }));
            }
            Shipment::new(self.client, self.journal, id, self.order).ship().await
        })
    }
}

/// Each order's id and result.
pub(crate) type Resumed = Vec<(String, Result<Shipped, Error>)>;

/// The shipment of the orders that are open in a journal; from [`Orders::resume`].
#[must_use = "nothing is shipped until it is awaited"]
pub struct Resume<'j, J> {
    client: Client,
    journal: &'j J,
    concurrency: usize,
}

impl<J> Resume<'_, J> {
    /// Sets the maximum number of orders that are shipped at once. The default is 8, and 0 counts as 1.
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), ..self }
    }
}

impl<J> fmt::Debug for Resume<'_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resume").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

impl<'j, J: Journal> IntoFuture for Resume<'j, J> {
    type Output = Result<Resumed, Error>;
    type IntoFuture = BoxFuture<'j, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let unreadable = |error| Error::new(ErrorKind::Journal, NOT_READ).with_source(error);
            let resume = Self { client: self.client.with_current_key()?, ..self };
            let entries = resume.journal.open().await.map_err(unreadable)?;
            let resumed = entries.into_iter().filter_map(|entry| resume.resume(entry));
            Ok(stream::iter(resumed).buffer_unordered(resume.concurrency).collect().await)
        })
    }
}

impl<'j, J: Journal> Resume<'j, J> {
    /// Ships an order, if it is open.
    fn resume(&self, entry: Entry) -> Option<BoxFuture<'j, (String, Result<Shipped, Error>)>> {
        let (id, State::Open(open)) = entry.into_parts() else { return None };
        let (client, journal) = (self.client.clone(), self.journal);
        Some(Box::pin(async move {
            let order = open.order.clone().restore();
            let shipment = Shipment::new(client, journal, id.clone(), order);
            (id, shipment.proceed(*open).await)
        }))
    }
}

const NO_ID: Texts = (
    "An order needs an external order id to be shipped with a journal.",
    "Un pedido necesita un id externo (externalOrderId) para enviarse con un diario.",
);
pub(crate) const NOT_SAVED: Texts =
    ("The journal could not save the order.", "El diario no pudo guardar el pedido.");
const NOT_SETTLED: Texts = (
    "The order was shipped, but the journal could not record it.",
    "El pedido se envió, pero el diario no pudo registrarlo.",
);
const NOT_READ: Texts = ("The journal could not be read.", "No se pudo leer el diario.");
const UNDER_WAY: Texts = (
    "An attempt with another API key may still be under way.",
    "Puede haber un intento en curso con otra clave de API.",
);

/// One run of an order's shipment.
struct Shipment<'j, J> {
    client: Client,
    journal: &'j J,
    id: String,
    /// The order, with the key that the journal has.
    order: OrderRequest,
    /// No attempt begins later.
    deadline: Instant,
    sent_until: DateTime<Utc>,
}

impl<'j, J: Journal> Shipment<'j, J> {
    fn new(client: Client, journal: &'j J, id: String, order: OrderRequest) -> Self {
        let total = client.settings.timeouts.total;
        let until = TimeDelta::from_std(total)
            .ok()
            .and_then(|total| client.shared.clocks.moment().wall.checked_add_signed(total));
        let sent_until = until.unwrap_or(DateTime::<Utc>::MAX_UTC);
        let deadline = clock::from_now(total);
        Self { client, journal, id, order, deadline, sent_until }
    }

    async fn ship(mut self) -> Result<Shipped, Error> {
        // The journal names the API key with which the order is sent, so it is one for the whole shipment.
        let client = self.client.clone().with_current_key();
        self.client = client.map_err(|error| self.about_this_order(error))?;
        let inserted = self.journal.insert(&self.entry()).await;
        let known = inserted.map_err(|error| self.not_saved(error))?;
        match known.map(Entry::into_parts) {
            None => self.send().await,
            Some((_, State::Shipped(tracking_number))) => {
                Ok(Shipped { tracking_number, created: None })
            }
            Some((_, State::Open(open))) => self.proceed(*open).await,
            Some((_, State::Refused)) => {
                self.save().await?;
                self.send().await
            }
        }
    }

    /// Continues an order that may have been sent.
    async fn proceed(mut self, open: OpenOrder) -> Result<Shipped, Error> {
        let known = open.order.restore().idempotency_key;
        let given = self.order.idempotency_key.clone();
        // The order may be newer than the entry, but not its key: the one in the journal may have been sent.
        self.order.idempotency_key =
            if given == known { given.with_state(&known.state()) } else { known };
        if open.api_key != self.api_key() {
            if let Some(shipped) = self.look_up().await? {
                return Ok(shipped);
            }
            self.check_under_way(open.sent_until)?;
            self.renew_key();
        }
        self.save().await?;
        self.send().await
    }

    /// Sends the order until it is settled, or for as long as time allows.
    async fn send(mut self) -> Result<Shipped, Error> {
        loop {
            let error = match self.create().await {
                Ok(created) => {
                    let number = created.parcel.tracking_number.clone();
                    return self.settle(number, Some(created)).await;
                }
                Err(error) => error,
            };
            let wait = match error.next_step() {
                NextStep::Resend { after } => after,
                NextStep::Configure => return Err(stays_open(error)),
                NextStep::Correct | NextStep::GiveUp => return Err(self.refuse(error).await),
                step @ (NextStep::Settled | NextStep::LookUp { .. }) => {
                    if let Some(shipped) = self.look_up().await? {
                        return Ok(shipped);
                    }
                    match step {
                        NextStep::LookUp { if_absent: IfAbsent::NewKey } => {
                            self.renew_key();
                            self.save().await?;
                            continue;
                        }
                        NextStep::LookUp { if_absent: IfAbsent::Resend { after } } => after,
                        _ => return Err(stays_open(error)),
                    }
                }
            };
            if wait >= self.time_left() {
                return Err(stays_open(error));
            }
            sleep(wait).await;
        }
    }

    async fn create(&self) -> Result<Reply<CreatedOrder>, Error> {
        let timeouts =
            Timeouts { total: self.time_left(), ..self.client.settings.timeouts.clone() };
        self.client.with_timeouts(timeouts).orders().create(&self.order).await
    }

    /// Settles the order if it has a parcel that is not voided.
    async fn look_up(&self) -> Result<Option<Shipped>, Error> {
        let (parcels, error) = match self.client.orders().find(&self.id).await {
            Ok(parcels) => (parcels, None),
            // A look-up may find some parcels and fail at others.
            Err(error) => (error.found().to_vec(), Some(error)),
        };
        match (parcels.into_iter().find(|parcel| parcel.status != ParcelStatus::Voided), error) {
            (Some(parcel), _) => self.settle(parcel.tracking_number, None).await.map(Some),
            (None, None) => Ok(None),
            (None, Some(error)) => Err(stays_open(self.about_this_order(error))),
        }
    }

    async fn settle(
        &self,
        tracking_number: TrackingNumber,
        created: Option<Reply<CreatedOrder>>,
    ) -> Result<Shipped, Error> {
        let entry = Entry::new(&self.id, State::Shipped(tracking_number.clone()));
        match self.journal.update(&entry).await {
            Ok(()) => Ok(Shipped { tracking_number, created }),
            Err(error) => {
                let error = Error::new(ErrorKind::Journal, NOT_SETTLED).with_source(error);
                let error = stays_open(self.about_this_order(error));
                Err(error.with(|inner| inner.may_have_executed = true))
            }
        }
    }

    /// Settles the order as refused, unless it may have been executed.
    async fn refuse(&self, error: Error) -> Error {
        if error.may_have_executed() {
            return stays_open(error);
        }
        match self.journal.update(&Entry::new(&self.id, State::Refused)).await {
            Ok(()) => error,
            Err(source) => stays_open(error).with_source(source),
        }
    }

    /// Gives the order a new key. It follows from the old one, so that every process that continues from the old key
    /// makes the same, even if the journal has lost it.
    fn renew_key(&mut self) {
        let old = self.order.idempotency_key.as_str();
        self.order.idempotency_key = IdempotencyKey::derive("parcelo ship: the key after", old);
    }

    /// Saves the order with its key, before it is sent.
    async fn save(&self) -> Result<(), Error> {
        let saved = self.journal.update(&self.entry()).await;
        saved.map_err(|error| stays_open(self.not_saved(error)))
    }

    /// Returns the entry of the order as it is about to be sent.
    fn entry(&self) -> Entry {
        let now = self.client.shared.clocks.moment().wall;
        let order = Saved::new(&self.order, now);
        let open = OpenOrder { order, api_key: self.api_key(), sent_until: self.sent_until };
        Entry::new(&self.id, State::Open(Box::new(open)))
    }

    /// Returns a digest of the client's API key.
    fn api_key(&self) -> String {
        let digest = Sha256::digest(self.client.identity.headers.api_key());
        hex(digest.iter().take(12))
    }

    /// Fails if an attempt that began at this time or earlier may still be executed.
    fn check_under_way(&self, sent_until: DateTime<Utc>) -> Result<(), Error> {
        let now = self.client.shared.clocks.moment();
        // The clock that is behind counts: the wait must not end early.
        let now = now.service.map_or(now.wall, |service| service.min(now.wall));
        let left = (MAX_EXECUTION - (now - sent_until)).to_std().unwrap_or_default();
        if left.is_zero() {
            return Ok(());
        }
        let error = self.about_this_order(Error::new(ErrorKind::Conflict, UNDER_WAY));
        Err(stays_open(error).with(|inner| inner.retry_after = Some(left)))
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(clock::now())
    }

    fn not_saved(&self, error: JournalError) -> Error {
        let error = Error::new(ErrorKind::Journal, NOT_SAVED).with_source(error);
        self.about_this_order(error).with(|inner| inner.nothing_sent = true)
    }

    /// Returns the error with the outcome of the order, for a failure that was not one of the order's calls.
    fn about_this_order(&self, error: Error) -> Error {
        let key = self.order.idempotency_key.clone();
        error.with(|inner| {
            inner.may_have_executed = key.may_have_executed();
            inner.idempotency_key = Some(key);
        })
    }
}

/// Returns the error of an order that is not settled.
pub(crate) fn stays_open(error: Error) -> Error {
    error.with(|inner| inner.order_stays_open = true)
}
