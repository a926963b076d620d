//! The format of the log for machines: the JSON of `tracing_subscriber`, in less time. That one builds a map for each
//! line and checks the UTF-8 of each piece, which took a fifth of the time of a short request.

use std::{
    cell::RefCell,
    fmt::{self, Write},
};

use chrono::DateTime;
use parcelo_service::http::RequestIds;
use parcelo_system::clock::{Clock, SystemClock};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
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
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut line = Line { text: String::with_capacity(512), written: Ok(()) };
        line.text.push_str("{\"timestamp\":\"");
        push_time(&mut line.text);
        line.text.push_str("\",\"level\":\"");
        line.text.push_str(metadata.level().as_str());
        line.text.push_str("\",\"fields\":{");
        event.record(&mut line);
        RequestIds::read_current(|ids| {
            line.string("request_id", &ids.request);
            if let Some(trace) = ids.trace {
                line.string("trace_id", &trace.id());
            }
        });
        line.written?;
        if line.text.ends_with(',') {
            line.text.pop();
        }
        line.text.push_str("},\"target\":\"");
        push_escaped(&mut line.text, metadata.target());
        line.text.push_str("\"}\n");
        writer.write_str(&line.text)
    }
}

/// Writes the time of now in UTC, to the millisecond.
fn push_time(line: &mut String) {
    thread_local! {
        /// The second of the thread's last line, and its text.
        static LAST: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    let now = SystemClock.now();
    LAST.with_borrow_mut(|(second, text)| {
        if *second != now.second() {
            *second = now.second();
            let time = DateTime::from_timestamp(*second, 0).unwrap_or_default();
            *text = time.format("%Y-%m-%dT%H:%M:%S.").to_string();
        }
        line.push_str(text);
    });
    let mut buffer = itoa::Buffer::new();
    let millis = buffer.format(now.0.rem_euclid(1_000));
    line.push_str("000".get(millis.len()..).unwrap_or_default());
    line.push_str(millis);
    line.push('Z');
}

/// A line to which the object of fields is written. Names of fields are Rust's, so they need no escapes.
struct Line {
    text: String,
    /// An error of a field's own format.
    written: fmt::Result,
}

impl Line {
    /// Writes a field. Each is followed by a comma, and what is between names and values has a length that the compiler
    /// knows, which saves calls.
    fn field(&mut self, name: &str, push_value: impl FnOnce(&mut String)) {
        self.text.push('"');
        self.text.push_str(name.strip_prefix("r#").unwrap_or(name));
        self.text.push_str("\":");
        push_value(&mut self.text);
        self.text.push(',');
    }

    fn string(&mut self, name: &str, value: &str) {
        self.field(name, |text| {
            text.push('"');
            push_escaped(text, value);
            text.push('"');
        });
    }

    fn number(&mut self, field: &Field, value: impl itoa::Integer) {
        self.field(field.name(), |text| text.push_str(itoa::Buffer::new().format(value)));
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut written = Ok(());
        self.field(field.name(), |text| {
            text.push('"');
            written = write!(Escaped(text), "{value:?}");
            text.push('"');
        });
        self.written = self.written.and(written);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.string(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field.name(), |text| text.push_str(if value { "true" } else { "false" }));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinite numbers.
        let number = if value.is_finite() { value.to_string() } else { "null".to_owned() };
        self.field(field.name(), |text| text.push_str(&number));
    }
}

/// A writer of the inside of a JSON string.
struct Escaped<'line>(&'line mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        push_escaped(self.0, text);
        Ok(())
    }
}

fn push_escaped(line: &mut String, text: &str) {
    let must_escape = |byte: u8| {
        let (is_quote, is_backslash) = (byte == b'"', byte == b'\\');
        (byte < b' ') | is_quote | is_backslash
    };
    // Nearly every text is clean. Without a way out of the loop, many bytes are compared at once.
    if !text.bytes().fold(false, |found, byte| found | must_escape(byte)) {
        line.push_str(text);
        return;
    }
    for letter in text.chars() {
        match letter {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\0'..' ' => {
                line.push_str("\\u00");
                for digit in [u32::from(letter) / 16, u32::from(letter) % 16] {
                    line.extend(char::from_digit(digit, 16));
                }
            }
            _ => line.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use chrono::SecondsFormat;
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
        let parsed = DateTime::parse_from_rfc3339(time).unwrap();
        assert_eq!(parsed.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true), time);
        let second: Value = serde_json::from_str(second).unwrap();
        assert_eq!((&second["level"], &second["target"]), (&json!("WARN"), &json!("else\"where")));
    }
}
