//! The flags of `serve` for e-mails: the relay, the sender, and the recipients that the sandbox may write to.

use std::{ffi::OsString, fs, path::PathBuf};

use clap::Args as ClapArgs;
use lettre::message::Mailbox;
use parcelo_service::mail::allow_list::{AllowList, AllowedRecipient};
use url::Url;

use super::{Failure, database::RedactingParser, shared_args::TrimmingParser};
use crate::smtp::{ConnectionSecurity, SmtpSettings, is_loopback};

/// The environment variable of the relay's address. Only in the variable may the address contain a password, because
/// other users can see arguments.
const URL_VARIABLE: &str = "PARCELO_SMTP_URL";
/// The environment variable of the relay's password.
const PASSWORD_VARIABLE: &str = "PARCELO_SMTP_PASSWORD";
/// Maximum length of a password: longer than any real one.
const MAX_PASSWORD_BYTES: usize = 4_096;

#[derive(Debug, ClapArgs)]
pub(super) struct MailArgs {
    /// The relay that takes e-mails for receivers and senders: `smtp://USER@HOST:587` (STARTTLS) or
    /// `smtps://USER@HOST:465`. The password comes from `PARCELO_SMTP_PASSWORD` or
    /// --smtp-password-file. Without a relay, no e-mails are sent.
    #[arg(long, env = URL_VARIABLE, value_name = "URL", hide_env_values = true, value_parser = RedactingParser(parse_relay))]
    smtp_url: Option<Relay>,
    /// A file with the relay's password, as its first line.
    #[arg(long, env = "PARCELO_SMTP_PASSWORD_FILE", value_name = "PATH", hide_env_values = true)]
    smtp_password_file: Option<PathBuf>,
    /// The sender of e-mails, such as 'Shop <parcels@shop.example>'.
    #[arg(long, env = "PARCELO_MAIL_FROM", value_name = "ADDRESS", value_parser = parse_sender)]
    mail_from: Option<Mailbox>,
    /// Addresses and @domains that the sandbox may send e-mails to; none if absent.
    #[arg(long, env = "PARCELO_MAIL_SANDBOX_ALLOW", value_delimiter = ',', value_name = "ADDRESS", value_parser = TrimmingParser(AllowedRecipient::parse))]
    mail_sandbox_allow: Vec<AllowedRecipient>,
}

/// The relay that sends e-mails, and the sandbox's allowed recipients.
#[derive(Debug)]
pub(super) struct MailSettings {
    pub(super) smtp: SmtpSettings,
    pub(super) sandbox_allow: AllowList,
}

/// The relay on the command line.
#[derive(Clone)]
struct Relay {
    host: String,
    port: u16,
    security: ConnectionSecurity,
    user: Option<String>,
    password: Option<String>,
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Relay({}:{})", self.host, self.port)
    }
}

/// An error in the flags for e-mails.
#[derive(Debug, thiserror::Error)]
pub enum MailArgsError {
    /// A relay is given, but no sender.
    #[error("--smtp-url goes with --mail-from, such as 'Shop <parcels@shop.example>'")]
    NoSender,
    /// A flag for e-mails is given, but no relay.
    #[error("{0} goes with --smtp-url, such as smtp://USER@HOST:587")]
    NoRelay(&'static str),
    /// The password is among the arguments, where others can see it.
    #[error(
        "leave the password out of --smtp-url: arguments can be seen by others. Put it into PARCELO_SMTP_PASSWORD or a file for --smtp-password-file"
    )]
    PasswordInArguments,
    /// Two passwords are given.
    #[error(
        "the relay's password was given twice: keep one of PARCELO_SMTP_URL, PARCELO_SMTP_PASSWORD and --smtp-password-file"
    )]
    TwoPasswords,
    /// A user is given without a password, or a password without a user.
    #[error("{0}")]
    IncompleteLogin(&'static str),
    /// The file of the password cannot be read.
    #[error("cannot read the file of --smtp-password-file {}: {source}", path.display())]
    PasswordFile {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: std::io::Error,
    },
    /// The password is empty, too long, or not one line of text.
    #[error("the relay's password must be one line of text")]
    Password,
    /// The links in e-mails would not work without a public address.
    #[error(
        "--smtp-url needs {0}: the links of e-mails lead there. Without a public address, receivers could neither track nor unsubscribe"
    )]
    NoBaseUrl(&'static str),
    /// The database does not respond; the log has the reason.
    #[error("e-mails could not be switched on in the database")]
    Database,
    /// The machine's or the bundled certificates cannot be used.
    #[error("the certificates that the relay is checked with cannot be used: {0}")]
    Certificates(String),
}

