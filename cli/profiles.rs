//! The profiles file, `config.toml`: its path and contents, and how it is written so that only its owner can read it.
//! `settings` decides which profile applies.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use etcetera::{BaseStrategy, choose_base_strategy};
use parcelo::Language;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use crate::{
    args::Lang,
    encoding,
    failure::Failure,
    output::format::Format,
    texts::{self, Message},
    toml_file,
};

/// The profiles file. Edits change its document, so that the user's comments are kept.
#[derive(Debug)]
pub(crate) struct Profiles {
    pub(crate) file: PathBuf,
    document: DocumentMut,
    /// The profile that applies unless another one is requested.
    pub(crate) current: Option<String>,
    pub(crate) all: BTreeMap<String, Profile>,
    /// Set if other users can read the file.
    pub(crate) is_exposed: bool,
}

/// The settings of a profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    pub(crate) base_url: Option<String>,
    pub(crate) api_key: Option<Secret>,
    pub(crate) language: Option<Language>,
    pub(crate) output: Option<Format>,
    /// The file with the sender for imported orders without one.
    pub(crate) sender: Option<PathBuf>,
}

/// A text that `Debug` hides.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The reason that the file cannot be used. The message quotes no line of it, because the line may contain a key.
#[derive(Debug, Clone)]
pub(crate) struct ConfigError {
    message: Message,
}

impl From<&ConfigError> for Failure {
    fn from(fault: &ConfigError) -> Self {
        Self::usage(fault.message.clone(), texts::FIX_CONFIG)
    }
}

/// Returns the file's path; `None` if the user has no home directory.
pub(crate) fn config_path() -> Option<PathBuf> {
    Some(choose_base_strategy().ok()?.config_dir().join("parcelo").join("config.toml"))
}

const CURRENT: &str = "profile";
const PROFILES: &str = "profiles";
const NAMES: [&str; 5] = ["base_url", "api_key", "language", "output", "sender"];

impl Profiles {
    /// Reads the file; without a file there are no profiles.
    pub(crate) fn load(file: PathBuf) -> Result<Self, ConfigError> {
        let text = match fs::read(&file).and_then(|bytes| encoding::decode(&bytes)) {
            Ok(text) => text,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => String::new(),
            Err(fault) => {
                let failure = Failure::for_unreadable_file(&file.to_string_lossy(), &fault);
                return Err(ConfigError { message: failure.message.clone() });
            }
        };
        let document = toml_file::parse(&text)
            .map_err(|line| config_error(&file, texts::INVALID_TOML, &line.to_string()))?;
        let (current, mut all) = parse_settings(&document)
            .map_err(|setting| config_error(&file, texts::INVALID_SETTING, &setting))?;
        // Relative paths are resolved against the file's folder, wherever the command is run.
        let folder = file.parent().unwrap_or(Path::new("."));
        for sender in all.values_mut().filter_map(|profile| profile.sender.as_mut()) {
            *sender = folder.join(&*sender);
        }
        let is_exposed = is_exposed(&file);
        Ok(Self { file, document, current, all, is_exposed })
    }

    /// Sets a profile; the first one becomes the current one.
    pub(crate) fn set(&mut self, name: &str, profile: &Profile) {
        let language = profile.language.map(Language::code);
        let sender = profile.sender.as_ref().map(|file| file.to_string_lossy());
        let values = [
            profile.base_url.as_deref(),
            profile.api_key.as_ref().map(|key| &*key.0),
            language,
            profile.output.map(Format::name),
            sender.as_deref(),
        ];
        let mut table = Table::new();
        for (name, text) in NAMES.into_iter().zip(values) {
            if let Some(text) = text {
                table.insert(name, value(text));
            }
        }
        let mut implicit = Table::new();
        implicit.set_implicit(true);
        let profiles = self.document.entry(PROFILES).or_insert(Item::Table(implicit));
        if let Some(profiles) = profiles.as_table_like_mut() {
            profiles.insert(name, Item::Table(table));
        }
        self.all.insert(name.to_owned(), profile.clone());
        if self.current.is_none() {
            self.make_current(name);
        }
    }

    pub(crate) fn make_current(&mut self, name: &str) {
        // `insert` would remove the comment above the setting.
        *self.document.entry(CURRENT).or_insert(Item::None) = value(name);
        self.current = Some(name.to_owned());
    }

