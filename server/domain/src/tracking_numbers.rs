//! Generated tracking numbers (docs/api.md, Conventions): a prefix, the second of creation, and 40 random bits.
//!
//! The second comes first, so that new entries are neighbours in the index of numbers. It wraps after 388 days, so only
//! the index guarantees that numbers are unique. If a number is taken, another one is drawn.

use std::{fmt, sync::Arc};

use parcelo_types::{CountryCode, Environment, TrackingNumber};

use super::secrets::Secrets;
use crate::{Millis, ids::CROCKFORD};

/// Number of random bytes in a tracking number.
pub const RANDOM_BYTES: usize = 5;
const RANDOM_BITS: u32 = 40;
const SECONDS_BITS: u32 = 25;
const BITS_PER_CHARACTER: usize = 5;
/// Maximum number of draws for one parcel. Even at a million orders a second, a second draw is rare.
const MAX_DRAWS: u32 = 8;

/// A function that returns the random part of a tracking number.
pub type RandomBytes = dyn Fn() -> [u8; RANDOM_BYTES] + Send + Sync;

/// A generator of tracking numbers.
pub struct TrackingNumberGenerator {
    random: Box<RandomBytes>,
    /// The keys that sign the label link, which contains the number.
    pub(super) secrets: Secrets,
}

impl TrackingNumberGenerator {
    /// Creates a generator that draws from `random`.
    pub fn new(random: Box<RandomBytes>, secrets: Secrets) -> Self {
        Self { random, secrets }
    }

    /// Draws a number for a parcel that is created now.
    pub fn draw(&self, origin: (Environment, CountryCode), now: Millis) -> TrackingNumber {
        build_number(origin, now, (self.random)())
    }
}

impl fmt::Debug for TrackingNumberGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrackingNumberGenerator(***)")
    }
}

/// The number of draws that are left for a parcel whose tracking number is taken.
#[derive(Debug, Clone)]
pub struct RemainingDraws {
    source: Arc<TrackingNumberGenerator>,
    left: u32,
}

impl RemainingDraws {
    /// Allows the draws that are left after the first.
    pub fn new(source: &Arc<TrackingNumberGenerator>) -> Self {
        Self { source: Arc::clone(source), left: MAX_DRAWS - 1 }
    }

    /// Returns the generator for the next draw, or `None` once the draws are used up.
    pub(super) fn next(&mut self) -> Option<Arc<TrackingNumberGenerator>> {
        self.left = self.left.checked_sub(1)?;
        Some(Arc::clone(&self.source))
    }
}

/// Builds a number from the second and the random bytes. Sandbox numbers start with `SB`, production numbers never do.
fn build_number(
    (environment, country): (Environment, CountryCode),
    now: Millis,
    random: [u8; RANDOM_BYTES],
) -> TrackingNumber {
    let mut number = match (environment, country.as_str()) {
        (Environment::Sandbox, code) => format!("SB{code}"),
        // SB is the code of the Solomon Islands. ISO 3166 reserves XS for private use, so no country has it.
        (Environment::Production, "SB") => "XS".to_owned(),
        (Environment::Production, code) => code.to_owned(),
    };
    let second = now.0.div_euclid(1_000).rem_euclid(1 << SECONDS_BITS);
    let random = random.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
    let bits = u128::from(second.unsigned_abs()) << RANDOM_BITS | random;
    for shift in (0..SECONDS_BITS + RANDOM_BITS).step_by(BITS_PER_CHARACTER).rev() {
        let numeral = usize::try_from(bits >> shift & 31).ok();
        let letter = numeral.and_then(|numeral| CROCKFORD.get(numeral));
        number.extend(letter.copied().map(char::from));
    }
    #[expect(clippy::expect_used, reason = "2-4 letters and 13 of base32 are 15-17 characters")]
    TrackingNumber::parse(&number).expect("a generated number is well formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(environment: Environment, country: &str, millis: i64, random: [u8; 5]) -> String {
        let origin = (environment, CountryCode::parse(country).unwrap());
        build_number(origin, Millis(millis), random).to_string()
    }

    #[test]
    fn generated_numbers_start_with_the_environment_prefix() {
        let table = [
            (Environment::Production, "EC", "EC"),
            (Environment::Production, "SB", "XS"),
            (Environment::Sandbox, "EC", "SBEC"),
            (Environment::Sandbox, "SB", "SBSB"),
        ];
        for (environment, country, prefix) in table {
            assert_eq!(number(environment, country, 0, [0; 5]), format!("{prefix}0000000000000"));
        }
    }

    #[test]
    fn five_characters_are_the_second_and_eight_are_random() {
        let table = [
            (999, [0; 5], "0000000000000"),
            (1_000, [0; 5], "0000100000000"),
            (31_999, [0xff; 5], "0000ZZZZZZZZZ"),
            (32_000, [0, 0, 0, 0, 1], "0001000000001"),
            // The second repeats after 2^25 seconds.
            (((1 << 25) - 1) * 1_000, [0x84, 0x21, 0x08, 0x42, 0x10], "ZZZZZGGGGGGGG"),
            ((1 << 25) * 1_000, [0; 5], "0000000000000"),
            (-1, [0; 5], "ZZZZZ00000000"),
        ];
        for (millis, random, tail) in table {
            assert_eq!(number(Environment::Production, "EC", millis, random), format!("EC{tail}"));
        }
    }
}
