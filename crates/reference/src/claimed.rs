//! Verification of a proof's claims (`millrace_check::claims`) before each step.

use std::collections::HashMap;

use millrace_check::claims::{At, Claim, Place};
use millrace_check::facts::{Checked, Flow, FrameId, Op, StepId};
use millrace_object::insn::STACK;

use super::{APART, Call, INSET, LOW, Machine, Violation, violation};

/// Place of a call of the interpreter in the flow that was proved.
#[derive(Clone, Default)]
pub struct Whereabouts {
    /// the flow, index into those of [`Proof`]
    flow: usize,
    /// the frames that it may be; none if that is not known
    frames: Vec<FrameId>,
}

/// The flows with their claims, by where they are in the program.
pub struct Proof<'a> {
    flows: Vec<Proved<'a>>,
    /// claims that were looked at
    pub looked_at: u64,
}

struct Proved<'a> {
    flow: &'a Flow,
    /// by frame and instruction
    steps: HashMap<(FrameId, usize), Vec<StepId>>,
    /// the frames that a call in a frame enters, by frame and instruction
    enters: HashMap<(FrameId, usize), Vec<FrameId>>,
}

impl<'a> Proof<'a> {
    fn new(checked: &'a Checked) -> Self {
        let proved = |flow: &'a Flow| {
            let mut steps: HashMap<_, Vec<StepId>> = HashMap::new();
            let mut enters: HashMap<_, Vec<FrameId>> = HashMap::new();
            for (at, step) in flow.steps.iter().enumerate() {
                let here = (step.frame, step.pc);
                steps.entry(here).or_default().push(StepId(at));
                if let Op::Enter { frame, .. } = step.op {
                    enters.entry(here).or_default().push(frame);
                }
            }
            Proved {
                flow,
                steps,
                enters,
            }
        };
        Self {
            flows: checked.flows.iter().map(proved).collect(),
            looked_at: 0,
        }
    }

    /// Place where an entry begins.
    fn begin(&self, function: usize) -> Whereabouts {
        let is_of = |p: &Proved<'_>| {
            p.flow
                .frames
                .first()
                .is_some_and(|f| f.function.0 == function)
        };
        match self.flows.iter().position(is_of) {
            Some(flow) => Whereabouts {
                flow,
                frames: vec![FrameId(0)],
            },
            None => Whereabouts::default(),
        }
    }

    /// Place where a function begins that a call at this instruction calls, or calls back.
    fn called(&self, from: &Whereabouts, pc: usize, function: usize) -> Whereabouts {
        let Some(proved) = self.flows.get(from.flow) else {
            return Whereabouts::default();
        };
        let enters =
            |frame: FrameId, pc: usize| proved.enters.get(&(frame, pc)).into_iter().flatten();
        let mut todo: Vec<FrameId> = from
            .frames
            .iter()
            .flat_map(|f| enters(*f, pc))
            .copied()
            .collect();
        let mut frames = Vec::new();
        while let Some(id) = todo.pop() {
            let Some(frame) = proved.flow.frames.get(id.0) else {
                continue;
            };
            // The steps that the call was expanded into call the function; all of them are the call's.
            if frame.expansion.is_some() {
                todo.extend(enters(id, pc));
            } else if frame.function.0 == function && !frames.contains(&id) {
                frames.push(id);
            }
        }
        Whereabouts {
            flow: from.flow,
            frames,
        }
    }
}

impl<'a> Machine<'a> {
    pub(super) fn hold_to(&mut self, checked: &'a Checked) {
        let claims = checked.flows.iter().any(|f| f.claims.is_some());
        self.proof = claims.then(|| Proof::new(checked));
    }

    /// Number of claims verified so far.
    #[must_use]
    pub fn claims_looked_at(&self) -> u64 {
        self.proof.as_ref().map_or(0, |p| p.looked_at)
    }

    pub(super) fn begins(&self, function: usize) -> Whereabouts {
        let proof = self.proof.as_ref();
        proof.map_or_else(Whereabouts::default, |p| p.begin(function))
    }

    /// Place that a call leads to; `from` is behind the call already.
    pub(super) fn leads(&self, from: &Call, function: usize) -> Whereabouts {
        let proof = self.proof.as_ref();
        proof.map_or_else(Whereabouts::default, |p| {
            p.called(&from.whereabouts, from.pc.saturating_sub(1), function)
        })
    }

