//! The file of profiles, `config.toml`: where it is, what stands in it, and how it is written, so
//! that nobody else can read the keys in it. Which profile counts is decided in `settings`.

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
    failure::Failure,
    output::format::Format,
    texts::{self, Message},
};

/// The file of profiles as it was found; editing it keeps its comments.
#[derive(Debug)]
pub(crate) struct Profiles {
    pub(crate) file: PathBuf,
    document: DocumentMut,
    /// The profile that counts unless another one is asked for.
    pub(crate) current: Option<String>,
    pub(crate) all: BTreeMap<String, Profile>,
    /// Others than its owner can read it.
    pub(crate) exposed: bool,
}

/// What a profile sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    pub(crate) base_url: Option<String>,
    pub(crate) api_key: Option<Secret>,
    pub(crate) language: Option<Language>,
    pub(crate) output: Option<Format>,
}

/// A text that never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Why the file cannot be used. It never quotes the file: a key may stand in the line.
#[derive(Debug, Clone)]
pub(crate) struct ConfigError {
    message: Message,
}

impl From<&ConfigError> for Failure {
    fn from(fault: &ConfigError) -> Self {
        Self::usage(fault.message.clone(), texts::FIX_CONFIG)
    }
}

/// Where the file is; nowhere when nobody knows the user's home.
pub(crate) fn config_path() -> Option<PathBuf> {
    Some(choose_base_strategy().ok()?.config_dir().join("parcelo").join("config.toml"))
}

const CURRENT: &str = "profile";
const PROFILES: &str = "profiles";
const NAMES: [&str; 4] = ["base_url", "api_key", "language", "output"];

impl Profiles {
    /// The file's profiles; none when there is no file.
    pub(crate) fn read(file: PathBuf) -> Result<Self, ConfigError> {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => String::new(),
            Err(fault) => return Err(wrong(&file, texts::CONFIG_UNREADABLE, &fault.to_string())),
        };
        let document: DocumentMut = text.parse().map_err(|fault: toml_edit::TomlError| {
            let before = fault.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            wrong(&file, texts::INVALID_TOML, &line.to_string())
        })?;
        let (current, all) = contents(&document)
            .map_err(|setting| wrong(&file, texts::INVALID_SETTING, &setting))?;
        let exposed = is_exposed(&file);
        Ok(Self { file, document, current, all, exposed })
    }

    /// Sets a profile; the first one is the current one.
    pub(crate) fn set(&mut self, name: &str, profile: &Profile) {
        let language = profile.language.map(Language::code);
        let values = [
            profile.base_url.as_deref(),
            profile.api_key.as_ref().map(|key| &*key.0),
            language,
            profile.output.map(Format::name),
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
        self.document.insert(CURRENT, value(name));
        self.current = Some(name.to_owned());
    }

    /// Writes the file whole or not at all, readable by its owner only.
    pub(crate) fn write(&self) -> io::Result<()> {
        // A link to the file stays a link.
        let file = self.file.canonicalize().unwrap_or_else(|_| self.file.clone());
        let folder = file.parent().unwrap_or(Path::new("."));
        make_private(folder)?;
        let draft = folder.join(format!(".config.toml.{}", std::process::id()));
        let written = write_private(&draft, self.document.to_string().as_bytes())
            .and_then(|()| fs::rename(&draft, &file));
        if written.is_err() {
            // What is left of a draft holds a key; that it cannot be removed either changes nothing.
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

fn wrong(file: &Path, text: texts::Text, what: &str) -> ConfigError {
    let values = [("file", &*file.to_string_lossy()), ("what", what)];
    ConfigError { message: text.with(&values) }
}

type Contents = (Option<String>, BTreeMap<String, Profile>);

/// What the file says, or the name of the setting that is none.
fn contents(document: &DocumentMut) -> Result<Contents, String> {
    let mut all = BTreeMap::new();
    let mut current = None;
    for (name, item) in document.iter() {
        match name {
            CURRENT => current = Some(text(item, name)?),
            PROFILES => {
                let profiles = item.as_table_like().ok_or(name)?;
                for (name, item) in profiles.iter() {
                    let place = format!("{PROFILES}.{name}");
                    let table = item.as_table_like().ok_or_else(|| place.clone())?;
                    all.insert(name.to_owned(), profile(table, &place)?);
                }
            }
            other => return Err(other.to_owned()),
        }
    }
    Ok((current, all))
}

fn profile(table: &dyn TableLike, place: &str) -> Result<Profile, String> {
    let mut profile = Profile::default();
    for (name, item) in table.iter() {
        let place = format!("{place}.{name}");
        let text = text(item, &place)?;
        match name {
            "base_url" => profile.base_url = Some(text),
            "api_key" => profile.api_key = Some(Secret(text)),
            "language" => {
                profile.language = Some(Lang::from_str(&text, true).map_err(|_| place)?.into());
            }
            "output" => profile.output = Some(Format::from_str(&text, true).map_err(|_| place)?),
            _ => return Err(place),
        }
    }
    Ok(profile)
}

fn text(item: &Item, place: &str) -> Result<String, String> {
    item.as_str().map(str::to_owned).ok_or_else(|| place.to_owned())
}

#[cfg(unix)]
fn is_exposed(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(file).is_ok_and(|found| found.mode() & 0o077 != 0)
}

/// Elsewhere the user's folder is private by itself.
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

    fn read(text: &str) -> Result<Contents, String> {
        contents(&text.parse().unwrap())
    }

    #[test]
    fn a_file_has_profiles_and_one_that_counts() {
        let text = "# mine\nprofile = 'live'\n[profiles.live]\nbase_url = 'https://h'\n\
            api_key = 'pk_live_x'\nlanguage = 'es'\noutput = 'json'\n[profiles.test]\n";
        let (current, all) = read(text).unwrap();
        assert_eq!(current.as_deref(), Some("live"));
        let live = &all["live"];
        assert_eq!(live.base_url.as_deref(), Some("https://h"));
        assert_eq!((live.language, live.output), (Some(Language::Es), Some(Format::Json)));
        assert!(all["test"].api_key.is_none());
        assert!(!format!("{all:?}").contains("pk_live_x"));
    }

    #[test]
    fn what_it_does_not_know_it_names_without_its_value() {
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
        for (text, place) in table {
            assert_eq!(read(text).unwrap_err(), place, "{text}");
        }
    }
}
