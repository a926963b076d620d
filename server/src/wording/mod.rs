//! The texts that receivers read on the tracking page and in e-mails: one text for each fact, in both languages. The
//! domain decides which facts hold, and the page and the e-mail how they look.

mod arrival;
mod dates;
mod words;

pub(crate) use arrival::{ArrivalText, DisplayDate};
pub(crate) use dates::{in_words, offset_in_words};
pub(crate) use words::{Words, advice, meaning, status_name, words};
