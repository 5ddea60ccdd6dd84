//! The loop of questions, against an oracle that tries all pairs.

use crate::fields::{Field, Kind};
use crate::keys::*;
use crate::nic::named;

const PORT: Field = Field::DestinationPort;

/// Answers for pairs of one port field, whose 16 bits each satisfy `holds`; equal ports are tried only.
fn oracle(holds: impl Fn(u16) -> bool) -> impl FnMut(&Asked) -> Answer {
    move |asked| {
        // Nothing else is constrained, so that any question about another field has a pair, and one
        // about equal bits of both ports has none.
        let port = |bit: &&Bit| bit.part == Part::Field(PORT);
        let (ports, others): (Vec<&Bit>, Vec<&Bit>) = asked.parity.iter().partition(port);
        let ones = |value: u16| -> Vec<Bit> {
            let set = (0..16).filter(move |at| value >> (15 - at) & 1 == 1);
            let bit = |side| {
                move |at| Bit {
                    side,
                    part: Part::Field(PORT),
                    at,
                }
            };
            let a: Vec<Bit> = set.clone().map(bit(Side::A)).collect();
            a.into_iter().chain(set.map(bit(Side::B))).collect()
        };
        for value in (0..=u16::MAX).filter(|value| holds(*value)) {
            let parity = ports.iter().filter(|b| value >> (15 - b.at) & 1 == 1);
            let odd = parity.count() % 2 == 1;
            match others.first() {
                _ if odd => return Answer::Pair(ones(value)),
                Some(bit) => {
                    let mut pair = ones(value);
                    pair.push(**bit);
                    return Answer::Pair(pair);
                }
                None => {}
            }
        }
        Answer::None
    }
}

/// Packets to one port of a range meet.
fn ask(mut witness: impl FnMut(&Asked) -> Answer) -> Result<(Space, Asking), Unsolved> {
    let nic = named("82599").unwrap();
    let kind = Kind::Ipv4Tcp;
    let classes = [Class::whole(0, kind, &nic)];
    let case = Case::all().both(Bits::of(kind, PORT));
    let constraints = [Constraint::new(0, 0, case)];
    solve_exactly(&classes, &constraints, &nic, 2, &mut witness)
}

#[test]
fn ports_of_a_narrow_range_have_a_smaller_span() {
    let (all, none) = ask(oracle(|_| true)).unwrap();
    assert_eq!((none.gained, none.unknown), (0, 0));
    let (same, wide) = ask(oracle(|port| port >= 1024)).unwrap();
    assert_eq!((wide.gained, same.dimension()), (0, all.dimension()));
    // 5000 to 5003: 14 bits are the same in all, so that of the 16 directions of equal ports three are
    // left: the constant and the two low bits.
    let (more, narrow) = ask(oracle(|port| (5000..=5003).contains(&port))).unwrap();
    assert_eq!((narrow.gained, narrow.unknown), (13, 0));
    assert!(more.dimension() >= all.dimension());
    assert!(narrow.asked <= 2 * 96);
}

#[test]
fn nobody_knowing_changes_nothing() {
    let (all, _) = ask(oracle(|_| true)).unwrap();
    let (same, asking) = ask(|_: &Asked| Answer::Unknown).unwrap();
    assert_eq!(asking.asked, asking.unknown);
    assert_eq!((asking.gained, same.dimension()), (0, all.dimension()));
    // Without any pair nothing is asked of the keys.
    let (free, asking) = ask(|_: &Asked| Answer::None).unwrap();
    assert_eq!((asking.asked, free.dimension()), (asking.gained, 102));
}

#[test]
fn a_pair_that_is_none_is_refused() {
    let wrong = ask(|_: &Asked| Answer::Pair(Vec::new()));
    let wrong = wrong.unwrap_err();
    assert!(matches!(
        wrong,
        Unsolved::Invalid(Invalid::Witness {
            constraint: 0,
            case: 0
        })
    ));
}
