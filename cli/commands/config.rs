//! `config`: creates, lists and selects profiles.

use parcelo::Client;

use crate::{
    failure::Failure,
    profiles::{self, Profile, Profiles},
    results::{self, CommandOutcome, ConfigFile, ProfileSummary},
    sanitize::mask_key,
    texts,
};

/// The actions of `config`.
#[derive(Debug)]
pub(crate) enum ConfigAction {
    /// Saves a profile, whose address and key have been accepted by a client.
    Init {
        profiles: Profiles,
        name: String,
        profile: Profile,
        client: Box<Client>,
    },
    List {
        profiles: Profiles,
    },
    Use {
        profiles: Profiles,
        name: String,
    },
    Path,
}

pub(super) fn run(action: ConfigAction) -> Result<CommandOutcome, Failure> {
    match action {
        ConfigAction::Init { mut profiles, name, profile, client } => {
            profiles.set(&name, &profile);
            write(&profiles)?;
            let environment = client.environment().code();
            let file = profiles.file.to_string_lossy();
            let values = [("name", &*name), ("file", &*file), ("environment", environment)];
            Ok(list(&profiles).note(texts::PROFILE_SAVED.with(&values)))
        }
        ConfigAction::List { profiles } => {
            let none = profiles.all.is_empty();
            let done = list(&profiles);
            Ok(if none { done.note(texts::NO_PROFILES) } else { done })
        }
        ConfigAction::Use { mut profiles, name } => {
            profiles.make_current(&name);
            write(&profiles)?;
            Ok(list(&profiles))
        }
        ConfigAction::Path => {
            let path = profiles::config_path()
                .ok_or_else(|| Failure::usage(texts::NO_HOME, texts::SET_HOME))?;
            let (exists, path) = (path.exists(), path.to_string_lossy().into_owned());
            Ok(CommandOutcome::report(ConfigFile { path, exists }))
        }
    }
}

fn write(profiles: &Profiles) -> Result<(), Failure> {
    let unwritable = |err: std::io::Error| {
        let values = [("file", &*profiles.file.to_string_lossy()), ("reason", &err.to_string())];
        Failure::usage(texts::UNWRITABLE.with(&values), texts::SET_HOME)
    };
    profiles.write().map_err(unwritable)
}

fn list(profiles: &Profiles) -> CommandOutcome {
    let summary = |(name, profile): (&String, &Profile)| ProfileSummary {
        name: name.clone(),
        current: profiles.current.as_ref() == Some(name),
        base_url: profile.base_url.clone(),
        key: profile.api_key.as_ref().map(|key| mask_key(&key.0)),
        language: profile.language.map(parcelo::Language::code),
        output: profile.output,
    };
    CommandOutcome::report(results::Profiles(profiles.all.iter().map(summary).collect()))
}
