//! The functions, maps and zeros that are arguments of calls: a forward pass over one function, given what it is
//! called with.
//!
//! Nothing is proved by this. What is found is laid out; the explorer then sees to it that the arguments
//! are that in every execution.

use std::collections::{BTreeMap, BTreeSet};

use millrace_object::insn::{AluOp, Imm64, Insn, Operand, REGISTERS, Reg, Size, Width};
use millrace_object::program::{FunctionId, ObjectId};

/// What does not change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// of a function
    Function(FunctionId),
    /// of a map
    Object(ObjectId),
    /// no address, but the number 0
    Zero,
}

/// What is known of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// it is none of these, or not known
    No,
    /// always this
    One(Address),
    /// one of these maps
    Either(Maps),
    /// different ones on different ways
    Many,
}

/// The most maps of which one is known to be meant.
const MOST_MAPS: usize = 8;

/// A few maps, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Maps([Option<ObjectId>; MOST_MAPS]);

impl Maps {
    /// Each of them once.
    pub fn iter(&self) -> impl Iterator<Item = ObjectId> {
        self.0.into_iter().flatten()
    }

    fn of(known: Known) -> Option<Maps> {
        match known {
            Known::One(Address::Object(o)) => {
                let mut maps = [None; MOST_MAPS];
                maps[0] = Some(o);
                Some(Maps(maps))
            }
            Known::Either(maps) => Some(maps),
            _ => None,
        }
    }

    fn union(self, other: Maps) -> Option<Maps> {
        let all: BTreeSet<ObjectId> = self.iter().chain(other.iter()).collect();
        let mut maps = [None; MOST_MAPS];
        if all.len() > maps.len() {
            return None;
        }
        for (place, map) in maps.iter_mut().zip(all) {
            *place = Some(map);
        }
        Some(Maps(maps))
    }
}

fn join(a: Known, b: Known) -> Known {
    match (a, b) {
        _ if a == b => a,
        (Known::No, _) | (_, Known::No) => Known::No,
        _ => (Maps::of(a).zip(Maps::of(b)))
            .and_then(|(a, b)| a.union(b))
            .map_or(Known::Many, Known::Either),
    }
}

#[derive(Clone, PartialEq)]
struct Now {
    regs: [Known; REGISTERS],
    /// 8-byte slots of the stack by their offset from r10
    slots: BTreeMap<i16, Known>,
}

impl Now {
    fn reg(&self, r: Reg) -> Known {
        self.regs
            .get(usize::from(r.0))
            .copied()
            .unwrap_or(Known::No)
    }

    fn set(&mut self, r: Reg, known: Known) {
        if let Some(x) = self.regs.get_mut(usize::from(r.0)) {
            *x = known;
        }
    }

    fn absorb(&mut self, other: &Now) -> bool {
        let before = self.clone();
        for (a, b) in self.regs.iter_mut().zip(&other.regs) {
            *a = join(*a, *b);
        }
        self.slots.retain(|k, _| other.slots.contains_key(k));
        for (k, v) in &mut self.slots {
            *v = join(*v, other.slots.get(k).copied().unwrap_or(Known::No));
        }
        *self != before
    }

    fn step(&mut self, insn: Insn) {
        match insn {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Operand::Reg(src),
            } => self.set(dst, self.reg(src)),
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                src: Operand::Imm(0),
                ..
            } => self.set(dst, Known::One(Address::Zero)),
            Insn::Alu { dst, .. }
            | Insn::Neg { dst, .. }
            | Insn::SignExtend { dst, .. }
            | Insn::ByteOrder { dst, .. } => self.set(dst, Known::No),
            Insn::LoadImm { dst, value } => self.set(
                dst,
                match value {
                    Imm64::Function(f) => Known::One(Address::Function(f)),
                    Imm64::Object(o) => Known::One(Address::Object(o)),
                    _ => Known::No,
                },
            ),
            Insn::Load {
                size,
                dst,
                base,
                offset,
                ..
            } => {
                let kept = match (base, size) {
                    (Reg(10), Size::B8) => self.slots.get(&offset).copied(),
                    _ => None,
                };
                self.set(dst, kept.unwrap_or(Known::No));
            }
            Insn::Store {
                size,
                base: Reg(10),
                offset,
                src,
            } => {
                let end = i32::from(offset) + size.bytes() as i32;
                self.slots.retain(|&at, _| {
                    i32::from(at) + 8 <= i32::from(offset) || i32::from(at) >= end
                });
                if size == Size::B8 {
                    let kept = match src {
                        Operand::Reg(r) => self.reg(r),
                        Operand::Imm(0) => Known::One(Address::Zero),
                        Operand::Imm(_) => Known::No,
                    };
                    self.slots.insert(offset, kept);
                }
            }
            // A store by another register may be into the stack as well; then the rule on callbacks
            // refuses what was found in vain.
            Insn::Atomic { src, .. } => {
                self.set(src, Known::No);
                self.set(Reg(0), Known::No);
            }
            Insn::Call { .. } | Insn::CallLocal { .. } | Insn::CallRegister { .. } => {
                self.regs[..6].fill(Known::No);
            }
            _ => {}
        }
    }
}

/// Joins only lose what is known, so that few passes suffice; past so many nothing is known.
const PASSES: usize = 64;

/// What `r1` to `r5` are at each call of a function, by the index of its instruction.
#[must_use]
pub fn arguments(insns: &[Insn], given: &[Known; 5]) -> BTreeMap<usize, [Known; 5]> {
    let mut at_start: BTreeMap<usize, Now> = BTreeMap::new();
    let mut first = Now {
        regs: [Known::No; REGISTERS],
        slots: BTreeMap::new(),
    };
    first.regs[1..=5].copy_from_slice(given);
    // Every instruction that is jumped to, or that is behind a jump, begins a block.
    at_start.insert(0, first);
    let mut leaders: Vec<usize> = vec![0];
    for (pc, insn) in insns.iter().enumerate() {
        if let Insn::Jump { target } | Insn::Branch { target, .. } = *insn {
            leaders.extend([target, pc + 1]);
        }
        if matches!(insn, Insn::Exit) {
            leaders.push(pc + 1);
        }
    }
    leaders.retain(|&l| l < insns.len());
    leaders.sort_unstable();
    leaders.dedup();
    let mut changed: BTreeSet<usize> = [0].into();
    let mut found = BTreeMap::new();
    for _ in 0..PASSES {
        let round = std::mem::take(&mut changed);
        for start in round {
            let Some(mut now) = at_start.get(&start).cloned() else {
                continue;
            };
            let end = leaders
                .get(leaders.partition_point(|&l| l <= start))
                .copied()
                .unwrap_or(insns.len());
            let mut next = vec![end];
            for (pc, &insn) in insns.iter().enumerate().take(end).skip(start) {
                match insn {
                    Insn::Call { .. } | Insn::CallLocal { .. } => {
                        let r = now.regs;
                        found.insert(pc, [r[1], r[2], r[3], r[4], r[5]]);
                    }
                    Insn::Jump { target } => next = vec![target],
                    Insn::Branch { target, .. } => next.push(target),
                    Insn::Exit => next.clear(),
                    _ => {}
                }
                now.step(insn);
            }
            for to in next.into_iter().filter(|&to| to < insns.len()) {
                let new = match at_start.get_mut(&to) {
                    Some(old) => old.absorb(&now),
                    None => {
                        at_start.insert(to, now.clone());
                        true
                    }
                };
                if new {
                    changed.insert(to);
                }
            }
        }
        if changed.is_empty() {
            return found;
        }
    }
    BTreeMap::new()
}
