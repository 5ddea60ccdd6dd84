//! Remainders by 2^16 - 1: a header whose checksum followed its changes has the sum that it had.

use millrace_model::expr::{Arena, Bin, ExprId, Origin};

/// A 16-bit word of the header, from its bytes as they lie there.
fn word(a: &mut Arena, at: u64) -> ExprId {
    let bytes: Vec<ExprId> = (0..2)
        .map(|i| {
            let at = a.number(at + i, 64);
            a.byte(at)
        })
        .collect();
    a.concat(&[*bytes.last().unwrap(), *bytes.first().unwrap()])
}

/// Sum of words in 64 bits.
fn sum(a: &mut Arena, words: &[ExprId]) -> ExprId {
    let mut total = a.number(0, 64);
    for w in words {
        let w = a.resize(*w, 64);
        total = a.binary(Bin::Add, total, w);
    }
    total
}

fn not(a: &mut Arena, w: ExprId) -> ExprId {
    let ones = a.number(0xffff, 16);
    a.binary(Bin::Xor, w, ones)
}

/// `checksum_fold` of include/millrace/checksum.h, as clang leaves it: in 64 bits.
fn fold(a: &mut Arena, mut s: ExprId) -> ExprId {
    for _ in 0..3 {
        let (low, high) = (a.extract(s, 0, 16), a.extract(s, 16, 48));
        let (low, high) = (a.resize(low, 64), a.resize(high, 64));
        s = a.binary(Bin::Add, low, high);
    }
    s
}

/// Equation 3 of RFC 1624; then stored and loaded again, byte by byte.
fn replaced(a: &mut Arena, checksum: ExprId, old: ExprId, new: ExprId) -> ExprId {
    let (c, m) = (not(a, checksum), not(a, old));
    let s = sum(a, &[c, m, new]);
    let s = fold(a, s);
    let ones = a.number(u64::MAX, 64);
    let done = a.binary(Bin::Xor, s, ones);
    let (low, high) = (a.extract(done, 0, 8), a.extract(done, 8, 8));
    a.concat(&[high, low])
}

fn remainder(a: &mut Arena, words: &[ExprId]) -> ExprId {
    let s = sum(a, words);
    let by = a.number(0xffff, 64);
    a.binary(Bin::Rem, s, by)
}

#[test]
fn a_header_whose_checksum_followed_has_the_remainder_that_it_had() {
    let mut a = Arena::telling_congruent_sums(true);
    let mut words: Vec<ExprId> = (0..10).map(|i| word(&mut a, 2 * i)).collect();
    let before = remainder(&mut a, &words);
    // The time to live, and both halves of an address, each with its update.
    for (at, name) in [(4, "ttl"), (8, "high"), (9, "low")] {
        let new = a.sym(name, 16, Origin::Helper);
        let (checksum, old) = (words[5], words[at]);
        words[5] = replaced(&mut a, checksum, old, new);
        words[at] = new;
        assert_eq!(remainder(&mut a, &words), before, "after {name}");
    }
    // Without the update it is another one.
    words[4] = a.sym("other", 16, Origin::Helper);
    assert_ne!(remainder(&mut a, &words), before);
}

#[test]
fn paths_that_met_in_another_order_have_one_remainder() {
    let mut a = Arena::telling_congruent_sums(true);
    let (x, y, z) = (word(&mut a, 0), word(&mut a, 2), word(&mut a, 4));
    let (c, d) = (a.sym("c", 1, Origin::Helper), a.sym("d", 1, Origin::Helper));
    let inner = a.ite(d, y, z);
    let one = a.ite(c, x, inner);
    // d and not c: y; c: x; neither: z.
    let not_c = a.not(c);
    let only_d = a.binary(Bin::And, d, not_c);
    let inner = a.ite(c, x, z);
    let other = a.ite(only_d, y, inner);
    let w = word(&mut a, 6);
    assert_eq!(remainder(&mut a, &[one, w]), remainder(&mut a, &[other, w]));
    let inner = a.ite(c, x, y);
    let wrong = a.ite(only_d, y, inner);
    assert_ne!(remainder(&mut a, &[one, w]), remainder(&mut a, &[wrong, w]));
}
