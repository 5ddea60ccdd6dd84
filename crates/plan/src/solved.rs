//! From pairs that must meet to keys: which NIC hashes what, and what is left to software.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

use millrace_model::Model;
use millrace_steer::keys::{
    Class, Constraint, No, Remembered, Space, Target, Unsolved, solve_again, solve_otherwise,
};
use millrace_steer::{Field, Kind, Nic};

use crate::computed::{Computed, Exact};
use crate::constraints::{Cases, Meeting, Same, kept};
use crate::packets::Packets;
use crate::plan::By;
use crate::touch::{Touch, Touches};

/// What is done with IPv6, of which NICs hash less freely and which shares the key with IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Six {
    Nic,
    Software,
    Pinned,
}

/// Who hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Attempt {
    four: By,
    six: Six,
}

/// In the order in which they are tried: what costs software least comes first.
const ATTEMPTS: [Attempt; 5] = [
    Attempt {
        four: By::Nic,
        six: Six::Nic,
    },
    Attempt {
        four: By::Nic,
        six: Six::Software,
    },
    Attempt {
        four: By::Nic,
        six: Six::Pinned,
    },
    Attempt {
        four: By::Software,
        six: Six::Software,
    },
    Attempt {
        four: By::Software,
        six: Six::Pinned,
    },
];

/// One class of packets, and who hashes it.
#[derive(Clone, Debug)]
pub(crate) struct Steered {
    pub packets: Packets,
    pub by: By,
    pub class: Class,
    /// it reaches state that is sharded
    pub bound: bool,
}

/// Keys.
#[derive(Clone, Debug)]
pub(crate) struct Solved {
    pub steered: Vec<Steered>,
    pub space: Space,
    /// time from the constraints to the space, what was tried before included
    pub took: Duration,
}

/// The number of the key that a class uses: each port has one in the NIC and one in software.
pub(crate) fn slot(port: usize, by: By) -> usize {
    2 * port + usize::from(by == By::Software)
}

pub(crate) fn is_six(kind: Kind) -> bool {
    use Kind::{Ipv6, Ipv6Fragment, Ipv6Sctp, Ipv6Tcp, Ipv6Udp};
    matches!(kind, Ipv6 | Ipv6Fragment | Ipv6Sctp | Ipv6Tcp | Ipv6Udp)
}

fn is_main(kind: Kind) -> bool {
    use Kind::{Ipv4Tcp, Ipv4Udp, Ipv6Tcp, Ipv6Udp};
    matches!(kind, Ipv4Tcp | Ipv4Udp | Ipv6Tcp | Ipv6Udp)
}

/// By fewer bits than this, as those of the networks of a /8, hosts are not told apart that are near each other.
const FEW: usize = 24;

/// Keys, or why there are none.
pub(crate) type Answered = Result<Rc<Solved>, Unsolved>;

/// What keys are looked for on.
pub(crate) struct Device<'a> {
    pub nic: &'a Nic,
    pub software: &'a Nic,
    pub ports: usize,
    pub cores: u32,
    /// what was asked before: objects are tried alone, together, and pair by pair
    pub asked: RefCell<HashMap<Vec<Same>, Answered>>,
    /// of all that is asked, each once
    pub cases: Cases,
    /// what is asked of a solver
    pub computed: Computed,
    /// what cases came to
    pub remembered: RefCell<Remembered>,
}

