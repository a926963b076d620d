//! The API key and the address from option, variable or profile, and a client for them.

use std::env;

use parcelo::{ApiKey, Client, ErrorCode};

use super::Resolver;
use crate::{
    failure::Failure,
    input, output,
    texts::{self, Message},
};

impl Resolver {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        Ok(self.client_and_key()?.0)
    }

    pub(super) fn client_and_key(&self) -> Result<(Client, ApiKey), Failure> {
        if self.settings.requested.is_some() {
            // A requested profile must exist, even if options and variables override all of it.
            self.settings.profile()?;
        }
        let key = self.find_key()?;
        Ok((self.client_for(key.clone())?, key))
    }

    pub(super) fn client_for(&self, key: ApiKey) -> Result<Client, Failure> {
        let builder = Client::builder(key).base_url(&self.address()?)?;
        let builder = builder.language(self.settings.output.language);
        let builder = self
            .dry_run
            .iter()
            .fold(builder, |builder, dry_run| builder.transport(dry_run.clone()));
        Ok(builder.build()?)
    }

    /// Returns the service's address from the option or variable, otherwise from the profile.
    pub(super) fn address(&self) -> Result<String, Failure> {
        let given = self.global.base_url.as_deref().map(str::trim);
        let address = match given.filter(|address| !address.is_empty()) {
            Some(address) => Some(address.to_owned()),
            None => self.settings.profile()?.base_url,
        };
        address.ok_or_else(|| Failure::usage(texts::NO_BASE_URL, texts::GIVE_BASE_URL))
    }

    /// Returns the key from its source, parsed.
    fn find_key(&self) -> Result<ApiKey, Failure> {
        self.parse_key(&self.find_key_text()?.0)
    }

    /// Returns the text of the key and its source: standard input if requested, otherwise the variable, otherwise the
    /// profile.
    pub(super) fn find_key_text(&self) -> Result<(String, Message), Failure> {
        let variable = || env::var("PARCELO_API_KEY").ok().filter(|text| !text.trim().is_empty());
        let (text, place) = match variable() {
            _ if self.global.api_key_stdin => (input::line()?, texts::FROM_STDIN.into()),
            Some(text) => (text, texts::FROM_VARIABLE.into()),
            None => {
                let key = self.settings.profile()?.api_key.map(|key| key.0).unwrap_or_default();
                (key, texts::FROM_PROFILE.with(&[("name", &self.settings.name()?)]))
            }
        };
        if text.trim().is_empty() {
            return Err(Failure::key(ErrorCode::AuthMissingApiKey, texts::NO_KEY));
        }
        Ok((text, place))
    }

    /// Parses a key, and warns if it looks mistyped: only the service knows its keys.
    pub(super) fn parse_key(&self, text: &str) -> Result<ApiKey, Failure> {
        let key = parse_trimmed(text)?;
        if key.looks_mistyped() {
            output::warn(&texts::MISTYPED_KEY.into(), self.settings.output);
        }
        Ok(key)
    }
}

/// Parses a key, ignoring white space around it.
pub(super) fn parse_trimmed(text: &str) -> Result<ApiKey, Failure> {
    ApiKey::parse(text.trim())
        .map_err(|_| Failure::key(ErrorCode::AuthInvalidApiKey, texts::MALFORMED_KEY))
}
