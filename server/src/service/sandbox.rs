//! The sandbox's end of things: POST /api/v1/sandbox/reset, and what its age deletes
//! (docs/api.md, Sandbox).

use parcelo::{Deleted, Environment, ErrorCode, SandboxReset};

use super::{Caller, Service};
use crate::{clock::Millis, core::Refusal};

/// How long the sandbox keeps data (spec: Limits).
const KEPT: i64 = 30 * Millis::DAY;

impl Service {
    /// Deletes all data of the caller's sandbox (spec: POST sandbox/reset).
    pub async fn reset_sandbox(&self, caller: &Caller) -> Result<SandboxReset, Refusal> {
        let tenant = caller.key.tenant;
        if tenant.environment != Environment::Sandbox {
            return Err(ErrorCode::SandboxOnly.into());
        }
        let deleted = self.store.reset(tenant).await?;
        Ok(SandboxReset { deleted, reset_at: self.now().to_utc() })
    }

    /// Deletes what every sandbox has kept for 30 days.
    pub async fn purge_sandboxes(&self) -> Result<Deleted, Refusal> {
        Ok(self.store.purge(self.now().plus(-KEPT)).await?)
    }
}
