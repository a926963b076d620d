//! Results of the commands that do not handle parcels: health, reset, profiles, checks, and requests of a dry run.

use parcelo::{
    Language,
    model::{Deleted, Health, MaybeKnown, SandboxReset},
};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::table::{Cell, Items, Report, Section, Table, column, csv_only, items, text_only};
use crate::{
    dry_run::UnsentRequest,
    failure::{Exit, Failure},
    output::format::Format,
    texts::{self, Message, Text},
};

/// The result of any command with `--dry-run`: the requests that would have been sent.
#[derive(Debug, Serialize)]
pub(crate) struct UnsentRequests(pub(crate) Vec<UnsentRequest>);

/// The result of `config list`, `config init` and `config use`.
#[derive(Debug, Serialize)]
pub(crate) struct Profiles(pub(crate) Vec<ProfileSummary>);

/// A profile without its key.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileSummary {
    pub(crate) name: String,
    pub(crate) current: bool,
    pub(crate) base_url: Option<String>,
    /// The key, masked.
    pub(crate) key: Option<String>,
    pub(crate) language: Option<&'static str>,
    pub(crate) output: Option<Format>,
}

/// The result of `config path`.
#[derive(Debug, Serialize)]
pub(crate) struct ConfigFile {
    pub(crate) path: String,
    pub(crate) exists: bool,
}

/// The result of `doctor`.
#[derive(Debug, Serialize)]
pub(crate) struct Checks(pub(crate) Vec<Check>);

/// One check.
#[derive(Debug)]
pub(crate) struct Check {
    /// The check's name for programs.
    pub(crate) name: &'static str,
    pub(crate) title: Text,
    pub(crate) state: CheckState,
    pub(crate) detail: Message,
    pub(crate) hint: Option<Message>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckState {
    Passed,
    Warning,
    Failed(Exit),
    /// A check that it depends on has failed.
    Skipped,
}

/// The result of `man --dir`: the files that were written.
#[derive(Debug, Serialize)]
pub(crate) struct WrittenFiles(pub(crate) Vec<WrittenFile>);

#[derive(Debug, Serialize)]
pub(crate) struct WrittenFile {
    pub(crate) file: String,
}

impl CheckState {
    /// Returns the state for programs.
    fn code(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Warning => "warning",
            Self::Failed(_) => "failed",
            Self::Skipped => "skipped",
        }
    }

    fn text(self) -> Text {
        match self {
            Self::Passed => texts::PASSED,
            Self::Warning => texts::WARNING,
            Self::Failed(_) => texts::FAILED,
            Self::Skipped => texts::SKIPPED,
        }
    }
}

impl Check {
    pub(crate) fn passed(name: &'static str, title: Text, detail: impl Into<Message>) -> Self {
        Self { name, title, state: CheckState::Passed, detail: detail.into(), hint: None }
    }

    pub(crate) fn warning(self, hint: Text) -> Self {
        Self { state: CheckState::Warning, hint: Some(hint.into()), ..self }
    }

    pub(crate) fn skipped(name: &'static str, title: Text, reason: Text) -> Self {
        Self { state: CheckState::Skipped, ..Self::passed(name, title, reason) }
    }

    pub(crate) fn failed(name: &'static str, title: Text, err: &Failure) -> Self {
        let (detail, hint) = (err.message.clone(), err.hint.clone());
        Self { name, title, state: CheckState::Failed(err.exit), detail, hint }
    }
}

/// The result of `health`.
impl Report for Health {
    fn table(&self, language: Language) -> Table {
        let countries = match &*self.allowed_countries {
            [all] if all == "*" => texts::ALL_COUNTRIES.pick(language).to_owned(),
            some => some.join(", "),
        };
        let countries = Cell::new(self.allowed_countries.join(" ")).shown_as(countries);
        let environment = self.environment.as_ref().map(MaybeKnown::as_str);
        Table::details([
            (column("status", texts::STATUS), Cell::new(&self.status)),
            (column("keyName", texts::KEY_NAME), Cell::new(&self.key_name)),
            (column("environment", texts::ENVIRONMENT), Cell::optional(environment)),
            (column("allowedCountries", texts::COUNTRIES), countries),
        ])
    }
}

