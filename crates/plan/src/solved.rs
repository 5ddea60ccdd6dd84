//! From pairs that must meet to keys: which NIC hashes what, and what is left to software.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use millrace_check::Budget;
use millrace_check::budget::Spent;
use millrace_history::History;
use millrace_model::Model;
use millrace_model::expr::ids::IdMap;
use millrace_steer::keys::{
    Class, Constraint, No, Remembered, Space, Target, Unsolved, solve_again, solve_otherwise,
};
use millrace_steer::{Field, Kind, Nic};

use crate::computed::{Computed, Exact};
use crate::constraints::{Cases, Meeting, Same, kept};
use crate::make::Carried;
use crate::packets::Packets;
use crate::plan::By;
use crate::touch::{Touch, Touches};

/// Treatment of IPv6, of which NICs hash less freely and which shares the key with IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Six {
    Nic,
    Software,
    Pinned,
}

/// Hashers of IPv4 and treatments of IPv6 in the order in which they are tried: what costs software least comes first.
const ATTEMPTS: [(By, Six); 5] = [
    (By::Nic, Six::Nic),
    (By::Nic, Six::Software),
    (By::Nic, Six::Pinned),
    (By::Software, Six::Software),
    (By::Software, Six::Pinned),
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

/// Whether it is of IPv6, whose addresses have 128 bits.
pub(crate) fn is_six(kind: Kind) -> bool {
    Field::SourceAddress.bits(kind) == 128
}

fn is_main(kind: Kind) -> bool {
    use Kind::{Ipv4Tcp, Ipv4Udp, Ipv6Tcp, Ipv6Udp};
    matches!(kind, Ipv4Tcp | Ipv4Udp | Ipv6Tcp | Ipv6Udp)
}

/// By fewer bits than this, as those of the networks of a /8, hosts are not told apart that are near each other.
const FEW: usize = 24;

/// Keys, or why there are none.
pub(crate) type Answered = Result<Rc<Solved>, NoKeys>;

/// Why there are no keys.
#[derive(Clone, Debug)]
pub(crate) struct NoKeys {
    pub unsolved: Unsolved,
    /// the packets that are told apart the least
    pub of: Option<Packets>,
}

impl NoKeys {
    fn new(unsolved: Unsolved, steered: &[Steered]) -> Self {
        let worst = match &unsolved {
            Unsolved::Infeasible(all) => all.barred.iter().min_by_key(|b| (b.invariants, b.rank)),
            _ => None,
        };
        let of = worst.and_then(|b| Some(steered.get(b.class)?.packets));
        Self { unsolved, of }
    }
}

impl From<Unsolved> for NoKeys {
    fn from(unsolved: Unsolved) -> Self {
        Self { unsolved, of: None }
    }
}

/// The space in which keys are searched.
pub(crate) struct Device<'a> {
    pub nic: &'a Nic,
    pub software: &'a Nic,
    pub ports: usize,
    pub cores: u32,
    /// which rule is tried first for numbers that packets carry
    pub carried: Cell<Carried>,
    /// what was asked before: objects are tried alone, together, and pair by pair
    pub asked: RefCell<IdMap<Vec<Same>, Answered>>,
    /// of all that is asked, each once
    pub cases: Cases,
    /// what is asked of a solver
    pub computed: RefCell<Computed>,
    /// what is left of the object's budget
    pub budget: Budget,
    /// what of it is used up, where no keys were looked for because of that
    pub ended: Cell<Option<Spent>>,
    /// what of a packet reaches state
    pub history: Option<&'a History>,
    /// what cases came to
    pub remembered: RefCell<Remembered>,
}