impl MailArgs {
    /// Returns the settings, or `None` if e-mails are off.
    pub(super) fn resolve(&self) -> Result<Option<MailSettings>, Failure> {
        Ok(self.build_settings(&ProcessInputs::from_process())?)
    }

    /// Returns the settings of e-mails, or `None` if they are off.
    fn build_settings(
        &self,
        process: &ProcessInputs,
    ) -> Result<Option<MailSettings>, MailArgsError> {
        let Some(relay) = &self.smtp_url else { return self.check_no_mail_flags().map(|()| None) };
        let from = self.mail_from.clone().ok_or(MailArgsError::NoSender)?;
        if relay.password.is_some() && process.url_in_arguments {
            return Err(MailArgsError::PasswordInArguments);
        }
        let login = self.resolve_login(relay, process)?;
        let Relay { host, port, security, .. } = relay.clone();
        let smtp = SmtpSettings { host, port, security, login, from };
        let sandbox_allow = AllowList::new(self.mail_sandbox_allow.clone());
        Ok(Some(MailSettings { smtp, sandbox_allow }))
    }

    /// Refuses other flags for e-mails if no relay is given, because it was probably forgotten.
    fn check_no_mail_flags(&self) -> Result<(), MailArgsError> {
        let flags = [
            ("--mail-from", self.mail_from.is_some()),
            ("--smtp-password-file", self.smtp_password_file.is_some()),
            ("--mail-sandbox-allow", !self.mail_sandbox_allow.is_empty()),
        ];
        match flags.into_iter().find(|(_, is_set)| *is_set) {
            Some((flag, _)) => Err(MailArgsError::NoRelay(flag)),
            None => Ok(()),
        }
    }

    fn resolve_login(
        &self,
        relay: &Relay,
        process: &ProcessInputs,
    ) -> Result<Option<(String, String)>, MailArgsError> {
        let from_file = self.smtp_password_file.as_ref().map(read_password_file).transpose()?;
        let from_variable = process.password.clone().map(check_password).transpose()?;
        let passwords = [relay.password.clone(), from_variable, from_file];
        let mut passwords = passwords.into_iter().flatten();
        match (relay.user.clone(), passwords.next(), passwords.next()) {
            (_, Some(_), Some(_)) => Err(MailArgsError::TwoPasswords),
            (Some(user), Some(password), None) => Ok(Some((user, password))),
            (None, None, _) => Ok(None),
            (Some(_), None, _) => Err(MailArgsError::IncompleteLogin(
                "--smtp-url names a user: set PARCELO_SMTP_PASSWORD or --smtp-password-file",
            )),
            (None, Some(_), None) => Err(MailArgsError::IncompleteLogin(
                "the relay has a password and no user: write --smtp-url smtp://USER@HOST:587",
            )),
        }
    }
}

/// The inputs of the process in addition to its parsed flags.
#[derive(Debug)]
struct ProcessInputs {
    /// `true` if the relay is among the arguments, which every user of the machine can see.
    url_in_arguments: bool,
    password: Option<OsString>,
}

impl ProcessInputs {
    fn from_process() -> Self {
        let is_flag = |argument: OsString| {
            argument.to_str().is_some_and(|text| text.starts_with("--smtp-url"))
        };
        let url_in_arguments = std::env::args_os().any(is_flag);
        Self { url_in_arguments, password: std::env::var_os(PASSWORD_VARIABLE) }
    }
}

fn read_password_file(path: &PathBuf) -> Result<String, MailArgsError> {
    let text = fs::read_to_string(path)
        .map_err(|source| MailArgsError::PasswordFile { path: path.clone(), source })?;
    check_password(text.trim_end_matches(['\r', '\n']).into())
}

