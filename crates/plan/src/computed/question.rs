//! Whether there are two packets with one key that a linear function tells apart.

use std::rc::Rc;
use std::time::Duration;

use millrace_check::moment::Moment;
use millrace_model::Limits;
use millrace_model::expr::eval::Assignment;
use millrace_model::expr::ids::IdMap;
use millrace_model::expr::{Arena, Bin, ExprId, Node, Rel};
use millrace_model::solver::{self, Question, Said, Solve};
use millrace_steer::keys::{Answer, Bit, Class, Part, Side, Witness};

use super::formula::{Formula, place, second};
use super::samples::{Bytes, Samples};

/// The solver that is asked, with its limit of time.
pub(super) struct Solver {
    limits: Limits,
    left: Duration,
    /// as it was told how long a question may take
    running: Option<Box<dyn Solve>>,
}

/// One question may take a quarter of the time for all.
const PART: u32 = 4;

impl Solver {
    pub fn new(limits: &Limits) -> Self {
        Self {
            limits: Limits {
                question: limits.time / PART,
                ..limits.clone()
            },
            left: limits.time,
            running: None,
        }
    }

    /// Runs, if there is time left, and takes the time off it.
    pub fn timed<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.left.is_zero() {
            return None;
        }
        let began = Moment::now();
        let made = run(self);
        self.left = self.left.saturating_sub(began.elapsed());
        Some(made)
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.left
    }

    fn ask(&mut self, arena: &Arena, all: &[ExprId]) -> Option<Said> {
        self.timed(|own| {
            if own.left < own.limits.question {
                own.limits.question = own.left;
                own.running = None;
            }
            let limits = &own.limits;
            let running = own.running.get_or_insert_with(|| solver::of(limits));
            running.solve(arena, &Question::of(all))
        })
    }
}

/// Two packets, the fields of each in the order of its class, and what must hold of both.
pub(super) struct Pair<'a> {
    pub arena: &'a mut Arena,
    pub solver: &'a mut Solver,
    pub classes: (&'a Class, &'a Class),
    pub samples: (Rc<Samples>, Rc<Samples>),
    /// their keys are equal, and each is as its guard says
    pub all: Vec<ExprId>,
}

impl Pair<'_> {
    /// Conditions on packets with these formulas; none if they cannot hold.
    pub fn conditions(arena: &mut Arena, a: &Formula, b: &Formula) -> Option<Vec<ExprId>> {
        let b = b.of_second(arena);
        let mut all: Vec<ExprId> = a.when.iter().chain(&b.when).copied().collect();
        let alike = |(x, y): &(&ExprId, &ExprId)| arena.width(**x) == arena.width(**y);
        let both: Vec<_> = a.key.iter().zip(&b.key).filter(alike).collect();
        for (x, y) in both {
            let equal = arena.compare(Rel::Eq, *x, *y);
            match arena.constant(equal) {
                Some(0) => return None,
                Some(_) => {}
                None => all.push(equal),
            }
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// The bits that are set in the fields of the packets, whose bytes are there.
    fn ones(&self, byte: impl Fn(Side, i64) -> u8) -> Vec<Bit> {
        let mut out = Vec::new();
        for (side, class) in [(Side::A, self.classes.0), (Side::B, self.classes.1)] {
            for field in &class.fields {
                for at in 0..field.bits(class.kind) {
                    let byte = byte(side, place(*field, at / 8));
                    if byte >> (7 - at % 8) & 1 == 1 {
                        let part = Part::Field(*field);
                        out.push(Bit { side, part, at });
                    }
                }
            }
        }
        out
    }

    fn bit(&mut self, bit: &Bit) -> Option<ExprId> {
        let Part::Field(field) = bit.part else {
            return None;
        };
        let at = of_side(bit.side, place(field, bit.at / 8));
        let at = self.arena.number(at as u64, 64);
        let byte = self.arena.byte(at);
        Some(self.arena.extract(byte, 7 - (bit.at % 8) as u32, 1))
    }

    /// At least one of these is odd.
    fn odd(&mut self, parities: &[Vec<Bit>]) -> ExprId {
        let mut any = self.arena.truth(false);
        for parity in parities {
            let mut odd = self.arena.truth(false);
            for bit in parity {
                if let Some(bit) = self.bit(bit) {
                    odd = self.arena.binary(Bin::Xor, odd, bit);
                }
            }
            any = self.arena.either(any, odd);
        }
        any
    }
}

impl Witness for Pair<'_> {
    fn known(&mut self) -> Vec<Vec<Bit>> {
        let (a, b) = self.samples.clone();
        let bits = |(x, y): (&Bytes, &Bytes)| {
            self.ones(|side, at| {
                let bytes = if side == Side::A { x } else { y };
                bytes.get(&(at as u64)).copied().unwrap_or(0)
            })
        };
        a.pairs(&b).map(bits).collect()
    }

    fn find(&mut self, parities: &[Vec<Bit>]) -> Answer {
        let mut all = self.all.clone();
        all.push(self.odd(parities));
        let values = match self.solver.ask(self.arena, &all) {
            Some(Said::Holds(values)) => values,
            Some(Said::Fails(_)) => return Answer::None,
            Some(Said::Roughly(_) | Said::Unknown(_)) | None => return Answer::Unknown,
        };
        let (mut symbols, mut packet) = (IdMap::default(), Bytes::new());
        for (leaf, value) in values {
            match *self.arena.node(leaf) {
                Node::Sym(s) => drop(symbols.insert(s, value)),
                Node::Byte { at, .. } => drop(packet.insert(at as u64, value as u8)),
                _ => {}
            }
        }
        // The solver is not trusted with that.
        let found = Assignment::new(symbols, packet);
        if !all.iter().all(|e| found.value(self.arena, *e) == 1) {
            return Answer::Unknown;
        }
        let of = |at: i64| found.packet.get(&(at as u64)).copied().unwrap_or(0);
        Answer::Pair(self.ones(|side, at| of(of_side(side, at))))
    }
}

/// A place of the first packet in the one of this side.
fn of_side(side: Side, at: i64) -> i64 {
    match side {
        Side::A => at,
        Side::B => second(at),
    }
}
