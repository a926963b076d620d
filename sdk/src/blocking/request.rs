//! A request that can be refined before it is sent.

use super::driver::Driver;
use crate::client::Error;

/// A request that is not sent yet: add filters if you need them, then [`send`](Request::send) it. It wraps the
/// request of the same name in [`calls`](crate::calls).
#[derive(Debug, Clone)]
#[must_use = "nothing is requested until it is sent"]
pub struct Request<'a, R> {
    pub(super) request: R,
    pub(super) driver: &'a Driver,
}

impl<R> Request<'_, R> {
    /// Sends the request and waits for the answer.
    pub fn send<T>(self) -> Result<T, Error>
    where
        R: IntoFuture<Output = Result<T, Error>>,
    {
        self.driver.call(self.request)
    }

    pub(super) fn map(self, refine: impl FnOnce(R) -> R) -> Self {
        Self { request: refine(self.request), ..self }
    }
}
