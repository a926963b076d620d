//! Durations in configuration files, written as a number of seconds: `#[serde(with = "seconds")]`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    const INVALID: &str = "invalid duration: expected a number of seconds, 0 or more";
    let seconds = f64::deserialize(deserializer)?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(Error::custom(INVALID));
    }
    // Larger than a `Duration` can be.
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Retry, Timeouts};

    #[test]
    fn settings_survive_a_round_trip() {
        let odd = Duration::from_nanos(1_234_567_890);
        for time in [Duration::ZERO, odd, Duration::from_millis(100), Duration::MAX] {
            let timeouts = Timeouts::default().total(time).connect(time);
            let text = serde_json::to_string(&timeouts).unwrap();
            assert_eq!(serde_json::from_str::<Timeouts>(&text).unwrap(), timeouts, "{text}");
            let retry = Retry::none().backoff(time, time).max_retry_after(time);
            let retry = retry.budget(2800, 28).unbudgeted();
            let text = serde_json::to_string(&retry).unwrap();
            assert_eq!(serde_json::from_str::<Retry>(&text).unwrap(), retry, "{text}");
        }
        assert_eq!(
            serde_json::to_string(&Timeouts::default()).unwrap(),
            r#"{"total":60.0,"attempt":15.0,"connect":5.0,"idle":10.0}"#
        );
        assert_eq!(
            serde_json::to_string(&Retry::none()).unwrap(),
            r#"{"attempts":1,"firstBackoff":0.1,"maxBackoff":5.0,"maxRetryAfter":30.0,"budgeted":true,"budget":{"tokens":500,"perSecond":10}}"#
        );
    }

    #[test]
    fn settings_without_effect_are_raised_and_bad_values_are_refused() {
        assert_eq!(serde_json::from_str::<Retry>(r#"{"attempts": 0}"#).unwrap(), Retry::none());
        let retry: Retry = serde_json::from_str(r#"{"budget": {"tokens": 3}}"#).unwrap();
        assert_eq!(retry, Retry::standard().budget(14, 10), "a retry costs 14");
        for wrong in [r#"{"total": -1}"#, r#"{"total": "1s"}"#, r#"{"totals": 1}"#] {
            assert!(serde_json::from_str::<Timeouts>(wrong).is_err(), "{wrong}");
        }
    }
}