impl Device<'_> {
    /// Keys under which these packets meet.
    ///
    /// # Errors
    /// What the first attempt was told.
    pub fn solve(&self, meetings: &[Meeting]) -> Answered {
        let same: Vec<Same> = meetings.iter().map(Meeting::same).collect();
        if let Some(known) = self.asked.borrow().get(&same) {
            return known.clone();
        }
        let began = Instant::now();
        let found = self.attempts(meetings).map(|solved| {
            let took = began.elapsed();
            Rc::new(Solved { took, ..solved })
        });
        self.asked.borrow_mut().insert(same, found.clone());
        found
    }

    /// The packets that touch one place of an object, as exactly as a solver says which keys are equal, with their keys:
    /// where equations alone leave no keys, or keys by few bits. None if that is no better than what is `there`.
    pub fn exactly(
        &self,
        model: &mut Model,
        touches: (&Touches, &[&Touch]),
        there: &Answered,
    ) -> Option<(Exact, Answered)> {
        let bits = |solved: &Answered| solved.as_ref().map_or(0, |s| s.bits());
        if !Computed::concerns(model, touches.1) || bits(there) >= FEW {
            return None;
        }
        let exact = self.computed.meetings(model, touches, &self.cases)?;
        let solved = self.solve(&exact.meetings);
        let better = there.is_err() || bits(&solved) > bits(there);
        better.then_some((exact, solved))
    }

    fn attempts(&self, meetings: &[Meeting]) -> Result<Solved, Unsolved> {
        let six = meetings
            .iter()
            .any(|m| is_six(m.a.kind) || is_six(m.b.kind));
        let mut first = None;
        // Who hashes what is the same for some of them.
        let mut tried: Vec<Vec<Class>> = Vec::new();
        for attempt in ATTEMPTS {
            if !six && attempt.six != Six::Nic && attempt.four == By::Nic {
                continue;
            }
            for fewest in [true, false] {
                let steered = self.steered(meetings, attempt, fewest);
                let classes: Vec<Class> = steered.iter().map(|s| s.class.clone()).collect();
                if tried.contains(&classes) {
                    continue;
                }
                // Only of the first it is asked why.
                let found = self.attempt(meetings, steered, &classes, first.is_none());
                tried.push(classes);
                match found {
                    Ok(Some(solved)) => return Ok(solved),
                    Ok(None) => {}
                    Err(e) => first = first.or(Some(e)),
                }
            }
        }
        Err(first.unwrap_or(Unsolved::NotFound))
    }

    /// Who hashes what, with the fewest fields that hold what the pairs have in common, or with all.
    fn steered(&self, meetings: &[Meeting], attempt: Attempt, fewest: bool) -> Vec<Steered> {
        let bound: BTreeSet<Packets> = meetings.iter().flat_map(|m| [m.a, m.b]).collect();
        let some_main = bound.iter().any(|p| is_main(p.kind));
        let mut steered = Vec::new();
        for port in 0..self.ports {
            for kind in Kind::ALL {
                let packets = Packets { port, kind };
                let is_bound = bound.contains(&packets);
                let (by, pinned) = match (is_six(kind), attempt.six) {
                    (true, Six::Pinned) => (By::Nic, true),
                    (true, Six::Software) => (By::Software, false),
                    _ => (attempt.four, false),
                };
                // What reaches no state may go where the NIC likes.
                let by = if is_bound { by } else { By::Nic };
                let nic = match by {
                    By::Nic => self.nic,
                    By::Software => self.software,
                };
                let slot = slot(port, by);
                let kept = kept(meetings, packets).filter(|_| fewest);
                let class = match kept {
                    _ if pinned => Class::unhashed(slot, kind),
                    Some(fields) if !fields.is_empty() => {
                        let fields: Vec<Field> = fields.into_iter().collect();
                        Class::keeping(slot, kind, &fields, nic)
                            .unwrap_or_else(|| Class::whole(slot, kind, nic))
                    }
                    _ => Class::whole(slot, kind, nic),
                };
                let must = is_bound && !pinned && (is_main(kind) || !some_main);
                let class = if must { class } else { class.anywhere() };
                steered.push(Steered {
                    packets,
                    by,
                    class,
                    bound: is_bound,
                });
            }
        }
        steered
    }

    /// Keys for these classes, or why there are none, if that is asked.
    fn attempt(
        &self,
        meetings: &[Meeting],
        steered: Vec<Steered>,
        classes: &[Class],
        why: bool,
    ) -> Result<Option<Solved>, Unsolved> {
        let number: BTreeMap<Packets, usize> = steered
            .iter()
            .enumerate()
            .map(|(i, s)| (s.packets, i))
            .collect();
        let constraints: Vec<Constraint> = meetings
            .iter()
            .filter_map(|m| {
                let (a, b) = (number.get(&m.a)?, number.get(&m.b)?);
                Some(Constraint::new(*a, *b, m.case.clone()))
            })
            .collect();
        let target = Target::of(self.nic, self.cores);
        let mut known = self.remembered.borrow_mut();
        let space = match why {
            true => Some(solve_again(classes, &constraints, target, &mut known)?),
            false => solve_otherwise(classes, &constraints, target, &mut known)?,
        };
        Ok(space.map(|space| Solved {
            steered,
            space,
            took: Duration::ZERO,
        }))
    }
}

impl Solved {
    /// By how many bits, at least, packets of a kind are told apart that reach state and are spread.
    pub fn bits(&self) -> usize {
        let invariants = self.space.invariants();
        let each = self.steered.iter().zip(invariants);
        let spread = |s: &Steered| s.bound && is_main(s.packets.kind) && !s.class.fields.is_empty();
        let spread = each.filter(|(s, _)| spread(s));
        spread.map(|(_, bits)| bits).min().unwrap_or(usize::MAX)
    }
}

/// Why there are no keys, in words.
pub(crate) fn why(unsolved: &Unsolved) -> (bool, String) {
    match unsolved {
        Unsolved::Infeasible(all) => {
            let worst = all.barred.iter().min_by_key(|b| (b.invariants, b.rank));
            let text = worst.map_or(String::new(), |b| match b.why {
                No::Connected => {
                    "every packet would have to meet every other, so that no hash tells two apart (D = 0)"
                        .to_owned()
                }
                No::Overlap => format!(
                    "the fields' windows in the key overlap, so that no key lets one count and cancels the \
                     others (D = {}, rank 0)",
                    b.invariants
                ),
                No::Narrow => format!(
                    "only {} bits reach the indirection table, and {} are needed for so many cores",
                    b.rank, b.needed
                ),
            });
            (true, text)
        }
        other => (false, other.to_string()),
    }
}
