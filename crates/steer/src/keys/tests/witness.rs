//! The loop of questions, against an oracle that tries all pairs.

use crate::fields::{Field, Kind};
use crate::keys::*;
use crate::nic::named;

const PORT: Field = Field::DestinationPort;

/// Answers for pairs of one port field, whose 16 bits each satisfy `holds`; equal ports are tried only.
fn oracle(holds: impl Fn(u16) -> bool) -> impl FnMut(&[Vec<Bit>]) -> Answer {
    move |asked| {
        // Nothing else is constrained, so that any question about another field has a pair, and one
        // about equal bits of both ports has none.
        let port = |bit: &&Bit| bit.part == Part::Field(PORT);
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
        for parity in asked {
            let (ports, others): (Vec<&Bit>, Vec<&Bit>) = parity.iter().partition(port);
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
        }
        Answer::None
    }
}

/// Packets to one port of a range meet.
fn ask(mut witness: impl Witness) -> Result<(Space, Asking), Unsolved> {
    let nic = named("82599").unwrap();
    let kind = Kind::Ipv4Tcp;
    let classes = [Class::whole(0, kind, &nic)];
    let case = Case::all().both(Bits::of(kind, PORT));
    let (case, asking) = narrowed((&classes[0], &classes[0]), &case, &mut witness)?;
    let space = solve(&classes, &[Constraint::new(0, 0, case)], &nic, 2)?;
    Ok((space, asking))
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
    assert_eq!((narrow.gained, narrow.unknown, narrow.open), (13, 0, 0));
    assert!(more.dimension() >= all.dimension());
    // A question for each dimension that there is, and one for all that there are not.
    assert_eq!(narrow.asked, 2 * 80 + 3 + 1);
}

/// An oracle that answers one by one only.
struct OneByOne<W>(W);

impl<W: Witness> Witness for OneByOne<W> {
    fn find(&mut self, parities: &[Vec<Bit>]) -> Answer {
        match parities {
            [_] => self.0.find(parities),
            _ => Answer::Unknown,
        }
    }
}

#[test]
fn who_cannot_answer_for_all_is_asked_one_by_one() {
    let narrow = || oracle(|port| (5000..=5003).contains(&port));
    let (all, at_once) = ask(narrow()).unwrap();
    let (same, asking) = ask(OneByOne(narrow())).unwrap();
    assert_eq!(same.dimension(), all.dimension());
    assert_eq!((asking.gained, asking.open), (at_once.gained, 0));
    assert_eq!(asking.unknown, 1);
}

/// An oracle that knows all pairs of two equal ports before anything is asked.
struct Foreknowing<W>(W);

impl<W: Witness> Witness for Foreknowing<W> {
    fn known(&mut self) -> Vec<Vec<Bit>> {
        let of = |at, part| [Side::A, Side::B].map(|side| Bit { side, part, at });
        let one = |at| of(at, Part::Field(PORT)).to_vec();
        (0..16).map(one).collect()
    }

    fn find(&mut self, parities: &[Vec<Bit>]) -> Answer {
        self.0.find(parities)
    }
}

#[test]
fn what_is_known_is_not_asked_for() {
    let (plain, asked) = ask(oracle(|_| true)).unwrap();
    let (same, fewer) = ask(Foreknowing(oracle(|_| true))).unwrap();
    assert_eq!(plain.dimension(), same.dimension());
    assert_eq!(fewer.asked + 16, asked.asked);
}

#[test]
fn nobody_knowing_changes_nothing() {
    let (all, _) = ask(oracle(|_| true)).unwrap();
    let (same, asking) = ask(|_: &[Vec<Bit>]| Answer::Unknown).unwrap();
    assert_eq!(asking.asked, asking.unknown);
    assert_eq!(asking.open + 1, asking.asked);
    assert_eq!((asking.gained, same.dimension()), (0, all.dimension()));
    // Without any pair nothing is asked of the keys.
    let (free, asking) = ask(|_: &[Vec<Bit>]| Answer::None).unwrap();
    assert_eq!((asking.asked, asking.gained), (1, 2 * 80 + 16));
    assert_eq!(free.dimension(), 102);
}

#[test]
fn a_pair_that_is_none_is_refused() {
    let wrong = ask(|_: &[Vec<Bit>]| Answer::Pair(Vec::new()));
    assert_eq!(wrong.unwrap_err(), Unsolved::Invalid(Invalid::Witness));
    let bit = Bit {
        side: Side::A,
        part: Part::Field(PORT),
        at: 3,
    };
    struct Liar(Bit);
    impl Witness for Liar {
        fn known(&mut self) -> Vec<Vec<Bit>> {
            vec![vec![self.0]]
        }

        fn find(&mut self, _: &[Vec<Bit>]) -> Answer {
            Answer::Unknown
        }
    }
    assert_eq!(
        ask(Liar(bit)).unwrap_err(),
        Unsolved::Invalid(Invalid::Witness)
    );
}
