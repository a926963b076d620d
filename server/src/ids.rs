//! Ids, tracking numbers and secrets: the only place that reads randomness. A seed makes them
//! the same in every run, which is what the mock server wants and production must never have.

use std::sync::{Mutex, PoisonError};

use parcelo::model::{ManifestId, ParcelId};
use ulid::Ulid;

use crate::clock::Millis;

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const BUFFER: usize = 4096;

/// Makes ids.
#[derive(Debug)]
pub struct Ids(Mutex<Buffer>);

#[derive(Clone)]
struct Buffer {
    source: Source,
    bytes: [u8; BUFFER],
    used: usize,
}

#[derive(Clone)]
enum Source {
    OperatingSystem,
    Seed(fastrand::Rng),
}

/// Where the ids of a seed have got to.
#[derive(Debug, Clone)]
pub(crate) struct Place(Option<Buffer>);

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Buffer(***)")
    }
}

impl Ids {
    /// Ids nobody can guess, from the operating system's randomness.
    pub fn random() -> Self {
        Self::from(Source::OperatingSystem)
    }

    /// Ids that are the same for the same seed. For tests only: anybody can guess them.
    pub fn seeded(seed: u64) -> Self {
        Self::from(Source::Seed(fastrand::Rng::with_seed(seed)))
    }

    fn from(source: Source) -> Self {
        Self(Mutex::new(Buffer { source, bytes: [0; BUFFER], used: BUFFER }))
    }

    /// A new ULID of the moment `now`.
    pub fn ulid(&self, now: Millis) -> Ulid {
        let mut random = [0_u8; 16];
        self.fill(random.split_at_mut(6).1);
        Ulid::from_parts(u64::try_from(now.0).unwrap_or(0), u128::from_be_bytes(random))
    }

    /// The id of one request: `req_…`.
    pub fn request_id(&self, now: Millis) -> String {
        named("req", self.ulid(now))
    }

    /// 13 random Crockford base32 characters: 65 bits.
    pub fn tracking_tail(&self) -> String {
        self.array::<13>().iter().map(|byte| letter(CROCKFORD, *byte)).collect()
    }

    /// The random part of an API key: 32 bytes below 62, each of them equally likely.
    pub fn key_bytes(&self) -> [u8; 32] {
        std::array::from_fn(|_| {
            loop {
                let [byte] = self.array::<1>();
                // 248 is the largest multiple of 62 that a byte can hold.
                if byte < 248 {
                    break byte % 62;
                }
            }
        })
    }

    /// `N` random bytes.
    pub fn array<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Where the ids have got to, if they come from a seed.
    pub(crate) fn place(&self) -> Place {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match buffer.source {
            Source::Seed(_) => Place(Some(buffer.clone())),
            // What nobody can guess is never given twice.
            Source::OperatingSystem => Place(None),
        }
    }

    /// Goes on from a place: the ids that followed it follow again.
    pub(crate) fn go_on_from(&self, place: &Place) {
        if let Some(buffer) = &place.0 {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(buffer);
        }
    }

    fn fill(&self, out: &mut [u8]) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in out {
            *byte = buffer.next();
        }
    }
}

impl Buffer {
    fn next(&mut self) -> u8 {
        if self.used >= BUFFER {
            self.refill();
        }
        let byte = self.bytes.get_mut(self.used).map(std::mem::take);
        self.used += 1;
        byte.unwrap_or_default()
    }

    #[expect(
        clippy::expect_used,
        clippy::disallowed_methods,
        reason = "the one place that reads \
        randomness; without it keys could be guessed, so there is no safe way to go on"
    )]
    fn refill(&mut self) {
        match &mut self.source {
            Source::OperatingSystem => {
                getrandom::fill(&mut self.bytes).expect("the operating system gives random bytes");
            }
            Source::Seed(rng) => rng.fill(&mut self.bytes),
        }
        self.used = 0;
    }
}

/// The public id of a parcel.
pub(crate) fn parcel_id(ulid: Ulid) -> ParcelId {
    ParcelId::unchecked(named("par", ulid))
}

/// The public id of a manifest.
pub(crate) fn manifest_id(ulid: Ulid) -> ManifestId {
    ManifestId::unchecked(named("man", ulid))
}

/// A public id: what it names, and a ULID.
pub(crate) fn named(kind: &str, ulid: Ulid) -> String {
    format!("{kind}_{ulid}")
}

fn letter(alphabet: &[u8], byte: u8) -> char {
    alphabet.get(usize::from(byte) % alphabet.len()).map_or('0', |byte| char::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_the_operating_system_does_not() {
        let make = |ids: &Ids| (ids.ulid(Millis(7)), ids.tracking_tail(), ids.key_bytes());
        assert_eq!(make(&Ids::seeded(1)), make(&Ids::seeded(1)));
        assert_ne!(make(&Ids::seeded(1)), make(&Ids::seeded(2)));
        assert_ne!(make(&Ids::random()), make(&Ids::random()));
    }

    #[test]
    fn what_followed_a_place_follows_again_for_a_seed_and_never_otherwise() {
        for (ids, again) in [(Ids::seeded(1), true), (Ids::random(), false)] {
            let _ = ids.tracking_tail();
            let place = ids.place();
            let first: Vec<_> = (0..1_000).map(|_| ids.ulid(Millis(0))).collect();
            ids.go_on_from(&place);
            let second: Vec<_> = (0..1_000).map(|_| ids.ulid(Millis(0))).collect();
            assert_eq!(first == second, again);
        }
    }

    #[test]
    fn ten_thousand_ids_are_different() {
        let ids = Ids::seeded(3);
        let all: std::collections::HashSet<_> = (0..10_000).map(|_| ids.ulid(Millis(0))).collect();
        assert_eq!(all.len(), 10_000);
    }
}
