//! Gathers the facts of all visits to a step.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use millrace_object::insn::REGISTERS;
use millrace_object::program::{FunctionId, ObjectId};

use crate::claims::Claims;
use crate::domain::{Region, Value};
use crate::facts::{Access, ArgFact, Extent, Flow, Kind, StepId};
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::FrameState;

/// A kind, with the number 0 apart: it is also the null pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Kind(Kind),
    Null,
}

fn seen(v: &Value) -> Seen {
    Seen::Kind(match v {
        Value::Gone(_) => Kind::Unset,
        Value::Scalar(s, _) if s.as_constant() == Some(0) => return Seen::Null,
        Value::Scalar(..) => Kind::Scalar,
        Value::Pointer(p) => match p.region {
            Region::Context => Kind::Context,
            Region::Packet(_) | Region::Moved(_) => Kind::Packet,
            Region::Meta(_) => Kind::PacketMeta,
            Region::PacketEnd => Kind::PacketEnd,
            Region::Stack(frame) => Kind::Stack {
                frame,
                offset: p.fixed().and_then(|o| i32::try_from(o).ok()),
            },
            Region::Object(o) => Kind::Object(o),
            Region::Function(f) => Kind::Function(f),
            Region::Inner(o) => Kind::Inner(o),
            Region::Value(o) => Kind::Value(o),
            Region::Record { object, .. } => Kind::Record(object),
        },
    })
}

fn join(a: Seen, b: Seen) -> Seen {
    use Seen::{Kind as K, Null};
    if a == b {
        return a;
    }
    match (a, b) {
        (K(Kind::Unset), other) | (other, K(Kind::Unset)) => other,
        (Null, K(k)) | (K(k), Null) => K(match k {
            // These stay themselves, possibly null; the others have no null of their own.
            Kind::Value(_)
            | Kind::Record(_)
            | Kind::Inner(_)
            | Kind::Scalar
            | Kind::Mixed
            | Kind::Pointer => k,
            _ => Kind::Pointer,
        }),
        (K(Kind::Stack { frame: f, .. }), K(Kind::Stack { frame: g, .. })) if f == g => {
            K(Kind::Stack {
                frame: f,
                offset: None,
            })
        }
        (K(Kind::Scalar | Kind::Mixed), _) | (_, K(Kind::Scalar | Kind::Mixed)) => K(Kind::Mixed),
        _ => K(Kind::Pointer),
    }
}

fn join_access(a: Access, b: Access) -> Access {
    match (a, b) {
        _ if a == b => a,
        (
            Access::Stack { frame, from, to },
            Access::Stack {
                frame: g,
                from: h,
                to: i,
            },
        ) if frame == g => Access::Stack {
            frame,
            from: from.min(h),
            to: to.max(i),
        },
        _ => Access::Several,
    }
}

/// The facts of one step so far.
#[derive(Clone, Debug)]
struct About {
    before: [Seen; REGISTERS],
    after: Seen,
    access: Option<Access>,
    args: Vec<ArgFact>,
    /// the state objects that a call works on, if it works on one
    objects: BTreeSet<ObjectId>,
    holds: bool,
    fails: bool,
    /// some visit could go one way only
    decided: bool,
    reached: bool,
    /// what an instruction of 32 bits has worked on
    narrow: Option<Narrow>,
}

/// What an instruction of 32 bits works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Narrow {
    /// a pointer into the packet as its left operand, or as its only one
    Left,
    /// a pointer into the packet as its right operand alone
    Right,
    /// anything for which 64 bits give something else
    Cut,
}

/// The facts of one flow so far.
#[derive(Debug, Default)]
pub struct Collector {
    steps: Vec<About>,
    /// bytes of stack touched, by frame
    deepest: Vec<u32>,
    /// what timers are set to call
    callbacks: BTreeSet<(ObjectId, FunctionId)>,
    /// what is claimed, if somebody asks
    claims: Option<Claims>,
    /// bytes of values and records; rules that only look write it, too
    extents: RefCell<BTreeMap<(StepId, ObjectId), (u32, u32)>>,
}

