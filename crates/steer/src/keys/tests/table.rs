//! The known results: dimension of the key space and rank of the index, by index bits.

use super::known::*;
use crate::fields::Kind;
use crate::keys::solve::space_at;
use crate::keys::*;
use crate::nic::named;

fn check(name: &str, known: &Known, index: [usize; 3], ranks: [usize; 3]) {
    for (at, (dimension, rank)) in [32, 9, 7].into_iter().zip(index.into_iter().zip(ranks)) {
        let space = space_at(&known.classes, &known.constraints, at).unwrap();
        assert_eq!(space.dimension(), dimension, "{name}: dimension at {at}");
        for class in 0..known.classes.len() {
            assert_eq!(space.table_rank(class), rank, "{name}: rank at {at}");
        }
    }
}

#[test]
fn dimensions_and_ranks_of_the_known_functions() {
    check("nop", &nop(), [127, 104, 102], [32, 9, 7]);
    check("policer", &policer(), [1, 24, 26], [32, 9, 7]);
    let [two, four] = [2, 4].map(|ports| firewall(ports, &[TCP]));
    check("firewall", &two, [34, 80, 84], [32, 9, 7]);
    check("firewall, four ports", &four, [34, 80, 84], [32, 9, 7]);
    check("psd", &psd(), [32, 32, 32], [32, 9, 7]);
    check("cl", &connection_limiter(), [64, 64, 64], [32, 9, 7]);
    check("nat", &nat(), [1, 32, 36], [32, 9, 7]);
    check("hhh", &heavy_hitters(), [8, 8, 8], [8, 8, 7]);
    let fragments = firewall_with_fragments();
    check(
        "firewall with fragments",
        &fragments,
        [2, 48, 52],
        [32, 9, 7],
    );
    let both = firewall(2, &[TCP, Kind::Ipv6Tcp]);
    check("firewall, IPv4 and IPv6", &both, [36, 144, 156], [32, 9, 7]);
}

#[test]
fn two_counters_connect_all_packets() {
    let known = two_counters();
    let nic = named("e810").unwrap();
    let no = solve(&known.classes, &known.constraints, &nic, 2).unwrap_err();
    let Unsolved::Infeasible(no) = no else {
        panic!("{no}")
    };
    assert_eq!(no.invariants, [0]);
    assert_eq!(no.barred[0].why, No::Connected);
    assert_eq!(no.barred[0].rank, 0);
}

#[test]
fn destinations_of_both_versions_need_the_same_key_bits() {
    let known = policer_of_both_versions();
    let nic = named("82599").unwrap();
    let no = solve(&known.classes, &known.constraints, &nic, 16).unwrap_err();
    let Unsolved::Infeasible(no) = no else {
        panic!("{no}")
    };
    assert_eq!(no.invariants, [32, 128]);
    let barred: Vec<_> = no.barred.iter().map(|b| (b.class, b.why)).collect();
    assert_eq!(barred, [(0, No::Overlap)]);
    // As many as the device can hash of them alone, it can.
    let nic = named("e810").unwrap();
    let destination = [crate::Field::DestinationAddress];
    let kept = |kind| Class::keeping(0, kind, &destination, &nic).unwrap();
    let classes = [kept(TCP), kept(Kind::Ipv6Tcp)];
    let space = solve(&classes, &known.constraints, &nic, 16).unwrap();
    assert_eq!([space.table_rank(0), space.table_rank(1)], [9, 9]);
}

#[test]
fn few_invariant_bits_are_too_narrow_for_many_cores() {
    let case = Case::all().both(bits(crate::Field::SourceAddress).prefix(3));
    let classes = [class(0, TCP)];
    let constraints = [Constraint::new(0, 0, case)];
    let nic = named("82599").unwrap();
    assert!(solve(&classes, &constraints, &nic, 8).is_ok());
    let no = solve(&classes, &constraints, &nic, 9).unwrap_err();
    let Unsolved::Infeasible(no) = no else {
        panic!("{no}")
    };
    let barred = &no.barred[0];
    assert_eq!((barred.why, barred.rank, barred.needed), (No::Narrow, 3, 4));
}

/// Three classes, each spread by one key bit, and the three bits sum to 0: over GF(2) they are not all 1,
/// over a larger field they could all be other than 0, so that the bound on the ranks does not show it.
#[test]
fn classes_that_cannot_spread_together_are_told_from_those_that_cannot_alone() {
    let field = crate::Field::SourcePort;
    let port = Bits::of(TCP, field);
    let class = |port| Class {
        fields: vec![field],
        ..class(port, TCP)
    };
    // The fourth holds the three bits and need not spread.
    let mut classes = vec![class(0), class(1), class(2), class(3).anywhere()];
    let only = |a, b| {
        Case::all()
            .constant(Side::A, port, a)
            .constant(Side::B, port, b)
    };
    let mut constraints = vec![
        Constraint::new(3, 3, Case::all().both(port.suffix(3))),
        Constraint::new(3, 3, only(0b110, 0b001)),
    ];
    for id in 0..3 {
        constraints.push(Constraint::new(id, id, Case::all().both(port.suffix(1))));
        constraints.push(Constraint::new(id, 3, only(1, 1 << id)));
    }
    let target = Target {
        key_bytes: 40,
        entries: 2,
        cores: 2,
    };
    let solve =
        |classes: &[Class], constraints: &[Constraint]| solve_for(classes, constraints, target);
    assert_eq!(
        solve(&classes, &constraints).unwrap_err(),
        Unsolved::Together
    );
    // Any two can.
    let spread = std::mem::replace(&mut classes[0].spread, false);
    assert_eq!(solve(&classes, &constraints).unwrap().dimension(), 2);
    classes[0].spread = spread;
    // With a free class beside them the keys are too many to be tried, and nothing is claimed.
    classes.push(class(4));
    assert_eq!(
        solve(&classes, &constraints).unwrap_err(),
        Unsolved::NotFound
    );
}
