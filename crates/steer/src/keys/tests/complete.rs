//! The space of keys against brute force: all pairs of small instances, and all keys of smaller ones.

use proptest::prelude::*;

use crate::fields::{Field, Kind};
use crate::keys::solve::space_at;
use crate::keys::*;
use crate::toeplitz;

const FIELDS: [Field; 2] = [Field::SourcePort, Field::DestinationPort];
/// Bits that vary on each side; all others are 0.
const VARY: usize = 4;

/// One class for each port, of this many port fields.
fn classes(ports: usize, fields: usize) -> Vec<Class> {
    let class = |port| Class {
        port,
        kind: Kind::Ipv4Udp,
        hashed: Some(Kind::Ipv4Udp),
        fields: FIELDS[..fields].to_vec(),
        spread: true,
    };
    (0..ports).map(class).collect()
}

/// The bit of a place of a side: of the hash input, and behind it of what is not hashed.
fn bit(side: Side, place: usize, fields: usize) -> Bit {
    let (part, at) = match place {
        place if place < 16 * fields => (Part::Field(FIELDS[place / 16]), place % 16),
        place => (Part::Other(7), place - 16 * fields),
    };
    Bit { side, part, at }
}

#[derive(Clone, Debug)]
struct Small {
    ports: (usize, usize),
    fields: usize,
    index: usize,
    /// on each side, the places that vary
    vary: [Vec<usize>; 2],
    /// places among those that vary (a's, then b's), and the parity
    equations: Vec<(Vec<usize>, bool)>,
}

fn small(ports: usize, fields: usize) -> impl Strategy<Value = Small> {
    // Two bits that are not hashed, at the end.
    let places = || proptest::sample::subsequence((0..16 * fields + 2).collect::<Vec<_>>(), VARY);
    let equation = (proptest::collection::vec(0..2 * VARY, 1..4), any::<bool>());
    (
        (0..ports, 0..ports),
        1..4_usize,
        (places(), places()),
        proptest::collection::vec(equation, 0..6),
    )
        .prop_map(move |(ports, index, (a, b), equations)| Small {
            ports,
            fields,
            index,
            vary: [a, b],
            equations,
        })
}

impl Small {
    fn varying(&self, number: usize) -> Bit {
        let side = [Side::A, Side::B][number / VARY];
        bit(side, self.vary[number / VARY][number % VARY], self.fields)
    }

    fn case(&self) -> Case {
        let mut case = Case::all();
        for (side, vary) in [Side::A, Side::B].into_iter().zip(&self.vary) {
            for place in (0..16 * self.fields + 2).filter(|place| !vary.contains(place)) {
                case = case.and(Equation {
                    bits: vec![bit(side, place, self.fields)],
                    odd: false,
                });
            }
        }
        for (bits, odd) in &self.equations {
            let bits = bits.iter().map(|number| self.varying(*number)).collect();
            case = case.and(Equation { bits, odd: *odd });
        }
        case
    }

    /// All pairs of hash inputs that the case allows, as sets of places.
    fn pairs(&self) -> Vec<[Vec<usize>; 2]> {
        let all = 0..1_usize << (2 * VARY);
        let allowed = all.filter(|value| {
            self.equations.iter().all(|(bits, odd)| {
                let ones = bits.iter().filter(|bit| value >> **bit & 1 == 1);
                (ones.count() % 2 == 1) == *odd
            })
        });
        let inputs = |value: usize| {
            [0, 1].map(|side| {
                let set = (0..VARY).filter(|i| value >> (side * VARY + i) & 1 == 1);
                let places = set.map(|i| self.vary[side][i]);
                places.filter(|place| *place < 16 * self.fields).collect()
            })
        };
        allowed.map(inputs).collect()
    }

    /// Equation of each index bit of each pair over the unknowns, bit by bit.
    fn equations(&self) -> Vec<u128> {
        let unknowns = 16 * self.fields + self.index - 1;
        let mut found = Vec::new();
        for [a, b] in self.pairs() {
            for bit in 0..self.index {
                let side = |port: usize, places: &[usize]| {
                    let one = |sum, place: &usize| sum ^ 1_u128 << (port * unknowns + place + bit);
                    places.iter().fold(0_u128, one)
                };
                found.push(side(self.ports.0, &a) ^ side(self.ports.1, &b));
            }
        }
        found
    }
}

