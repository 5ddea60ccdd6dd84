//! Helper calls, by the contract of each argument (fastpath/README.md).
//!
//! Keys and values are copied into fresh temporaries: nothing else can point to them, so they stay
//! in registers whatever the callee does. A key goes in whole zero-padded words together with its
//! token. Where a program goes on from its scout, both are the scout's; where it runs anew with the scout's
//! token at hand, that is used if the scout's key was this one.

use millrace_check::facts::{Access, ArgFact, FrameId, Kind, Op, StepId};
use millrace_object::Insn;
use millrace_object::helper::{self, Arg, Helper, Return};
use millrace_object::insn::Reg;
use millrace_object::program::{ObjectId, StateObject};

use super::body::Body;
use super::demand::key;
use super::forms::{Forms, is_pure};
use super::resume::Move;
use super::slice::Slice;
use crate::error::Error;

/// A call and what it needs beforehand.
struct Call {
    /// declarations and copies
    before: Vec<String>,
    /// the call itself
    expression: String,
}

/// `r0 = helper(r1, …)`.
pub fn call(body: &Body, id: StepId, number: u32) -> Result<Vec<String>, Error> {
    let step = body.slice.step(id);
    let Some(helper) = helper::by_number(number) else {
        return Err(body.slice.unsupported(step, format!("helper {number}")));
    };
    let demanded = body.demand.after(body.slice, id, Reg(0));
    if !demanded.any() && is_pure(number) {
        return Ok(Vec::new());
    }
    let call = arguments(body, id, helper)?;
    if body.hooks.callee(id).is_some() {
        let (word, restart, form) = match helper.returns {
            Return::Scalar { .. } => ("u64", "MR_RESTART_NUMBER", Forms::SCALAR),
            Return::ValueOrNull | Return::RecordOrNull => ("u8 *", "MR_RESTART", Forms::POINTER),
        };
        let mut before = call.before;
        before.push(
            format!("{word} const found = {};", call.expression).replace("* const", "*const"),
        );
        let leave = body.leaving(id)?;
        before.push(format!("if (mr_unlikely(found == {restart})) {leave}"));
        let result = body.assign(id, Reg(0), form, "found");
        return Ok(block(before, result));
    }
    if super::tail::is(helper) {
        let mut before = call.before;
        before.extend(super::tail::statements(&call.expression));
        let result = body.assign(id, Reg(0), Forms::SCALAR, "mr_errno(ENOENT)");
        return Ok(block(before, result));
    }
    if super::tail::is_away(helper) {
        let mut before = call.before;
        before.extend(super::tail::statements_away(&call.expression));
        let result = body.assign(id, Reg(0), Forms::SCALAR, "gone");
        return Ok(block(before, result));
    }
    let natural = match helper.returns {
        Return::Scalar { .. } => Forms::SCALAR,
        Return::ValueOrNull | Return::RecordOrNull => Forms::POINTER,
    };
    let mut result = body.assign(id, Reg(0), natural, &call.expression);
    if result.is_empty() {
        result.push(format!("{};", call.expression));
    }
    Ok(block(call.before, result))
}

/// Where a scout ends: the token of the key, kept in the slot, and the first prefetch.
pub fn scout_site(body: &Body, id: StepId, site: u32) -> Result<Vec<String>, Error> {
    let (object, declaration) = object(body, id)?;
    let step = body.slice.step(id);
    let key = key(step).ok_or_else(|| body.slice.contradiction(step, "a call without a key"))?;
    let operands = body.unit.operands(object);
    let prefix = declaration.kind.c;
    let mut before = copy_key(body, id, key, declaration)?;
    before.extend([
        format!("slot->token = {prefix}_token({operands}, key);"),
        "memcpy(slot->key, key, sizeof(key));".into(),
        format!("slot->site = {site};"),
    ]);
    if let Some(entrance) = body.resume.and_then(|r| r.entrances.get(&id)) {
        before.extend(entrance.moves().iter().map(Move::keep));
    }
    before.extend([
        format!("{prefix}_prefetch({operands}, slot->token);"),
        "return;".into(),
    ]);
    Ok(block(before, Vec::new()))
}

/// The object a call works on.
pub fn object<'a>(body: &Body<'a>, id: StepId) -> Result<(ObjectId, &'a StateObject), Error> {
    let step = body.slice.step(id);
    let timer = step.args.iter().find_map(|arg| match arg {
        ArgFact::Timer(object) => Some(*object),
        _ => None,
    });
    if let Some(object) = timer {
        return Ok((object, &body.slice.program.objects[object.0]));
    }
    let position = match step.op {
        Op::Plain(Insn::Call { helper }) => helper::by_number(helper)
            .and_then(Helper::object_argument)
            .unwrap_or(0),
        _ => 0,
    };
    match (step.args.get(position), step.before[position + 1]) {
        (Some(&ArgFact::Object(object)), _) | (_, Kind::Object(object)) => {
            Ok((object, &body.slice.program.objects[object.0]))
        }
        _ => Err(body.slice.contradiction(step, "a call on no state object")),
    }
}

