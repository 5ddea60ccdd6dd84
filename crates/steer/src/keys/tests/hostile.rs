//! Constraints that nobody would write: an answer or an error, in bounded time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::known::*;
use crate::fields::{Field, Kind};
use crate::keys::*;
use crate::nic::{named, names};

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        proptest::sample::select(Field::ALL.to_vec()).prop_map(Part::Field),
        (0..3_u32).prop_map(Part::Other),
    ]
}

fn equation() -> impl Strategy<Value = Equation> {
    let side = proptest::sample::select(vec![Side::A, Side::B]);
    let at = prop_oneof![9 => 0..32_usize, 1 => 0..200_usize, 1 => Just(usize::MAX)];
    let bit = (side, part(), at).prop_map(|(side, part, at)| Bit { side, part, at });
    let bits = proptest::collection::vec(bit, 0..5);
    (bits, any::<bool>()).prop_map(|(bits, odd)| Equation { bits, odd })
}

fn constraint() -> impl Strategy<Value = Constraint> {
    let equations = proptest::collection::vec(equation(), 0..20);
    let cases = proptest::collection::vec(equations.prop_map(|equations| Case { equations }), 0..3);
    (0..5_usize, 0..5_usize, cases).prop_map(|(a, b, cases)| {
        let cases = cases.into_iter().map(Arc::new).collect();
        Constraint { a, b, cases }
    })
}

fn any_class() -> impl Strategy<Value = Class> {
    let kind = || proptest::sample::select(Kind::ALL.to_vec());
    let fields = proptest::collection::vec(proptest::sample::select(Field::ALL.to_vec()), 0..6);
    (
        0..3_usize,
        kind(),
        proptest::option::of(kind()),
        fields,
        any::<bool>(),
    )
        .prop_map(|(port, kind, hashed, fields, spread)| Class {
            port,
            kind,
            hashed,
            fields,
            spread,
        })
}

proptest! {
    /// Whatever is asked, what comes back obeys it.
    #[test]
    fn an_answer_is_right_or_there_is_none(
        constraints in proptest::collection::vec(constraint(), 0..6),
        nic in proptest::sample::select(names()),
        kinds in proptest::sample::subsequence(Kind::ALL.to_vec(), 1..5),
        cores in prop_oneof![0..20_u32, Just(u32::MAX)],
        seed: u64,
    ) {
        let nic = named(nic).unwrap();
        let classes: Vec<Class> = (0..).zip(&kinds).map(|(id, kind)| Class::whole(id % 2, *kind, &nic)).collect();
        let started = Instant::now();
        let solved = solve(&classes, &constraints, &nic, cores);
        prop_assert!(started.elapsed() < Duration::from_secs(5));
        match solved {
            Ok(space) => {
                let mut random = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(seed);
                let keys = space.draw(&mut random);
                let checked = space.check(&keys, &constraints, 20, &mut random).unwrap();
                prop_assert_eq!(checked.apart, None);
                for (id, class) in classes.iter().enumerate() {
                    let rank = keys.rank(id).unwrap().table;
                    prop_assert!(rank <= space.table_rank(id));
                    prop_assert!(space.table_rank(id) <= space.invariants()[id].min(space.index_bits()));
                    if class.spread {
                        prop_assert!(1 << space.table_rank(id) >= cores);
                    }
                    let exposure = space.exposure(id);
                    prop_assert_eq!(exposure.is_some(), space.table_rank(id) > 0);
                }
            }
            Err(Unsolved::Infeasible(no)) => {
                prop_assert!(!no.barred.is_empty());
                for barred in &no.barred {
                    prop_assert!(barred.rank <= barred.invariants && barred.rank < barred.needed);
                    prop_assert!(!barred.reason().is_empty());
                }
            }
            Err(other) => prop_assert!(!other.to_string().is_empty()),
        }
    }

    /// Classes that no device has are refused, or solved as they stand.
    #[test]
    fn classes_are_any(
        classes in proptest::collection::vec(any_class(), 0..5),
        key_bytes in 0..60_usize,
        entries in prop_oneof![0..1000_usize, Just(512), Just(usize::MAX)],
        cores in 0..20_u32,
        nic in proptest::sample::select(names()),
    ) {
        let constraints = [Constraint::new(0, 0, Case::all().both(bits(Field::SourceAddress)))];
        let target = Target { key_bytes, entries, cores };
        let _ = solve_for(&classes, &constraints, target);
        let _ = solve(&classes, &constraints, &named(nic).unwrap(), cores);
    }
}

#[test]
fn too_much_is_refused_at_once() {
    let nic = named("e810").unwrap();
    let known = policer();
    let ask = |constraints: &[Constraint]| solve(&known.classes, constraints, &nic, 2).unwrap_err();
    let many = Constraint {
        a: 0,
        b: 0,
        cases: std::iter::repeat_n(Arc::new(Case::all()), 1 << 13).collect(),
    };
    assert_eq!(ask(&[many]), Invalid::TooMany.into());
    let wide = Constraint::new(0, 0, Case::all().both(Bits::other(0, usize::MAX)));
    assert_eq!(ask(&[wide]), Invalid::TooMany.into());
    let none = Constraint::new(0, 1, Case::all());
    assert_eq!(ask(&[none]), Invalid::NoClass { class: 1 }.into());
    let six = Constraint::new(0, 0, keeps(Kind::Ipv6, &[Field::SourceAddress]));
    assert!(matches!(
        ask(&[six]),
        Unsolved::Invalid(Invalid::NoBit { .. })
    ));
    let classes: Vec<Class> = (0..200).map(|port| class(port, TCP)).collect();
    let refused = solve(&classes, &[], &nic, 2).unwrap_err();
    assert_eq!(refused, Invalid::TooMany.into());
}

/// The widest that a program could ask for: eight ports of four kinds, all connected, with dense cases.
#[test]
fn the_widest_question_takes_bounded_time() {
    let kinds = [Kind::Ipv4Tcp, Kind::Ipv4Udp, Kind::Ipv6Tcp, Kind::Ipv6Udp];
    let known = firewall(8, &kinds);
    let target = Target {
        key_bytes: 52,
        entries: 512,
        cores: 16,
    };
    let started = Instant::now();
    let space = solve_for(&known.classes, &known.constraints, target).unwrap();
    assert_eq!(space.index_bits(), 9);
    assert!(started.elapsed() < Duration::from_secs(20));
}
