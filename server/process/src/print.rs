//! The output of the process. Nothing else in the server prints.
//!
//! If the reader has closed the pipe, the rest is dropped without an error. A full disk is an error, and so is a secret
//! that could not be written, since it is shown only once.

use std::{
    fmt,
    fs::{File, OpenOptions, Permissions},
    io::{self, StdoutLock, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use parcelo::webhook::Secret;
use parcelo_domain::{
    ApiKeyRecord, Millis, ids::public_id, sample, to_body, webhooks::LoggedDelivery,
};
use parcelo_types::{
    ApiKey,
    internal::{header, time},
};
use parcelo_wire::AdminToken;
use serde::Serialize;

use super::{Failure, settings::Setting, shared_args::CommonArgs};
use crate::shell;
use parcelo_store::VacuumReport;
#[cfg(feature = "postgres")]
use parcelo_store::{CopiedTable, StoreError};

/// The result of writing to standard output.
type PrintResult = io::Result<()>;

/// Writes results. A pipe that the reader has closed is not an error.
fn print_results(write: impl FnOnce(&mut StdoutLock<'static>) -> PrintResult) -> PrintResult {
    match print_secret(write) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a secret that is shown only once. Every failure is an error.
fn print_secret(write: impl FnOnce(&mut StdoutLock<'static>) -> PrintResult) -> PrintResult {
    let mut out = io::stdout().lock();
    write(&mut out)?;
    out.flush()
}

/// The target of a new database's secrets: standard output, or a file that only its owner can read.
pub(super) struct FirstSecrets(Option<(File, PathBuf)>);

impl FirstSecrets {
    /// Opens the file before any secrets exist, since they could not be shown again. The file's content is kept.
    pub(super) fn new(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Self(Some((file, path.to_owned()))))
    }

    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> PrintResult) -> PrintResult {
        match &mut self.0 {
            Some((file, _)) => write(file),
            None => print_secret(|out| write(out)),
        }
    }

    /// Prints the path of the file after the last secret was written to it. A file that stays empty because the
    /// database is not new is kept, because another server may be about to write to it.
    pub(super) fn announce(&self) -> PrintResult {
        let Some((file, path)) = &self.0 else { return Ok(()) };
        file.sync_all()?;
        print_results(|out| {
            writeln!(
                out,
                "\nThis is a new database. Its first key, token and password are in {}.",
                path.display()
            )
        })
    }
}

/// Prints a line to standard error.
fn print_to_stderr(line: fmt::Arguments<'_>) {
    // If standard error is closed, there is no other place to report it.
    let _ = writeln!(io::stderr(), "{line}");
}

pub(super) fn failure(failure: &Failure) {
    print_to_stderr(format_args!("parcelo-server: {failure}"));
}

pub(super) fn addresses(addresses: &[(&str, String)]) -> PrintResult {
    print_results(|out| {
        for (listener, url) in addresses {
            writeln!(out, "{listener:<12}{url}")?;
        }
        Ok(())
    })
}

/// Prints the first key of a new database, with a call that can be pasted into a shell.
pub(super) fn first_key(
    secrets: &mut FirstSecrets,
    key: &ApiKey,
    sandbox: Option<&str>,
) -> PrintResult {
    secrets.write(|out| {
        writeln!(out, "\nThis is a new database. Its first sandbox key, shown only once:\n")?;
        writeln!(out, "  {}\n", key.secret())?;
        if let Some(url) = sandbox {
            writeln!(out, "Create a first order with it:\n")?;
            let path = parcelo_types::Operation::CreateOrder.path();
            writeln!(out, "  curl -s {url}{path} -H '{}: {}' \\", header::API_KEY, key.secret())?;
            writeln!(out, "    -H 'content-type: application/json' -d '{}'", sample::ORDER)?;
        }
        Ok(())
    })
}

/// Prints the first password of the dashboard, its address, and the command that sets another password.
pub(super) fn first_password(
    secrets: &mut FirstSecrets,
    (account, password): (&str, &str),
    admin: Option<&str>,
    database: Option<&str>,
) -> PrintResult {
    secrets.write(|out| {
        let location = admin.map_or_else(String::new, |url| format!(" at {url}/dashboard"));
        writeln!(
            out,
            "\nThe dashboard{location}: account {account}, with this password, shown only once:\n"
        )?;
        writeln!(out, "  {password}\n")?;
        if let Some(options) = database {
            let command = shell::set_password(account, options);
            writeln!(out, "To set another one, run `{command}`.")?;
        }
        Ok(())
    })
}

/// Prompts twice, because a typo would lock the user out. Returns `None` if the two passwords differ.
pub(super) fn ask_password() -> io::Result<Option<String>> {
    let password = rpassword::prompt_password("New password: ")?;
    let again = rpassword::prompt_password("Repeat the new password: ")?;
    Ok((password == again).then_some(password))
}

pub(super) fn password_set(account: &str) -> PrintResult {
    print_results(|out| {
        writeln!(out, "The dashboard password of {account} is set; its sessions have ended.")
    })
}

/// Prints JSON with a secret that is shown only once.
pub(super) fn secret_json(value: &impl Serialize) -> PrintResult {
    print_secret(|out| writeln!(out, "{}", String::from_utf8_lossy(&to_body(value))))
}

pub(super) fn json(value: &impl Serialize) -> PrintResult {
    print_results(|out| writeln!(out, "{}", String::from_utf8_lossy(&to_body(value))))
}

/// Prints a new secret of a `kind`, and notes the id and name of its credential on standard error.
pub(super) fn new_secret(secret: &str, kind: &str, (id, name): (&str, &str)) -> PrintResult {
    print_secret(|out| {
        writeln!(out, "{secret}")?;
        print_to_stderr(format_args!(
            "{id} \"{name}\": store the {kind} above; it is shown only once."
        ));
        Ok(())
    })
}

/// Prints that an account was created, because its name may be mistyped.
pub(super) fn new_account(name: &str) {
    print_to_stderr(format_args!(
        "The account {name} is new. `parcelo-server accounts list` shows all accounts."
    ));
}

/// Prints a key's new secret, and the time until which the old one works.
pub(super) fn rotated_key(key: &ApiKey, record: &ApiKeyRecord, now: Millis) -> PrintResult {
    print_secret(|out| {
        writeln!(out, "{}", key.secret())?;
        let old = match record.old_secret_until(now) {
            Some(until) => format!("works until {}", time::to_text(until.to_utc())),
            None => "no longer works".to_owned(),
        };
        print_to_stderr(format_args!(
            "{} \"{}\": store the new secret above; it is shown only once. The old secret {old}.",
            record.id, record.name
        ));
        Ok(())
    })
}

/// Prints one item: as JSON if the options ask for it, otherwise as a line.
pub(super) fn item(options: &CommonArgs, view: &impl Serialize, line: &str) -> PrintResult {
    if options.json { json(view) } else { print_results(|out| writeln!(out, "{line}")) }
}

/// Prints a list as [`item`] prints one, or notes `empty_text` if it is empty.
pub(super) fn list<V: Serialize>(
    options: &CommonArgs,
    empty_text: &str,
    rows: impl Iterator<Item = (V, String)>,
) -> PrintResult {
    let (views, lines): (Vec<_>, Vec<_>) = rows.unzip();
    if options.json {
        return json(&views);
    }
    print_results(|out| {
        if lines.is_empty() {
            print_to_stderr(format_args!("{empty_text}"));
        }
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    })
}

/// Prints the first admin token of a new database, with a call that can be pasted into a shell.
pub(super) fn first_token(
    secrets: &mut FirstSecrets,
    token: &AdminToken,
    admin: Option<&str>,
) -> PrintResult {
    secrets.write(|out| {
        writeln!(out, "\nIts first admin token, shown only once:\n")?;
        writeln!(out, "  {}\n", token.secret())?;
        if let Some(url) = admin {
            writeln!(out, "List the keys with it:\n")?;
            writeln!(
                out,
                "  curl -s {url}/admin/v1/keys -H 'Authorization: Bearer {}'",
                token.secret()
            )?;
        }
        Ok(())
    })
}

pub(super) fn backup_done(file: &str, bytes: u64, deleted: &[String]) -> PrintResult {
    print_results(|out| {
        writeln!(
            out,
            "{file}: {bytes} bytes. It contains the secrets of keys and webhooks: protect it like the database."
        )?;
        deleted.iter().try_for_each(|older| writeln!(out, "{older}: deleted"))
    })
}

/// The tasks after a restore. A backup knows nothing of what was done after it.
const AFTER_RESTORE: &str = "\
Start the server. What was done after the backup is undone:
- Parcels created since are unknown, though their labels may be printed. An order that is repeated gets another
  number, unless it states one.
- Keys, tokens and passwords are as they were: revoke again what was revoked, and create again what was created.
- Webhooks delivered since may be sent again, under the same ids.
- If you set PARCELO_SECRET, set it as before, or no key and no label link works.";

pub(super) fn restore_done(file: &str, bytes: u64, moved_aside: &[String]) -> PrintResult {
    print_results(|out| {
        writeln!(out, "{file}: {bytes} bytes, restored")?;
        for old in moved_aside {
            writeln!(out, "{old}: moved aside, with what the backup lacks; nothing deletes it")?;
        }
        writeln!(out, "{AFTER_RESTORE}")
    })
}

#[cfg(feature = "postgres")]
pub(super) fn copy_progress(table: &str, rows: u64) {
    print_to_stderr(format_args!("{table}: {rows} rows copied ..."));
}

/// Warns that a complete copy will be slow at first.
#[cfg(feature = "postgres")]
pub(super) fn analyse_warning(error: &StoreError) {
    print_to_stderr(format_args!(
        "warning: the copy is whole, but could not be analysed: run ANALYZE in it ({error})"
    ));
}

#[cfg(feature = "postgres")]
pub(super) fn copy_done(tables: &[CopiedTable]) -> PrintResult {
    print_results(|out| {
        writeln!(out, "{:<22}{:>12}  {:<18}checksum of the copy", "table", "rows", "checksum")?;
        for CopiedTable { name, source, target } in tables {
            let (checksum, copy_checksum) = (source.checksum, target.checksum);
            writeln!(out, "{name:<22}{:>12}  {checksum:016x}  {copy_checksum:016x}", target.rows)?;
        }
        writeln!(out, "Both databases hold the same data. Start servers on only one of them.")
    })
}

pub(super) fn vacuum_started(file: &str) -> PrintResult {
    print_results(|out| {
        writeln!(out, "Rewriting {file}; this takes about a second for every 100 MB ...")
    })
}

pub(super) fn vacuum_done(file: &str, sizes: VacuumReport) -> PrintResult {
    let VacuumReport { before, after } = sizes;
    print_results(|out| {
        writeln!(out, "{file}: {before} bytes before, {after} now. No deleted data is left in it.")
    })
}

pub(super) fn webhook_secret(secret: &Secret) -> PrintResult {
    print_secret(|out| {
        writeln!(out, "{}", secret.expose())?;
        print_to_stderr(format_args!(
            "Verify webhooks with the secret above; store it where only the receiver can read it."
        ));
        Ok(())
    })
}

/// Prints the fields of an object, one per line.
pub(super) fn fields(value: &impl Serialize) -> PrintResult {
    print_results(|out| {
        let value = serde_json::to_value(value).unwrap_or_default();
        for (name, value) in value.as_object().into_iter().flatten() {
            match value.as_str() {
                Some(text) => writeln!(out, "{name:<16}{text}")?,
                None => writeln!(out, "{name:<16}{value}")?,
            }
        }
        Ok(())
    })
}

/// Prints bytes as they are.
pub(super) fn raw(bytes: &[u8]) -> PrintResult {
    print_results(|out| out.write_all(bytes))
}

/// Prints where each setting of the server was set.
pub(super) fn settings(settings: &[Setting]) -> PrintResult {
    print_results(|out| {
        for Setting { name, value, source } in settings {
            writeln!(out, "{name:<33}{:<32}  {source}", value.as_deref().unwrap_or("-"))?;
        }
        Ok(())
    })
}

pub(super) fn deliveries(logged: &[LoggedDelivery]) -> PrintResult {
    print_results(|out| {
        if logged.is_empty() {
            print_to_stderr(format_args!("No events yet."));
        }
        for event in logged {
            let (id, kind) = (public_id("evt", event.event), event.kind.to_wire());
            let number = event.tracking_number.as_deref().unwrap_or("-");
            writeln!(out, "{id}  {:<9}  {kind}  {number}", event.delivery_status.code())?;
            for attempt in &event.attempts {
                let at = time::to_text(attempt.at.to_utc());
                let status =
                    attempt.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
                let error = attempt.error.as_deref().unwrap_or_default();
                writeln!(
                    out,
                    "    {:>2}  {at}  {status:>3}  {} ms  {error}",
                    attempt.number, attempt.millis
                )?;
            }
        }
        Ok(())
    })
}

/// Prints the mock server's address and key as shell variables. The output of a suite comes after it.
pub(super) fn mock_variables(url: &str, key: &ApiKey) -> PrintResult {
    print_results(|out| {
        writeln!(out, "PARCELO_BASE_URL={url}")?;
        writeln!(out, "PARCELO_API_KEY={}", key.secret())?;
        Ok(())
    })
}
