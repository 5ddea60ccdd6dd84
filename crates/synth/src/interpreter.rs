//! The reference interpreter between ports: packets enter by the devices of a configuration, and leave by them.
//!
//! It runs what the function hands over ([`crate::slow`]), and all packets where the two are compared ([`crate::reference`]).

use millrace_click::error::Error;
use millrace_click::interpreter::{Bounds, Outcome, Router, Shared};
use millrace_click::language::Graph;
use millrace_click::meaning::Meaning;
use millrace_click::packet::Packet;

/// Where packets enter and leave a configuration.
#[derive(Clone, Debug)]
pub struct Gates {
    /// elements where packets enter, by port
    pub enters: Vec<Option<usize>>,
    /// ports of elements where packets leave
    pub leaves: Vec<Option<u8>>,
}

impl Gates {
    /// Of the elements of a router, whose devices have these ports.
    #[must_use]
    pub fn of(router: &Router, ports: &[String]) -> Self {
        let count = router.graph().elements.len();
        let number = |name: &String| ports.iter().position(|p| p == name);
        let mut gates = Self {
            enters: vec![None; ports.len()],
            leaves: vec![None; count],
        };
        for id in 0..count {
            match router.meaning(id) {
                Some(Meaning::Enter(name)) => {
                    if let Some(slot) = number(&name).and_then(|n| gates.enters.get_mut(n)) {
                        *slot = Some(id);
                    }
                }
                Some(Meaning::Leave(name)) => {
                    if let Some(slot) = gates.leaves.get_mut(id) {
                        *slot = number(&name).map(|n| n as u8);
                    }
                }
                _ => {}
            }
        }
        gates
    }

    /// The port by which a packet left; none if it did not.
    #[must_use]
    pub fn port(&self, outcome: &Outcome) -> Option<u8> {
        let left = outcome.left.then_some(outcome.element)?;
        self.leaves.get(left).copied().flatten()
    }
}

/// What one packet may lead to: deliveries of packets to elements, and packets under way at a time. An element that makes more of one packet
/// loses the rest.
pub const BOUNDS: Bounds = Bounds {
    steps: 100_000,
    depth: 100,
    packets: 1_000,
};

/// What became of what was done last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ends {
    /// packets that left by a port
    pub left: u64,
    /// packets that an element dropped
    pub dropped: u64,
    /// whether the bounds ([`BOUNDS`]) ended it
    pub bounded: bool,
}

/// A configuration that runs.
pub struct Interpreter {
    router: Router,
    gates: Gates,
}

impl Interpreter {
    /// Makes the elements of a graph; its devices have these ports.
    ///
    /// # Errors
    /// Elements or their arguments are wrong.
    pub fn new(graph: Graph, ports: &[String], host: Shared) -> Result<Self, Vec<Error>> {
        let router = Router::new(graph, BOUNDS, host)?;
        // What a start takes is no packet's.
        router.renew();
        let gates = Gates::of(&router, ports);
        Ok(Self { router, gates })
    }

    /// When it has something to do by itself next, ns; none where no element waits for a time.
    #[must_use]
    pub fn next_timer(&self) -> Option<u64> {
        self.router
            .next_timer()
            .map(|t| u64::try_from(t).unwrap_or(0))
    }

    /// A packet enters by a port at a time, ns. `each` gets packets that leave, in order: port and bytes.
    pub fn enter(
        &self,
        port: u8,
        time: u64,
        frame: &[u8],
        each: &mut dyn FnMut(u8, &[u8]),
    ) -> Ends {
        let released = self.pass_time(time, each);
        let Some(from) = self.gates.enters.get(usize::from(port)).copied().flatten() else {
            return Ends {
                dropped: released.dropped + 1,
                ..released
            };
        };
        let outcomes = self.router.enter(from, 0, Packet::new(frame));
        let own = self.ends(&outcomes, each);
        Ends {
            left: released.left + own.left,
            dropped: released.dropped + own.dropped,
            bounded: released.bounded || own.bounded,
        }
    }

    /// Lets time pass, up to then, ns: elements whose timers are due may release packets.
    pub fn pass_time(&self, time: u64, each: &mut dyn FnMut(u8, &[u8])) -> Ends {
        let time = i64::try_from(time).unwrap_or(i64::MAX);
        if self.router.next_timer().is_none_or(|due| due > time) {
            self.router.advance(time);
            return Ends::default();
        }
        let outcomes = self.router.pass_time(time);
        self.ends(&outcomes, each)
    }

    fn ends(&self, outcomes: &[Outcome], each: &mut dyn FnMut(u8, &[u8])) -> Ends {
        let mut ends = Ends {
            bounded: self.router.renew().is_some(),
            ..Ends::default()
        };
        for outcome in outcomes {
            match self.gates.port(outcome) {
                Some(port) => {
                    ends.left += 1;
                    each(port, outcome.packet.data());
                }
                None => ends.dropped += 1,
            }
        }
        ends
    }
}