fn check_password(text: OsString) -> Result<String, MailArgsError> {
    let text = text.into_string().map_err(|_| MailArgsError::Password)?;
    let has_valid_length = !text.is_empty() && text.len() <= MAX_PASSWORD_BYTES;
    if has_valid_length && !text.contains(char::is_control) {
        Ok(text)
    } else {
        Err(MailArgsError::Password)
    }
}

fn parse_relay(text: &str) -> Result<Relay, String> {
    let expected = || "expected smtp://USER@HOST:587 or smtps://USER@HOST:465".to_owned();
    let url = Url::parse(text).map_err(|_| expected())?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(expected)?.to_owned();
    let has_extra_parts =
        !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
    let (security, default_port) = match url.scheme() {
        "smtp" if is_loopback(&host) => (ConnectionSecurity::Loopback, 587),
        "smtp" => (ConnectionSecurity::StartTls, 587),
        "smtps" => (ConnectionSecurity::Tls, 465),
        _ => return Err(expected()),
    };
    if has_extra_parts {
        return Err(expected());
    }
    let port = url.port().unwrap_or(default_port);
    let user = percent_decode(url.username())?.filter(|user| !user.is_empty());
    let password = url.password().map(percent_decode).transpose()?.flatten();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(Relay { host, port, security, user, password })
}

/// Decodes `%40` to `@` and the like, since users of relays are often addresses.
fn percent_decode(text: &str) -> Result<Option<String>, String> {
    let fault = || {
        "percent-encode special characters in the user and password, such as % as %25".to_owned()
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(Option::unwrap_or_default);
                let digits = std::str::from_utf8(&digits).map_err(|_| fault())?.to_owned();
                u8::from_str_radix(&digits, 16).map_err(|_| fault())?
            }
            byte => byte,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| fault())?;
    if text.contains(char::is_control) { Err(fault()) } else { Ok(Some(text)) }
}

