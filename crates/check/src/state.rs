//! The knowledge at one point of one path through the program: every active frame's registers and stack, what the
//! comparisons so far have proved about the packet, and which records are held.

use std::rc::Rc;

use millrace_object::insn::{AluOp, REGISTERS, Width};

use crate::domain::alu::{alu, zero_extend};
use crate::domain::value::Id;
use crate::domain::{Gone, Link, Pointer, Region, Scalar, Value};
use crate::ids::{FrameId, StepId};
use crate::planted::{self, Planted};

/// A value kept in the stack by one store.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spill {
    /// first byte, counted from the lowest (`-STACK`)
    pub at: u16,
    /// bytes: 1, 2, 4 or 8
    pub size: u8,
    /// what is there
    pub value: Value,
}

/// Registers and stack of one active call.
#[derive(Clone, Debug)]
pub struct FrameState {
    /// which
    pub id: FrameId,
    /// `r0` to `r10`
    pub regs: [Value; REGISTERS],
    /// one bit a byte of stack: it is initialised
    pub init: [u64; 8],
    /// values known more closely than "initialised", by `at`; they do not overlap
    pub spills: Vec<Spill>,
}

/// A position in the packet (or metadata) at `lo..=hi` bytes from its start, the same position for
/// every pointer that names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base {
    /// its name
    pub id: Id,
    /// least distance from the start
    pub lo: i64,
    /// greatest distance from the start
    pub hi: i64,
    /// position + `proven` is known to be at most the end; none: nothing is known
    pub proven: Option<i64>,
    /// position + `beyond` is known to be past the end; none: nothing is known
    pub beyond: Option<i64>,
}

/// The start of the packet.
pub const PACKET_START: Id = 1;
/// The start of the metadata.
pub const META_START: Id = 2;

/// Everything known at one point of one way.
#[derive(Clone, Debug)]
pub struct State {
    /// the active calls, the entry's first
    pub frames: Vec<Rc<FrameState>>,
    /// positions that pointers refer to
    pub bases: Vec<Base>,
    /// records held, and where they were reserved
    pub records: Vec<(Id, StepId)>,
    /// the lock that is held
    pub lock: Option<Pointer>,
    /// the next free id
    next: Id,
}

impl FrameState {
    /// A frame whose registers are unset, but for `r10`.
    #[must_use]
    pub fn new(id: FrameId) -> Self {
        let mut regs = [Value::Gone(Gone::Never); REGISTERS];
        regs[10] = Value::Pointer(Pointer::to(Region::Stack(id)));
        FrameState {
            id,
            regs,
            init: [0; 8],
            spills: Vec::new(),
        }
    }

    /// Whether all of these bytes are initialised. `at` counts from the lowest.
    #[must_use]
    pub fn initialised(&self, at: u16, len: u16) -> bool {
        self.first_uninitialised(at, len).is_none()
    }

    /// The first of these bytes that is not initialised.
    #[must_use]
    pub fn first_uninitialised(&self, at: u16, len: u16) -> Option<u16> {
        (at..at.saturating_add(len)).find(|&b| {
            self.init
                .get(usize::from(b / 64))
                .is_none_or(|w| w >> (b % 64) & 1 == 0)
        })
    }

    /// Those of these bytes that are not initialised.
    #[must_use]
    pub fn uninitialised(&self, at: u16, len: u16) -> [u64; 8] {
        let mut wanted = FrameState::new(self.id);
        wanted.mark(at, len, true);
        let mut missing = wanted.init;
        for (m, w) in missing.iter_mut().zip(self.init) {
            *m &= !w;
        }
        missing
    }

    /// Marks bytes as initialised, or not.
    pub fn mark(&mut self, at: u16, len: u16, initialised: bool) {
        for b in at..at.saturating_add(len) {
            if let Some(w) = self.init.get_mut(usize::from(b / 64)) {
                if initialised {
                    *w |= 1 << (b % 64);
                } else {
                    *w &= !(1 << (b % 64));
                }
            }
        }
    }

