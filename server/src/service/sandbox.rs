//! The sandbox's end of things: POST /api/v1/sandbox/reset, and what its age deletes
//! (docs/api.md, Sandbox).

use parcelo::{
    Environment, ErrorCode,
    model::{Deleted, SandboxReset},
};

use super::{Caller, Service};
use crate::{clock::Millis, domain::Refusal};

/// How long the sandbox keeps data (spec: Limits).
const RETENTION_MILLIS: i64 = 30 * Millis::DAY;

impl Service {
    /// Deletes all data of the caller's sandbox as it is now (spec: POST sandbox/reset). It goes on
    /// when no caller waits for it any more; one that is asked for meanwhile joins it.
    pub async fn reset_sandbox(&self, caller: &Caller) -> Result<SandboxReset, Refusal> {
        let tenant = caller.tenant();
        if tenant.environment != Environment::Sandbox {
            return Err(ErrorCode::SandboxOnly.into());
        }
        let reset_at = self.now().to_utc();
        Ok(SandboxReset::new(self.store.reset(tenant).await?, reset_at))
    }

    /// Deletes what every sandbox has kept for 30 days.
    pub async fn purge_sandboxes(&self) -> Result<Deleted, Refusal> {
        Ok(self.store.purge(self.now().plus(-RETENTION_MILLIS)).await?)
    }
}
