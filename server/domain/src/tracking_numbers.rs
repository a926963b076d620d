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
    use std::collections::BTreeSet;

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

    /// Number of random characters in a tracking number.
    const RANDOM_CHARACTERS: usize = 8;

    /// A generator of the random bytes of the next number, which is drawn in this second.
    type Generator<'rng> = dyn FnMut(i64) -> [u8; RANDOM_BYTES] + 'rng;

    /// Draws 10,000 numbers, and returns the numerals of their random characters.
    fn draw(numbers_per_second: i64, random: &mut Generator<'_>) -> Vec<[u8; RANDOM_CHARACTERS]> {
        let numeral = |letter: u8| {
            let place = CROCKFORD.iter().position(|crockford| *crockford == letter).unwrap();
            u8::try_from(place).unwrap()
        };
        let draw_one = |nth: i64| {
            let second = 1_768_057_500 + nth / numbers_per_second;
            let drawn = number(Environment::Production, "EC", second * 1_000, random(second));
            let letters: [u8; RANDOM_CHARACTERS] = *drawn.as_bytes().last_chunk().unwrap();
            letters.map(numeral)
        };
        (0..10_000).map(draw_one).collect()
    }

    /// Returns the sum of the squared deviations from equal counts, each divided by the expected count. Chance makes
    /// it the number of counts minus one, give or take the square root of twice that.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected =
            f64::from(counts.iter().sum::<u32>()) / f64::from(u32::try_from(counts.len()).unwrap());
        counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
    }

    /// Returns the correlation of each value with the next one. Chance makes it 0, give or take 0.01 for 10,000 values.
    fn serial_correlation(values: &[f64]) -> f64 {
        let count = f64::from(u32::try_from(values.len()).unwrap());
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let products = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
        if variance > 0.0 { products.sum::<f64>() / variance } else { 1.0 }
    }

    /// Returns the kinds of structure that were found in 10,000 numbers. Each limit is six standard deviations or more
    /// from what chance makes.
    fn find_structure(numbers: &[[u8; RANDOM_CHARACTERS]]) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        if numbers.iter().collect::<BTreeSet<_>>().len() < numbers.len() {
            found.insert("repeated numbers");
        }
        for position in 0..RANDOM_CHARACTERS {
            let (mut letters, mut pairs) = ([0; 32], [0; 32 * 32]);
            for number in numbers {
                let letter = usize::from(number[position]);
                letters[letter] += 1;
                // The last character is paired with the first.
                let next = usize::from(number[(position + 1) % RANDOM_CHARACTERS]);
                pairs[32 * letter + next] += 1;
            }
            if chi_square(&letters) > 85.0 {
                found.insert("uneven letters");
            }
            if chi_square(&pairs) > 1_300.0 {
                found.insert("uneven pairs");
            }
            let values: Vec<_> = numbers.iter().map(|number| f64::from(number[position])).collect();
            if serial_correlation(&values).abs() > 0.06 {
                found.insert("correlated successors");
            }
        }
        found
    }

    /// Numbers drawn in each second: all 10,000 in one, or spread over a hundred seconds.
    const NUMBERS_PER_SECOND: [i64; 2] = [10_000, 100];

    #[test]
    fn ten_thousand_numbers_have_no_structure() {
        for numbers_per_second in NUMBERS_PER_SECOND {
            let mut rng = fastrand::Rng::with_seed(1);
            let numbers = draw(numbers_per_second, &mut |_| std::array::from_fn(|_| rng.u8(..)));
            assert_eq!(find_structure(&numbers), BTreeSet::new(), "{numbers_per_second} a second");
        }
    }

    #[test]
    fn the_search_for_structure_finds_that_of_broken_generators() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut with_time = |second: i64| {
            let [.., time] = second.to_be_bytes();
            [rng.u8(..), rng.u8(..), rng.u8(..), rng.u8(..), time]
        };
        let mut period = (0..4_096_u64).cycle();
        let mut with_short_period = |_: i64| -> [u8; RANDOM_BYTES] {
            let mut rng = fastrand::Rng::with_seed(period.next().unwrap());
            std::array::from_fn(|_| rng.u8(..))
        };
        let mut rng = fastrand::Rng::with_seed(1);
        let mut with_modulo_bias = |_: i64| -> [u8; RANDOM_BYTES] {
            let letters = (0..RANDOM_CHARACTERS).map(|_| rng.u64(..100) % 32);
            let bits = letters.fold(0_u64, |bits, letter| bits << 5 | letter);
            *bits.to_be_bytes().last_chunk().unwrap()
        };
        // Each letter is as frequent as the others, but the next number can be calculated.
        let mut sequence = 0_u64;
        let mut with_equal_steps = |_: i64| -> [u8; RANDOM_BYTES] {
            sequence = sequence.wrapping_add(0x009E_3779_B97F);
            *sequence.to_be_bytes().last_chunk().unwrap()
        };
        let table: [(&str, &mut Generator<'_>); 4] = [
            ("uneven letters", &mut with_time),
            ("repeated numbers", &mut with_short_period),
            ("uneven letters", &mut with_modulo_bias),
            ("correlated successors", &mut with_equal_steps),
        ];
        for (expected, generator) in table {
            for numbers_per_second in NUMBERS_PER_SECOND {
                let found = find_structure(&draw(numbers_per_second, &mut *generator));
                assert!(found.contains(expected), "{expected}: {found:?}, {numbers_per_second}");
            }
        }
    }
}