    /// The kept values that these bytes touch.
    pub fn touching(&self, at: u16, len: u16) -> impl Iterator<Item = &Spill> {
        self.spills
            .iter()
            .filter(move |s| s.at < at + len && at < s.at + u16::from(s.size))
    }

    /// Overwrites bytes with something unknown. Numbers that are only partly overwritten keep
    /// their other bytes initialised; what is left of a pointer may not be read.
    pub fn clobber(&mut self, at: u16, len: u16) {
        let mut i = 0;
        while let Some(s) = self.spills.get(i).copied() {
            let (from, to) = (s.at, s.at + u16::from(s.size));
            let kept = planted::is(Planted::StoreKeepsRest)
                && (from < at || to > at + len)
                && matches!(s.value, Value::Scalar(..));
            if from < at + len && at < to && !kept {
                if !matches!(s.value, Value::Scalar(..)) {
                    self.mark(from, u16::from(s.size), false);
                }
                self.spills.remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// Stores a value. `size` is at most 8; pointers come with 8, or with 4 ([`Pointer::narrow`]).
    pub fn store(&mut self, at: u16, size: u8, value: Value) {
        self.clobber(at, u16::from(size));
        let readable = !matches!(value, Value::Gone(_));
        self.mark(at, u16::from(size), readable);
        let keep = match value {
            Value::Scalar(s, link) => {
                link.id != 0 || !s.includes(&Scalar::of_bits(u32::from(size) * 8))
            }
            Value::Pointer(_) => true,
            Value::Gone(_) => true,
        };
        if keep {
            let i = self.spills.partition_point(|s| s.at < at);
            self.spills.insert(i, Spill { at, size, value });
        }
    }

    /// Contents of initialised bytes, if they are one value or parts of numbers; none if a part of a
    /// pointer is among them.
    #[must_use]
    pub fn load(&self, at: u16, size: u8) -> Option<Value> {
        let mut whole = crate::domain::Tnum::UNKNOWN.low(u32::from(size) * 8);
        for s in self.touching(at, u16::from(size)) {
            if s.at == at && s.size == size {
                return Some(s.value);
            }
            let Value::Scalar(number, link) = s.value else {
                return None;
            };
            // The lower bytes of one number (little-endian).
            if s.at == at && size < s.size {
                let cut = zero_extend(u32::from(size) * 8, &number);
                if cut == number {
                    return Some(s.value);
                }
                let link = if size == 4 { link.halved() } else { Link::NONE };
                return Some(Value::Scalar(cut, link));
            }
            // Put the known bits of this part to their place in the whole (little-endian).
            let part = number.bits.low(u32::from(s.size) * 8);
            let shift = (i32::from(s.at) - i32::from(at)) * 8;
            let place = |x: u64| {
                if shift >= 64 || shift <= -64 {
                    0
                } else if shift >= 0 {
                    x << shift
                } else {
                    x >> -shift
                }
            };
            let covered = place(crate::domain::tnum::low_mask(u32::from(s.size) * 8));
            whole.value = whole.value & !covered | place(part.value) & covered;
            whole.mask = whole.mask & !covered | place(part.mask) & covered;
        }
        let keep = crate::domain::tnum::low_mask(u32::from(size) * 8);
        whole.value &= keep;
        whole.mask &= keep;
        Some(Value::number(Scalar::from_bits(whole)))
    }
}

impl State {
    /// At an entry: `r1` is the context.
    #[must_use]
    pub fn at_entry() -> Self {
        let mut frame = FrameState::new(FrameId(0));
        frame.regs[1] = Value::Pointer(Pointer::to(Region::Context));
        State {
            frames: vec![Rc::new(frame)],
            bases: vec![
                Base {
                    id: PACKET_START,
                    lo: 0,
                    hi: 0,
                    proven: Some(0),
                    beyond: None,
                },
                Base {
                    id: META_START,
                    lo: 0,
                    hi: 0,
                    proven: Some(0),
                    beyond: None,
                },
            ],
            records: Vec::new(),
            lock: None,
            next: META_START + 1,
        }
    }

    /// A name that nothing else has.
    pub fn fresh(&mut self) -> Id {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        id
    }

    /// The active frame.
    #[must_use]
    pub fn frame(&self) -> &FrameState {
        // `frames` is never empty: it starts with the entry's and `Leave` exists only in callees.
        &self.frames[self.frames.len() - 1]
    }

    /// The active frame, to change it.
    pub fn frame_mut(&mut self) -> &mut FrameState {
        let last = self.frames.len() - 1;
        Rc::make_mut(&mut self.frames[last])
    }

    /// A frame by its id.
    #[must_use]
    pub fn frame_of(&self, id: FrameId) -> Option<&FrameState> {
        self.frames.iter().map(Rc::as_ref).find(|f| f.id == id)
    }

    /// A frame by its id, to change it.
    pub fn frame_of_mut(&mut self, id: FrameId) -> Option<&mut FrameState> {
        self.frames
            .iter_mut()
            .find(|f| f.id == id)
            .map(Rc::make_mut)
    }

    /// A register of the active frame.
    #[must_use]
    pub fn reg(&self, reg: millrace_object::insn::Reg) -> Value {
        self.frame()
            .regs
            .get(usize::from(reg.0))
            .copied()
            .unwrap_or(Value::Gone(Gone::Never))
    }

    /// Writes a register of the active frame.
    pub fn set(&mut self, reg: millrace_object::insn::Reg, value: Value) {
        if let Some(r) = self.frame_mut().regs.get_mut(usize::from(reg.0)) {
            *r = value;
        }
    }

    /// A position by its name.
    #[must_use]
    pub fn base(&self, id: Id) -> Option<&Base> {
        self.bases.iter().find(|b| b.id == id)
    }

    /// A position by its name, to sharpen it.
    pub fn base_mut(&mut self, id: Id) -> Option<&mut Base> {
        self.bases.iter_mut().find(|b| b.id == id)
    }

    /// Every value in every register and stack slot that `change` gives a replacement for is replaced.
    pub fn rewrite(&mut self, mut change: impl FnMut(&Value) -> Option<Value>) {
        for frame in &mut self.frames {
            let hit = frame.regs.iter().any(|v| change(v).is_some())
                || frame.spills.iter().any(|s| change(&s.value).is_some());
            if !hit {
                continue;
            }
            let frame = Rc::make_mut(frame);
            for v in &mut frame.regs {
                if let Some(new) = change(v) {
                    *v = new;
                }
            }
            let mut unreadable: Vec<(u16, u8)> = Vec::new();
            for s in &mut frame.spills {
                if let Some(new) = change(&s.value) {
                    s.value = new;
                    if matches!(new, Value::Gone(_)) {
                        unreadable.push((s.at, s.size));
                    }
                }
            }
            for (at, size) in unreadable {
                frame.mark(at, u16::from(size), false);
            }
        }
    }

    /// Gives every number related to one what a comparison taught about that one.
    pub fn learn(&mut self, link: Link, sharper: Scalar) {
        if link.id == 0 || link.up {
            return;
        }
        self.rewrite(|v| match v {
            Value::Scalar(old, l) if l.id == link.id && !l.up => {
                let distance = Scalar::constant(l.by.wrapping_sub(link.by) as u64);
                let new = if l.low || link.low {
                    let half = alu(AluOp::Add, Width::W32, &sharper, &distance);
                    old.with_low32(&half)?
                } else if *l == link {
                    sharper
                } else {
                    old.intersect(&alu(AluOp::Add, Width::W64, &sharper, &distance))?
                };
                (new != *old).then_some(Value::Scalar(new, *l))
            }
            _ => None,
        });
    }

    /// Forgets positions that nothing refers to.
    pub fn tidy(&mut self) {
        if self.bases.len() <= 2 {
            return;
        }
        let mut used: Vec<Id> = vec![PACKET_START, META_START];
        let mut note = |v: &Value| {
            if let Value::Pointer(Pointer {
                region: Region::Packet(id) | Region::Meta(id),
                ..
            }) = v
                && !used.contains(id)
            {
                used.push(*id);
            }
        };
        for f in &self.frames {
            f.regs.iter().for_each(&mut note);
            f.spills.iter().for_each(|s| note(&s.value));
        }
        self.bases.retain(|b| used.contains(&b.id));
    }
}
