//! What the commands around shipping have found: profiles, checks, requests that were not sent.

use std::path::PathBuf;

use parcelo::model::LabelMetadata;

use crate::{
    dry_run::UnsentRequest,
    failure::{Exit, Failure},
    texts::{Message, Text},
    voice::Format,
};

/// What one of these commands has found.
#[derive(Debug)]
pub(crate) enum Finding {
    Requests(Vec<UnsentRequest>),
    Profiles(Vec<Listed>),
    Place(ConfigFile),
    Checks(Vec<Check>),
    Drawn(Box<Drawn>),
    /// Files that were written.
    Files(Vec<PathBuf>),
}

/// A profile as everybody may see it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) current: bool,
    pub(crate) base_url: Option<String>,
    /// The key's mask.
    pub(crate) key: Option<String>,
    pub(crate) language: Option<&'static str>,
    pub(crate) output: Option<Format>,
}

/// Where the file of profiles is.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) exists: bool,
}

/// A label as it looks, and what is known about it.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) lines: Vec<String>,
    pub(crate) label: LabelMetadata,
}

/// One thing that was looked at.
#[derive(Debug)]
pub(crate) struct Check {
    /// Its name for programs.
    pub(crate) name: &'static str,
    pub(crate) title: Text,
    pub(crate) state: State,
    pub(crate) detail: Message,
    pub(crate) hint: Option<Message>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Fine,
    Warning,
    Failed(Exit),
    /// What it depends on failed.
    Skipped,
}

impl State {
    /// The state for programs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Failed(_) => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl Check {
    pub(crate) fn fine(name: &'static str, title: Text, detail: impl Into<Message>) -> Self {
        Self { name, title, state: State::Fine, detail: detail.into(), hint: None }
    }

    pub(crate) fn warning(self, hint: Text) -> Self {
        Self { state: State::Warning, hint: Some(hint.into()), ..self }
    }

    pub(crate) fn skipped(name: &'static str, title: Text, why: Text) -> Self {
        Self { state: State::Skipped, ..Self::fine(name, title, why) }
    }

    pub(crate) fn failed(name: &'static str, title: Text, why: &Failure) -> Self {
        let state = State::Failed(why.exit);
        let (detail, hint) = (why.message.clone(), why.hint.clone());
        Self { name, title, state, detail, hint }
    }
}
