//! Helper calls, by the contract of each argument (fastpath/README.md).
//!
//! Keys and values are copied into fresh temporaries: nothing else can point to them, so they stay
//! in registers whatever the callee does. A key goes in whole zero-padded words together with its
//! token. Where a program goes on from its prefetch pass, both are the prefetch pass's; where it runs anew with the prefetch pass's
//! token at hand, that is used if the prefetch pass's key was this one.

use millrace_check::facts::{Access, ArgFact, Kind, Op, StepId};
use millrace_object::Insn;
use millrace_object::helper::{self, Arg, Helper, Return};
use millrace_object::insn::Reg;
use millrace_object::program::{ObjectId, StateObject};

use super::body::{Body, Purpose};
use super::c::{Code, Statement, block};
use super::forms::{Forms, is_pure};
use super::objects::offers;
use super::resume::Move;
use super::{demand, key};
use crate::c;
use crate::error::Error;

/// A call and what it needs beforehand.
struct Call {
    /// declarations and copies
    before: Vec<Statement>,
    /// the call itself
    expression: Code,
}

/// `r0 = helper(r1, …)`.
pub fn call(body: &Body, id: StepId, number: u32) -> Result<Vec<Statement>, Error> {
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
            Return::Scalar { .. } => ("u64 ", "MR_RESTART_NUMBER", Forms::SCALAR),
            Return::ValueOrNull | Return::RecordOrNull => ("u8 *", "MR_RESTART", Forms::POINTER),
        };
        let mut before = call.before;
        before.push(c!("{}const found = {};", word, call.expression).into());
        let leave = body.leaving(id)?;
        before.push(c!("if (mr_unlikely(found == {})) {}", restart, leave).into());
        let result = body.assign(id, Reg(0), form, &"found".into());
        return Ok(block(before, result));
    }
    if super::tail::is(helper) {
        let mut before = call.before;
        before.extend(super::tail::statements(&call.expression));
        let result = body.assign(id, Reg(0), Forms::SCALAR, &"mr_errno(ENOENT)".into());
        return Ok(block(before, result));
    }
    if super::tail::is_away(helper) {
        let mut before = call.before;
        before.extend(super::tail::statements_away(&call.expression));
        let result = body.assign(id, Reg(0), Forms::SCALAR, &"gone".into());
        return Ok(block(before, result));
    }
    let natural = match helper.returns {
        Return::Scalar { .. } => Forms::SCALAR,
        Return::ValueOrNull | Return::RecordOrNull => Forms::POINTER,
    };
    let mut result = body.assign(id, Reg(0), natural, &call.expression);
    if result.is_empty() {
        result.push(c!("{};", call.expression).into());
    }
    Ok(block(call.before, result))
}

/// Where a prefetch pass ends: the token of the key, kept in the slot, and the first prefetch.
pub fn prefetch_site(
    body: &Body,
    id: StepId,
    site: u32,
    end: &str,
) -> Result<Vec<Statement>, Error> {
    let (object, declaration) = object(body, id)?;
    let step = body.slice.step(id);
    let key =
        demand::key(step).ok_or_else(|| body.slice.contradiction(step, "a call without a key"))?;
    let operands = body.unit.operands(object);
    let prefix = body.unit.kind(object);
    let mut before = key::copy(body, id, key, declaration)?;
    // Tokens that are found for a batch at once are found behind this pass (`Gate`).
    let at_once = offers(declaration, "tokens");
    if !at_once {
        before.push(c!("slot->token = {}_token({}, key);", prefix, operands).into());
    }
    before.extend([
        "memcpy(slot->key, key, sizeof(key));".into(),
        c!("slot->site = {};", site).into(),
    ]);
    if let Some(entrance) = body.resume.and_then(|r| r.entrances.get(&id)) {
        before.extend(entrance.moves().iter().map(Move::keep));
    }
    if !at_once {
        before.push(c!("{}_prefetch({}, slot->token);", prefix, operands).into());
    }
    before.push(end.into());
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
    before: Vec<Statement>,
    text: Code,
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
            text: body.unit.operands(object).into(),
        });
    }
    let map = body.pointer(id, reg)?;
    let shape = body.unit.shape(object);
    let mut before: Vec<Statement> = vec![
        c!(
            "struct {} *const map = (struct {} *)mr_map({})->object;",
            declaration.kind.c,
            declaration.kind.c,
            map
        )
        .into(),
    ];
    let shape = if declaration.one_capacity() {
        c!("&{}", shape)
    } else {
        before.push(
            c!(
                "const struct shape like = maps_shape(&{}, mr_map({}));",
                shape,
                map
            )
            .into(),
        );
        "&like".into()
    };
    Ok(Operands {
        before,
        text: c!("map, {}", shape),
    })
}

