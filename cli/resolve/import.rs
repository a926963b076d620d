//! What the arguments of `order import` mean.

use super::{Caller, Job};
use crate::{
    args::Import,
    failure::Failure,
    import::{Mode, Past, Plan},
    input::Source,
};

impl Caller {
    pub(super) fn import(&self, import: Import) -> Result<Job, Failure> {
        let source = Source::of(&import.rows);
        self.stdin_once(usize::from(source.is_stdin()))?;
        let mode = match (&self.dry_run, import.all_or_nothing) {
            (Some(_), _) => Mode::CheckOnly,
            (None, true) => Mode::AllOrNothing,
            (None, false) => Mode::GoodRows,
        };
        let plan = Plan {
            source,
            labels: import.labels,
            format: import.format.into(),
            concurrency: import.concurrency.into(),
            mode,
            past: if import.resume { Past::Resumed } else { Past::None },
            quiet: import.quiet,
        };
        let plan = Box::new(plan);
        if mode == Mode::CheckOnly {
            // Checking works without a key; with one it is known where the orders are for.
            let environment = self.client().ok().map(|client| client.environment());
            return Ok(Job::CheckImport { environment, plan });
        }
        Ok(Job::Import { client: self.client()?, plan, voice: self.voice })
    }
}
