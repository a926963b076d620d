//! The arguments of `order import`.

use std::path::PathBuf;

use parcelo::LabelFormat;

use super::{Resolver, format_from_name, merged_file};
use crate::{
    args::Import,
    commands::ResolvedCommand,
    failure::Failure,
    import::{
        ColumnMap, ImportMode, ImportPlan, Origin, Preset, ResumeMode, RowSettings, read_sender,
    },
    input::Source,
    texts::{self as general, import as texts},
};

impl Resolver {
    pub(super) fn resolve_import(&self, import: Import) -> Result<ResolvedCommand, Failure> {
        let source = Source::from_argument(&import.rows);
        let [map, sender] =
            [&import.map, &import.sender].map(|file| file.as_deref().map(Source::from_argument));
        let others = [&map, &sender].into_iter().flatten().filter(|file| file.is_stdin()).count();
        self.check_stdin_is_read_once(usize::from(source.is_stdin()) + others)?;
        let Some(labels) = import.labels else {
            let language = self.settings.output.language;
            return Ok(ResolvedCommand::MapTemplate(
                source,
                import.encoding,
                import.preset,
                language,
            ));
        };
        let settings = RowSettings {
            columns: column_map(map.as_ref(), import.preset)?,
            sender: self.read_sender(sender)?,
        };
        let mode = match (&self.dry_run, import.all_or_nothing) {
            (Some(_), _) => ImportMode::CheckOnly,
            (None, true) => ImportMode::AllOrNothing,
            (None, false) => ImportMode::ValidRows,
        };
        let plan = ImportPlan {
            source,
            encoding: import.encoding,
            settings,
            labels,
            merge: import.merge.map(parse_merge_option).transpose()?,
            format: import.format,
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
            // Rows can be checked without a key; with one, the rules of its environment apply too.
            let environment = self.client().ok().map(|client| client.environment());
            return Ok(ResolvedCommand::CheckImport(environment, plan));
        }
        let (client, key) = self.client_and_key()?;
        let origin = Origin::new(&client, &key);
        Ok(ResolvedCommand::Import(client, plan, origin, self.settings.output))
    }

    /// Returns the sender for orders without one, from the option or else the profile.
    fn read_sender(&self, given: Option<Source>) -> Result<Option<serde_json::Value>, Failure> {
        let file = match given {
            Some(file) => Some(file),
            None => self.settings.profile()?.sender.map(Source::File),
        };
        file.as_ref().map(read_sender).transpose()
    }
}

fn column_map(file: Option<&Source>, preset: Option<Preset>) -> Result<ColumnMap, Failure> {
    let own = match file {
        None => ColumnMap::default(),
        Some(source) => ColumnMap::parse(&source.read_text()?).map_err(|faults| {
            let message = texts::INVALID_MAP.with(&[("file", &source.name())]);
            Failure::usage(message, texts::FIX_MAP).with(|details| details.fields = faults)
        })?,
    };
    // A test parses every preset.
    let preset = preset.map(|preset| ColumnMap::parse(preset.text()).unwrap_or_default());
    Ok(own.or(preset.unwrap_or_default()))
}

/// Returns the file for all labels, which cannot be standard output because that has the results.
fn parse_merge_option(path: PathBuf) -> Result<(PathBuf, LabelFormat), Failure> {
    let format = format_from_name(&path)?;
    let file = merged_file(path, format)?;
    let to_stdout = || Failure::usage(general::MERGE_TO_STDOUT, general::MERGE_TO_FILE);
    Ok((file.path.ok_or_else(to_stdout)?, format))
}
