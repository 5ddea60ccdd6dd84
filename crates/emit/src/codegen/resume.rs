//! Where a program goes on from what its prefetch pass found.
//!
//! A prefetch pass runs the program's own steps up to the first keyed operation. What the rest of the program can
//! still read of that, registers and stack, is kept in the packet's slot, and the last pass begins at the
//! operation itself: headers are read once a packet, not once a pass. Nothing that the prefetch pass read can
//! change in between (see [`super::prefetch`]), and if somebody else writes to a packet all the same, what
//! was checked and kept is what is used.
//!
//! Addresses of the stack cannot be kept, since the stack of the last pass is another. Where a prefetch pass
//! computes with one, the program begins anew and only takes the token over.

use std::collections::{BTreeMap, BTreeSet};

use millrace_check::facts::{Access, ArgFact, FrameId, Kind, Op, StepId};
use millrace_object::insn::{Insn, Operand, Reg};

use super::c::{Local, Statement};
use super::demand::{Cut, Demand};
use super::forms::Forms;
use super::key;
use super::prefetch::PrefetchPass;
use super::slice::{Role, Slice};
use super::stack::{Stack, StackObject, materialised, touched};
use super::stack_live::StackLive;
use crate::c;

/// The part of a program from its first keyed operations on.
pub struct Resume<'a> {
    /// its steps
    pub slice: Slice<'a>,
    /// by operation
    pub entrances: BTreeMap<StepId, Entrance>,
    /// what that means for registers
    pub cut: Cut,
}

/// What is kept for one operation.
pub struct Entrance {
    /// its number, from 1
    pub site: u32,
    /// whether this is the only way to the operation, so that the kept key and token are its own
    pub only: bool,
    /// registers that hold numbers
    pub numbers: Vec<(FrameId, Reg)>,
    /// registers that hold pointers
    pub pointers: Vec<(FrameId, Reg)>,
    /// parts of the stack
    pub stack: Vec<StackObject>,
}

impl Entrance {
    /// Bytes of the stack that are kept.
    pub fn stack_bytes(&self) -> i32 {
        self.stack.iter().map(|o| o.to - o.from).sum()
    }

    /// All that is kept, each with its place in the slot.
    pub fn moves(&self) -> Vec<Move> {
        let mut at = 0;
        let stack = self.stack.iter().map(|object| {
            let bytes = object.to - object.from;
            let place = format!("slot->stack + {at}");
            at += bytes;
            Move {
                local: Local::Stack(*object),
                place,
                bytes: Some(bytes),
            }
        });
        let mut all: Vec<Move> = stack.collect();
        for (form, array, registers) in [
            (Forms::SCALAR, "number", &self.numbers),
            (Forms::POINTER, "pointer", &self.pointers),
        ] {
            let register = |(i, (frame, reg)): (usize, &(FrameId, Reg))| Move {
                local: Local::register(*frame, *reg, form),
                place: format!("slot->{array}[{i}]"),
                bytes: None,
            };
            all.extend(registers.iter().enumerate().map(register));
        }
        all
    }
}

/// A local of the functions and where the slot keeps it.
pub struct Move {
    local: Local,
    place: String,
    /// of an array; none for what is assigned
    bytes: Option<i32>,
}

impl Move {
    /// The statement with which the prefetch pass keeps it.
    pub fn keep(&self) -> Statement {
        match self.bytes {
            Some(bytes) => c!("memcpy({}, {}, {});", self.place, self.local, bytes).into(),
            None => c!("{} = {};", self.place, self.local).into(),
        }
    }

    /// The statement with which the rest has it again.
    pub fn bring(&self) -> Statement {
        match self.bytes {
            Some(bytes) => c!("memcpy({}, {}, {});", self.local, self.place, bytes).into(),
            None => c!("{} = {};", self.local, self.place).into(),
        }
    }
}

