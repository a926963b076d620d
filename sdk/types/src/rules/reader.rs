//! Reads a request from JSON and collects every fault on the way, never only the first.
//!
//! An [`Object`] returns [`FieldValue`]s. Each knows its path and whether the field was absent, invalid or valid: a
//! rule reads [`FieldValue::value`], which is `None` for a field that is already reported as invalid. A rule that adds
//! a fault itself then leaves the field alone, so that no field is reported twice. The caller decides about the meaning
//! of a field.

use std::cell::RefCell;

use rust_decimal::{Decimal, prelude::ToPrimitive};

use super::{
    Accepted, Rejected,
    field_types::{self, Bounds, Text},
    fields::Fields,
    path::Path,
    text::{self, Fonts},
    texts::{FaultText, WarningText, faults, warnings},
    validation::Report,
};
use crate::model::{
    decimal,
    json::{Body, Json, Members},
};

/// Reads a body; the faults and warnings are returned in the order of `fields`.
pub fn validate<'a, T>(
    body: impl Into<Body<'a>>,
    fields: &Fields,
    read: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<Accepted<T>, Rejected> {
    validate_for(Fonts::default(), body, fields, read)
}

/// Reads a body as [`validate`] does, for a service whose labels have these fonts.
pub(crate) fn validate_for<'a, T>(
    fonts: Fonts,
    body: impl Into<Body<'a>>,
    fields: &Fields,
    read: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<Accepted<T>, Rejected> {
    let (body, report) = (body.into(), RefCell::new(Report { fonts, ..Report::default() }));
    let value = Object::from_body(&body, &report).and_then(|object| read(&object));
    let mut report = report.into_inner();
    fields.sort(&mut report);
    let Report { faults, warnings, .. } = report;
    match value {
        Some(value) if faults.is_empty() => Ok(Accepted { value, warnings }),
        Some(_) | None => Err(Rejected { faults, warnings }),
    }
}

/// A field's path, and the report for its faults and warnings.
#[derive(Clone, Copy)]
pub(crate) struct FieldRef<'a> {
    path: Path<'a>,
    report: &'a RefCell<Report>,
}

impl FieldRef<'_> {
    pub(crate) fn fault(&self, fault: FaultText) {
        self.report.borrow_mut().faults.push(fault.at(&self.path));
    }

    pub(crate) fn warn(&self, warning: WarningText) {
        self.report.borrow_mut().warnings.push(warning.at(&self.path));
    }
}

/// An error without a text: the field is invalid, and its fault is in the report already.
#[derive(Debug)]
pub struct AlreadyReported;

/// A field that was read: its path and its value, `None` if it is absent.
#[expect(missing_debug_implementations, reason = "it holds personal data")]
pub struct FieldValue<'a, T> {
    field: FieldRef<'a>,
    value: Result<Option<T>, AlreadyReported>,
}

impl<'a, T> FieldValue<'a, T> {
    /// Returns the value, if the field is present and valid.
    pub fn optional(self) -> Option<T> {
        self.value.ok().flatten()
    }

    /// Returns the value; if the field is absent, reports a fault.
    pub fn required(self) -> Option<T> {
        self.check_present().optional()
    }

    /// Reports a fault if the field is absent, and returns it unchanged for further rules.
    pub(crate) fn check_present(self) -> Self {
        self.require_or(faults::REQUIRED);
        self
    }

    /// Reports this fault if the field is absent.
    pub(crate) fn require_or(&self, fault: FaultText) {
        if self.is_absent() {
            self.field.fault(fault);
        }
    }

    /// Parses the value; an error becomes the field's fault.
    pub fn and_then<U>(self, read: impl FnOnce(T) -> Result<U, FaultText>) -> FieldValue<'a, U> {
        let Self { field, value } = self;
        let read = |value: Option<T>| {
            value.map(read).transpose().map_err(|fault| {
                field.fault(fault);
                AlreadyReported
            })
        };
        FieldValue { field, value: value.and_then(read) }
    }

    /// Returns the value, `None` if the field is absent, or an error if it is invalid.
    pub fn into_result(self) -> Result<Option<T>, AlreadyReported> {
        self.value
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.value.as_ref().ok()?.as_ref()
    }

    /// Returns `true` if the field is absent.
    pub fn is_absent(&self) -> bool {
        matches!(self.value, Ok(None))
    }

    /// Reports a fault of the field.
    pub fn fault(&self, fault: FaultText) {
        self.field.fault(fault);
    }

    pub(crate) fn warn(&self, warning: WarningText) {
        self.field.warn(warning);
    }
}

