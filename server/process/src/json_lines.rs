//! The format of the log for machines: the JSON of `tracing_subscriber`, in less time. That one builds a map for each
//! line and checks the UTF-8 of each piece, which took a fifth of the time of a short request.

use std::fmt::{self, Write};

use parcelo_service::http::RequestIds;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

/// A format with one JSON object for each line: `timestamp`, `level`, `fields` and `target`. The fields of a line that
/// a request logged have its `request_id`, and its `trace_id` if there is one.
#[derive(Debug, Clone, Copy)]
pub struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        line.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut line)?;
        line.write_str("\",\"level\":\"")?;
        line.write_str(metadata.level().as_str())?;
        line.write_str("\",\"fields\":{")?;
        let mut fields = Fields { line: &mut line, written: Ok(0) };
        event.record(&mut fields);
        RequestIds::read_current(|ids| {
            fields.text("request_id", &ids.request);
            if let Some(trace) = ids.trace {
                fields.text("trace_id", &trace.id());
            }
        });
        fields.written?;
        line.write_str("},\"target\":\"")?;
        Escaped(&mut line).write_str(metadata.target())?;
        line.write_str("\"}\n")
    }
}

/// The members of the object of fields. Their names are Rust's, so they need no escapes.
struct Fields<'line, 'writer> {
    line: &'line mut Writer<'writer>,
    /// The number of members so far.
    written: Result<usize, fmt::Error>,
}

impl Fields<'_, '_> {
    fn member(&mut self, name: &str, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let write = |count: usize| {
            self.line.write_str(if count == 0 { "\"" } else { ",\"" })?;
            self.line.write_str(name.strip_prefix("r#").unwrap_or(name))?;
            self.line.write_str("\":")?;
            value(self.line)?;
            Ok(count + 1)
        };
        self.written = self.written.and_then(write);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.member(name, |line| {
            line.write_char('"')?;
            Escaped(line).write_str(value)?;
            line.write_char('"')
        });
    }
}

impl Visit for Fields<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.member(field.name(), |line| {
            line.write_char('"')?;
            write!(Escaped(line), "{value:?}")?;
            line.write_char('"')
        });
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field.name(), |line| line.write_str(if value { "true" } else { "false" }));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field.name(), |line| write!(line, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field.name(), |line| write!(line, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinite numbers.
        self.member(field.name(), |line| {
            if value.is_finite() { write!(line, "{value}") } else { line.write_str("null") }
        });
    }
}

/// A writer of the inside of a JSON string.
struct Escaped<'line, 'writer>(&'line mut Writer<'writer>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let must_escape = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
        let mut rest = text;
        // An escaped byte is ASCII, so the text can be cut on both sides of it.
        while let Some(at) = rest.bytes().position(must_escape) {
            let (clean, tail) = rest.split_at(at);
            self.0.write_str(clean)?;
            let (byte, tail) = tail.split_at(1);
            match byte {
                "\"" => self.0.write_str("\\\"")?,
                "\\" => self.0.write_str("\\\\")?,
                "\n" => self.0.write_str("\\n")?,
                _ => byte.bytes().try_for_each(|byte| write!(self.0, "\\u{byte:04x}"))?,
            }
            rest = tail;
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// The bytes that a test's subscriber wrote.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Written {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_line_is_one_json_object_whatever_its_fields_hold() {
        let written = Written::default();
        let logs = tracing_subscriber::fmt().event_format(JsonLines).with_writer(written.clone());
        tracing::subscriber::with_default(logs.finish(), || {
            let (text, absent) = ("a \"quoted\" \\ line\r\n\u{1}\u{7f} ñ 包", None::<&str>);
            tracing::info!(
                text,
                absent,
                display = %text,
                debug = ?Some("x\ty"),
                r#type = -3,
                count = u64::MAX,
                share = 0.5,
                endless = f64::INFINITY,
                is_fine = true,
                "{} of {text}",
                1
            );
            tracing::warn!(target: "else\"where", "second");
        });
        let bytes = written.0.lock().unwrap().clone();
        let lines = String::from_utf8(bytes).unwrap();
        let [first, second] = lines.lines().collect::<Vec<_>>()[..] else { panic!("{lines}") };
        let first: Value = serde_json::from_str(first).unwrap();
        let text = "a \"quoted\" \\ line\r\n\u{1}\u{7f} ñ 包";
        let fields = json!({
            "message": format!("1 of {text}"), "text": text, "display": text, "debug": "Some(\"x\\ty\")", "type": -3,
            "count": u64::MAX, "share": 0.5, "endless": null, "is_fine": true,
        });
        assert_eq!(first["fields"], fields);
        assert_eq!((&first["level"], &first["target"]), (&json!("INFO"), &json!(module_path!())));
        let time = first["timestamp"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
        let second: Value = serde_json::from_str(second).unwrap();
        assert_eq!((&second["level"], &second["target"]), (&json!("WARN"), &json!("else\"where")));
    }
}
