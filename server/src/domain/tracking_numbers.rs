//! Generated tracking numbers carry their parcel's row: no index of numbers is written for them.
//!
//! The last 13 characters of such a number are Crockford's base 32, 65 bits: the row id (40 bits) and random bits
//! of the parcel's public id (25), encrypted with a key that the database keeps. So numbers are as hard to
//! guess as random ones, two rows never have the same one, and decrypting one tells where to look. What is
//! there decides: a number is a parcel's only if the parcel's row says so. Given numbers, and all from
//! before, decrypt to nothing or to a row of another number, and have an index.

use parcelo::{CountryCode, Environment, TrackingNumber};
use ulid::Ulid;

use super::{
    ParcelRowId,
    ff1::{Ff1, Halves, LEFT_BITS, RIGHT_BITS},
};
use crate::ids::CROCKFORD;

/// The low bits of the 65: those that are the parcel's own. The row id is above them.
const RANDOM_BITS: u32 = 25;
const TAIL_CHARACTERS: usize = 13;
const BITS_PER_CHARACTER: u32 = 5;

/// The key of a database's generated numbers.
#[derive(Debug)]
pub struct NumberKey(Ff1);

impl NumberKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(Ff1::new(key))
    }

    /// The number of the parcel with this row and this public id. The sandbox's start with `SB`, and
    /// production's never do.
    ///
    /// A row beyond 40 bits (the largest file of `SQLite` ends long before) would have the number of a lower
    /// one, which does not decrypt to it: the store would keep it in its index.
    pub(crate) fn generate(
        &self,
        (environment, country): (Environment, CountryCode),
        row: ParcelRowId,
        id: Ulid,
    ) -> TrackingNumber {
        let mut number = match (environment, country.as_str()) {
            (Environment::Sandbox, code) => format!("SB{code}"),
            // SB is the code of the Solomon Islands; XS is one that ISO 3166 leaves to its users, so no country has it.
            (Environment::Production, "SB") => "XS".to_owned(),
            (Environment::Production, code) => code.to_owned(),
        };
        let Halves { left, right } = self.0.encrypt(halves(row.0.cast_unsigned(), id));
        push_numerals(&mut number, left, LEFT_BITS);
        push_numerals(&mut number, right, RIGHT_BITS);
        #[expect(clippy::expect_used, reason = "2-4 letters and 13 of base32 are 15-17 characters")]
        TrackingNumber::parse(&number).expect("a generated number is well formed")
    }

    /// The row that a number carries, in any case, if it has the form of a generated one.
    pub(crate) fn row_of(
        &self,
        environment: Environment,
        number: &TrackingNumber,
    ) -> Option<ParcelRowId> {
        let prefix = match environment {
            Environment::Production => 2,
            Environment::Sandbox => 4,
        };
        let tail = number
            .as_str()
            .as_bytes()
            .get(prefix..)
            .filter(|tail| tail.len() == TAIL_CHARACTERS)?;
        let (left, right) = tail.split_at_checked((LEFT_BITS / BITS_PER_CHARACTER) as usize)?;
        let encrypted = Halves { left: read_numerals(left)?, right: read_numerals(right)? };
        let Halves { left, right } = self.0.decrypt(encrypted);
        let row = left << (RIGHT_BITS - RANDOM_BITS) | right >> RANDOM_BITS;
        Some(ParcelRowId(row.cast_signed()))
    }
}

/// Row id and random bits, as they are before they are encrypted.
fn halves(row: u64, id: Ulid) -> Halves {
    const fn low(value: u64, bits: u32) -> u64 {
        value & ((1 << bits) - 1)
    }
    let [.., a, b, c, d] = id.to_bytes();
    let random = low(u32::from_be_bytes([a, b, c, d]).into(), RANDOM_BITS);
    let on_the_right = RIGHT_BITS - RANDOM_BITS;
    Halves {
        left: low(row >> on_the_right, LEFT_BITS),
        right: low(row, on_the_right) << RANDOM_BITS | random,
    }
}

fn push_numerals(number: &mut String, half: u64, bits: u32) {
    for shift in (0..bits).step_by(BITS_PER_CHARACTER as usize).rev() {
        let numeral = usize::try_from(half >> shift & 31).ok();
        let letter = numeral.and_then(|numeral| CROCKFORD.get(numeral));
        number.extend(letter.copied().map(char::from));
    }
}

