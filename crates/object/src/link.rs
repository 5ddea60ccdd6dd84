//! From spans of bytes to functions: decoding, relocations, jump targets, source lines.

use std::collections::HashMap;

use crate::btf::ext::Lines;
use crate::core::{Core, Relocated};
use crate::decode::{Decoded, SLOT, Slot, decode};
use crate::elf::{Elf, Relocation, Section};
use crate::error::LoadError;
use crate::functions::{Functions, Span};
use crate::helper;
use crate::insn::{AluOp, BUDGET, Condition, Imm64, Insn, Operand, ROUNDS};
use crate::layout::Layout;
use crate::nulls;
use crate::program::{Function, FunctionId};
use crate::reloc;

/// Most instruction slots of all functions together: what the kernel admits to one program.
pub(crate) const MAX_SLOTS: u64 = 1 << 20;

/// Links the functions that are asked for, and those that they reach.
pub(crate) struct Linker<'a> {
    elf: &'a Elf<'a>,
    spans: &'a Functions<'a>,
    layout: &'a Layout,
    lines: Lines<'a>,
    core: Core<'a>,
    /// by index into the spans
    ids: HashMap<usize, FunctionId>,
    /// indices into the spans, by function number
    order: Vec<usize>,
    slots_left: u64,
    /// what tests of several lookups may still take
    tests_left: usize,
}

