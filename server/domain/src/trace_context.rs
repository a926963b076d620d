//! The trace of a request (W3C Trace Context), which the webhooks that the request causes continue.

/// The flags that version 00 of the format defines: sampled, and random id.
const FLAGS_OF_VERSION_00: u8 = 0b11;
/// The only flag whose meaning is fixed in later versions: sampled.
const FLAGS_OF_LATER_VERSIONS: u8 = 0b01;

/// The trace of a request: its id, and the flags that the caller sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    flags: u8,
    id: [u8; 16],
}

impl TraceContext {
    /// The header that names the trace and the calling span.
    pub const HEADER: &str = "traceparent";

    /// Parses a `traceparent`, or returns `None` if it is invalid. A later version of the format may have more parts.
    pub fn parse(parent: &str) -> Option<Self> {
        let mut parts = parent.split('-');
        let mut part = |digits| {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            parts.next().filter(|part| part.len() == digits && part.bytes().all(is_digit))
        };
        let (version, id, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let id = u128::from_str_radix(id, 16).ok()?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        let known_flags = match version {
            "ff" => return None,
            "00" if parts.next().is_some() => return None,
            "00" => FLAGS_OF_VERSION_00,
            _ => FLAGS_OF_LATER_VERSIONS,
        };
        let is_valid = id != 0 && span.bytes().any(|digit| digit != b'0');
        is_valid.then_some(Self { flags: flags & known_flags, id: id.to_be_bytes() })
    }

    /// Returns the trace's id: 32 hexadecimal digits.
    pub fn id(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.id))
    }

    /// Returns the `traceparent` of a span of this trace. The span's id is not 0.
    pub fn traceparent(self, span: u64) -> String {
        format!("00-{}-{span:016x}-{:02x}", self.id(), self.flags)
    }

    /// Returns the stored form: the flags, then the id.
    pub fn to_bytes(self) -> [u8; 17] {
        let mut bytes = [self.flags; 17];
        let [_, id @ ..] = &mut bytes;
        *id = self.id;
        bytes
    }

    /// Reads the stored form.
    pub fn from_bytes([flags, id @ ..]: [u8; 17]) -> Self {
        Self { flags, id }
    }
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_trace_is_taken_from_a_valid_traceparent_alone() {
        let table = [
            (format!("00-{TRACE}-00f067aa0ba902b7-01"), true),
            (format!("cc-{TRACE}-00f067aa0ba902b7-01-more"), true),
            (format!("00-{TRACE}-00f067aa0ba902b7-01-more"), false),
            (format!("ff-{TRACE}-00f067aa0ba902b7-01"), false),
            (format!("00-{TRACE}-0000000000000000-01"), false),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), false),
            (format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()), false),
            (format!("00-{TRACE}\"-00f067aa0ba902b7-01"), false),
            (format!("00-{TRACE}-00f067aa0ba902b7"), false),
            (format!("00-{TRACE}-00f067aa0ba902b7-0g"), false),
            (String::new(), false),
        ];
        for (parent, is_valid) in table {
            let id = TraceContext::parse(&parent).map(TraceContext::id);
            assert_eq!(id.as_deref(), is_valid.then_some(TRACE), "{parent}");
        }
    }

    #[test]
    fn a_span_has_the_known_flags_of_its_trace_even_after_storage() {
        let table =
            [("00", "00", "00"), ("00", "01", "01"), ("00", "ff", "03"), ("cc", "ff", "01")];
        for (version, sent, passed_on) in table {
            let parent = format!("{version}-{TRACE}-00f067aa0ba902b7-{sent}");
            let trace = TraceContext::parse(&parent).unwrap();
            let stored = TraceContext::from_bytes(trace.to_bytes());
            let expected = format!("00-{TRACE}-000000000000000a-{passed_on}");
            assert_eq!(stored.traceparent(10), expected, "{parent}");
        }
    }
}
