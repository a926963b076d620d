//! Resolves the commands that do not handle parcels: raw calls, the webhook listener, profiles, checks and manual
//! pages.

use std::env;

use parcelo::{ApiKey, Client, Environment, webhook::Webhook};
use url::{Host, Url};

use super::{Resolver, client::parse_trimmed};
use crate::{
    args::{Api, Config, Init, Listen, Man},
    commands::{ConfigAction, Preflight, RawCall, ResolvedCommand, WebhookListener},
    failure::Failure,
    input::{self, Source},
    output::{self, EventPrinter},
    profiles::{Profile, Profiles, Secret},
    results::{Check, CheckState},
    sanitize::{mask_key, without_credentials, without_keys},
    settings,
    texts::{self, Message},
};

impl Resolver {
    pub(super) fn resolve_api(&self, api: Api) -> Result<ResolvedCommand, Failure> {
        let data = api.data.as_deref().map(Source::from_argument);
        self.check_stdin_is_read_once(usize::from(data.as_ref().is_some_and(Source::is_stdin)))?;
        let body = data.map(|source| source.read_text()).transpose()?.map(Into::into);
        let method = api.method.to_ascii_uppercase();
        let request = RawCall { method, path: api.path, body };
        Ok(ResolvedCommand::Api(self.client()?, request))
    }

    pub(super) fn resolve_listen(&self, listen: &Listen) -> Result<ResolvedCommand, Failure> {
        self.refuse_dry_run()?;
        let secret = match listen.secret.as_deref() {
            Some("-") => {
                self.check_stdin_is_read_once(1)?;
                input::line()?
            }
            Some(secret) => secret.to_owned(),
            None => env::var("PARCELO_WEBHOOK_SECRET").unwrap_or_default(),
        };
        let secrets: Vec<_> =
            secret.split([',', ' ', '\n', '\r']).filter(|one| !one.is_empty()).collect();
        if secrets.is_empty() {
            return Err(Failure::usage(texts::NO_SECRET, texts::GIVE_SECRET));
        }
        let webhook = Webhook::new(secrets)
            .map_err(|_| Failure::usage(texts::MALFORMED_SECRET, texts::GIVE_SECRET))?;
        let forward_to = listen.forward_to.as_deref().map(parse_forward_target).transpose()?;
        let listener = WebhookListener {
            port: listen.port,
            webhook,
            forward_to,
            events: EventPrinter(self.settings.output),
        };
        Ok(ResolvedCommand::Listen(listener))
    }

    /// Refuses `--dry-run` for commands that send no request to the service.
    fn refuse_dry_run(&self) -> Result<(), Failure> {
        match self.dry_run {
            Some(_) => Err(Failure::usage(texts::NO_DRY_RUN, texts::SEE_HELP)),
            None => Ok(()),
        }
    }

    pub(super) fn resolve_config(self, config: Config) -> Result<ResolvedCommand, Failure> {
        self.refuse_dry_run()?;
        let action = match config {
            Config::Path => ConfigAction::Path,
            Config::List => ConfigAction::List { profiles: self.into_profiles()? },
            Config::Use(choice) => {
                let profiles = self.into_profiles()?;
                if !profiles.all.contains_key(&choice.name) {
                    let name = without_keys(&choice.name);
                    let message = texts::NO_PROFILE.with(&[("name", &name)]);
                    return Err(Failure::usage(message, texts::SEE_PROFILES));
                }
                ConfigAction::Use { profiles, name: choice.name }
            }
            Config::Init(init) => self.resolve_init(init)?,
        };
        Ok(ResolvedCommand::Config(Box::new(action)))
    }

    /// Resolves a new profile, and prompts for values that neither options nor variables set.
    fn resolve_init(self, init: Init) -> Result<ConfigAction, Failure> {
        let name = init.name.or_else(|| self.settings.requested.clone());
        let name = name.unwrap_or_else(|| settings::DEFAULT_PROFILE.to_owned());
        if !is_plain_name(&name) {
            let name = without_keys(&name);
            let message = texts::INVALID_PROFILE_NAME.with(&[("name", &name)]);
            return Err(Failure::usage(message, texts::SEE_HELP));
        }
        let known = self.settings.profiles()?.is_some_and(|all| all.all.contains_key(&name));
        if known && !init.force {
            let message = texts::PROFILE_EXISTS.with(&[("name", &name)]);
            return Err(Failure::usage(message, texts::ADD_FORCE));
        }
        let old = self.settings.profiles()?.and_then(|all| all.all.get(&name));
        let sender = old.and_then(|old| old.sender.clone());
        let base_url = self.address_or_prompt()?;
        let key = self.key_or_prompt()?;
        let profile = Profile {
            base_url: Some(base_url.clone()),
            api_key: Some(Secret(key.secret().to_owned())),
            language: self.global.lang.map(Into::into),
            output: self.global.output,
            sender,
        };
        let client = Client::builder(key).base_url(&base_url)?.build()?;
        let profiles = self.into_profiles()?;
        Ok(ConfigAction::Init { profiles, name, profile, client: Box::new(client) })
    }

