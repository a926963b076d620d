//! `--verbose`: prints the SDK's tracing events about attempts and waits as sentences.

use std::{
    fmt::Debug,
    io::{self, Write},
};

use parcelo::Language;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

use crate::texts;

/// A tracing layer for the SDK's spans.
#[derive(Debug)]
pub(super) struct AttemptLog(pub(super) Language);

/// The fields of a span or an event.
#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn get(&self, name: &str) -> &str {
        let found = self.0.iter().rev().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the request, such as `POST /api/v1/orders/create`.
    fn call(&self) -> String {
        format!("{} {}", self.get("http.request.method"), self.get("url.template"))
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push((field.name(), format!("{value:?}")));
    }
}

const CALL: &str = "parcelo.call";

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for AttemptLog {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("parcelo::")
    }

    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: Context<'_, S>,
    ) {
        let mut values = Fields::default();
        attributes.record(&mut values);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(values);
        }
    }

    fn on_record(&self, id: &span::Id, record: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(values) = span.extensions_mut().get_mut::<Fields>()
        {
            record.record(values);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let call = span.extensions().get::<Fields>().map(Fields::call).unwrap_or_default();
        let mut values = Fields::default();
        event.record(&mut values);
        let placeholders = [
            ("call", &*call),
            ("n", values.get("attempt")),
            ("class", values.get("class")),
            ("wait", values.get("wait")),
        ];
        self.write(texts::ATTEMPT_FAILED, &placeholders);
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id).filter(|span| span.name() == CALL) else { return };
        let extensions = span.extensions();
        let Some(values) = extensions.get::<Fields>() else { return };
        let (call, status) = (values.call(), values.get("http.response.status_code"));
        let text = if status.is_empty() { texts::CALL_UNANSWERED } else { texts::CALL_ANSWERED };
        self.write(text, &[("call", &call), ("status", status), ("n", values.get("attempts"))]);
    }
}

impl AttemptLog {
    fn write(&self, text: texts::Text, placeholders: &[(&str, &str)]) {
        // If standard error is closed, it cannot be shown.
        let _ = writeln!(io::stderr(), "{}", text.with(placeholders).pick(self.0));
    }
}
