//! Formats of `bpf_snprintf`: none of its conversions reads memory, as the addresses among its values are numbers
//! of which nothing is known.

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
    let (Region::Value(id), Some(from)) = (p.region, p.fixed()) else {
        return Ok(());
    };
    let text = m.object(id)?.initial.as_deref();
    let text = text.and_then(|t| t.get(usize::try_from(from).ok()?..));
    let mut bytes = text.unwrap_or_default().iter().take_while(|b| **b != 0);
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            continue;
        }
        let field = |b: &&u8| !matches!(**b, b'0'..=b'9' | b'+' | b'-' | b' ');
        let conversion = bytes.find(field);
        m.enforce(!matches!(conversion, Some(b's' | b'p')), || {
            Fault::new(
                Rule::Format,
                format!(
                    "the format of this call of `{}` has a `%{}`, which reads memory at an address",
                    helper.name,
                    conversion.map_or('?', |c| char::from(*c))
                ),
                "Print numbers and characters: %d, %i, %u, %x, %X, with l or ll, and %c.",
            )
        })?;
    }
    Ok(())
}
