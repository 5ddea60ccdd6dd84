//! `CheckLength(LENGTH [, EXTRA_LENGTH])`: packets of more than LENGTH bytes go to output 1, or are dropped.

use super::prelude::*;

/// The class of this file.
pub const CLASSES: &[Class] = &[Class::new("CheckLength", "1/1-2", "a/ah", make)];

fn make(args: &mut Args<'_>, _: &mut Setup<'_>) -> Made {
    args.keywords("LENGTH EXTRA_LENGTH USE_EXTRA_LENGTH");
    let most = args.number("LENGTH", -1)?;
    args.done()?;
    let most = usize::try_from(most).map_err(|_| "too few arguments: LENGTH")?;
    Ok(Box::new(Check(most)))
}

struct Check(usize);

impl Element for Check {
    fn meaning(&self) -> Option<Meaning> {
        Some(Meaning::Long(self.0))
    }

    fn action(&mut self, packet: Packet, cx: &Context<'_>) -> Option<Packet> {
        if packet.len() > self.0 {
            cx.reject(1, packet);
            return None;
        }
        Some(packet)
    }
}
