//! Formats whose conversions may read memory: those of `bpf_snprintf` have none, as the addresses among its values are numbers
//! of which nothing is known. A line of `bpf_trace_vprintk` is written nowhere, and of a format that reads memory only the length counts.

use millrace_object::helper::Helper;

use crate::domain::{Pointer, Region};
use crate::machine::Machine;
use crate::refuse::{Fault, Verdict};
use crate::rule::Rule;

/// Checks a constant format.
///
/// # Errors
/// `format`
pub fn reads_no_memory(m: &Machine<'_>, helper: &Helper, p: &Pointer) -> Verdict<()> {
    let reading = conversions(text(m, p)?).find(is_reading);
    m.enforce(reading.is_none(), || {
        Fault::new(
            Rule::Format,
            format!(
                "the format of this call of `{}` has a `%{}`, which reads memory at an address",
                helper.name,
                reading.map_or('?', char::from)
            ),
            "Print numbers and characters: %d, %i, %u, %x, %X, with l or ll, and %c.",
        )
    })
}

/// Whether this is a constant format that reads memory: a line of it is as long as the format, and its values are not looked at.
///
/// # Errors
/// The object is not there.
pub fn reads_memory(m: &Machine<'_>, p: &Pointer) -> Verdict<bool> {
    let text = text(m, p)?;
    let constant = match (p.region, p.fixed()) {
        (Region::Value(id), Some(from)) => {
            let place = u32::try_from(from).ok().zip(u32::try_from(text.len()).ok());
            place.is_some_and(|(from, length)| m.program.constant(id, from, length + 1).is_some())
        }
        _ => false,
    };
    Ok(constant && conversions(text).any(|c| is_reading(&c)))
}

fn is_reading(conversion: &u8) -> bool {
    matches!(conversion, b's' | b'p')
}

/// The bytes in front of the first that is zero, as far as the object's are known.
fn text<'a>(m: &'a Machine<'_>, p: &Pointer) -> Verdict<&'a [u8]> {
    let (Region::Value(id), Some(from)) = (p.region, p.fixed()) else {
        return Ok(&[]);
    };
    let text = m.object(id)?.initial.as_deref();
    let text = text.and_then(|t| t.get(usize::try_from(from).ok()?..));
    let text = text.unwrap_or_default();
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    Ok(text.get(..end).unwrap_or_default())
}

/// The character behind each `%`, its flags and its width.
fn conversions(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut bytes = text.iter();
    std::iter::from_fn(move || {
        bytes.find(|b| **b == b'%')?;
        let field = |b: &&u8| !matches!(**b, b'0'..=b'9' | b'+' | b'-' | b' ');
        bytes.find(field).copied()
    })
}