    fn address_or_prompt(&self) -> Result<String, Failure> {
        let given = self.global.base_url.as_deref().map(str::trim);
        if let Some(address) = given.filter(|address| !address.is_empty()) {
            return Ok(with_scheme(address));
        }
        if !output::can_prompt() {
            return Err(Failure::usage(texts::NO_BASE_URL, texts::GIVE_BASE_URL));
        }
        // The address is prompted for before the key, which is hidden and would have to be pasted again.
        loop {
            output::prompt(texts::ASK_ADDRESS, self.settings.output.language);
            let typed = input::line()?;
            match check_address(with_scheme(typed.trim()), placeholder_key()) {
                // At the end of the input, the loop would prompt forever.
                Err(err) if !typed.is_empty() => {
                    output::warn(&err.message, self.settings.output);
                }
                answer => return answer,
            }
        }
    }

    /// Reads the key without echo or from standard input; it is never an argument.
    ///
    /// For a key that looks mistyped the prompt is repeated; the same key twice is accepted, since only the service
    /// knows its keys.
    fn key_or_prompt(&self) -> Result<ApiKey, Failure> {
        if self.global.api_key_stdin {
            return self.parse_key(&input::line()?);
        }
        if !output::can_prompt() {
            return Err(Failure::usage(texts::NO_TERMINAL_FOR_KEY, texts::KEY_ON_STDIN));
        }
        let mut before = String::new();
        // A closed terminal returns empty lines forever.
        let mut blanks = 0..2;
        loop {
            output::prompt(texts::ASK_KEY, self.settings.output.language);
            let typed = input::hidden_line()?;
            match self.parse_key(&typed) {
                Ok(key) if key.looks_mistyped() && typed != before => before = typed,
                Err(err) if !typed.trim().is_empty() || blanks.next().is_some() => {
                    output::warn(&err.message, self.settings.output);
                }
                answer => return answer,
            }
        }
    }

    fn into_profiles(self) -> Result<Profiles, Failure> {
        match self.settings.file {
            Some(Ok(profiles)) => Ok(profiles),
            Some(Err(fault)) => Err(Failure::from(&fault)),
            None => Err(Failure::usage(texts::NO_HOME, texts::SET_HOME)),
        }
    }

    pub(super) fn resolve_doctor(self) -> Result<ResolvedCommand, Failure> {
        self.refuse_dry_run()?;
        let key = self.find_key_text().and_then(|(text, place)| {
            let place = texts::KEY_PLACE.with_message("place", &place);
            let at_place = |err: Failure| err.with(|err| err.message = err.message.and(&place));
            Ok((parse_trimmed(&text).map_err(at_place)?, place))
        });
        let client_key = key.as_ref().map_or_else(|_| placeholder_key(), |(key, _)| key.clone());
        let address = self.address().and_then(|address| check_address(address, client_key));
        let client = match (&address, &key) {
            (Ok(_), Ok((key, _))) => Some(self.client_for(key.clone())),
            (Ok(_) | Err(_), Ok(_) | Err(_)) => None,
        };
        let profile = self.profile_check();
        let is_config_invalid = matches!(profile.state, CheckState::Failed(_));
        let mut checks = vec![profile];
        checks.push(match address {
            Err(_) if is_config_invalid => skipped_check("address", texts::CHECK_ADDRESS_OF),
            address => check(
                "address",
                texts::CHECK_ADDRESS_OF,
                address.map(|url| untranslated(&without_credentials(&url))),
            ),
        });
        checks.push(match key {
            Err(_) if is_config_invalid => skipped_check("key", texts::CHECK_API_KEY),
            key => key_check(key),
        });
        checks.push(match &client {
            Some(Ok(client)) => {
                let detail = untranslated(client.environment().code());
                Check::passed("environment", texts::ENVIRONMENT, detail)
            }
            Some(Err(err)) => Check::failed("environment", texts::ENVIRONMENT, err),
            None => skipped_check("environment", texts::ENVIRONMENT),
        });
        let preflight = Preflight { checks, client: client.and_then(Result::ok) };
        Ok(ResolvedCommand::Doctor(Box::new(preflight)))
    }

