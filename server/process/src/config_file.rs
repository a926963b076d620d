//! The file of `--config`: TOML whose keys are the flags of `serve`. Its values become the defaults of flags, so that
//! an argument or an environment variable replaces them.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgAction, Args, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use toml_edit::{DocumentMut, Item, TomlError, Value};

use super::{database::without_password, serve_args::Serve};

/// The right of every user of the machine in a file's mode. Its group may read a file, so that an administrator owns it
/// and the server reads it.
const READABLE_BY_ALL: u32 = 0o004;
/// The reason for refusing a file that all can read.
const EXPOSED_PASSWORD: &str =
    "it holds a password, and every user of this machine can read the file: `chmod o=` the file";

/// The settings of a file.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    path: PathBuf,
    /// The variable of each flag and its value. Other commands have the same settings under the same variables.
    settings: Vec<(OsString, &'static str)>,
}

impl ConfigFile {
    /// Reads a file, and checks each setting as if it were an argument.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let refused = |text: String| Error::raw(ErrorKind::ValueValidation, text);
        let fault = |reason: String| refused(format!("{}: {reason}\n", path.display()));
        let unreadable = |error: io::Error| {
            let file = path.display();
            refused(format!(
                "cannot read {file}, the file of --config or PARCELO_CONFIG: {error}\n"
            ))
        };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
        let document = parse(&text).map_err(fault)?;
        let flags = Flags::new();
        let mut settings = Vec::new();
        for (key, item) in document.iter() {
            let (variable, value) =
                flags.read(key, item).map_err(|reason| fault(format!("{key}: {reason}")))?;
            if mode & READABLE_BY_ALL != 0 && without_password(&value) != value {
                return Err(fault(format!("{key}: {EXPOSED_PASSWORD}")));
            }
            // clap keeps defaults for as long as the process lives.
            settings.push((variable, &*value.leak()));
        }
        Ok(Self { path: path.to_owned(), settings })
    }

    /// Makes the settings defaults of a command and of its subcommands.
    pub(super) fn apply(&self, command: Command) -> Command {
        let set_default = |flag: Arg| match self.value(&flag) {
            Some(value) => flag.default_value(value),
            None => flag,
        };
        command.mut_args(set_default).mut_subcommands(|command| self.apply(command))
    }

    /// Returns the file if it sets a flag.
    pub(super) fn path_if_set(&self, flag: &Arg) -> Option<&Path> {
        self.value(flag).map(|_| self.path.as_path())
    }

    fn value(&self, flag: &Arg) -> Option<&'static str> {
        let variable = flag.get_env()?;
        let found = self.settings.iter().find(|(known, _)| known.as_os_str() == variable);
        found.map(|(_, value)| *value)
    }
}

/// Parses the text. The line of an error is not quoted, because it may contain a password; the parser's reasons quote
/// nothing.
fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: TomlError| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("line {line} is not TOML: {}", error.message())
    })
}

/// The flags of `serve`.
struct Flags {
    serve: Command,
    /// The same flags without their environment variables, which are not to be checked.
    unset: Command,
}

impl Flags {
    fn new() -> Self {
        let serve = Serve::augment_args(Command::new("serve"));
        let unset = serve.clone().disable_help_flag(true);
        Self { unset: unset.mut_args(|flag| flag.env(None::<&'static str>)), serve }
    }

    /// Returns the variable of a setting's flag, and the value as it would be written there.
    fn read(&self, key: &str, item: &Item) -> Result<(OsString, String), String> {
        let flag = self.serve.get_arguments().find(|flag| flag.get_long() == Some(key));
        let known = flag.and_then(|flag| Some((flag, flag.get_env()?)));
        let Some((flag, variable)) = known else { return Err(self.unknown_key(key)) };
        let value = value_text(flag, item)?;
        // A switch takes no value as an argument.
        if !is_switch(flag) {
            let argument = format!("--{key}={value}");
            let parsed = self.unset.clone().try_get_matches_from(["serve", argument.as_str()]);
            parsed.map_err(|error| reason(&error))?;
        }
        Ok((variable.to_owned(), value))
    }

    /// Returns the reason for refusing a key, with the flag whose variable it names, or that clap finds the most similar.
    fn unknown_key(&self, key: &str) -> String {
        let argument = format!("--{key}");
        let refused = self.unset.clone().try_get_matches_from(["serve", argument.as_str()]).err();
        let similar = match refused.as_ref().and_then(|error| error.get(ContextKind::SuggestedArg))
        {
            Some(ContextValue::String(flag)) => Some(flag.trim_start_matches('-')),
            Some(_) | None => None,
        };
        match self.flag_of_variable(key).or(similar) {
            Some(flag) => format!("unknown setting; did you mean {flag}?"),
            None => "unknown setting; `parcelo-server config show` lists them".to_owned(),
        }
    }

    /// Returns the flag that has a key's variable: some variables have longer names than their flags.
    fn flag_of_variable(&self, key: &str) -> Option<&str> {
        let variable = format!("PARCELO_{}", key.to_uppercase().replace('-', "_"));
        let mut flags = self.serve.get_arguments();
        flags
            .find(|flag| flag.get_env().is_some_and(|known| known == variable.as_str()))?
            .get_long()
    }
}

fn is_switch(flag: &Arg) -> bool {
    matches!(flag.get_action(), ArgAction::SetTrue)
}

/// Returns a value as it is written after its flag.
fn value_text(flag: &Arg, item: &Item) -> Result<String, String> {
    let value = item.as_value();
    if is_switch(flag) {
        let is_on = value.and_then(Value::as_bool);
        return is_on
            .map(|is_on| is_on.to_string())
            .ok_or_else(|| "expected true or false".to_owned());
    }
    if matches!(value, Some(Value::Float(_))) {
        return Err("a number must be whole".to_owned());
    }
    if flag.get_value_delimiter().is_none() {
        let text = value.and_then(scalar_text);
        return text.ok_or_else(|| "expected one text, number or date".to_owned());
    }
    let text = match value {
        // An argument cannot be an empty list either, which could mean none of them or all.
        Some(Value::Array(list)) if list.is_empty() => {
            return Err(
                "the list is empty: leave the setting out, and its default counts".to_owned()
            );
        }
        Some(Value::Array(list)) => {
            let texts: Option<Vec<_>> = list.iter().map(scalar_text).collect();
            texts.map(|texts| texts.join(","))
        }
        Some(value) => scalar_text(value),
        None => None,
    };
    text.ok_or_else(|| "expected a text, or a list of texts".to_owned())
}

/// Returns the text of a string, a number or a date.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Datetime(date) => Some(date.value().to_string()),
        Value::Float(_) | Value::Boolean(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}

/// Returns the reason in an error of clap, without the frame for a terminal.
fn reason(error: &Error) -> String {
    let text = error.render().to_string();
    let reason = text.split("\n\n").next().unwrap_or_default();
    reason.trim_start_matches("error: ").trim_end().to_owned()
}
