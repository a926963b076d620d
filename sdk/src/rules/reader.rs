//! Reads a request from JSON and collects every fault on the way, never only the first.
//!
//! An [`Object`] gives [`Entry`]s; an entry knows where it stands and whether it was absent, faulty
//! or a value, so that a rule can add to it and nothing is reported twice. What the fields mean is
//! decided by those who ask for them.

use std::cell::RefCell;

use rust_decimal::{Decimal, prelude::ToPrimitive};
use serde_json::{Map, Value};

use super::{
    fields::Fields,
    kinds::{self, Bounds, Text},
    path::Path,
    printable,
    texts::{Odd, Wrong, faults, warnings},
};
use crate::model::{FieldFault, Warning, decimal};

/// What was found wrong and odd so far.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) faults: Vec<FieldFault>,
    pub(crate) warnings: Vec<Warning>,
}

/// Where a field stands, and where to say what is wrong with it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    path: Path<'a>,
    report: &'a RefCell<Report>,
}

impl Place<'_> {
    pub(crate) fn fault(&self, wrong: Wrong) {
        self.report.borrow_mut().faults.push(wrong.at(&self.path));
    }

    pub(crate) fn warn(&self, odd: Odd) {
        self.report.borrow_mut().warnings.push(odd.at(&self.path));
    }
}

/// What a field held.
enum Read<T> {
    Absent,
    Faulty,
    Is(T),
}

/// The field's fault is reported already.
pub(crate) struct Faulty;

/// A field that was read: where it stands and what it held.
pub(crate) struct Entry<'a, T> {
    place: Place<'a>,
    read: Read<T>,
}

impl<'a, T> Entry<'a, T> {
    /// The value; absent and faulty fields have none.
    pub(crate) fn optional(self) -> Option<T> {
        match self.read {
            Read::Is(value) => Some(value),
            Read::Absent | Read::Faulty => None,
        }
    }

    /// The value; its absence is a fault.
    pub(crate) fn required(self) -> Option<T> {
        self.demand(faults::required);
        self.optional()
    }

    /// The entry again; its absence is a fault.
    pub(crate) fn needed(self) -> Self {
        self.demand(faults::required);
        self
    }

    /// Makes absence a fault with a text of its own.
    pub(crate) fn demand(&self, wrong: impl FnOnce() -> Wrong) {
        if self.is_absent() {
            self.place.fault(wrong());
        }
    }

    /// Turns the value into what it stands for.
    pub(crate) fn then<U>(self, read: impl FnOnce(T) -> Result<U, Wrong>) -> Entry<'a, U> {
        let read = match self.read {
            Read::Absent => Read::Absent,
            Read::Faulty => Read::Faulty,
            Read::Is(value) => match read(value) {
                Ok(value) => Read::Is(value),
                Err(wrong) => {
                    self.place.fault(wrong);
                    Read::Faulty
                }
            },
        };
        Entry { place: self.place, read }
    }

    /// The value or its absence; a faulty field is neither.
    pub(crate) fn sound(self) -> Result<Option<T>, Faulty> {
        match self.read {
            Read::Is(value) => Ok(Some(value)),
            Read::Absent => Ok(None),
            Read::Faulty => Err(Faulty),
        }
    }

    pub(crate) fn value(&self) -> Option<&T> {
        match &self.read {
            Read::Is(value) => Some(value),
            Read::Absent | Read::Faulty => None,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.read, Read::Absent)
    }

    pub(crate) fn fault(&self, wrong: Wrong) {
        self.place.fault(wrong);
    }

    pub(crate) fn warn(&self, odd: Odd) {
        self.place.warn(odd);
    }
}

/// A JSON object that is being read.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    members: &'a Map<String, Value>,
    path: Path<'a>,
    report: &'a RefCell<Report>,
}

impl<'a> Object<'a> {
    /// The body of a request; any JSON but an object is a fault.
    pub(crate) fn body(body: &'a Value, report: &'a RefCell<Report>) -> Option<Self> {
        if let Some(members) = body.as_object() {
            return Some(Self::of(members, report));
        }
        report.borrow_mut().faults.push(faults::body_no_object().at(&Path::BODY));
        None
    }

    /// The body's members.
    pub(crate) fn of(members: &'a Map<String, Value>, report: &'a RefCell<Report>) -> Self {
        Self { members, path: Path::BODY, report }
    }

    /// Warns of every member that no field reads, here and below.
    pub(crate) fn warn_unknown(&self, fields: &Fields) {
        fields.warn_unknown(self.members, &mut self.report.borrow_mut());
    }