/// The object and the shape that a call works on.
struct Operands {
    before: Vec<String>,
    text: String,
}

/// Of a map that was found in another one, the register holds where to find it and its capacity.
fn operands(
    body: &Body,
    id: StepId,
    reg: Reg,
    object: ObjectId,
    declaration: &StateObject,
) -> Result<Operands, Error> {
    if !declaration.is_shape() {
        return Ok(Operands {
            before: Vec::new(),
            text: body.unit.operands(object),
        });
    }
    let map = body.pointer(id, reg)?;
    let shape = body.unit.shape(object);
    let mut before = vec![format!(
        "struct {0} *const map = (struct {0} *)mr_map({map})->object;",
        declaration.kind.c
    )];
    let shape = if declaration.one_capacity() {
        format!("&{shape}")
    } else {
        before.push(format!(
            "const struct shape like = maps_shape(&{shape}, mr_map({map}));"
        ));
        "&like".to_owned()
    };
    Ok(Operands {
        before,
        text: format!("map, {shape}"),
    })
}

fn arguments(body: &Body, id: StepId, helper: &Helper) -> Result<Call, Error> {
    let step = body.slice.step(id);
    let mut before = Vec::new();
    let mut arguments = Vec::new();
    let mut function = format!("helper_{}", helper.name);
    let has_object = helper.object_argument().is_some();
    if let Some(kind) = helper::implied(helper) {
        let mut objects = body.slice.program.objects.iter();
        let Some(at) = objects.position(|o| o.kind == kind) else {
            return Err(body.slice.contradiction(step, "no object to work on"));
        };
        function = format!("{}_{}", kind.c, helper.name);
        arguments.push(body.unit.operands(ObjectId(at)));
    }
    for (arg, reg) in helper.args.iter().zip((1..=5).map(Reg)) {
        match arg {
            Arg::Context => {}
            // The timer has said which.
            Arg::Object if helper.args.contains(&Arg::Timer) => {}
            Arg::Timer => {
                let (object, declaration) = object(body, id)?;
                function = format!("{}_{}", declaration.kind.c, helper.name);
                arguments.push(body.unit.operands(object));
                arguments.push(body.address(id, reg, 0)?);
            }
            Arg::Object => {
                let (object, declaration) = object(body, id)?;
                let prefix = body.hooks.callee(id).unwrap_or("");
                function = format!("{}_{prefix}{}", declaration.kind.c, helper.name);
                let of = operands(body, id, reg, object, declaration)?;
                before.extend(of.before);
                arguments.push(of.text);
            }
            Arg::Key if has_object => {
                let (_, declaration) = object(body, id)?;
                let token = match arguments.first() {
                    Some(of) => format!("{}_token({of}, key)", declaration.kind.c),
                    None => return Err(body.slice.unsupported(step, "a key without an object")),
                };
                arguments.push("key".into());
                let entrance = body.resume.and_then(|r| r.entrances.get(&id));
                if entrance.is_some_and(|e| e.only) {
                    before.extend(kept_key(body, id, reg, declaration)?);
                    arguments.push("slot->token".into());
                    continue;
                }
                before.extend(copy_key(body, id, reg, declaration)?);
                if body.sites.contains_key(&id)
                    && (body.slotted || key_words(declaration) <= MOST_WORDS_IN_REGISTERS)
                {
                    before.extend(keep_whole(body, id, reg, declaration)?);
                }
                match body.sites.get(&id).filter(|_| body.slotted) {
                    Some(site) => {
                        let words = key_words(declaration);
                        before.push(format!(
                            "const u64 token = slot_holds(slot, {site}, key, {words}) ? slot->token : {token};"
                        ));
                        arguments.push("token".into());
                    }
                    None => arguments.push(token),
                }
            }
            Arg::Value if has_object => {
                let (_, declaration) = object(body, id)?;
                let bytes = declaration.value_bytes;
                before.push(format!("_Alignas(8) u8 value[{}];", bytes.max(1)));
                if bytes > 0 {
                    before.push(format!(
                        "memcpy(value, {}, {bytes});",
                        body.address(id, reg, 0)?
                    ));
                }
                arguments.push("value".into());
            }
            Arg::Key | Arg::Value => {
                return Err(body.slice.unsupported(step, "a key without an object"));
            }
            // A function's address is its number, see `statement`.
            Arg::Scalar | Arg::Bytes { .. } | Arg::Callback => {
                arguments.push(body.scalar(id, reg)?);
            }
            Arg::Write { .. } if helper.number == helper::SNPRINTF.number => {
                let to = body.address(id, reg, 0)?;
                let stack = matches!(
                    step.args.first(),
                    Some(ArgFact::Memory {
                        access: Access::Stack { .. },
                        ..
                    })
                );
                if stack {
                    // It may leave bytes as they are, which then would be nobody's.
                    let size = body.scalar(id, Reg(reg.0 + 1))?;
                    before.push(format!("memset({to}, 0, {size});"));
                }
                arguments.push(to);
            }
            Arg::Read { .. }
            | Arg::In(_)
            | Arg::Text
            | Arg::Write { .. }
            | Arg::Update
            | Arg::Record
            | Arg::Out(_)
            | Arg::InOut(_)
            | Arg::KeyOut
            | Arg::ValueOut => {
                arguments.push(body.address(id, reg, 0)?);
            }
            Arg::Function | Arg::Any | Arg::Iterator => {
                return Err(body
                    .slice
                    .unsupported(step, "a call that should have been laid out"));
            }
        }
    }
    if helper.effects.random {
        arguments.push("self->sketch_seed".into());
    }
    arguments.push("pkt".into());
    Ok(Call {
        before,
        expression: format!("{function}({})", arguments.join(", ")),
    })
}

