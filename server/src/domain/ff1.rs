//! FF1, the format-preserving encryption of NIST SP 800-38G, for one format: thirteen numerals in base 32,
//! 65 bits, under AES-256 and without a tweak. It permutes all such texts; without the key no one tells
//! the permutation from a random one.
//!
//! Our own because base 32 is a power of two: the sums modulo 32^6 and 32^7 are bit masks here, and a number
//! costs 700 instructions (`fpe`, for any base: 68,000). What remains ours are ten rounds of a Feistel
//! network; its vectors in the tests are those of `fpe`.

use aes::{
    Aes256,
    cipher::{BlockCipherEncrypt, KeyInit},
};

/// Bits of the first 6 numerals and of the last 7: FF1 halves an odd length so (step 1).
pub(super) const LEFT_BITS: u32 = 30;
pub(super) const RIGHT_BITS: u32 = 35;
const ROUNDS: u8 = 10;

/// The block that begins each round's MAC (step 5): version 1, method 2, addition 1; base 32 in three bytes;
/// 10 rounds; 6 numerals on the left; 13 in all; no tweak.
const P: [u8; 16] = [1, 2, 1, 0, 0, 32, ROUNDS, 6, 0, 0, 0, 13, 0, 0, 0, 0];

/// Thirteen numerals as two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halves {
    /// The first 6 numerals.
    pub(super) left: u64,
    /// The last 7.
    pub(super) right: u64,
}

/// The permutation under one key.
pub(super) struct Ff1 {
    cipher: Aes256,
    /// `P` encrypted: what every MAC goes on from.
    begun: [u8; 16],
}

impl Ff1 {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let cipher = Aes256::new(&(*key).into());
        let mut block = P.into();
        cipher.encrypt_block(&mut block);
        Self { cipher, begun: block.into() }
    }

    pub(super) fn encrypt(&self, plain: Halves) -> Halves {
        let Halves { left: mut a, right: mut b } = plain;
        for round in 0..ROUNDS {
            let c = a.wrapping_add(self.mac(round, b)) & mask(round);
            (a, b) = (b, c);
        }
        Halves { left: a, right: b }
    }

    pub(super) fn decrypt(&self, encrypted: Halves) -> Halves {
        let Halves { left: mut a, right: mut b } = encrypted;
        for round in (0..ROUNDS).rev() {
            let c = b.wrapping_sub(self.mac(round, a)) & mask(round);
            (a, b) = (c, a);
        }
        Halves { left: a, right: b }
    }

    /// The low bits of NUM(S), steps 6.i to 6.iv: `P`, then ten zero bytes, the round and five bytes of a half
    /// (Q), through CBC-MAC; S are its first 12 bytes. A modulus of at most 2^35 leaves the low 64 bits.
    fn mac(&self, round: u8, half: u64) -> u64 {
        let q = u128::from(round) << 40 | u128::from(half);
        let mut block = (u128::from_be_bytes(self.begun) ^ q).to_be_bytes().into();
        self.cipher.encrypt_block(&mut block);
        let [_, _, _, _, low @ .., _, _, _, _]: [u8; 16] = block.into();
        u64::from_be_bytes(low)
    }
}

/// The modulus of a round (step 6.v), as a mask: even rounds make a new left half, odd ones a right half.
const fn mask(round: u8) -> u64 {
    let bits = if round.is_multiple_of(2) { LEFT_BITS } else { RIGHT_BITS };
    (1 << bits) - 1
}

impl std::fmt::Debug for Ff1 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ff1(***)")
    }
}