fn rank(rows: Vec<u128>) -> usize {
    let mut pivots: Vec<u128> = Vec::new();
    for mut row in rows {
        for pivot in &pivots {
            row = row.min(row ^ pivot);
        }
        if row != 0 {
            pivots.push(row);
        }
    }
    pivots.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Two ports: as many keys as the equations of all pairs leave, and all of them obey.
    #[test]
    fn the_space_has_the_dimension_that_all_pairs_leave(small in small(2, 2), seed: u64) {
        let classes = classes(2, 2);
        let constraint = Constraint::new(small.ports.0, small.ports.1, small.case());
        let space = space_at(&classes, &[constraint], small.index).unwrap();
        let unknowns = 2 * (32 + small.index - 1);
        prop_assert_eq!(space.dimension(), unknowns - rank(small.equations()));

        let mut random = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(seed);
        let keys = space.sample(&mut random);
        let input = |places: &[usize]| {
            let mut bytes = [0_u8; 4];
            places.iter().for_each(|place| bytes[place / 8] |= 0x80 >> (place % 8));
            bytes
        };
        let mask = (1_u32 << small.index) - 1;
        for [a, b] in small.pairs() {
            let hash = |port, places: &[usize]| {
                toeplitz::hash(keys.key(port).unwrap(), &input(places)) & mask
            };
            prop_assert_eq!(hash(small.ports.0, &a), hash(small.ports.1, &b));
        }
    }

    /// The span found by questions, without any equation given, is that of the equations given.
    #[test]
    fn questions_find_the_same_space(small in small(1, 2)) {
        let classes = classes(1, 2);
        let target = Target { key_bytes: 40, entries: 4, cores: 1 };
        let pairs = small.pairs();
        let mut oracle = |asked: &[Vec<Bit>]| {
            let place = |bit: &Bit| {
                let Part::Field(field) = bit.part else { return usize::MAX };
                usize::from(field == FIELDS[1]) * 16 + bit.at
            };
            let odd = |pair: &&[Vec<usize>; 2]| {
                let one = |bit: &&Bit| {
                    pair[usize::from(bit.side == Side::B)].contains(&place(bit))
                };
                asked.iter().any(|parity| parity.iter().filter(one).count() % 2 == 1)
            };
            let Some(pair) = pairs.iter().find(odd) else { return Answer::None };
            let sides = [Side::A, Side::B].into_iter().zip(pair);
            let bits = sides.flat_map(|(side, places)| places.iter().map(move |p| bit(side, *p, 2)));
            Answer::Pair(bits.collect())
        };
        let class = &classes[0];
        let (found, asking) = narrowed((class, class), &Case::all(), &mut oracle).unwrap();
        prop_assert!(asking.asked <= 2 * class.bits() + 1);
        let exact = [Constraint::new(0, 0, found)];
        let exact = solve_for(&classes, &exact, target).unwrap();
        let narrow = [Constraint::new(0, 0, small.case())];
        let given = solve_for(&classes, &narrow, target).unwrap();
        prop_assert_eq!(exact.dimension(), given.dimension());
        prop_assert_eq!(exact.invariants(), given.invariants());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// One field of one port: every key, all 2^16 to 2^18 of them, is in the space if and only if all
    /// pairs meet under it. The space is linear, so that the counts settle it.
    #[test]
    fn every_key_that_obeys_is_in_the_space(small in small(1, 1)) {
        let constraint = Constraint::new(0, 0, small.case());
        let space = space_at(&classes(1, 1), &[constraint], small.index).unwrap();
        let equations = small.equations();
        let unknowns = 16 + small.index - 1;
        let obeys = |key: &u128| equations.iter().all(|e| (e & key).count_ones().is_multiple_of(2));
        let obeying = (0..1_u128 << unknowns).filter(obeys).count();
        prop_assert_eq!(obeying, 1 << space.dimension());
        for vector in &space.basis {
            let key = vector.ones().fold(0, |key, at| key | 1_u128 << at);
            prop_assert!(obeys(&key));
        }
    }
}
