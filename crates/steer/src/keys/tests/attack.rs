//! Bits that an attacker must guess, on the known functions.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::known::*;
use crate::fields::Field;
use crate::keys::*;

fn solved(known: &Known, entries: usize) -> Space {
    let target = Target {
        key_bytes: 52,
        entries,
        cores: 16,
    };
    solve_for(&known.classes, &known.constraints, target).unwrap()
}

#[test]
fn every_kept_bit_must_be_guessed_and_the_edges_are_weak() {
    let free = solved(&nop(), 512).exposure(0).unwrap();
    assert_eq!((free.entry_bits, free.weakest.len()), (9, 0));
    assert!(free.core_bits > 3.9 && free.share.is_none());
    for known in [
        policer(),
        psd(),
        connection_limiter(),
        nat(),
        heavy_hitters(),
        firewall(2, &[TCP]),
    ] {
        for entries in [128, 512] {
            let space = solved(&known, entries);
            let exposure = space.exposure(0).unwrap();
            assert_eq!(space.exposures()[0].as_ref(), Some(&exposure));
            // Beside a cancelled field the last bit has one key bit of its own.
            assert_eq!((exposure.entry_bits, exposure.blind), (1, 0));
            assert!((0.8..1.0).contains(&exposure.core_bits));
            // Chance gives 8%; keys with all 32 bits constrained 100%.
            assert!(exposure.share.unwrap() <= 0.16, "{exposure:?}");
            assert!((0.07..0.10).contains(&exposure.random_share));
        }
    }
}

/// The two ports of a firewall tie the windows of a source address to those of the source port on the
/// other side, so that a difference in both at once is weaker than in either.
#[test]
fn weak_differences_span_fields() {
    let exposure = solved(&firewall(2, &[TCP]), 512).exposure(0).unwrap();
    let bit = |field, at| Bit {
        side: Side::A,
        part: Part::Field(field),
        at,
    };
    let both = vec![bit(Field::SourceAddress, 0), bit(Field::SourcePort, 0)];
    let found = exposure.weakest.iter().find(|d| d.bits == both);
    assert_eq!(found.map(|d| d.rank), Some(1));
}

/// Packets that differ by a weak difference meet under one key in 2^rank.
#[test]
fn keys_under_which_a_difference_meets_are_as_many_as_its_rank_says() {
    const KEYS: u32 = 4096;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for known in [policer(), nat(), firewall(2, &[TCP])] {
        let space = solved(&known, 128);
        let class = &known.classes[0];
        let exposure = space.exposure(0).unwrap();
        for difference in exposure.weakest.iter().filter(|d| d.rank <= 4) {
            let mut input = vec![0_u8; class.bits() / 8];
            for bit in &difference.bits {
                let Part::Field(field) = bit.part else {
                    panic!("{bit:?}")
                };
                let at = class.offset(field).unwrap() + bit.at;
                input[at / 8] |= 0x80 >> (at % 8);
            }
            let meets = |_: &u32| space.sample(&mut random).index(class.port, &input) == 0;
            let met = (0..KEYS).filter(meets).count() as f64;
            let wanted = f64::from(KEYS) / f64::from(1_u32 << difference.rank);
            // Five standard deviations.
            assert!(
                (met - wanted).abs() < 5.0 * wanted.sqrt(),
                "{difference:?}: {met}"
            );
        }
    }
}