/// A JSON object that is being read.
#[expect(missing_debug_implementations, reason = "it holds personal data")]
#[derive(Clone, Copy)]
pub struct Object<'a> {
    members: &'a Members<'a>,
    path: Path<'a>,
    report: &'a RefCell<Report>,
}

impl<'a> Object<'a> {
    /// Reads the body of a request, which must be an object.
    pub(crate) fn from_body(body: &'a Json<'_>, report: &'a RefCell<Report>) -> Option<Self> {
        if let Some(members) = body.as_object() {
            return Some(Self::from_members(members, report));
        }
        report.borrow_mut().faults.push(faults::BODY_NOT_OBJECT.at(&Path::BODY));
        None
    }

    /// Reads the body's members.
    pub(crate) fn from_members(members: &'a Members<'a>, report: &'a RefCell<Report>) -> Self {
        Self { members, path: Path::BODY, report }
    }

    /// Warns of every unknown member of this object and of the objects in it.
    pub(crate) fn warn_unknown(&self, fields: &Fields) {
        fields.warn_unknown(self.members, &mut self.report.borrow_mut());
    }

    /// Returns the members as received.
    pub fn members(&self) -> &'a Members<'a> {
        self.members
    }

    /// Returns a member, present or not.
    pub(crate) fn field(&'a self, name: &'a str) -> FieldRef<'a> {
        FieldRef { path: self.path.member(name), report: self.report }
    }

    /// Reports a fault at a path from the body, for rules that look at several fields.
    pub fn fault_at(&self, path: &str, fault: FaultText) {
        self.report.borrow_mut().faults.push(fault.at(path));
    }

    /// Reports a warning at a path from the body.
    pub(crate) fn warn_at(&self, path: &str, warning: WarningText) {
        self.report.borrow_mut().warnings.push(warning.at(path));
    }

    /// Reads a field beyond the specification. Earlier versions ignored such fields and accepted the order, so a wrong
    /// value is only a warning, and the field counts as absent.
    pub(crate) fn lenient<T>(
        &self,
        read: impl for<'r> FnOnce(&'r Object<'r>) -> FieldValue<'r, T>,
    ) -> Option<T> {
        let fonts = self.report.borrow().fonts;
        let own = RefCell::new(Report { fonts, ..Report::default() });
        let value = read(&Object { report: &own, ..*self }).optional();
        let Report { faults, warnings, .. } = own.into_inner();
        let warnings = warnings.into_iter().chain(faults.into_iter().map(warnings::value_ignored));
        self.report.borrow_mut().warnings.extend(warnings);
        value
    }

    /// Reads a text beyond the specification. A longer one than its limit is cut, with a warning.
    pub(crate) fn lenient_text(&self, name: &'static str, text: Text) -> Option<String> {
        self.lenient(|object| {
            let given = object.text(name, text.with_max(usize::MAX));
            if given.value().is_some_and(|given| text.cut(given) != *given) {
                given.warn(warnings::text_cut(text));
            }
            given.and_then(|given| Ok(text.cut(given).to_owned()))
        })
    }

    /// Reads a text field.
    pub fn text(&'a self, name: &'a str, text: Text) -> FieldValue<'a, &'a str> {
        self.text_alias(name, name, text)
    }

    /// Reads a text field that is received as `spelling`, a second name of `name`; its faults name `name`.
    pub(crate) fn text_alias(
        &'a self,
        spelling: &str,
        name: &'a str,
        text: Text,
    ) -> FieldValue<'a, &'a str> {
        match self.members.get(spelling) {
            None | Some(Json::Null) => self.absent(name),
            Some(value) => read_text(self.field(name), value, text),
        }
    }

    /// Returns the value of a field that counts as absent, because it is not read here.
    pub(crate) fn absent<T>(&'a self, name: &'a str) -> FieldValue<'a, T> {
        FieldValue { field: self.field(name), value: Ok(None) }
    }

    /// Reads a number inside its bounds.
    pub(crate) fn number(&'a self, name: &'a str, bounds: Bounds) -> FieldValue<'a, Decimal> {
        self.any(name).and_then(|value| {
            let number = value.as_number().ok_or(faults::NOT_NUMBER)?;
            bounds.check(decimal::from_number(number).ok_or_else(|| bounds.out_of_range())?)
        })
    }

    /// Reads a whole number from 1 to `max`; `2.0` is accepted as 2.
    pub(crate) fn whole_number(&'a self, name: &'a str, max: u32) -> FieldValue<'a, u32> {
        let bounds = Bounds::Between(Decimal::ONE, Decimal::from(max));
        self.any(name).and_then(|value| {
            let number = value.as_number().ok_or(faults::NOT_NUMBER)?;
            let number = decimal::from_number(number).ok_or_else(|| bounds.out_of_range())?;
            if !number.is_integer() {
                return Err(faults::NOT_WHOLE);
            }
            bounds.check(number)?.to_u32().ok_or_else(|| bounds.out_of_range())
        })
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&'a self, name: &'a str) -> FieldValue<'a, bool> {
        self.any(name).and_then(|value| value.as_bool().ok_or(faults::NOT_BOOLEAN))
    }

    /// Reads an object within this one.
    pub(crate) fn object(&'a self, name: &'a str) -> FieldValue<'a, Object<'a>> {
        let (path, report) = (self.path.member(name), self.report);
        self.any(name).and_then(|value| {
            let members = value.as_object().ok_or(faults::NOT_OBJECT)?;
            Ok(Object { members, path, report })
        })
    }

    /// Reads a list of at most `max` elements.
    pub fn list(&'a self, name: &'a str, max: usize) -> FieldValue<'a, List<'a>> {
        let (path, report) = (self.path.member(name), self.report);
        self.any(name).and_then(|value| {
            let items = value.as_list().ok_or(faults::NOT_LIST)?;
            if items.len() > max {
                return Err(faults::too_many(max, name));
            }
            Ok(List { items, path, report })
        })
    }

    fn any(&'a self, name: &'a str) -> FieldValue<'a, &'a Json<'a>> {
        let given = self.members.get(name).filter(|value| !matches!(value, Json::Null));
        FieldValue { field: self.field(name), value: Ok(given) }
    }
}