impl<'a> Resume<'a> {
    /// The rest of `whole` behind its prefetch pass; none where it cannot be entered in the middle. `stack` and
    /// `demand` are of the whole program.
    pub fn of(
        whole: &Slice<'a>,
        pass: &PrefetchPass<'a>,
        stack: &Stack,
        demand: &Demand,
    ) -> Option<Resume<'a>> {
        if !pass
            .slice
            .layout()
            .iter()
            .all(|id| movable(&pass.slice, demand, *id))
        {
            return None;
        }
        let starts: Vec<StepId> = pass.sites.keys().copied().collect();
        let slice = whole.from(&starts);
        let reached: BTreeSet<StepId> = slice
            .layout()
            .iter()
            .flat_map(|id| slice.successors(*id))
            .collect();
        let mut cut = Cut {
            kept_keys: starts
                .into_iter()
                .filter(|s| !reached.contains(s))
                .collect(),
            ..Cut::default()
        };
        let rest = Demand::of_part(&slice, &cut);
        let kept = kept(&pass.slice, &slice, stack);
        let live = StackLive::solve(&slice, &kept);
        let entrances = pass.sites.iter().map(|(id, site)| {
            let only = cut.kept_keys.contains(id);
            let key = if only { key::whole(&slice, *id) } else { None };
            let mut entrance = Entrance {
                site: *site,
                only,
                numbers: Vec::new(),
                pointers: Vec::new(),
                stack: (kept.iter().copied())
                    .filter(|o| key != Some((o.frame, o.from, o.to)) && live.before(*id, o))
                    .collect(),
            };
            let mut frame = Some(slice.step(*id).frame);
            while let Some(at) = frame {
                for reg in (0..=9).map(Reg) {
                    let forms = rest.before(&slice, *id, at, reg);
                    entrance.numbers.extend(forms.scalar.then_some((at, reg)));
                    entrance.pointers.extend(forms.pointer.then_some((at, reg)));
                }
                frame = slice.flow.frames[at.0].caller;
            }
            (*id, entrance)
        });
        let entrances = entrances.collect();
        cut.ends = (pass.sites.keys())
            .map(|id| (*id, rest.row(*id).to_vec()))
            .collect();
        Some(Resume {
            slice,
            entrances,
            cut,
        })
    }

    /// How much a slot must hold: numbers, pointers, bytes of the stack.
    pub fn room(&self) -> (usize, usize, i32) {
        let all = self.entrances.values();
        (
            all.clone().map(|e| e.numbers.len()).max().unwrap_or(0),
            all.clone().map(|e| e.pointers.len()).max().unwrap_or(0),
            all.map(Entrance::stack_bytes).max().unwrap_or(0),
        )
    }
}

/// Whether a step's results mean the same in another execution of the function.
fn movable(pass: &Slice, demand: &Demand, id: StepId) -> bool {
    let step = pass.step(id);
    if matches!(pass.role(id), Role::Absent | Role::Stop | Role::Pass) {
        return true;
    }
    // A pointer of no known origin may point to the stack.
    let unknown = |kind: &Kind| {
        matches!(
            kind,
            Kind::Stack { offset: None, .. } | Kind::Pointer | Kind::Mixed
        )
    };
    if unknown(&step.after) {
        return false;
    }
    let stored = match step.op {
        Op::Plain(Insn::Store {
            src: Operand::Reg(src),
            ..
        }) => unknown(&step.before[usize::from(src.0)]),
        _ => false,
    };
    !stored && materialised(pass, demand, id).is_empty()
}

/// What the prefetch pass may write of the stack and the rest may read.
fn kept(pass: &Slice, rest: &Slice, stack: &Stack) -> Vec<StackObject> {
    let objects = |slice: &Slice, wanted: &dyn Fn(&Op) -> bool| -> BTreeSet<StackObject> {
        (slice.layout().iter())
            .filter(|id| wanted(&slice.step(**id).op))
            .flat_map(|id| touched(slice, *id))
            .filter_map(|bytes| stack.find(bytes.frame, bytes.from).copied())
            .collect()
    };
    let writes = |op: &Op| matches!(op, Op::Plain(Insn::Store { .. } | Insn::Atomic { .. }));
    let written = objects(pass, &writes);
    // Through a pointer into several regions any byte of the stack may be read.
    let used = if rest.layout().iter().any(|id| anywhere(rest, *id)) {
        written.clone()
    } else {
        objects(rest, &|_| true)
    };
    written.intersection(&used).copied().collect()
}

/// Whether a step touches memory of which it is not known what it is.
pub fn anywhere(slice: &Slice, id: StepId) -> bool {
    let step = slice.step(id);
    let several = |access: Access| matches!(access, Access::Several);
    step.access.is_some_and(several)
        || step.args.iter().any(|arg| match arg {
            ArgFact::Memory { access, .. } => several(*access),
            _ => false,
        })
}
