//! The texts that receivers read on the tracking page and in e-mails: one text for each fact, in both languages. The
//! domain decides which facts hold; the page and the e-mail decide how they look.

mod arrival;
mod dates;
mod texts;

pub(crate) use arrival::{ArrivalText, DisplayDate};
pub use dates::format_date;
pub(crate) use dates::format_offset;
pub(crate) use texts::{
    TrackingPageTexts, page_texts, receiver_advice, status_explanation, status_name,
};