/// Whole words that hold a key.
pub fn key_words(declaration: &StateObject) -> u32 {
    declaration.key_bytes.div_ceil(8).max(1)
}

/// A key that is kept whole and has no slot to be compared with occupies so many registers at once. More
/// cost what they save (`make bench`: heavyhitter gains a twentieth by this, cl would lose as much).
const MOST_WORDS_IN_REGISTERS: u32 = 2;

/// Longer keys are copied in a loop of the compiler's.
const MOST_WORDS_BY_NAME: u32 = 8;

/// The key in whole words. It is read by words, because SROA splits a stack object where its accesses
/// end: a key that is only copied as bytes falls apart into the pieces it was stored in, which then
/// occupy a register or a spill slot each for as long as anybody may read one again.
fn copy_key(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<String>, Error> {
    let bytes = declaration.key_bytes;
    let address = body.address(id, reg, 0)?;
    let words = key_words(declaration);
    let mut copy = if words <= MOST_WORDS_BY_NAME {
        let words: Vec<String> = (0..words)
            .map(|word| load_word(&address, word * 8, bytes))
            .collect();
        vec![format!("u64 key[] = {{ {} }};", words.join(", "))]
    } else {
        let declaration = format!("u64 key[{words}] = {{ 0 }};");
        vec![declaration, format!("memcpy(key, {address}, {bytes});")]
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
fn keep_whole(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<String>, Error> {
    if whole_key(body.slice, id).is_none() {
        return Ok(Vec::new());
    }
    let mut lines = vec!["read_once(key, sizeof(key) / sizeof(*key));".to_owned()];
    lines.extend(stored_key(body, id, reg, declaration)?);
    Ok(lines)
}

/// The key as the scout kept it.
fn kept_key(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<String>, Error> {
    let words = key_words(declaration);
    let mut lines = vec![
        format!("u64 key[{words}];"),
        "memcpy(key, slot->key, sizeof(key));".to_owned(),
    ];
    if whole_key(body.slice, id).is_some() {
        lines.extend(stored_key(body, id, reg, declaration)?);
    }
    Ok(lines)
}

fn stored_key(
    body: &Body,
    id: StepId,
    reg: Reg,
    declaration: &StateObject,
) -> Result<Vec<String>, Error> {
    let address = body.address(id, reg, 0)?;
    let store = |word: u32| match word * 8 {
        0 => format!("mr_store64({address}, key[0]);"),
        at => format!("mr_store64({address} + {at}, key[{word}]);"),
    };
    Ok((0..key_words(declaration)).map(store).collect())
}

/// Where on the stack the key of a call lies, if it is whole words there and few enough to be named.
pub fn whole_key(slice: &Slice, id: StepId) -> Option<(FrameId, i32, i32)> {
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
        && key_words(declaration) <= MOST_WORDS_BY_NAME;
    whole.then_some((frame, from, to))
}

/// The word of a key of `bytes` that begins at byte `at`, zero padded (this machine is little-endian).
fn load_word(address: &str, at: u32, bytes: u32) -> String {
    let mut parts = Vec::new();
    let (mut from, end) = (at, bytes.min(at + 8));
    for size in [8, 4, 2, 1] {
        if end - from < size {
            continue;
        }
        let place = if from == 0 {
            address.to_owned()
        } else {
            format!("{address} + {from}")
        };
        let load = if size == 1 {
            format!("*({place})")
        } else {
            format!("mr_load{}({place})", size * 8)
        };
        parts.push(match 8 * (from - at) {
            0 => load,
            shift => format!("(u64){load} << {shift}"),
        });
        from += size;
    }
    if parts.is_empty() {
        "0".into()
    } else {
        parts.join(" | ")
    }
}

/// Statements in a block of their own when they declare something.
fn block(before: Vec<String>, result: Vec<String>) -> Vec<String> {
    if before.is_empty() {
        return result;
    }
    let mut out = vec!["{".to_owned()];
    out.extend(
        before
            .into_iter()
            .chain(result)
            .map(|line| format!("\t{line}")),
    );
    out.push("}".into());
    out
}
