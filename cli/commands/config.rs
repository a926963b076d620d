//! `config`: profiles that are made, listed and chosen. The key is asked for, never an argument.

use parcelo::Client;

use crate::{
    dry_run::masked,
    failure::Failure,
    findings::{ConfigFile, Finding, Listed},
    profiles::{self, Profile, Profiles},
    results::{CommandOutcome, Results},
    texts,
};

/// What `config` is asked for.
#[derive(Debug)]
pub(crate) enum ConfigAction {
    /// Writes a profile; its client is what checked it.
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
            Ok(list(&profiles).note(texts::PROFILE_MADE.with(&values)))
        }
        ConfigAction::List { profiles } => {
            let none = profiles.all.is_empty();
            let done = list(&profiles);
            Ok(if none { done.note(texts::NO_PROFILES.into()) } else { done })
        }
        ConfigAction::Use { mut profiles, name } => {
            profiles.make_current(&name);
            write(&profiles)?;
            Ok(list(&profiles))
        }
        ConfigAction::Path => {
            let path = profiles::config_path()
                .ok_or_else(|| Failure::usage(texts::NO_HOME, texts::SET_HOME))?;
            let exists = path.exists();
            let place = Finding::Place(ConfigFile { path, exists });
            Ok(CommandOutcome::with(Results::Finding(place)))
        }
    }
}

fn write(profiles: &Profiles) -> Result<(), Failure> {
    let unwritable = |why: std::io::Error| {
        let values = [("file", &*profiles.file.to_string_lossy()), ("why", &why.to_string())];
        Failure::usage(texts::NO_LABEL_PLACE.with(&values), texts::SET_HOME)
    };
    profiles.write().map_err(unwritable)
}

fn list(profiles: &Profiles) -> CommandOutcome {
    let listed = |(name, profile): (&String, &Profile)| Listed {
        name: name.clone(),
        current: profiles.current.as_ref() == Some(name),
        base_url: profile.base_url.clone(),
        key: profile.api_key.as_ref().map(|key| masked(&key.0)),
        language: profile.language.map(parcelo::Language::code),
        output: profile.output,
    };
    let listed = profiles.all.iter().map(listed).collect();
    CommandOutcome::with(Results::Finding(Finding::Profiles(listed)))
}
