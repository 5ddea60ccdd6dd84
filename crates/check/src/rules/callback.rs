//! Calls that are laid out as what they stand for: their arguments are what was found before.

use millrace_object::helper;
use millrace_object::insn::Reg;

use super::read;
use crate::domain::{Pointer, Region, Value};
use crate::facts::FrameId;
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;
use crate::state::State;

/// Checks the arguments of the call that enters a frame, if it is one of a helper's.
///
/// # Errors
/// `callback`, `helper-argument`, and those of reading.
pub fn enter(m: &Machine<'_>, st: &mut State, frame: FrameId) -> Verdict<()> {
    let Some(expansion) = m.flow.frames.get(frame.0).and_then(|f| f.expansion) else {
        return Ok(());
    };
    let Some(helper) = helper::by_number(expansion.helper) else {
        return Ok(());
    };
    super::lock::call(m, st, helper)?;
    for (i, arg) in helper.args.iter().enumerate() {
        let value = read(m, st, Reg(i as u8 + 1))?;
        let expected = match arg {
            helper::Arg::Function => expansion.function.map(Region::Function),
            helper::Arg::Object => expansion.object.map(Region::Object),
            helper::Arg::Iterator => {
                super::iterator::call(m, st, helper, value)?;
                continue;
            }
            helper::Arg::Scalar => {
                let flags = i + 1 == helper.args.len();
                let fits = match value.as_constant() {
                    _ if !matches!(value, Value::Scalar(..)) => false,
                    constant => !(flags && expansion.plain) || constant == Some(0),
                };
                m.enforce(fits, || {
                    Fault::new(
                        Rule::HelperArgument,
                        format!(
                            "argument {} of `{}` is not the number that it was taken for",
                            i + 1,
                            helper.name
                        ),
                        "Pass a number.",
                    )
                })?;
                continue;
            }
            _ => continue,
        };
        if expected.is_none() {
            continue;
        }
        let is_that = match value {
            Value::Pointer(p) => Some(p.region) == expected && p == Pointer::to(p.region),
            _ => false,
        };
        m.enforce(is_that, || {
            Fault::new(
                Rule::Callback,
                format!(
                    "argument {} of `{}` is not always the same function or map",
                    i + 1,
                    helper.name
                ),
                "Name the function, and the map, in the call itself; one call for each.",
            )
        })?;
    }
    Ok(())
}
