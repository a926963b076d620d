//! What receivers read, on the tracking page and in e-mails: each fact has its words here, once, in both languages.
//! It decides nothing: which facts hold is the domain's, how they look the page's and the e-mail's.

mod arrival;
mod dates;
mod words;

pub(crate) use arrival::{ArrivalText, Day};
pub(crate) use dates::{in_words, offset_in_words};
pub(crate) use words::{Words, advice, meaning, status_name, words};
