//! What the arguments of `order import` mean.

use super::{Job, Resolver};
use crate::{
    args::Import,
    failure::Failure,
    import::{ImportMode, ImportPlan, ResumeMode},
    input::Source,
};

impl Resolver {
    pub(super) fn import(&self, import: Import) -> Result<Job, Failure> {
        let source = Source::from_argument(&import.rows);
        self.stdin_once(usize::from(source.is_stdin()))?;
        let mode = match (&self.dry_run, import.all_or_nothing) {
            (Some(_), _) => ImportMode::CheckOnly,
            (None, true) => ImportMode::AllOrNothing,
            (None, false) => ImportMode::ValidRows,
        };
        let plan = ImportPlan {
            source,
            labels: import.labels,
            format: import.format.into(),
            concurrency: import.concurrency.into(),
            mode,
            resume: if import.resume { ResumeMode::Resume } else { ResumeMode::Fresh },
            quiet: import.quiet,
        };
        let plan = Box::new(plan);
        if mode == ImportMode::CheckOnly {
            // Checking works without a key; with one it is known where the orders are for.
            let environment = self.client().ok().map(|client| client.environment());
            return Ok(Job::CheckImport { environment, plan });
        }
        Ok(Job::Import { client: self.client()?, plan, options: self.settings.output })
    }
}
