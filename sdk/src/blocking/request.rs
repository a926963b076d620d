//! A question that can be made more precise before it is sent.

use super::driver::Driver;
use crate::client::Error;

/// A question that is about to be asked: [`Request::send`] it, after making it more precise if need
/// be. It wraps the question of the same name in [`calls`](crate::calls).
#[derive(Debug, Clone)]
#[must_use = "nothing is asked until it is sent"]
pub struct Request<'a, Q> {
    pub(super) question: Q,
    pub(super) driver: &'a Driver,
}

impl<Q> Request<'_, Q> {
    /// Asks, and waits for the answer.
    pub fn send<T>(self) -> Result<T, Error>
    where
        Q: IntoFuture<Output = Result<T, Error>>,
    {
        self.driver.call(self.question)
    }

    pub(super) fn map(self, precise: impl FnOnce(Q) -> Q) -> Self {
        Self { question: precise(self.question), ..self }
    }
}
