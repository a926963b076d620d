//! Generates ids, tracking numbers and secrets. No other module reads randomness. With a seed, they are the same in
//! every run. The mock server needs that; production must never use a seed.

use std::sync::{Mutex, PoisonError};

use parcelo_domain::{
    Millis,
    ids::{CROCKFORD, public_id},
};
use ulid::Ulid;

/// Number of random bytes read at a time: a system call for each id would dominate its cost.
const BUFFER_BYTES: usize = 4096;

/// A generator of ids.
#[derive(Debug)]
pub struct Ids(Mutex<Buffer>);

#[derive(Clone)]
struct Buffer {
    source: Source,
    bytes: [u8; BUFFER_BYTES],
    used: usize,
}

#[derive(Clone)]
enum Source {
    OperatingSystem,
    Seed(fastrand::Rng),
}

/// The position of a seeded generator; empty for the operating system's randomness.
#[derive(Debug, Clone)]
pub struct SeedPosition(Option<Buffer>);

impl SeedPosition {
    /// Returns the position as bytes: the state of the generator, and the random bytes that it has made and not used.
    /// They are empty for the operating system's randomness.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.0 {
            Some(Buffer { source: Source::Seed(rng), bytes, used }) => {
                let unused = bytes.get(*used..).unwrap_or_default();
                [rng.get_seed().to_be_bytes().as_slice(), unused].concat()
            }
            Some(Buffer { source: Source::OperatingSystem, .. }) | None => Vec::new(),
        }
    }

    /// Returns the position of a seeded generator from the bytes of [`SeedPosition::to_bytes`], or `None` for others.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (state, unused) = bytes.split_first_chunk()?;
        let source = Source::Seed(fastrand::Rng::with_seed(u64::from_be_bytes(*state)));
        let used = BUFFER_BYTES.checked_sub(unused.len())?;
        let mut bytes = [0; BUFFER_BYTES];
        bytes.get_mut(used..)?.copy_from_slice(unused);
        Some(Self(Some(Buffer { source, bytes, used })))
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Buffer(***)")
    }
}

impl Ids {
    /// Creates a generator of unpredictable ids, from the operating system's randomness.
    pub fn random() -> Self {
        Self::new(Source::OperatingSystem)
    }

    /// Creates a generator whose ids derive from a seed. For tests only: they can be predicted.
    pub fn seeded(seed: u64) -> Self {
        Self::new(Source::Seed(fastrand::Rng::with_seed(seed)))
    }

    fn new(source: Source) -> Self {
        Self(Mutex::new(Buffer { source, bytes: [0; BUFFER_BYTES], used: BUFFER_BYTES }))
    }

    /// Returns a new ULID at the time `now`.
    pub fn ulid(&self, now: Millis) -> Ulid {
        let mut random = [0_u8; 16];
        self.fill(random.split_at_mut(6).1);
        Ulid::from_parts(u64::try_from(now.0).unwrap_or(0), u128::from_be_bytes(random))
    }

    /// Returns a new id for a request: `req_…`.
    pub fn request_id(&self, now: Millis) -> String {
        public_id("req", self.ulid(now))
    }

    /// Returns 13 random Crockford base32 characters: 65 bits.
    pub fn random_suffix(&self) -> String {
        self.array::<13>().iter().map(|byte| to_letter(CROCKFORD, *byte)).collect()
    }

    /// Returns the random part of an API key: 32 bytes below 62, each value equally likely.
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

    /// Returns `N` random bytes.
    pub fn array<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// Returns the position of the generator, if it is seeded.
    pub fn seed_position(&self) -> SeedPosition {
        let buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match buffer.source {
            Source::Seed(_) => SeedPosition(Some(buffer.clone())),
            // Secret random bytes must never be used twice.
            Source::OperatingSystem => SeedPosition(None),
        }
    }

    /// Goes back to a position, so that the same ids follow again.
    pub fn resume_from(&self, position: &SeedPosition) {
        if let Some(buffer) = &position.0 {
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
        if self.used >= BUFFER_BYTES {
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
        randomness; without it keys could be guessed, so it is not safe to continue"
    )]
    fn refill(&mut self) {
        match &mut self.source {
            Source::OperatingSystem => {
                getrandom::fill(&mut self.bytes)
                    .expect("the operating system provides random bytes");
            }
            Source::Seed(rng) => rng.fill(&mut self.bytes),
        }
        self.used = 0;
    }
}

fn to_letter(alphabet: &[u8], byte: u8) -> char {
    alphabet.get(usize::from(byte) % alphabet.len()).map_or('0', |byte| char::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_ids_repeat_and_random_ids_do_not() {
        let make = |ids: &Ids| (ids.ulid(Millis(7)), ids.random_suffix(), ids.key_bytes());
        assert_eq!(make(&Ids::seeded(1)), make(&Ids::seeded(1)));
        assert_ne!(make(&Ids::seeded(1)), make(&Ids::seeded(2)));
        assert_ne!(make(&Ids::random()), make(&Ids::random()));
    }

    #[test]
    fn only_seeded_ids_repeat_from_a_saved_position() {
        for (ids, repeats) in [(Ids::seeded(1), true), (Ids::random(), false)] {
            let _ = ids.random_suffix();
            let position = ids.seed_position();
            let first: Vec<_> = (0..1_000).map(|_| ids.ulid(Millis(0))).collect();
            ids.resume_from(&position);
            let second: Vec<_> = (0..1_000).map(|_| ids.ulid(Millis(0))).collect();
            assert_eq!(first == second, repeats);
        }
    }

    #[test]
    fn a_position_is_the_same_after_it_was_bytes() {
        // Before the first id, in the middle of the buffer, and beyond its end.
        for count in [0, 1, 1_000] {
            let (ids, other) = (Ids::seeded(1), Ids::seeded(2));
            for _ in 0..count {
                let _ = ids.ulid(Millis(0));
            }
            let position = SeedPosition::from_bytes(&ids.seed_position().to_bytes()).unwrap();
            other.resume_from(&position);
            for _ in 0..1_000 {
                assert_eq!(ids.ulid(Millis(0)), other.ulid(Millis(0)), "after {count}");
            }
        }
        for wrong in [vec![], vec![0; 7], vec![0; 8 + BUFFER_BYTES + 1]] {
            assert!(SeedPosition::from_bytes(&wrong).is_none(), "{} bytes", wrong.len());
        }
        assert!(Ids::random().seed_position().to_bytes().is_empty());
    }

    #[test]
    fn ten_thousand_ids_are_different() {
        let ids = Ids::seeded(3);
        let all: std::collections::HashSet<_> = (0..10_000).map(|_| ids.ulid(Millis(0))).collect();
        assert_eq!(all.len(), 10_000);
    }
}
