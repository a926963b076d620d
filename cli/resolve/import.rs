//! The arguments of `order import`.

use super::Resolver;
use crate::{
    args::Import,
    commands::Job,
    failure::Failure,
    import::{ImportMode, ImportPlan, Origin, ResumeMode},
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
            resume: match (import.resume, import.key_rotated) {
                (false, _) => ResumeMode::Fresh,
                (true, false) => ResumeMode::Resume,
                (true, true) => ResumeMode::ResumeWithNewSecret,
            },
            quiet: import.quiet,
        };
        let plan = Box::new(plan);
        if mode == ImportMode::CheckOnly {
            // Checking works without a key; with one, the rules of its environment apply too.
            let environment = self.client().ok().map(|client| client.environment());
            return Ok(Job::CheckImport(environment, plan));
        }
        let (client, key) = self.client_and_key()?;
        let origin = Origin::new(&client, &key);
        Ok(Job::Import(client, plan, origin, self.settings.output))
    }
}