/// A JSON array that is being read.
#[expect(missing_debug_implementations, reason = "it holds personal data")]
#[derive(Clone, Copy)]
pub struct List<'a> {
    items: &'a [Json<'a>],
    path: Path<'a>,
    report: &'a RefCell<Report>,
}

impl<'a> List<'a> {
    /// Returns `true` if the list has no elements.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the elements as objects; an element that is not one is a fault.
    pub fn objects(&'a self) -> impl Iterator<Item = Option<Object<'a>>> {
        self.items.iter().enumerate().map(|(i, value)| {
            let path = self.path.item(i);
            let Some(members) = value.as_object() else {
                FieldRef { path, report: self.report }.fault(faults::NOT_OBJECT);
                return None;
            };
            Some(Object { members, path, report: self.report })
        })
    }

    /// Returns the elements as texts.
    pub fn texts(&'a self, text: Text) -> impl Iterator<Item = FieldValue<'a, &'a str>> {
        self.items.iter().enumerate().map(move |(i, value)| {
            let field = FieldRef { path: self.path.item(i), report: self.report };
            read_text(field, value, text)
        })
    }
}

fn read_text<'a>(field: FieldRef<'a>, value: &'a Json<'_>, text: Text) -> FieldValue<'a, &'a str> {
    let Json::Text(given) = value else {
        let is_number = value.as_number().is_some();
        field.fault(if is_number { faults::NUMBER_FOR_TEXT } else { faults::NOT_TEXT });
        return FieldValue { field, value: Err(AlreadyReported) };
    };
    let given = Some(&**given).filter(|given| !field_types::is_blank(given));
    let value = FieldValue { field, value: Ok(given) }.and_then(|given| text.parse(given));
    if let Some(given) = value.value()
        && !text::is_plain(given)
    {
        warn_of_characters(&value, given, text);
    }
    value
}

fn warn_of_characters(value: &FieldValue<'_, &str>, given: &str, text: Text) {
    let fonts = value.field.report.borrow().fonts;
    if text.is_on_label() && !text::is_all_printable(given, fonts) {
        value.warn(warnings::NOT_PRINTABLE);
    }
    if text.is_person() && given.contains(text::is_hidden) {
        value.warn(warnings::HIDDEN_CHARACTER);
    }
}