impl<'a> Linker<'a> {
    pub fn new(
        elf: &'a Elf<'a>,
        spans: &'a Functions<'a>,
        layout: &'a Layout,
        lines: Lines<'a>,
        core: Core<'a>,
    ) -> Linker<'a> {
        Linker {
            elf,
            spans,
            layout,
            lines,
            core,
            ids: HashMap::new(),
            order: Vec::new(),
            slots_left: MAX_SLOTS,
            tests_left: nulls::MOST,
        }
    }

    /// The number of the function with this index; it will be linked.
    pub fn function(&mut self, span: usize) -> FunctionId {
        let order = &mut self.order;
        *self.ids.entry(span).or_insert_with(|| {
            order.push(span);
            FunctionId(order.len() - 1)
        })
    }

    /// Links everything asked for so far and what it reaches.
    pub fn finish(mut self) -> Result<Vec<Function>, LoadError> {
        let mut functions = Vec::new();
        while let Some(&index) = self.order.get(functions.len()) {
            let Some(span) = self.spans.spans.get(index) else {
                break;
            };
            let function = self
                .link(span)
                .map_err(|e| e.in_section(span.section_name).at_symbol(span.name))?;
            functions.push(function);
        }
        Ok(functions)
    }

    fn link(&mut self, span: &Span<'a>) -> Result<Function, LoadError> {
        let length = span.end.saturating_sub(span.start);
        let count = length / SLOT;
        if count == 0 || !length.is_multiple_of(SLOT) || !span.start.is_multiple_of(SLOT) {
            return Err(LoadError::malformed(format!(
                "a function of {length} bytes"
            )));
        }
        self.slots_left = self.slots_left.checked_sub(count).ok_or_else(|| {
            LoadError::new(
                "program-size",
                format!("more than {MAX_SLOTS} instruction slots"),
                "split the program",
            )
        })?;
        let section = self.elf.section(span.section)?;
        let mut body = Body::default();
        let mut slot = 0;
        while slot < count {
            let offset = span.start + slot * SLOT;
            let used = self
                .one(section, span, slot as u32, &mut body)
                .map_err(|e| self.at(e, span, slot as u32, offset))?;
            slot += used;
        }
        body.resolve_targets(count)
            .map_err(|(slot, e)| self.at(e, span, slot, span.start + u64::from(slot) * SLOT))?;
        nulls::apart(&mut body.insns, &mut body.slots, &mut self.tests_left);
        let offset = |slot: &u32| span.start + u64::from(*slot) * SLOT;
        let offsets: Vec<u64> = body.slots.iter().map(offset).collect();
        let lines = self
            .lines
            .inherit(span.section_name, span.start, span.end, &offsets);
        Ok(Function {
            name: crate::error::printable(span.name),
            section: crate::error::printable(span.section_name),
            insns: body.insns,
            slots: body.slots,
            lines,
        })
    }

    fn at(&mut self, error: LoadError, span: &Span<'_>, slot: u32, offset: u64) -> LoadError {
        let line = self
            .lines
            .at(span.section_name, span.start, span.end, offset);
        error.at_slot(slot).at_line(line)
    }

    /// Decodes and links the instruction at a slot; gives the number of slots it takes.
    fn one(
        &mut self,
        section: &Section<'a>,
        span: &Span<'a>,
        number: u32,
        body: &mut Body,
    ) -> Result<u64, LoadError> {
        let offset = span.start + u64::from(number) * SLOT;
        let cut = || LoadError::malformed("the function ends inside an instruction");
        let slot = Slot::read(section.data, offset as usize).ok_or_else(cut)?;
        let relocation = section.relocation_at(offset);
        // Only a 64-bit load has a second half.
        let next = Slot::read(section.data, (offset + SLOT) as usize).map_or(0, |s| s.imm);
        let (slot, high) = match self.core.apply(section.name, offset, slot, next)? {
            Relocated::Slot(slot, high) => (slot, high),
            Relocated::Absent => {
                let helper = Relocated::ABSENT;
                body.push(number, Insn::Call { helper }, None);
                return Ok(if slot.is_wide() { 2 } else { 1 });
            }
        };
        let decoded = decode(slot).map_err(|problem| {
            LoadError::new(
                "bad-instruction",
                format!("the instruction {problem}"),
                "compile with clang 14 to 19 and at most -mcpu=v4",
            )
        })?;
        if let (
            Some(relocation),
            Decoded::Plain(_)
            | Decoded::Jump { .. }
            | Decoded::Branch { .. }
            | Decoded::MayGoto { .. },
        ) = (relocation, &decoded)
        {
            return Err(self.unlinked(relocation));
        }
        let (insn, delta) = match decoded {
            // Kernel functions have names, and what calls are expanded into is not for authors.
            Decoded::Plain(Insn::Call { helper })
                if helper >= helper::INTERNAL && helper != helper::ABSENT =>
            {
                return Err(LoadError::new(
                    "unknown-helper",
                    format!("this instruction calls helper number {helper}, which does not exist"),
                    "use a helper that docs/support.md or docs/dialect.md lists",
                ));
            }
            Decoded::Plain(insn) => (insn, None),
            Decoded::Jump { delta } => (Insn::Jump { target: usize::MAX }, Some(delta)),
            Decoded::Branch { insn, delta } => (insn, Some(delta)),
            Decoded::MayGoto { delta } => {
                body.push_may_goto(number, delta);
                return Ok(1);
            }
            Decoded::Wide { dst, pseudo, low } => {
                if offset + 2 * SLOT > span.end {
                    return Err(cut());
                }
                let mut second =
                    Slot::read(section.data, (offset + SLOT) as usize).ok_or_else(cut)?;
                second.imm = high.unwrap_or(second.imm);
                let value = self.wide(relocation, pseudo, low, second)?;
                body.push(number, Insn::LoadImm { dst, value }, None);
                return Ok(2);
            }
            Decoded::CallLocal { delta } => {
                if let Some(helper) = self.kernel_function(relocation)? {
                    body.push(number, Insn::Call { helper }, None);
                    return Ok(1);
                }
                let (callee, at) = match relocation {
                    Some(relocation) => {
                        let target = reloc::call::resolve(self.elf, relocation, delta)?;
                        (target.section, target.offset)
                    }
                    None => {
                        let slots = i64::from(delta) + 1;
                        (span.section, offset as i64 + slots * SLOT as i64)
                    }
                };
                let callee = self.spans.at(self.elf, callee, at)?;
                let function = self.function(callee);
                (Insn::CallLocal { function }, None)
            }
            Decoded::CallKernel => {
                if let Some(helper) = self.kernel_function(relocation)? {
                    body.push(number, Insn::Call { helper }, None);
                    return Ok(1);
                }
                return Err(match relocation {
                    Some(relocation) => self.unlinked(relocation),
                    None => LoadError::new(
                        "kernel-function",
                        "a call of a kernel function (kfunc)",
                        "use a helper",
                    ),
                });
            }
        };
        body.push(number, insn, delta);
        Ok(1)
    }

    fn kernel_function(&self, relocation: Option<Relocation>) -> Result<Option<u32>, LoadError> {
        relocation.map_or(Ok(None), |r| reloc::call::kernel_function(self.elf, r))
    }

    /// The value of a 64-bit immediate load.
    fn wide(
        &mut self,
        relocation: Option<Relocation>,
        pseudo: u8,
        low: i32,
        second: Slot,
    ) -> Result<Imm64, LoadError> {
        if (second.opcode, second.dst, second.src, second.offset) != (0, 0, 0, 0) {
            return Err(LoadError::malformed(
                "the second half of a 64-bit load is not empty",
            ));
        }
        let Some(relocation) = relocation else {
            if pseudo != 0 {
                return Err(LoadError::new(
                    "already-loaded",
                    format!("a 64-bit load of kind {pseudo}, which loaders make"),
                    "give the object file as the compiler wrote it",
                ));
            }
            let value = u64::from(second.imm as u32) << 32 | u64::from(low as u32);
            return Ok(Imm64::Number(value));
        };
        if relocation.kind != reloc::R_BPF_64_64 {
            return Err(reloc::misplaced(relocation, "a 64-bit load"));
        }
        if let Some(address) = reloc::imm64::absent(self.elf, relocation)? {
            return Ok(address);
        }
        let target = reloc::target(self.elf, relocation, i64::from(low))?;
        let (elf, spans, layout) = (self.elf, self.spans, self.layout);
        reloc::imm64::resolve(&target, layout, |section, offset| {
            Ok(self.function(spans.at(elf, section, offset)?))
        })
    }

    /// Why an instruction that takes no relocation has one: most often an undefined function.
    fn unlinked(&self, relocation: Relocation) -> LoadError {
        match reloc::target(self.elf, relocation, 0) {
            Err(undefined) => undefined,
            Ok(_) => reloc::misplaced(relocation, "an instruction that takes none"),
        }
    }
}