impl Device<'_> {
    /// Keys under which these packets meet.
    ///
    /// # Errors
    /// Constraints given to the first attempt.
    pub fn solve(&self, meetings: &[Meeting]) -> Answered {
        let same: Vec<Same> = meetings.iter().map(Meeting::same).collect();
        if let Some(known) = self.asked.borrow().get(&same) {
            return known.clone();
        }
        // Keys under which nothing has to meet are there at once, and no plan is without them.
        if let Some(spent) = self.budget.spent().filter(|_| !meetings.is_empty()) {
            // Without keys nothing is sharded, which is right whatever the packets are.
            self.ended.set(Some(spent));
            return Err(Unsolved::NotFound.into());
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
        let exact = self
            .computed
            .borrow_mut()
            .meetings(model, touches, &self.cases)?;
        let solved = self.solve(&exact.meetings);
        let better = there.is_err() || bits(&solved) > bits(there);
        better.then_some((exact, solved))
    }

    fn attempts(&self, meetings: &[Meeting]) -> Result<Solved, NoKeys> {
        let six = meetings
            .iter()
            .any(|m| is_six(m.a.kind) || is_six(m.b.kind));
        let mut first = None;
        // Who hashes what is the same for some of them.
        let mut tried: Vec<Vec<Class>> = Vec::new();
        for attempt in ATTEMPTS {
            if !six && attempt.1 != Six::Nic && attempt.0 == By::Nic {
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
                    // With everything on one core nothing is sharded.
                    Ok(Some(solved)) if !solved.is_one_core() => return Ok(solved),
                    Ok(_) => {}
                    Err(e) => first = first.or(Some(e)),
                }
            }
        }
        Err(first.unwrap_or_else(|| Unsolved::NotFound.into()))
    }

    /// Hashers and their fields: the fewest fields that hold what the pairs have in common, or all.
    fn steered(&self, meetings: &[Meeting], (four, six): (By, Six), fewest: bool) -> Vec<Steered> {
        let bound: BTreeSet<Packets> = meetings.iter().flat_map(|m| [m.a, m.b]).collect();
        let some_main = bound.iter().any(|p| is_main(p.kind));
        let odd = bound.iter().any(|p| p.kind.is_odd());
        let mut steered = Vec::new();
        for port in 0..self.ports {
            for kind in Kind::ALL {
                let packets = Packets { port, kind };
                let is_bound = bound.contains(&packets);
                // Odd packets that reach nothing are what the NIC takes them for.
                if kind.is_odd() && !is_bound {
                    continue;
                }
                let (by, pinned) = match (is_six(kind), six) {
                    (true, Six::Pinned) => (By::Nic, true),
                    (true, Six::Software) => (By::Software, false),
                    _ => (four, false),
                };
                // What reaches no state may go where the NIC likes.
                let by = match is_bound {
                    true if kind.is_odd() => By::Software,
                    true => by,
                    false => By::Nic,
                };
                let kept = kept(meetings, packets).filter(|_| fewest);
                // Where software reads odd packets it also takes the few whose fields the NIC leaves out.
                let left_out = |fields: &BTreeSet<Field>| {
                    let fields: Vec<Field> = fields.iter().copied().collect();
                    Class::keeping(slot(port, by), kind, &fields, self.nic).is_none()
                };
                let rare = is_bound && odd && !pinned && !is_main(kind);
                let by = match by {
                    By::Nic if rare && kept.as_ref().is_some_and(left_out) => By::Software,
                    by => by,
                };
                let nic = match by {
                    By::Nic => self.nic,
                    By::Software => self.software,
                };
                let slot = slot(port, by);
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
    ) -> Result<Option<Solved>, NoKeys> {
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
            true => {
                let solved = solve_again(classes, &constraints, target, &mut known);
                Some(solved.map_err(|e| NoKeys::new(e, &steered))?)
            }
            false => {
                let solved = solve_otherwise(classes, &constraints, target, &mut known);
                solved.map_err(Unsolved::Invalid)?
            }
        };
        Ok(space.map(|space| Solved {
            steered,
            space,
            took: Duration::ZERO,
        }))
    }
}

impl Solved {
    /// Whether all packets that reach state are on one core.
    fn is_one_core(&self) -> bool {
        let mut bound = self.steered.iter().filter(|s| s.bound).peekable();
        bound.peek().is_some() && bound.all(|s| s.class.fields.is_empty())
    }

    /// Whether all of these packets are on one core.
    pub fn pins(&self, meetings: &[Meeting]) -> bool {
        let of = |p: Packets| self.steered.iter().find(|s| s.packets == p);
        let pinned = |p: Packets| of(p).is_some_and(|s| s.class.fields.is_empty());
        !meetings.is_empty() && meetings.iter().all(|m| pinned(m.a) && pinned(m.b))
    }

    /// How many of the kinds that NICs hash reach state and are all on one core.
    pub fn pinned(&self) -> usize {
        let main = |s: &&Steered| s.bound && is_main(s.packets.kind) && s.class.fields.is_empty();
        self.steered.iter().filter(main).count()
    }

    /// By how many bits, at least, packets of a kind are told apart that reach state and are spread.
    pub fn bits(&self) -> usize {
        let invariants = self.space.invariants();
        let each = self.steered.iter().zip(invariants);
        let spread = |s: &Steered| s.bound && is_main(s.packets.kind) && !s.class.fields.is_empty();
        let spread = each.filter(|(s, _)| spread(s));
        spread.map(|(_, bits)| bits).min().unwrap_or(usize::MAX)
    }
}

/// Packets, in words.
pub(crate) fn named(packets: Packets, ports: &[String]) -> String {
    let kind = packets.kind.name();
    match ports.get(packets.port) {
        Some(port) => format!("{kind} packets on {port}"),
        None => format!("{kind} packets"),
    }
}

/// Why there are no keys, in words, and whether that is proved.
pub(crate) fn why(no: &NoKeys, ports: &[String]) -> (bool, String) {
    let of = no.of.map_or("packets".to_owned(), |p| named(p, ports));
    match &no.unsolved {
        Unsolved::Infeasible(all) => {
            let worst = all.barred.iter().min_by_key(|b| (b.invariants, b.rank));
            let text = worst.map_or(String::new(), |b| match b.why {
                No::Connected => format!(
                    "all {of} would have to meet each other, so that no hash tells two apart (D = 0)"
                ),
                No::Overlap => format!(
                    "the fields' windows in the key overlap, so that no key lets one field of {of} count and \
                     cancels the others (D = {}, rank 0)",
                    b.invariants
                ),
                No::Narrow => format!(
                    "only {} bits reach the indirection table of {of}, and {} are needed for so many cores",
                    b.rank, b.needed
                ),
            });
            (true, text)
        }
        other => (false, other.to_string()),
    }
}