    /// Writes the file atomically, readable only by its owner.
    pub(crate) fn write(&self) -> io::Result<()> {
        // A symbolic link is resolved first, because renaming would replace it with a file.
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let folder = file.parent().unwrap_or(Path::new("."));
        make_private(folder)?;
        let temporary = folder.join(format!(".config.toml.{}", std::process::id()));
        let written = write_private(&temporary, self.document.to_string().as_bytes())
            .and_then(|()| fs::rename(&temporary, &file));
        if written.is_err() {
            // The temporary file contains a key. If removing it fails as well, nothing more can be done.
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

fn config_error(file: &Path, text: texts::Text, what: &str) -> ConfigError {
    let values = [("file", &*file.to_string_lossy()), ("what", what)];
    ConfigError { message: text.with(&values) }
}

type FileSettings = (Option<String>, BTreeMap<String, Profile>);

/// Returns the file's settings. The error is the name of a setting that is unknown or has an invalid value.
fn parse_settings(document: &DocumentMut) -> Result<FileSettings, String> {
    let mut all = BTreeMap::new();
    let mut current = None;
    for (name, item) in document.iter() {
        match name {
            CURRENT => current = Some(text(item, name)?),
            PROFILES => {
                let profiles = item.as_table_like().ok_or(name)?;
                for (name, item) in profiles.iter() {
                    let setting_path = format!("{PROFILES}.{name}");
                    let table = item.as_table_like().ok_or_else(|| setting_path.clone())?;
                    all.insert(name.to_owned(), profile(table, &setting_path)?);
                }
            }
            other => return Err(other.to_owned()),
        }
    }
    Ok((current, all))
}

fn profile(table: &dyn TableLike, setting_path: &str) -> Result<Profile, String> {
    let mut profile = Profile::default();
    for (name, item) in table.iter() {
        let setting_path = format!("{setting_path}.{name}");
        let text = text(item, &setting_path)?;
        match name {
            "base_url" => profile.base_url = Some(text),
            "api_key" => profile.api_key = Some(Secret(text)),
            "language" => {
                profile.language =
                    Some(Lang::from_str(&text, true).map_err(|_| setting_path)?.into());
            }
            "output" => {
                profile.output = Some(Format::from_str(&text, true).map_err(|_| setting_path)?);
            }
            "sender" => profile.sender = Some(text.into()),
            _ => return Err(setting_path),
        }
    }
    Ok(profile)
}

fn text(item: &Item, setting_path: &str) -> Result<String, String> {
    item.as_str().map(str::to_owned).ok_or_else(|| setting_path.to_owned())
}

#[cfg(unix)]
fn is_exposed(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(file).is_ok_and(|found| found.mode() & 0o077 != 0)
}

/// Returns `false`: on Windows, the user's configuration directory is private by default.
#[cfg(not(unix))]
fn is_exposed(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

fn write_private(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FileSettings, String> {
        parse_settings(&text.parse().unwrap())
    }

    #[test]
    fn a_file_has_profiles_and_a_selected_one() {
        let text = "# mine\nprofile = 'live'\n[profiles.live]\nbase_url = 'https://h'\n\
            api_key = 'pk_live_x'\nlanguage = 'es'\noutput = 'json'\n[profiles.test]\n";
        let (current, all) = parse(text).unwrap();
        assert_eq!(current.as_deref(), Some("live"));
        let live = &all["live"];
        assert_eq!(live.base_url.as_deref(), Some("https://h"));
        assert_eq!((live.language, live.output), (Some(Language::Es), Some(Format::Json)));
        assert!(all["test"].api_key.is_none());
        assert!(!format!("{all:?}").contains("pk_live_x"));
    }

    #[test]
    fn unknown_settings_are_named_without_their_value() {
        let table = [
            ("profiles = 1", "profiles"),
            ("profil = 'x'", "profil"),
            ("profile = 1", "profile"),
            ("[profiles]\nlive = 1", "profiles.live"),
            ("[profiles.live]\nkey = 'pk_live_x'", "profiles.live.key"),
            ("[profiles.live]\napi_key = 1", "profiles.live.api_key"),
            ("[profiles.live]\nlanguage = 'fr'", "profiles.live.language"),
            ("[profiles.live]\noutput = 'yaml'", "profiles.live.output"),
        ];
        for (text, setting_path) in table {
            assert_eq!(parse(text).unwrap_err(), setting_path, "{text}");
        }
    }
}
