//! Flashes: what the next page of the dashboard says once. They wait in the database, sealed with a key that only the
//! session's cookie has, since the next page may be asked of another server, or of this one after a restart.

use super::{Refusal, Service};
use crate::domain::{
    sealed,
    session::{FLASH_LIFETIME, SealedFlash},
};
use parcelo::ErrorCode;

impl Service {
    /// Keeps a flash for a page of the session with this token.
    pub async fn leave_flash(
        &self,
        token: &str,
        page: &'static str,
        says: &[u8],
    ) -> Result<(), Refusal> {
        let key = self.secrets().flash_key(token);
        let sealed = sealed::seal(&key, self.ids.array(), page, says);
        let flash =
            SealedFlash { left_at: self.now(), sealed: sealed.ok_or(ErrorCode::InternalError)? };
        Ok(self.store.leave_flash(self.secrets().hash_of_session(token), page, flash).await?)
    }

    /// Forgets those that were not looked at.
    pub async fn purge_flashes(&self) -> Result<(), Refusal> {
        Ok(self.store.purge_flashes(self.now()).await?)
    }

    /// Takes what a page has to say, oldest first; each is taken once.
    pub async fn take_flashes(
        &self,
        token: &str,
        page: &'static str,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let session = self.secrets().hash_of_session(token);
        let flashes = self.store.take_flashes(session, page).await?;
        let (key, now) = (self.secrets().flash_key(token), self.now());
        let is_fresh = |flash: &SealedFlash| now.0 - flash.left_at.0 < FLASH_LIFETIME;
        let fresh = flashes.iter().filter(|flash| is_fresh(flash));
        Ok(fresh.filter_map(|flash| sealed::open(&key, page, &flash.sealed)).collect())
    }
}