    fn profile_check(&self) -> Check {
        let result = self.settings.profile().and_then(|_| {
            let (name, profiles) = (self.settings.name()?, self.settings.profiles()?);
            Ok(match profiles.filter(|profiles| profiles.file.exists()) {
                Some(profiles) => {
                    let file = profiles.file.to_string_lossy();
                    texts::PROFILE_OF.with(&[("name", &*name), ("file", &*file)])
                }
                None => texts::NO_CONFIG.into(),
            })
        });
        let check = check("profile", texts::PROFILE, result);
        if self.settings.has_exposed_keys() { check.warning(texts::EXPOSED_HINT) } else { check }
    }

    pub(super) fn resolve_man(&self, man: Man) -> Result<ResolvedCommand, Failure> {
        let language = self.settings.output.language;
        match man.dir {
            Some(_) if !man.command.is_empty() => {
                Err(Failure::usage(texts::DIR_OR_COMMAND, texts::SEE_HELP))
            }
            Some(folder) => Ok(ResolvedCommand::ManPages(folder, language)),
            None => Ok(ResolvedCommand::Man(man.command, language)),
        }
    }
}

fn check(name: &'static str, title: texts::Text, result: Result<texts::Message, Failure>) -> Check {
    match result {
        Ok(detail) => Check::passed(name, title, detail),
        Err(err) => Check::failed(name, title, &err),
    }
}

fn key_check(result: Result<(ApiKey, Message), Failure>) -> Check {
    let (name, title) = ("key", texts::CHECK_API_KEY);
    match result {
        Ok((key, place)) if key.looks_mistyped() => {
            let detail = Message::from(texts::MISTYPED_KEY).and(&place);
            // The checks continue, because only the service knows its keys.
            Check { state: CheckState::Warning, ..Check::passed(name, title, detail) }
        }
        Ok((key, _)) => Check::passed(name, title, untranslated(&mask_key(key.secret()))),
        Err(err) => Check::failed(name, title, &err),
    }
}

fn skipped_check(name: &'static str, title: texts::Text) -> Check {
    Check::skipped(name, title, texts::DEPENDS_ON_FAILED)
}

fn untranslated(text: &str) -> texts::Message {
    texts::AS_IS.with(&[("value", text)])
}

/// Returns a key for clients that only check an address.
fn placeholder_key() -> ApiKey {
    ApiKey::from_random(Environment::Sandbox, &[0; 32])
}

/// Adds the scheme to an address that was typed without: http for this machine, https otherwise.
fn with_scheme(typed: &str) -> String {
    if typed.is_empty() || typed.contains("://") {
        return typed.to_owned();
    }
    let plain = format!("http://{typed}");
    let url = Url::parse(&plain).ok();
    let is_here = match url.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    if is_here { plain } else { format!("https://{typed}") }
}

/// Returns the address, if a client accepts it.
fn check_address(address: String, key: ApiKey) -> Result<String, Failure> {
    Ok(Client::builder(key).base_url(&address).map(|_| address)?)
}

/// Returns `true` if a profile name needs no quotes in a shell or in TOML, and is not an API key by mistake.
fn is_plain_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let prefix = parcelo::Environment::ALL.map(parcelo::Environment::key_prefix);
    (1..=64).contains(&name.len())
        && name.chars().all(fits)
        && !name.starts_with('-')
        && !prefix.iter().any(|prefix| name.starts_with(prefix))
}

fn parse_forward_target(address: &str) -> Result<Url, Failure> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| {
        let address = without_keys(address);
        let values = [("value", &*address), ("option", "--forward-to")];
        Failure::usage(texts::INVALID_VALUE.with(&values), texts::GIVE_TARGET)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_is_http_on_loopback_only() {
        for (typed, address) in [
            ("127.0.0.1:8081", "http://127.0.0.1:8081"),
            ("localhost", "http://localhost"),
            ("[::1]:8081", "http://[::1]:8081"),
            ("api.example.com/v1", "https://api.example.com/v1"),
            ("http://api.example.com", "http://api.example.com"),
            ("", ""),
        ] {
            assert_eq!(with_scheme(typed), address);
        }
    }

    #[test]
    fn a_profile_name_is_plain_and_not_a_key() {
        for name in ["default", "live-2", "a_b", "X"] {
            assert!(is_plain_name(name), "{name}");
        }
        let long = "x".repeat(65);
        for name in ["", "-x", "a b", "a.b", "ñ", "pk_test_abc", "pk_live_", &long] {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}
