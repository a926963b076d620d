//! Macros for types of requests and responses: enums of open lists of codes, newtypes around validated text, and setters
//! of structs to which fields will be added.

/// Defines an enum of codes that keeps unknown codes, so that responses of a newer server can be parsed. An attribute in
/// brackets after the name is for `KNOWN`, which integrators need of codes that they may choose.
#[doc(hidden)]
#[macro_export]
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident $([$known:meta])? { $($(#[$vmeta:meta])* $variant:ident = $code:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A code that this version does not know, kept as received.
            Unknown(String),
        }

        impl $name {
            /// Every value that this version knows, in the order of the documentation.
            $(#[$known])?
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the code in JSON.
            pub fn code(&self) -> &str {
                match self {
                    $(Self::$variant => $code,)+
                    Self::Unknown(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($code => Self::$variant,)+
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.code())
            }
        }

        #[cfg(feature = "utoipa")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::internal::closed_enum(Self::KNOWN.iter().map(Self::code))
            }
        }

        #[cfg(feature = "utoipa")]
        impl utoipa::ToSchema for $name {}

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.code())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Ok(Self::from(word.as_ref()))
            }
        }
    };
}

/// Implements the traits of a newtype around validated text except for deserialization, with its pattern and an example
/// for documents. The type has `fn parse(&str) -> Result<Self, InvalidValue>` and `fn as_str(&self) -> &str`.
macro_rules! text_traits {
    ($name:ident, $pattern:expr, $example:literal) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::model::InvalidValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }

        #[cfg(feature = "utoipa")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                crate::model::schema::text(&$pattern, $example)
            }
        }

        #[cfg(feature = "utoipa")]
        impl utoipa::ToSchema for $name {}

        impl crate::model::maybe_known::Spelled for $name {
            fn spelling(&self) -> &str {
                self.as_str()
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

/// Implements the traits of a newtype around validated text, including deserialization, which fails for invalid text.
macro_rules! checked_text {
    ($name:ident, $pattern:expr, $example:literal) => {
        $crate::model::macros::text_traits!($name, $pattern, $example);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Generates the `with_…` setters of a struct that is `#[non_exhaustive]`, inside its `impl`, so that others can fill it
/// without a literal: a request's for everyone, a response's, which are hidden, for the service. The types: `text` is an
/// `Option<String>`, `link` an `Option<LabelLink>`, `string` a `String`, `some T` an `Option<T>`, and any other type is
/// used as it is.
macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident($field:ident: $($of:tt)+);)+) => {
        $($crate::model::macros::setter! { $(#[$doc])* $setter $field $($of)+ })+
    };
}

/// Generates one setter of [`setters`].
macro_rules! setter {
    ($(#[$doc:meta])* $setter:ident $field:ident text) => {
        $(#[$doc])*
        #[must_use]
        pub fn $setter(self, $field: impl Into<String>) -> Self {
            Self { $field: Some($field.into()), ..self }
        }
    };
    ($(#[$doc:meta])* $setter:ident $field:ident link) => {
        $(#[$doc])*
        #[must_use]
        pub fn $setter(self, $field: impl Into<crate::model::LabelLink>) -> Self {
            Self { $field: Some($field.into()), ..self }
        }
    };
    ($(#[$doc:meta])* $setter:ident $field:ident string) => {
        $(#[$doc])*
        #[must_use]
        pub fn $setter(self, $field: impl Into<String>) -> Self {
            Self { $field: $field.into(), ..self }
        }
    };
    ($(#[$doc:meta])* $setter:ident $field:ident some $of:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $setter(self, $field: $of) -> Self {
            Self { $field: Some($field), ..self }
        }
    };
    ($(#[$doc:meta])* $setter:ident $field:ident $of:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $setter(self, $field: $of) -> Self {
            Self { $field, ..self }
        }
    };
}

/// Implements parsing and deserialization of a secret, such as one in a file of settings. It is never serialized, and
/// never part of an error.
#[doc(hidden)]
#[macro_export]
macro_rules! secret_text {
    ($name:ident, $error:ty) => {
        impl std::str::FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::parse(text)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use {checked_text, secret_text, setter, setters, text_traits, wire_enum};
