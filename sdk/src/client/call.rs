//! A call that is not sent yet. Every method of a handle returns one, so that a call can be stored, moved to another
//! task and given options, and methods can get options later.

use std::{fmt, pin::Pin, sync::Arc};

use super::{Client, Error, request::UnsentRequest};

/// The future of a call.
pub(super) type CallFuture<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// A call that is sent when it is awaited.
///
/// It owns all that it sends: it can be stored, and moved to another task. A clone sends the same request, with the same
/// idempotency key.
///
/// ```
#[doc = include_str!("example.txt")]
/// use std::time::Duration;
///
/// use parcelo::Timeouts;
///
/// let creation = client.orders().create(&order); // nothing is sent yet
/// let creation = creation.timeouts(Timeouts::default().total(Duration::from_secs(120)));
/// let task = tokio::spawn(creation.into_future());
/// println!("{}", task.await??.parcel.tracking_number);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is sent until it is awaited"]
pub struct Call<T> {
    client: Client,
    work: Work<T>,
}

enum Work<T> {
    /// A request, or the reason why it could not be made, and the function that sends it.
    Request(Result<UnsentRequest, Error>, fn(Client, UnsentRequest) -> CallFuture<T>),
    /// Several requests, or one and what follows from it.
    Composed(Arc<dyn Fn(Client) -> CallFuture<T> + Send + Sync>),
}

impl<T> Call<T> {
    /// Returns a call that makes one request, with `send`.
    pub(super) fn new(
        client: Client,
        request: Result<UnsentRequest, Error>,
        send: fn(Client, UnsentRequest) -> CallFuture<T>,
    ) -> Self {
        Self { client, work: Work::Request(request, send) }
    }

    /// Returns a call that runs a future, which may make several requests.
    pub(super) fn composed<F>(
        client: Client,
        run: impl Fn(Client) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let run = move |client| -> CallFuture<T> { Box::pin(run(client)) };
        Self { client, work: Work::Composed(Arc::new(run)) }
    }
}

impl<T: 'static> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> Self::IntoFuture {
        match self.work {
            Work::Request(Ok(request), send) => send(self.client, request),
            Work::Request(Err(error), _) => Box::pin(async { Err(error) }),
            Work::Composed(run) => run(self.client),
        }
    }
}

// `derive` would require that the result can be cloned.
impl<T> Clone for Call<T> {
    fn clone(&self) -> Self {
        let work = match &self.work {
            Work::Request(request, send) => Work::Request(request.clone(), *send),
            Work::Composed(run) => Work::Composed(Arc::clone(run)),
        };
        Self { client: self.client.clone(), work }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut call = f.debug_struct("Call");
        if let Work::Request(request, _) = &self.work {
            call.field("request", request);
        }
        call.finish_non_exhaustive()
    }
}

/// Adds the settings of a single call to types that have a `client`.
macro_rules! call_settings {
    ($call:ident$(<$($generic:tt),+>)?) => {
        impl$(<$($generic),+>)? $call$(<$($generic),+>)? {
            /// Sets the retry settings, in place of the client's.
            pub fn retry(self, retry: $crate::client::Retry) -> Self {
                Self { client: self.client.with_retry(retry), ..self }
            }

            /// Sets the timeouts, in place of the client's. The timeout for connecting stays as it was built.
            pub fn timeouts(self, timeouts: $crate::client::Timeouts) -> Self {
                Self { client: self.client.with_timeouts(timeouts), ..self }
            }
        }
    };
}
pub(super) use call_settings;

call_settings!(Call<T>);
