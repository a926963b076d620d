//! Deleting the sandbox's data: POST /api/v1/sandbox/reset, and data that is too old (docs/api.md, Sandbox).

use parcelo_domain::{Millis, Refusal};
use parcelo_types::{
    Environment, ErrorCode,
    model::{Deleted, SandboxReset},
};

use super::{Caller, Service};

/// Maximum age of the sandbox's data (spec: Limits).
const RETENTION_MILLIS: i64 = 30 * Millis::DAY;

impl Service {
    /// Deletes all current data of the caller's sandbox (spec: POST sandbox/reset). A reset continues if its caller
    /// disconnects, and a second request meanwhile joins it.
    pub async fn reset_sandbox(&self, caller: &Caller) -> Result<SandboxReset, Refusal> {
        let tenant = caller.tenant();
        if tenant.environment != Environment::Sandbox {
            return Err(ErrorCode::SandboxOnly.into());
        }
        let reset_at = self.now().to_utc();
        Ok(SandboxReset::new(self.store.reset(tenant).await?, reset_at))
    }

    /// Deletes the data of all sandboxes that is older than 30 days.
    pub async fn purge_sandboxes(&self) -> Result<Deleted, Refusal> {
        Ok(self.store.purge(self.now().plus(-RETENTION_MILLIS)).await?)
    }
}