impl Collector {
    /// Nothing known about any step; whether claims are gathered, too.
    #[must_use]
    pub fn new(flow: &Flow, claims: bool) -> Self {
        let unset = Seen::Kind(Kind::Unset);
        let none = About {
            before: [unset; REGISTERS],
            after: unset,
            access: None,
            args: Vec::new(),
            objects: BTreeSet::new(),
            holds: false,
            fails: false,
            decided: false,
            reached: false,
            narrow: None,
        };
        Collector {
            steps: vec![none; flow.steps.len()],
            deepest: vec![0; flow.frames.len()],
            callbacks: BTreeSet::new(),
            claims: claims.then(|| Claims::of(flow.steps.len())),
            extents: RefCell::default(),
        }
    }

    /// The step touches these bytes of a value or a record.
    pub fn extent(&self, at: StepId, object: ObjectId, from: i64, to: i64) {
        // Only where a test has switched the bounds off is one of them no such number.
        let (from, to) = (
            u32::try_from(from).unwrap_or(0),
            u32::try_from(to).unwrap_or(u32::MAX),
        );
        let mut all = self.extents.borrow_mut();
        let known = all.entry((at, object)).or_insert((from, to));
        *known = (known.0.min(from), known.1.max(to));
    }

    /// A visit begins with these registers and this stack.
    pub fn before(&mut self, at: StepId, frame: &FrameState) {
        if let Some(a) = self.steps.get_mut(at.0) {
            a.reached = true;
            for (k, v) in a.before.iter_mut().zip(&frame.regs) {
                *k = join(*k, seen(v));
            }
        }
        if let Some(claims) = &mut self.claims {
            claims.visit(at, frame);
        }
    }

    /// The instruction writes this to its register.
    pub fn after(&mut self, at: StepId, value: &Value) {
        if let Some(a) = self.steps.get_mut(at.0) {
            a.after = join(a.after, seen(value));
        }
    }

    /// The instruction touches this.
    ///
    /// # Errors
    /// `several-regions`: a field of the context in one visit, something else in another. The
    /// context is no memory of the host's; only its fields can be read, each by its own offset.
    pub fn access(&mut self, at: StepId, access: Access) -> Verdict<()> {
        self.deepen(access);
        let Some(a) = self.steps.get_mut(at.0) else {
            return Ok(());
        };
        let joined = a.access.map_or(access, |old| join_access(old, access));
        let context = |a: Access| matches!(a, Access::Context { .. });
        if joined == Access::Several && (context(access) || a.access.is_some_and(context)) {
            return Err(Fault::new(
                Rule::SeveralRegions,
                "this load reads the context in some executions and other memory in others",
                "Read the field of the context into a variable before the branch that chooses.",
            ));
        }
        a.access = Some(joined);
        Ok(())
    }

    /// An instruction of 32 bits works on this.
    ///
    /// # Errors
    /// `pointer-arithmetic`: on a pointer into the packet in one visit, and in another one on something for which
    /// the same instruction must be another one in the code.
    pub fn narrow(&mut self, at: StepId, narrow: impl Into<Option<Narrow>>) -> Verdict<()> {
        let (Some(a), Some(narrow)) = (self.steps.get_mut(at.0), narrow.into()) else {
            return Ok(());
        };
        match a.narrow {
            Some(old) if old != narrow => Err(Fault::new(
                Rule::PointerArithmetic,
                "this instruction of 32 bits works on a pointer into the packet in some executions and on a number in others",
                "Keep pointers and numbers in variables of their own.",
            )),
            _ => {
                a.narrow = Some(narrow);
                Ok(())
            }
        }
    }

