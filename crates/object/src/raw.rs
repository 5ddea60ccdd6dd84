//! Instructions without an object file around them: what conformance suites and tools hand over.

use std::collections::BTreeSet;

use crate::decode::{Decoded, SLOT, Slot, decode};
use crate::elf::Elf;
use crate::error::LoadError;
use crate::insn::{Imm64, Insn, Operand, Reg, Size};
use crate::link::{Body, MAX_SLOTS};
use crate::program::{Dialect, Entry, Function, FunctionId, ObjectId, Program, Role, StateObject};
use crate::state::global;

/// Index, in [`program`]'s result, of the object that holds the value of `r0`, 8 bytes.
pub const RESULT: ObjectId = ObjectId(0);

/// Decodes instructions that lie one behind the other, 8 bytes a slot. Execution begins with the first;
/// a local call's target begins a function, which ends where the next one begins.
///
/// # Errors
/// As [`crate::load`]: an instruction that does not exist, a jump out of its function, and whatever
/// only an object file can say (maps, other relocations).
pub fn functions(bytes: &[u8], name: &str) -> Result<Vec<Function>, LoadError> {
    decode_all(bytes).map_err(|e| e.in_file(name))
}

/// The same for the section `.text` of an ELF file, which takes part in no relocation.
///
/// # Errors
/// As [`functions`], and when the file is not ELF or has no `.text`.
pub fn functions_of_elf(bytes: &[u8], name: &str) -> Result<Vec<Function>, LoadError> {
    let text = || {
        let elf = Elf::parse(bytes)?;
        let (_, section) = elf.section_named(".text").ok_or_else(|| {
            LoadError::new(
                "no-entry",
                "the object has no section .text",
                "put the instructions there, or give them as they are",
            )
        })?;
        decode_all(section.data)
    };
    text().map_err(|e: LoadError| e.in_file(name))
}

/// A program around such functions, of which the first is called once a packet and may return any
/// 64-bit number: it is kept in [`RESULT`]. With `memory` its `r1` is the address of a copy of it that
/// it may write, and `r2` its length; both are 0 where `memory` is empty.
#[must_use]
pub fn program(name: &str, mut functions: Vec<Function>, memory: &[u8]) -> Program {
    let first = FunctionId(functions.len());
    let mut objects = vec![variable("result", vec![0; 8])];
    let begin = if memory.is_empty() {
        mov(1, 0)
    } else {
        objects.push(variable("memory", memory.to_vec()));
        address(Reg(1), ObjectId(1))
    };
    let insns = vec![
        begin,
        mov(2, memory.len() as i64),
        Insn::CallLocal {
            function: FunctionId(0),
        },
        address(Reg(1), RESULT),
        Insn::Store {
            size: Size::B8,
            base: Reg(1),
            offset: 0,
            src: Operand::Reg(Reg(0)),
        },
        mov(0, XDP_PASS),
        Insn::Exit,
    ];
    functions.push(Function {
        name: "around".into(),
        section: "xdp".into(),
        slots: (0..insns.len() as u32).collect(),
        lines: vec![None; insns.len()],
        insns,
    });
    Program {
        name: name.to_owned(),
        dialect: Dialect::Xdp,
        functions,
        entries: vec![Entry {
            role: Role::Xdp,
            function: first,
        }],
        objects,
        ports: Vec::new(),
        params: Vec::new(),
        reasons: vec!["dropped".into()],
        license: String::new(),
    }
}

const XDP_PASS: i64 = 2;

fn mov(dst: u8, value: i64) -> Insn {
    Insn::mov(Reg(dst), Operand::Imm(value))
}

fn address(dst: Reg, object: ObjectId) -> Insn {
    let value = Imm64::ObjectValue { object, offset: 0 };
    Insn::LoadImm { dst, value }
}

fn variable(name: &str, content: Vec<u8>) -> StateObject {
    let bytes = content.len() as u32;
    StateObject {
        initial: Some(content),
        ..StateObject::new(name, &global::KIND, 0, bytes, 1)
    }
}

fn decode_all(bytes: &[u8]) -> Result<Vec<Function>, LoadError> {
    let count = bytes.len() as u64 / SLOT;
    if count == 0 || !(bytes.len() as u64).is_multiple_of(SLOT) {
        return Err(LoadError::malformed(format!(
            "{} bytes of instructions, which are 8 bytes each",
            bytes.len()
        )));
    }
    if count > MAX_SLOTS {
        return Err(LoadError::new(
            "program-size",
            format!("more than {MAX_SLOTS} instruction slots"),
            "split the program",
        ));
    }
    let starts = starts(bytes, count)?;
    let starts: Vec<u64> = starts.into_iter().collect();
    let ends = starts.iter().skip(1).copied().chain([count]);
    let span = |(start, end)| function(bytes, start, end, &starts);
    starts.iter().copied().zip(ends).map(span).collect()
}

