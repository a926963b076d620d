//! JSON that borrows from the bytes of a body: a text without escapes is a slice of them, so that parsing an order
//! copies little.

use std::{borrow::Cow, collections::BTreeMap, ops::Deref};

use serde_json::{Number, Value};

/// A JSON value.
#[expect(missing_debug_implementations, reason = "it holds personal data")]
#[expect(clippy::exhaustive_enums, reason = "JSON has no other values")]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number
    Number(Number),
    /// A text
    Text(Cow<'a, str>),
    /// A list
    List(Vec<Self>),
    /// An object
    Object(Members<'a>),
}

/// The members of an object, sorted by name.
pub type Members<'a> = BTreeMap<Cow<'a, str>, Json<'a>>;

impl<'a> Json<'a> {
    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_object(&self) -> Option<&Members<'a>> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// Returns the member with this name; `None` if this is not an object or has no such member.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }
}

impl<'a> From<&'a Value> for Json<'a> {
    fn from(value: &'a Value) -> Self {
        let member = |(name, value): (&'a String, _)| (Cow::from(name), Self::from(value));
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(Cow::from(text)),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(members.iter().map(member).collect()),
        }
    }
}

impl From<Json<'_>> for Value {
    fn from(json: Json<'_>) -> Self {
        let member = |(name, value): (Cow<'_, str>, _)| (name.into_owned(), Self::from(value));
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(value),
            Json::Number(number) => Self::Number(number),
            Json::Text(text) => Self::String(text.into_owned()),
            Json::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Json::Object(members) => Self::Object(members.into_iter().map(member).collect()),
        }
    }
}

/// A body to check: [`Json`] that was parsed by this crate, or a [`Value`].
#[expect(missing_debug_implementations, reason = "it holds personal data")]
#[expect(clippy::exhaustive_enums, reason = "it is one or the other")]
pub enum Body<'a> {
    /// A value that was converted.
    View(Json<'a>),
    /// JSON that was parsed from bytes.
    Read(&'a Json<'a>),
}

impl<'a> From<&'a Value> for Body<'a> {
    fn from(value: &'a Value) -> Self {
        Self::View(value.into())
    }
}

impl<'a> From<&'a Json<'a>> for Body<'a> {
    fn from(json: &'a Json<'a>) -> Self {
        Self::Read(json)
    }
}

impl<'a> Deref for Body<'a> {
    type Target = Json<'a>;

    fn deref(&self) -> &Json<'a> {
        match self {
            Self::View(json) => json,
            Self::Read(json) => json,
        }
    }
}