    /// Every single access counts: joined with another region's, a stack's extent is forgotten.
    fn deepen(&mut self, access: Access) {
        if let Access::Stack { frame, from, .. } = access
            && let Some(d) = self.deepest.get_mut(frame.0)
        {
            *d = (*d).max(from.unsigned_abs());
        }
    }

    /// A branch can go these ways.
    pub fn outcomes(&mut self, at: StepId, holds: bool, fails: bool) {
        if let Some(a) = self.steps.get_mut(at.0) {
            a.holds |= holds;
            a.fails |= fails;
            a.decided |= holds != fails;
        }
    }

    /// A timer in a value of a map is set to call this.
    pub fn calls_later(&mut self, object: ObjectId, function: FunctionId) {
        self.callbacks.insert((object, function));
    }

    /// A helper is called with these.
    pub fn args(&mut self, at: StepId, args: &[ArgFact]) {
        for arg in args {
            if let ArgFact::Memory { access, .. } = arg {
                self.deepen(*access);
            }
        }
        let Some(a) = self.steps.get_mut(at.0) else {
            return;
        };
        a.objects.extend(args.iter().filter_map(|arg| match arg {
            ArgFact::Object(o) | ArgFact::Timer(o) => Some(*o),
            _ => None,
        }));
        if a.args.is_empty() {
            a.args = args.to_vec();
            return;
        }
        for (old, new) in a.args.iter_mut().zip(args) {
            *old = match (*old, *new) {
                (x, y) if x == y => x,
                // The call is laid out anew, once for each of them (`dispatch`).
                (ArgFact::Object(_) | ArgFact::Timer(_), _) => *old,
                (ArgFact::Scalar(_), ArgFact::Scalar(_)) => ArgFact::Scalar(None),
                (
                    ArgFact::Memory {
                        access: a,
                        bytes: m,
                    },
                    ArgFact::Memory {
                        access: b,
                        bytes: n,
                    },
                ) => ArgFact::Memory {
                    access: join_access(a, b),
                    bytes: if m == n { m } else { None },
                },
                _ => ArgFact::Memory {
                    access: Access::Several,
                    bytes: None,
                },
            };
        }
    }

    /// Calls that work on different state objects in different visits.
    #[must_use]
    pub fn several(&self) -> Vec<(StepId, Vec<ObjectId>)> {
        self.steps
            .iter()
            .enumerate()
            .filter(|(_, a)| a.objects.len() > 1)
            .map(|(i, a)| (StepId(i), a.objects.iter().copied().collect()))
            .collect()
    }

    /// Branches that some visit could leave one way only, because of what was known.
    #[must_use]
    pub fn decided(&self) -> Vec<StepId> {
        self.steps
            .iter()
            .enumerate()
            .filter(|(_, a)| a.decided)
            .map(|(i, _)| StepId(i))
            .collect()
    }

    /// Writes everything into the flow.
    pub fn finish(self, flow: &mut Flow) {
        let kind = |s: Seen| match s {
            Seen::Kind(k) => k,
            Seen::Null => Kind::Scalar,
        };
        for (step, about) in flow.steps.iter_mut().zip(self.steps) {
            step.reached = about.reached;
            step.before = about.before.map(kind);
            step.after = kind(about.after);
            step.access = about.access;
            step.extents.clear();
            step.outcomes.holds = about.holds;
            step.outcomes.fails = about.fails;
            step.args = about.args;
            step.whole = matches!(about.narrow, Some(Narrow::Left | Narrow::Right));
        }
        for ((at, object), (from, to)) in self.extents.into_inner() {
            if let Some(step) = flow.steps.get_mut(at.0) {
                step.extents.push(Extent { object, from, to });
            }
        }
        flow.claims = self.claims;
        flow.callbacks = self.callbacks.into_iter().collect();
        for (frame, bytes) in flow.frames.iter_mut().zip(self.deepest) {
            frame.stack_bytes = bytes;
        }
    }
}