    /// The members as they came.
    pub(crate) fn members(&self) -> &'a Map<String, Value> {
        self.members
    }

    /// Where a member stands or would stand.
    pub(crate) fn place(&'a self, name: &'a str) -> Place<'a> {
        Place { path: self.path.member(name), report: self.report }
    }

    /// Reports a fault at a path from the body, for rules that look at several fields.
    pub(crate) fn fault_at(&self, path: &str, wrong: Wrong) {
        self.report.borrow_mut().faults.push(wrong.at(path));
    }

    /// Reports a warning at a path from the body.
    pub(crate) fn warn_at(&self, path: &str, odd: Odd) {
        self.report.borrow_mut().warnings.push(odd.at(path));
    }

    /// A text field.
    pub(crate) fn text(&'a self, name: &'a str, text: Text) -> Entry<'a, &'a str> {
        self.respelled(name, name, text)
    }

    /// A text field whose name is another spelling of `name`, which its faults speak of.
    pub(crate) fn respelled(
        &'a self,
        spelling: &str,
        name: &'a str,
        text: Text,
    ) -> Entry<'a, &'a str> {
        let place = self.place(name);
        match self.members.get(spelling) {
            None | Some(Value::Null) => Entry { place, read: Read::Absent },
            Some(value) => text_entry(place, value, text),
        }
    }

    /// A field that is not read here.
    pub(crate) fn absent<T>(&'a self, name: &'a str) -> Entry<'a, T> {
        Entry { place: self.place(name), read: Read::Absent }
    }

    /// A number inside its bounds.
    pub(crate) fn number(&'a self, name: &'a str, bounds: Bounds) -> Entry<'a, Decimal> {
        self.entry(name).then(|value| {
            let number = value.as_number().ok_or_else(faults::not_number)?;
            bounds.hold(decimal::from_number(number).ok_or_else(|| bounds.broken())?)
        })
    }

    /// A whole number from 1 to `most`; `2.0` is 2.
    pub(crate) fn count(&'a self, name: &'a str, most: u32) -> Entry<'a, u32> {
        let bounds = Bounds::Between(Decimal::ONE, Decimal::from(most));
        self.entry(name).then(|value| {
            let number = value.as_number().ok_or_else(faults::not_number)?;
            let number = decimal::from_number(number).ok_or_else(|| bounds.broken())?;
            if !number.is_integer() {
                return Err(faults::not_whole());
            }
            bounds.hold(number)?.to_u32().ok_or_else(|| bounds.broken())
        })
    }

    /// True or false.
    pub(crate) fn truth(&'a self, name: &'a str) -> Entry<'a, bool> {
        self.entry(name).then(|value| value.as_bool().ok_or_else(faults::not_truth))
    }

    /// An object within this one.
    pub(crate) fn object(&'a self, name: &'a str) -> Entry<'a, Object<'a>> {
        let (path, report) = (self.path.member(name), self.report);
        self.entry(name).then(|value| {
            let members = value.as_object().ok_or_else(faults::not_object)?;
            Ok(Object { members, path, report })
        })
    }

    /// A list of at most `most` elements.
    pub(crate) fn list(&'a self, name: &'a str, most: usize) -> Entry<'a, List<'a>> {
        let (path, report) = (self.path.member(name), self.report);
        self.entry(name).then(|value| {
            let items = value.as_array().ok_or_else(faults::not_list)?;
            if items.len() > most {
                return Err(faults::too_many(most));
            }
            Ok(List { items, path, report })
        })
    }

    fn entry(&'a self, name: &'a str) -> Entry<'a, &'a Value> {
        let read = match self.members.get(name) {
            None | Some(Value::Null) => Read::Absent,
            Some(value) => Read::Is(value),
        };
        Entry { place: self.place(name), read }
    }
}

/// A JSON array that is being read.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    items: &'a [Value],
    path: Path<'a>,
    report: &'a RefCell<Report>,
}

impl<'a> List<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The elements as objects; any other element is a fault of its own.
    pub(crate) fn objects(&'a self) -> impl Iterator<Item = Option<Object<'a>>> {
        self.items.iter().enumerate().map(|(i, value)| {
            let path = self.path.item(i);
            let Some(members) = value.as_object() else {
                Place { path, report: self.report }.fault(faults::not_object());
                return None;
            };
            Some(Object { members, path, report: self.report })
        })
    }

    /// The elements as texts.
    pub(crate) fn texts(&'a self, text: Text) -> impl Iterator<Item = Entry<'a, &'a str>> {
        self.items.iter().enumerate().map(move |(i, value)| {
            let place = Place { path: self.path.item(i), report: self.report };
            text_entry(place, value, text)
        })
    }
}

fn text_entry<'a>(place: Place<'a>, value: &'a Value, text: Text) -> Entry<'a, &'a str> {
    let Value::String(given) = value else {
        place.fault(if value.is_number() { faults::number_for_text() } else { faults::not_text() });
        return Entry { place, read: Read::Faulty };
    };
    if kinds::is_blank(given) {
        return Entry { place, read: Read::Absent };
    }
    let entry = Entry { place, read: Read::Is(given.as_str()) }.then(|given| text.read(given));
    if text.is_drawn() && entry.value().is_some_and(|given| !printable::is_all_printable(given)) {
        entry.warn(warnings::not_printable());
    }
    if text.is_person() && entry.value().is_some_and(|given| given.contains(printable::is_hidden)) {
        entry.warn(warnings::hidden_character());
    }
    entry
}
