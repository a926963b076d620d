//! The texts that receivers read on the tracking page and in e-mails: one text for each fact, in both languages. The
//! domain decides which facts hold, and the page and the e-mail how they look.

mod arrival;
mod dates;
mod texts;

pub(crate) use arrival::{ArrivalText, DisplayDate};
pub(crate) use dates::{format_date, format_offset};
pub(crate) use texts::{PageTexts, advice, meaning, page_texts, status_name};
