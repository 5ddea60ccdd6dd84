//! Keys of calls: how they are copied, kept for later passes, and taken up again.

use millrace_check::facts::{Access, ArgFact, FrameId, StepId};
use millrace_object::insn::Reg;
use millrace_object::program::StateObject;

use super::body::Body;
use super::c::{Code, Statement};
use super::demand::key;
use super::slice::Slice;
use crate::c;
use crate::error::Error;

/// Whole words that hold a key.
pub fn words(declaration: &StateObject) -> u32 {
    declaration.key_bytes.div_ceil(8).max(1)
}

/// A key that is kept whole and has no slot to be compared with occupies as many registers as it has words. More
/// cost what they save (`make bench`: heavyhitter gains a twentieth by this, cl would lose as much).
pub const MOST_WORDS_IN_REGISTERS: u32 = 2;

/// Longer keys are copied in a loop of the compiler's.
const MOST_WORDS_BY_NAME: u32 = 8;

/// The key in whole words. It is read by words, because SROA splits a stack object where its accesses
/// end: a key that is only copied as bytes falls apart into the pieces it was stored in, which then
/// occupy a register or a spill slot each for as long as anybody may read one again.
pub fn copy(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<Statement>, Error> {
    let bytes = declaration.key_bytes;
    let address = body.address(id, reg, 0)?;
    let words = words(declaration);
    let mut copy: Vec<Statement> = if words <= MOST_WORDS_BY_NAME {
        let words: Vec<Code> = (0..words)
            .map(|word| load_word(&address, word * 8, bytes))
            .collect();
        vec![c!("u64 key[] = {{ {} }};", Code::join(&words, ", ")).into()]
    } else {
        vec![
            c!("u64 key[{}] = {{ 0 }};", words).into(),
            c!("memcpy(key, {}, {});", address, bytes).into(),
        ]
    };
    let on_stack = matches!(
        body.slice.step(id).args.get(usize::from(reg.0) - 1),
        Some(ArgFact::Memory {
            access: Access::Stack { .. },
            ..
        })
    );
    if !on_stack {
        // Others may write that memory, and token, comparison and stored key must be of one reading.
        copy.push("read_once(key, sizeof(key) / sizeof(*key));".into());
    }
    Ok(copy)
}

/// From the first operation on, the key's bytes on the stack are its words, made opaque: who reads a
/// piece of it later takes it from a word. The pieces that it was stored in need not be kept for that,
/// and loads of neighbouring packet bytes become one.
pub fn keep_whole(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<Statement>, Error> {
    if whole(body.slice, id).is_none() {
        return Ok(Vec::new());
    }
    let mut lines = vec![Statement::from(
        "read_once(key, sizeof(key) / sizeof(*key));",
    )];
    lines.extend(stored(body, id, reg, declaration)?);
    Ok(lines)
}

/// The key as the prefetch pass kept it.
pub fn kept(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<Statement>, Error> {
    let words = words(declaration);
    let mut lines: Vec<Statement> = vec![
        c!("u64 key[{}];", words).into(),
        "memcpy(key, slot->key, sizeof(key));".into(),
    ];
    if whole(body.slice, id).is_some() {
        lines.extend(stored(body, id, reg, declaration)?);
    }
    Ok(lines)
}

fn stored(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<Statement>, Error> {
    let address = body.address(id, reg, 0)?;
    let store = |word: u32| match word * 8 {
        0 => c!("mr_store64({}, key[0]);", address),
        at => c!("mr_store64({} + {}, key[{}]);", address, at, word),
    };
    let all = (0..words(declaration)).map(store);
    Ok(all.map(Statement::Line).collect())
}

/// Where on the stack the key of a call lies, if it is whole words there and few enough to be named.
pub fn whole(slice: &Slice, id: StepId) -> Option<(FrameId, i32, i32)> {
    let step = slice.step(id);
    let key = usize::from(key(step)?.0) - 1;
    let (Some(ArgFact::Object(object)), Some(ArgFact::Memory { access, .. })) =
        (step.args.first(), step.args.get(key))
    else {
        return None;
    };
    let declaration = slice.program.objects.get(object.0)?;
    let Access::Stack { frame, from, to } = *access else {
        return None;
    };
    let bytes = declaration.key_bytes;
    let whole = i64::from(to) - i64::from(from) == i64::from(bytes)
        && bytes.is_multiple_of(8)
        && words(declaration) <= MOST_WORDS_BY_NAME;
    whole.then_some((frame, from, to))
}

/// The word of a key of `bytes` that begins at byte `at`, zero padded (this machine is little-endian).
fn load_word(address: &Code, at: u32, bytes: u32) -> Code {
    let mut parts = Vec::new();
    let (mut from, end) = (at, bytes.min(at + 8));
    for size in [8, 4, 2, 1] {
        if end - from < size {
            continue;
        }
        let place = if from == 0 {
            address.clone()
        } else {
            c!("{} + {}", address, from)
        };
        let load = if size == 1 {
            c!("*({})", place)
        } else {
            c!("mr_load{}({})", size * 8, place)
        };
        parts.push(match 8 * (from - at) {
            0 => load,
            shift => c!("(u64){} << {}", load, shift),
        });
        from += size;
    }
    if parts.is_empty() {
        "0".into()
    } else {
        Code::join(&parts, " | ")
    }
}