    /// Looks at what is claimed before the next instruction of the innermost call.
    pub(super) fn claimed(&mut self, calls: &[Call]) -> Result<(), Violation> {
        let (Some(proof), Some(call)) = (&self.proof, calls.last()) else {
            return Ok(());
        };
        let Some(proved) = proof.flows.get(call.whereabouts.flow) else {
            return Ok(());
        };
        let Some(claims) = &proved.flow.claims else {
            return Ok(());
        };
        let frames = call.whereabouts.frames.iter();
        let steps = frames.flat_map(|f| proved.steps.get(&(*f, call.pc)).into_iter().flatten());
        let (mut looked_at, mut broken, mut any) = (0, None, false);
        for step in steps {
            any = true;
            let Some(at) = claims.before(*step) else {
                continue;
            };
            match self.broken(calls, at, &mut looked_at) {
                None => {
                    if let Some(proof) = &mut self.proof {
                        proof.looked_at += looked_at;
                    }
                    return Ok(());
                }
                Some(what) => broken = Some(what),
            }
        }
        let place = format!("function {}, instruction {}", call.function, call.pc);
        match broken {
            Some(what) => violation(format!("not as claimed before {place}: {what}")),
            None if any => violation(format!("{place} is claimed to be out of reach")),
            None => Ok(()),
        }
    }

    /// The first claim that does not hold of the innermost call.
    fn broken(&self, calls: &[Call], at: &At, looked_at: &mut u64) -> Option<String> {
        let call = calls.last()?;
        for (number, (claim, value)) in at.registers.iter().zip(&call.regs).enumerate() {
            // What nobody has written is read by nobody: another rule.
            let Some(value) = value else { continue };
            if !matches!(claim, Claim::Any | Claim::Unvisited) {
                *looked_at += 1;
            }
            if !self.is_so(calls, claim, *value, 8) {
                return Some(format!("r{number} is {value:#x}, {claim:?}"));
            }
        }
        for (from, size, claim) in &at.slots {
            let memory = self.memory.get(&(call.stack / APART))?;
            let first = usize::try_from(STACK + from).ok()?;
            let range = first..first + usize::from(*size);
            if !memory.written.get(range.clone())?.iter().all(|w| *w) {
                continue;
            }
            let at = call.stack.wrapping_add(first as u64);
            let own = self.iterators.iter().find_map(|i| i.stands(at, *size));
            let bytes = memory.bytes.get(range)?;
            let bytes = own.as_deref().unwrap_or(bytes);
            let value = bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
            *looked_at += 1;
            if !self.is_so(calls, claim, value, *size) {
                return Some(format!(
                    "{size} bytes at r10{from} are {value:#x}, {claim:?}"
                ));
            }
        }
        None
    }

    /// Whether a frame stands for a call.
    fn is_laid_out(&self, calls: &[Call], frame: FrameId) -> bool {
        let flow = calls.last().map(|c| c.whereabouts.flow);
        let proof = self.proof.as_ref().zip(flow);
        let proved = proof.and_then(|(p, flow)| p.flows.get(flow));
        let frame = proved.and_then(|p| p.flow.frames.get(frame.0));
        frame.is_some_and(|f| f.expansion.is_some())
    }

    fn is_so(&self, calls: &[Call], claim: &Claim, value: u64, size: u8) -> bool {
        let (place, least, most) = match claim {
            Claim::Any | Claim::Unvisited => return true,
            // Of a part only the part's bits are claimed.
            Claim::Number(s) if size < 8 => {
                let low = s.bits.low(8 * u32::from(size));
                return low.contains(value);
            }
            Claim::Number(s) => return s.contains(value),
            Claim::Pointer { nullable: true, .. } if value == 0 => return true,
            Claim::Pointer {
                place, least, most, ..
            } => (place, *least, *most),
        };
        // An iterator's number is in its place for the proof.
        let shown = self.iterators.iter().find_map(|i| i.shown(value));
        let value = shown.unwrap_or(value);
        let within = |base: u64| (least..=most).contains(&(value.wrapping_sub(base) as i64));
        match place {
            Place::Context => value / APART == self.context / APART,
            // Null and small numbers lie in its region, too. No pointer is farther from the packet than that.
            Place::Packet => (LOW - 2 * (1 << 29)..=u64::from(u32::MAX)).contains(&value),
            // What a call stands for keeps its own in a frame, which is no frame of the interpreter's.
            Place::Stack(frame) if self.is_laid_out(calls, *frame) => true,
            Place::Stack(frame) => calls.iter().any(|c| {
                c.whereabouts.frames.contains(frame) && within(c.stack.wrapping_add(STACK as u64))
            }),
            Place::Value(_) | Place::Record(_) => {
                let key = value / APART;
                self.memory.contains_key(&key) && within(key * APART + INSET)
            }
        }
    }
}
