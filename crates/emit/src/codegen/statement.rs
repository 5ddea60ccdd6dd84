//! C statements of one instruction.

use millrace_check::facts::StepId;
use millrace_object::insn::{Imm64, Insn, Operand};

use super::body::Body;
use super::c::{Local, Statement};
use super::forms::{Forms, is_address, natural};
use super::{arithmetic, call, memory};
use crate::c;
use crate::error::Error;

/// The statements of an instruction that goes on to the next step; none if nobody reads its result.
pub fn plain(body: &Body, id: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
    let mut out = body.hooks.before(body, id, insn)?;
    out.extend(itself(body, id, insn)?);
    Ok(out)
}

/// The same, and what the treatment puts behind it.
pub fn whole(body: &Body, id: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
    let mut out = plain(body, id, insn)?;
    out.extend(body.hooks.behind(body, id, insn)?);
    Ok(out)
}

fn itself(body: &Body, id: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
    match *insn {
        Insn::Store { .. } => return memory::store(body, id, insn),
        Insn::Atomic { .. } => return memory::atomic(body, id, insn),
        Insn::Call { helper } => return call::call(body, id, helper),
        _ => {}
    }
    let step = body.slice.step(id);
    let Some(dst) = millrace_check::facts::written(insn) else {
        return Err(body.slice.unsupported(step, format!("{insn:?}")));
    };
    let demanded = body.demand.after(body.slice, id, dst);
    if !demanded.any() {
        return Ok(Vec::new());
    }
    if is_address(step.after) {
        let Some(address) = body.constant(id, step.after)? else {
            return Ok(Vec::new());
        };
        return Ok(body.assign(id, dst, Forms::POINTER, &address));
    }
    let form = natural(step.after, demanded);
    let expression = match *insn {
        Insn::LoadImm { value, .. } => {
            return match value {
                Imm64::Number(number) => Ok(body.assign(
                    id,
                    dst,
                    Forms::SCALAR,
                    &super::text::unsigned(number).into(),
                )),
                Imm64::ObjectValue { object, offset } => Ok(body.assign(
                    id,
                    dst,
                    Forms::POINTER,
                    &body.unit.value(object, offset).into(),
                )),
                Imm64::Object(object) => {
                    let address = c!("(u8 *)&{}", body.unit.instance(object));
                    Ok(body.assign(id, dst, Forms::POINTER, &address))
                }
                // Nothing is read or called through it: what calls it back is laid out in its place, and what
                // fires timers knows functions by this number.
                Imm64::Function(function) => {
                    let address = c!("(u8 *)(uintptr_t){}", function.0 + 1);
                    Ok(body.assign(id, dst, Forms::POINTER, &address))
                }
            };
        }
        Insn::Load { .. } => return memory::load(body, id, insn, form),
        _ if form == Forms::POINTER => match arithmetic::pointer(body, id, insn)? {
            Some(expression) => return Ok(body.assign(id, dst, Forms::POINTER, &expression)),
            None => arithmetic::scalar(body, id, insn)?,
        },
        _ => arithmetic::scalar(body, id, insn)?,
    };
    let mut all = summed(body, id, insn)?;
    all.extend(body.assign(id, dst, Forms::SCALAR, &expression));
    if let Some(sum) = body.known().taken(id) {
        let register = Local::register(step.frame, dst, Forms::SCALAR);
        all.push(c!("{} = {};", Local::Sum(sum), register).into());
    }
    Ok(all)
}

/// What an addition to a fold adds to the sum that was folded ([`super::known`]).
fn summed(body: &Body, id: StepId, insn: &Insn) -> Result<Vec<Statement>, Error> {
    let Some(addition) = body.known().addition(id) else {
        return Ok(Vec::new());
    };
    let Insn::Alu { dst, src, .. } = *insn else {
        let step = body.slice.step(id);
        return Err(body.slice.contradiction(step, "an addition that is none"));
    };
    let [left, right] = addition.of;
    let part = |sum: Option<u32>, operand| match sum {
        Some(sum) => Ok(Local::Sum(sum).into()),
        None => body.operand(id, operand),
    };
    let (left, right) = (part(left, Operand::Reg(dst))?, part(right, src)?);
    Ok(vec![
        c!("{} = {} + {};", Local::Sum(addition.to), left, right).into(),
    ])
}