fn read_numerals(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0, |half, byte| {
        // The alphabet is in ASCII's order.
        let numeral = CROCKFORD.binary_search(&byte.to_ascii_uppercase()).ok()?;
        Some(half << BITS_PER_CHARACTER | numeral as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascending() -> [u8; 32] {
        std::array::from_fn(|place| u8::try_from(place).unwrap())
    }

    fn number(text: &str) -> TrackingNumber {
        TrackingNumber::parse(text).unwrap()
    }

    /// `fpe` 0.7 made the tails: `FF1::<Aes256>::new(&key, 32)`, empty tweak, eight numerals of the row and
    /// five random ones.
    #[test]
    fn tails_are_those_of_another_implementation_of_ff1() {
        let table = [
            ([0; 32], 0, 0, "7GFNHWW9HFMB9"),
            ([0; 32], 1, 0, "F6YNTTAPJTX1Y"),
            ([0; 32], 1, 1, "WCNZ3G1W7EDBA"),
            (ascending(), 1_000_000, 0x0155_5555, "XGTENFYCM5NQ8"),
            (ascending(), (1 << 40) - 1, (1 << 25) - 1, "4PHB7CKJ59RZ1"),
        ];
        for (key, row, random, tail) in table {
            let (key, row) = (NumberKey::new(&key), ParcelRowId(row));
            for not_random in [0, u128::MAX << 25] {
                let place = (Environment::Production, CountryCode::EC);
                let made = key.generate(place, row, Ulid::from(not_random | random));
                assert_eq!(made, number(&format!("EC{tail}")));
                assert_eq!(key.row_of(Environment::Production, &made), Some(row));
            }
        }
    }

    #[test]
    fn generated_numbers_start_with_what_their_environment_allows() {
        let key = NumberKey::new(&[0; 32]);
        let table = [
            (Environment::Production, "EC", "EC7GFNHWW9HFMB9"),
            (Environment::Production, "SB", "XS7GFNHWW9HFMB9"),
            (Environment::Sandbox, "EC", "SBEC7GFNHWW9HFMB9"),
            (Environment::Sandbox, "SB", "SBSB7GFNHWW9HFMB9"),
        ];
        for (environment, country, expected) in table {
            let country = CountryCode::parse(country).unwrap();
            let made = key.generate((environment, country), ParcelRowId(0), Ulid::nil());
            assert_eq!(made.as_str(), expected);
            assert_eq!(key.row_of(environment, &made), Some(ParcelRowId(0)));
        }
    }

    #[test]
    fn a_number_is_read_in_any_case_and_in_its_own_form_only() {
        let key = NumberKey::new(&[0; 32]);
        let row_of = |environment, text| key.row_of(environment, &number(text));
        let (live, test) = (Environment::Production, Environment::Sandbox);
        assert_eq!(row_of(live, "ec7gfnhwW9HFmb9"), Some(ParcelRowId(0)));
        assert_eq!(row_of(test, "sbec7gfnhww9hfmb9"), Some(ParcelRowId(0)));
        let none = [
            (test, "EC7GFNHWW9HFMB9"),
            (live, "SBEC7GFNHWW9HFMB9"),
            (live, "EC7GFNHWW9HFMB"),
            // Letters that Crockford's alphabet leaves out are not read as others.
            (live, "EC7GFNHWW9HFMBO"),
            (live, "EC7GFNHWW9HFMBI"),
            (live, "EC7GFNHWW9HFMBL"),
            (live, "EC7GFNHWW9HFMBU"),
            (live, "EC7GFNH-W9HFMB9"),
            (test, "SB-SUCCESS-0001"),
        ];
        for (environment, text) in none {
            assert_eq!(row_of(environment, text), None, "{text}");
        }
    }

    #[test]
    fn another_key_or_row_or_random_bit_makes_another_number() {
        let make = |key, row, random| {
            let place = (Environment::Production, CountryCode::EC);
            NumberKey::new(&[key; 32]).generate(place, ParcelRowId(row), Ulid::from(random))
        };
        let all: std::collections::HashSet<_> =
            [(0, 1, 1), (1, 1, 1), (0, 2, 1), (0, 1, 2)].map(|(k, r, i)| make(k, r, i)).into();
        assert_eq!(all.len(), 4);
        assert_ne!(make(0, 1 << 40, 0), make(0, 1, 0));
        assert_eq!(
            NumberKey::new(&[0; 32]).row_of(Environment::Production, &make(0, 1 << 40, 0)),
            Some(ParcelRowId(0))
        );
    }
}