fn arguments(body: &Body, id: StepId, helper: &Helper) -> Result<Call, Error> {
    let step = body.slice.step(id);
    let mut before: Vec<Statement> = Vec::new();
    let mut arguments: Vec<Code> = Vec::new();
    let mut function = format!("helper_{}", helper.name);
    let has_object = helper.object_argument().is_some();
    if let Some(kind) = helper::implied(helper) {
        let mut objects = body.slice.program.objects.iter();
        let Some(at) = objects.position(|o| o.kind == kind) else {
            return Err(body.slice.contradiction(step, "no object to work on"));
        };
        function = format!("{}_{}", kind.c, helper.name);
        arguments.push(body.unit.operands(ObjectId(at)).into());
    }
    for (arg, reg) in helper.args.iter().zip((1..=5).map(Reg)) {
        match arg {
            Arg::Context => {}
            // The timer has said which.
            Arg::Object if helper.args.contains(&Arg::Timer) => {}
            Arg::Timer => {
                let (object, _) = object(body, id)?;
                function = format!("{}_{}", body.unit.kind(object), helper.name);
                arguments.push(body.unit.operands(object).into());
                arguments.push(body.address(id, reg, 0)?);
            }
            Arg::Object => {
                let (object, declaration) = object(body, id)?;
                let prefix = body.hooks.callee(id).unwrap_or("");
                function = format!("{}_{prefix}{}", body.unit.kind(object), helper.name);
                let of = operands(body, id, reg, object, declaration)?;
                before.extend(of.before);
                arguments.push(of.text);
            }
            Arg::Key if has_object => {
                let (on, declaration) = object(body, id)?;
                let token = match arguments.first() {
                    Some(of) => c!("{}_token({}, key)", body.unit.kind(on), of),
                    None => return Err(body.slice.unsupported(step, "a key without an object")),
                };
                arguments.push("key".into());
                let entrance = body.resume.and_then(|r| r.entrances.get(&id));
                if entrance.is_some_and(|e| e.only) {
                    before.extend(key::kept(body, id, reg, declaration)?);
                    arguments.push("slot->token".into());
                    continue;
                }
                before.extend(key::copy(body, id, reg, declaration)?);
                let ahead = body.purpose == Purpose::Prefetch;
                if body.sites.contains_key(&id)
                    && !ahead
                    && (body.slotted || key::words(declaration) <= key::MOST_WORDS_IN_REGISTERS)
                {
                    before.extend(key::keep_whole(body, id, reg, declaration)?);
                }
                // The second of two prefetch passes has what the first found in a slot of its own.
                let slot = match ahead {
                    true => "early",
                    false => "slot",
                };
                match body.sites.get(&id).filter(|_| body.slotted) {
                    Some(site) => {
                        let words = key::words(declaration);
                        before.push(
                            c!(
                                "const u64 token = slot_holds({}, {}, key, {}) ? {}->token : {};",
                                slot,
                                site,
                                words,
                                slot,
                                token
                            )
                            .into(),
                        );
                        arguments.push("token".into());
                    }
                    None => arguments.push(body.hooks.token(body, id, token)),
                }
            }
            Arg::Value if has_object => {
                let (_, declaration) = object(body, id)?;
                let bytes = declaration.value_bytes;
                before.push(c!("_Alignas(8) u8 value[{}];", bytes.max(1)).into());
                if bytes > 0 {
                    let from = body.address(id, reg, 0)?;
                    before.push(c!("memcpy(value, {}, {});", from, bytes).into());
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
                    before.push(c!("memset({}, 0, {});", to, size).into());
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
    arguments.extend(body.hooks.more(body, id)?);
    Ok(Call {
        before,
        expression: c!("{}({})", function, Code::join(&arguments, ", ")),
    })
}