/// Parses the sender's address, which receivers see.
fn parse_sender(text: &str) -> Result<Mailbox, String> {
    let expected = "expected one address such as 'Shop <parcels@shop.example>'";
    let mailbox = text.trim().parse::<Mailbox>().map_err(|_| expected)?;
    let is_visible = |c: char| !c.is_control() && !parcelo_types::internal::is_invisible(c);
    let address = mailbox.email.to_string();
    let is_ascii_email = address.is_ascii() && parcelo_wire::is_email(&address);
    if is_ascii_email && mailbox.name.as_deref().unwrap_or_default().chars().all(is_visible) {
        Ok(mailbox)
    } else {
        Err(expected.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        mail: MailArgs,
    }

    const FROM: [&str; 2] = ["--mail-from", "Shop <parcels@shop.example>"];

    fn resolve_flags(
        arguments: &[&str],
        password: Option<&str>,
        url_in_arguments: bool,
    ) -> Result<Option<MailSettings>, String> {
        let line = CommandLine::try_parse_from(["serve"].iter().chain(arguments));
        let mail = line.map_err(|error| error.to_string())?.mail;
        assert!(!format!("{mail:?}").contains("s3cret"), "{mail:?}");
        let process = ProcessInputs { url_in_arguments, password: password.map(OsString::from) };
        mail.build_settings(&process).map_err(|fault| fault.to_string())
    }

    fn resolve_relay(url: &str, password: Option<&str>) -> Result<SmtpSettings, String> {
        let result = resolve_flags(&["--smtp-url", url, FROM[0], FROM[1]], password, true);
        result.map(|settings| settings.unwrap().smtp)
    }

    #[test]
    fn without_a_relay_e_mails_are_off() {
        assert!(resolve_flags(&[], None, false).unwrap().is_none());
        assert!(resolve_flags(&[], Some("s3cret"), false).unwrap().is_none());
        for flags in [&FROM[..], &["--mail-sandbox-allow", "@shop.example"]] {
            let fault = resolve_flags(flags, None, false).unwrap_err();
            assert!(fault.contains("goes with --smtp-url"), "{fault}");
        }
        let fault = resolve_flags(&["--smtp-url", "smtp://localhost"], None, true).unwrap_err();
        assert!(fault.contains("goes with --mail-from"), "{fault}");
    }

    #[test]
    fn a_relay_on_another_machine_needs_tls() {
        let table = [
            ("smtp://relay.example", "relay.example", 587, ConnectionSecurity::StartTls),
            ("smtp://relay.example:25/", "relay.example", 25, ConnectionSecurity::StartTls),
            ("smtps://relay.example", "relay.example", 465, ConnectionSecurity::Tls),
            ("smtps://localhost:1465", "localhost", 1465, ConnectionSecurity::Tls),
            ("smtp://localhost:1025", "localhost", 1025, ConnectionSecurity::Loopback),
            ("smtp://127.0.0.1", "127.0.0.1", 587, ConnectionSecurity::Loopback),
            ("smtp://[::1]:2525", "::1", 2525, ConnectionSecurity::Loopback),
            ("smtp://10.0.0.7", "10.0.0.7", 587, ConnectionSecurity::StartTls),
        ];
        for (url, host, port, security) in table {
            let settings = resolve_relay(url, None).unwrap();
            let got = (settings.host.as_str(), settings.port, settings.security);
            assert_eq!(got, (host, port, security), "{url}");
            assert_eq!(settings.login, None);
        }
        for bad in [
            "relay.example:587",
            "http://relay.example",
            "smtp://",
            "smtp:relay.example",
            "smtp://relay.example/path",
            "smtp://relay.example?x=s3cret",
            "smtp://shop:s3cret@",
            "smtp://sh%op:s3cret@relay.example",
            "smtp://sh%0Aop:s3cret@relay.example",
        ] {
            let fault = resolve_relay(bad, None).unwrap_err();
            assert!(!fault.contains("s3cret"), "{fault}");
        }
    }

    #[test]
    fn a_password_among_the_arguments_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "from file\r\n").unwrap();
        let path = file.path().to_str().unwrap();
        let user = "smtp://shop%40shop.example@relay.example";
        let login =
            |result: Result<Option<MailSettings>, String>| result.unwrap().unwrap().smtp.login;
        let expected = |password: &str| Some(("shop@shop.example".to_owned(), password.to_owned()));
        let flags = ["--smtp-url", user, FROM[0], FROM[1]];
        assert_eq!(login(resolve_flags(&flags, Some("s3cret"), true)), expected("s3cret"));
        let with_file = [&flags[..], &["--smtp-password-file", path]].concat();
        assert_eq!(login(resolve_flags(&with_file, None, true)), expected("from file"));
        let whole =
            ["--smtp-url", "smtp://shop%40shop.example:s3%2Fcret@relay.example", FROM[0], FROM[1]];
        assert_eq!(login(resolve_flags(&whole, None, false)), expected("s3/cret"));

        let table = [
            (resolve_flags(&whole, None, true), "leave the password out of --smtp-url"),
            (resolve_flags(&whole, Some("x"), false), "given twice"),
            (resolve_flags(&with_file, Some("x"), true), "given twice"),
            (resolve_flags(&flags, None, true), "names a user: set PARCELO_SMTP_PASSWORD"),
            (resolve_flags(&flags, Some(""), true), "one line of text"),
            (resolve_flags(&flags, Some("a\nb"), true), "one line of text"),
            (
                resolve_relay("smtp://relay.example", Some("x")).map(|_| None),
                "a password and no user",
            ),
        ];
        for (result, part) in table {
            let fault = result.unwrap_err();
            assert!(fault.contains(part) && !fault.contains("s3"), "{part}: {fault}");
        }
        let missing = [&flags[..], &["--smtp-password-file", "/nowhere/password"]].concat();
        assert!(resolve_flags(&missing, None, true).unwrap_err().contains("/nowhere/password"));
    }

    #[test]
    fn a_sender_is_one_address() {
        for good in
            ["parcels@shop.example", "Shop <parcels@shop.example>", "\"Shop, Inc.\" <a@b.example>"]
        {
            assert!(parse_sender(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "Shop",
            "a@b",
            "a@b.example, c@d.example",
            "Sh\u{202E}op <a@b.example>",
            "ñ@b.example",
            "X\r\nBcc: c@d.example <a@b.example>",
        ] {
            assert!(parse_sender(bad).is_err(), "{bad}");
        }
    }
}