/// The first slot of each function.
fn starts(bytes: &[u8], count: u64) -> Result<BTreeSet<u64>, LoadError> {
    let mut starts = BTreeSet::from([0]);
    let mut slot = 0;
    while slot < count {
        let (decoded, used) = one(bytes, slot)?;
        if let Decoded::CallLocal { delta } = decoded {
            let to = slot as i64 + 1 + i64::from(delta);
            let inside = u64::try_from(to).ok().filter(|to| *to < count);
            starts.insert(inside.ok_or_else(|| {
                LoadError::new(
                    "no-such-function",
                    format!("slot {to} of {count} is called"),
                    "call an instruction of this program",
                )
                .at_slot(slot as u32)
            })?);
        }
        slot += used;
    }
    Ok(starts)
}

fn one(bytes: &[u8], slot: u64) -> Result<(Decoded, u64), LoadError> {
    let malformed = |what: String| LoadError::malformed(what).at_slot(slot as u32);
    let read = Slot::read(bytes, (slot * SLOT) as usize);
    let read = read.ok_or_else(|| malformed("an instruction is cut off".into()))?;
    let decoded = decode(read).map_err(|e| malformed(format!("the instruction {e}")))?;
    let used = if matches!(decoded, Decoded::Wide { .. }) {
        2
    } else {
        1
    };
    Ok((decoded, used))
}

fn function(bytes: &[u8], start: u64, end: u64, starts: &[u64]) -> Result<Function, LoadError> {
    let mut body = Body::default();
    let mut slot = start;
    while slot < end {
        let at = |e: LoadError| e.at_slot(slot as u32);
        let (decoded, used) = one(bytes, slot)?;
        let (insn, delta) = match decoded {
            Decoded::Plain(insn) => (insn, None),
            Decoded::Jump { delta } => (Insn::Jump { target: usize::MAX }, Some(delta)),
            Decoded::Branch { insn, delta } => (insn, Some(delta)),
            Decoded::MayGoto { delta } => {
                body.push_may_goto((slot - start) as u32, delta);
                slot += used;
                continue;
            }
            Decoded::Wide { dst, pseudo, low } => {
                let second = Slot::read(bytes, ((slot + 1) * SLOT) as usize);
                let value = wide(pseudo, low, second.filter(|_| slot + 1 < end)).map_err(at)?;
                (Insn::LoadImm { dst, value }, None)
            }
            Decoded::CallLocal { delta } => {
                let to = slot as i64 + 1 + i64::from(delta);
                let found = u64::try_from(to)
                    .ok()
                    .and_then(|to| starts.binary_search(&to).ok());
                let index = found
                    .ok_or_else(|| at(LoadError::malformed(format!("slot {to} is called"))))?;
                let function = FunctionId(index);
                (Insn::CallLocal { function }, None)
            }
            Decoded::CallKernel => {
                return Err(at(LoadError::new(
                    "kernel-function",
                    "a call of a kernel function (kfunc)",
                    "use a helper",
                )));
            }
        };
        body.push((slot - start) as u32, insn, delta);
        slot += used;
    }
    body.resolve_targets(end - start)
        .map_err(|(slot, e)| e.at_slot(start as u32 + slot))?;
    let name = match start {
        0 => "main".to_owned(),
        _ => format!("function_{start}"),
    };
    Ok(Function {
        name,
        section: String::new(),
        lines: vec![None; body.insns.len()],
        insns: body.insns,
        slots: body.slots.iter().map(|s| start as u32 + s).collect(),
    })
}

fn wide(pseudo: u8, low: i32, second: Option<Slot>) -> Result<Imm64, LoadError> {
    let Some(second) = second else {
        return Err(LoadError::malformed("a 64-bit load is cut off"));
    };
    if (second.opcode, second.dst, second.src, second.offset) != (0, 0, 0, 0) {
        return Err(LoadError::malformed(
            "the second half of a 64-bit load is not empty",
        ));
    }
    if pseudo != 0 {
        return Err(LoadError::new(
            "already-loaded",
            format!("a 64-bit load of kind {pseudo}, which loaders make"),
            "load a plain number: there are no maps here",
        ));
    }
    let value = u64::from(second.imm as u32) << 32 | u64::from(low as u32);
    Ok(Imm64::Number(value))
}