/// A function while it is being linked.
#[derive(Default)]
pub(crate) struct Body {
    pub insns: Vec<Insn>,
    pub slots: Vec<u32>,
    /// index of the instruction, slots from the next one
    jumps: Vec<(usize, i64)>,
    /// there is a `may_goto`
    counts: bool,
}

fn budget(op: AluOp, by: i64) -> Insn {
    Insn::alu(op, BUDGET, Operand::Imm(by))
}

impl Body {
    pub fn push(&mut self, slot: u32, insn: Insn, delta: Option<i64>) {
        if let Some(delta) = delta {
            self.jumps.push((self.insns.len(), delta));
        }
        self.insns.push(insn);
        self.slots.push(slot);
    }

    /// Expansion of a `may_goto`.
    pub fn push_may_goto(&mut self, slot: u32, delta: i64) {
        let branch = Insn::branch(Condition::Eq, BUDGET, Operand::Imm(0), usize::MAX);
        self.push(slot, branch, Some(delta));
        self.push(slot, budget(AluOp::Sub, 1), None);
        self.counts = true;
    }

    /// Turns distances in slots into indices, gives the function its budget, and refuses to run past the
    /// end. The error comes with the slot of the instruction.
    pub fn resolve_targets(&mut self, count: u64) -> Result<(), (u32, LoadError)> {
        for &(index, delta) in &self.jumps {
            let slot = self.slots.get(index).copied().unwrap_or(0);
            let fail = |problem: String| {
                // clang ends a path that can only be undefined behaviour without a return.
                let remedy = if i64::from(slot) + 1 + delta == count as i64 {
                    "clang found a path that follows a null pointer, or has no defined behaviour for another reason: test each pointer before it is followed, `if (!pointer) return …;`"
                } else {
                    "compile the program again; hand-written assembly must jump to instructions of its own function"
                };
                (slot, LoadError::new("jump-target", problem, remedy))
            };
            let to = i64::from(slot) + 1 + delta;
            let inside = u32::try_from(to).ok().filter(|to| u64::from(*to) < count);
            let Some(to) = inside else {
                return Err(fail(format!(
                    "a jump to slot {to} of a function of {count}"
                )));
            };
            // A `may_goto` is two instructions of one slot.
            let found = self.slots.partition_point(|slot| *slot < to);
            if self.slots.get(found) != Some(&to) {
                return Err(fail(format!(
                    "a jump into the middle of the 64-bit load at slot {}",
                    to - 1
                )));
            };
            if let Some(Insn::Jump { target } | Insn::Branch { target, .. }) =
                self.insns.get_mut(index)
            {
                *target = found;
            }
        }
        if self.counts {
            // Jumps to the first instruction do not renew it.
            for insn in &mut self.insns {
                if let Insn::Jump { target } | Insn::Branch { target, .. } = insn {
                    *target += 1;
                }
            }
            self.insns.insert(0, budget(AluOp::Mov, ROUNDS));
            self.slots.insert(0, 0);
        }
        match self.insns.last() {
            Some(Insn::Exit | Insn::Jump { .. }) => Ok(()),
            _ => Err((
                self.slots.last().copied().unwrap_or(0),
                LoadError::new(
                    "runs-past-end",
                    "the function does not end with a return",
                    "return a value on every path; nothing may be undefined behaviour (`__builtin_unreachable`)",
                ),
            )),
        }
    }
}
