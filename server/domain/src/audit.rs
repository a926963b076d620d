//! The audit log: who changed keys, secrets, passwords and settings, and when, and from where users signed in. It
//! contains no secrets, and no personal data except the addresses of those clients.

use std::net::IpAddr;

use parcelo_types::Language;

use super::{AccountRowId, Tenant};
use crate::Millis;

/// Time for which an entry is kept, in milliseconds.
pub const AUDIT_RETENTION_MILLIS: i64 = 365 * Millis::DAY;

/// The author and the time of a change. Each audited write requires one, so no caller can forget it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The author of the change.
    pub actor: Actor,
    /// The time of the change.
    pub at: Millis,
}

/// The person or program that made a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// Someone who is signed in to the dashboard as the account that the entry is about.
    Session,
    /// A command on the machine.
    Command,
    /// The first start on a new database.
    FirstStart,
    /// The server by itself.
    Server,
    /// The admin token with this id.
    Token(String),
}

impl Actor {
    /// Returns the author of a change at a time.
    #[must_use]
    pub const fn at(self, at: Millis) -> Author {
        Author { actor: self, at }
    }

    /// Returns the code under which the actor is stored; for a token, the token's id.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Session => "session",
            Self::Command => "command",
            Self::FirstStart => "first_start",
            Self::Server => "server",
            Self::Token(id) => id,
        }
    }

    /// Parses a stored code. Every unknown code is the id of an admin token.
    pub fn from_code(code: &str) -> Self {
        match code {
            "session" => Self::Session,
            "command" => Self::Command,
            "first_start" => Self::FirstStart,
            "server" => Self::Server,
            id => Self::Token(id.to_owned()),
        }
    }

    /// Returns the human-readable text.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        match self {
            Self::Session => language.pick("dashboard", "panel").to_owned(),
            Self::Command => {
                language.pick("command on the server", "comando en el servidor").to_owned()
            }
            Self::FirstStart => language.pick("first start", "primer inicio").to_owned(),
            Self::Server => language.pick("server itself", "el propio servidor").to_owned(),
            Self::Token(id) => {
                format!("{} {id}", language.pick("admin token", "token de administración"))
            }
        }
    }
}

/// Defines the actions with their stable codes and texts.
macro_rules! actions {
    ($($name:ident $code:literal $en:literal $es:literal,)+) => {
        /// The kind of change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum AuditAction {
            $(#[doc = $en] $name,)+
        }

        impl AuditAction {
            /// Every action.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Returns the code under which the action is stored.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// Returns the human-readable text.
            #[must_use]
            pub fn text(self, language: Language) -> &'static str {
                match self { $(Self::$name => language.pick($en, $es),)+ }
            }
        }
    };
}

actions! {
    KeyCreated "key.created" "API key created" "Clave de API creada",
    KeyRotated "key.rotated" "API key given a new secret" "Clave de API con secreto nuevo",
    KeyRevoked "key.revoked" "API key revoked" "Clave de API revocada",
    CarrierKeyCreated "carrier_key.created" "Carrier key created" "Clave de transportista creada",
    CarrierKeyRevoked "carrier_key.revoked" "Carrier key revoked" "Clave de transportista revocada",
    TokenCreated "token.created" "Admin token created" "Token de administración creado",
    TokenRevoked "token.revoked" "Admin token revoked" "Token de administración revocado",
    WebhookSet "webhook.set" "Webhook set" "Webhook configurado",
    WebhookSecretRotated "webhook.secret_rotated" "Webhook given a new secret" "Webhook con secreto nuevo",
    WebhookEnabled "webhook.enabled" "Webhook turned on" "Webhook activado",
    WebhookDisabled "webhook.disabled" "Webhook turned off" "Webhook desactivado",
    WebhookRemoved "webhook.removed" "Webhook removed" "Webhook eliminado",
    SignedIn "session.begun" "Signed in" "Inicio de sesión",
    PasswordSet "password.set" "Password set" "Contraseña establecida",
    MailsSet "mails.set" "E-mail notifications changed" "Notificaciones por correo cambiadas",
    ShopSet "shop.set" "Shop settings changed" "Datos de la tienda cambiados",
}

impl AuditAction {
    /// Parses a stored code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.code() == code)
    }
}

/// A change to be logged with its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedChange {
    /// The account that is changed; `None` for a change of the whole server.
    pub account: Option<AccountRowId>,
    /// The kind of change.
    pub action: AuditAction,
    /// The id of the changed object; for a webhook its environment, for a session the client's address; empty if the
    /// object is unique in its account.
    pub subject: String,
}

impl AuditedChange {
    /// Creates a change of an object that is unique in its account.
    pub const fn for_account(account: AccountRowId, action: AuditAction) -> Self {
        Self { account: Some(account), action, subject: String::new() }
    }

    /// Creates the entry of a session that begins, with the client's whole address: only this lets a user tell a
    /// stranger's session from one of their own.
    pub fn for_sign_in(account: AccountRowId, client: IpAddr) -> Self {
        let (action, subject) = (AuditAction::SignedIn, client.to_string());
        Self { account: Some(account), action, subject }
    }

    /// Creates a change of a tenant's webhook.
    pub fn for_webhook(tenant: Tenant, action: AuditAction) -> Self {
        let subject = tenant.environment.code().to_owned();
        Self { account: Some(tenant.account), action, subject }
    }
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The time of the change.
    pub at: Millis,
    /// The name of the account that was changed; `None` for a change of the whole server.
    pub account: Option<String>,
    /// The author of the change.
    pub actor: Actor,
    /// The subject of the change.
    pub action: AuditAction,
    /// The id of the changed object; for a webhook its environment, for a session the client's address; empty if the
    /// object is unique in its account.
    pub subject: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_round_trip() {
        for action in AuditAction::ALL {
            assert_eq!(AuditAction::from_code(action.code()), Some(*action));
            assert_ne!(action.text(Language::En), action.text(Language::Es));
        }
        assert_eq!(AuditAction::from_code("of a later version"), None);
        let token = Actor::Token("adt_1".into());
        for actor in [Actor::Session, Actor::Command, Actor::FirstStart, Actor::Server, token] {
            assert_eq!(Actor::from_code(actor.code()), actor);
            assert_ne!(actor.text(Language::En), actor.text(Language::Es));
        }
    }
}