/// The result of `sandbox reset`.
impl Report for SandboxReset {
    fn table(&self, _: Language) -> Table {
        let Deleted {
            parcels,
            labels,
            manifests,
            tracking_events,
            idempotency_keys,
            webhook_deliveries,
            ..
        } = self.deleted;
        Table::details([
            (column("parcels", texts::DELETED_PARCELS), Cell::new(parcels)),
            (column("labels", texts::DELETED_LABELS), Cell::new(labels)),
            (column("manifests", texts::DELETED_MANIFESTS), Cell::new(manifests)),
            (column("trackingEvents", texts::DELETED_EVENTS), Cell::new(tracking_events)),
            (column("idempotencyKeys", texts::DELETED_KEYS), Cell::new(idempotency_keys)),
            (column("webhookDeliveries", texts::DELETED_DELIVERIES), Cell::new(webhook_deliveries)),
            (column("resetAt", texts::RESET_AT), Cell::time(self.reset_at)),
        ])
    }
}

impl Serialize for UnsentRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let headers: serde_json::Map<_, _> =
            self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        // A body that is not JSON is written as a string.
        let body = self.body.as_ref();
        let body = body.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
        json!({"method": self.method, "url": self.url, "headers": headers, "body": body,
            "curl": self.curl()})
        .serialize(serializer)
    }
}

impl Report for UnsentRequests {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.0))
    }

    fn table(&self, _: Language) -> Table {
        let rows = self.0.iter().map(|request| {
            let body = Cell::optional(request.body.as_ref());
            [Cell::new(&request.method), Cell::new(&request.url), body, Cell::new(request.curl())]
        });
        Table::list(["method", "url", "body", "curl"].map(csv_only), rows)
    }

    fn sections(&self, _: Language) -> Vec<Section<'_>> {
        let lines = |request: &UnsentRequest| -> Vec<_> {
            request.curl().split('\n').map(|line| Section::Line(line.to_owned())).collect()
        };
        self.0.iter().flat_map(lines).collect()
    }
}

impl Report for Profiles {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.0))
    }

    fn table(&self, _: Language) -> Table {
        let columns = [
            column("name", texts::PROFILE),
            column("current", texts::CURRENT),
            column("baseUrl", texts::ADDRESS),
            column("key", texts::API_KEY),
            column("language", texts::LANGUAGE),
            column("output", texts::OUTPUT),
        ];
        let rows = self.0.iter().map(|profile| {
            [
                Cell::new(&profile.name),
                Cell::new(profile.current).shown_as(if profile.current { "*" } else { "" }),
                Cell::optional(profile.base_url.as_ref()),
                Cell::optional(profile.key.as_ref()),
                Cell::optional(profile.language),
                Cell::optional(profile.output.map(Format::name)),
            ]
        });
        Table::list(columns, rows)
    }
}

impl Report for ConfigFile {
    fn table(&self, _: Language) -> Table {
        let row = [Cell::new(&self.path), Cell::new(self.exists)];
        Table::list(["path", "exists"].map(csv_only), [row])
    }

    /// Returns only the path, for use in shell scripts.
    fn sections(&self, _: Language) -> Vec<Section<'_>> {
        vec![Section::Line(self.path.clone())]
    }
}

impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hint = self.hint.as_ref();
        json!({"check": self.name, "state": self.state.code(), "detail": self.detail.en,
            "detail_es": self.detail.es, "hint": hint.map(|hint| &hint.en),
            "hint_es": hint.map(|hint| &hint.es)})
        .serialize(serializer)
    }
}

impl Report for Checks {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.0))
    }

    fn table(&self, language: Language) -> Table {
        let rows = self.0.iter().map(|check| {
            let hint = check.hint.as_ref().map(|hint| hint.pick(language));
            let detail = Cell::new(check.detail.pick(language));
            [check.name.into(), check.state.code().into(), detail, Cell::optional(hint)]
        });
        Table::list(["check", "state", "detail", "hint"].map(csv_only), rows)
    }

    /// Returns a line for each check, then the hints for those that failed.
    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        let facts = self.0.iter().map(|check| {
            let state = check.state.text().pick(language);
            let text = format!("{state}: {}", check.detail.pick(language));
            (text_only(check.title), Cell::new(text))
        });
        let facts = Section::Table(Table::details(facts));
        let hints = self.0.iter().filter_map(|check| {
            let hint = check.hint.as_ref()?.pick(language);
            Some(Section::Line(format!("{}: {hint}", check.title.pick(language))))
        });
        [facts].into_iter().chain(hints).collect()
    }
}

impl Report for WrittenFiles {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.0))
    }

    fn table(&self, _: Language) -> Table {
        let rows = self.0.iter().map(|written| [Cell::new(&written.file)]);
        Table::list(["file"].map(csv_only), rows)
    }

    fn sections(&self, _: Language) -> Vec<Section<'_>> {
        self.0.iter().map(|written| Section::Line(written.file.clone())).collect()
    }
}
