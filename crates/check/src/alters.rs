//! Whether a program may change the packets that it gets.
//!
//! Elements of a chain whose state is divided find what a packet has to do with by its headers as it arrived, so nothing in front of
//! them may change it. The proof says of each store and of each argument of a helper which memory it goes to; where it does not, the packet is assumed to be
//! among it.

use millrace_object::helper;
use millrace_object::insn::Insn;
use millrace_object::program::Program;

use crate::facts::{Access, ArgFact, Checked, Op, Step};

/// The first step that may change a packet, of all that can run; none: packets leave as they came.
#[must_use]
pub fn alters<'a>(checked: &'a Checked, program: &'a Program) -> Option<&'a Step> {
    let mut steps = checked.running(program).flat_map(|r| &r.flow.steps);
    steps.find(|step| step.reached && changes(step))
}

/// Whether a step may change a packet.
#[must_use]
pub fn changes(step: &Step) -> bool {
    let Op::Plain(insn) = step.op else {
        return false;
    };
    let packet = |access: Access| matches!(access, Access::Packet | Access::Several);
    match insn {
        Insn::Store { .. } | Insn::Atomic { .. } => step.access.is_none_or(packet),
        Insn::Call { helper } => {
            let Some(helper) = helper::by_number(helper) else {
                return true;
            };
            if helper.effects.moves_packet
                || helper.effects.writes_packet
                // What another program makes of it is not known here.
                || helper.number == helper::TAIL_CALL.number
            {
                return true;
            }
            let mut written = helper.args.iter().zip(&step.args);
            written.any(|(arg, fact)| {
                arg.writes_memory()
                    && matches!(fact, ArgFact::Memory { access, .. } if packet(*access))
            })
        }
        _ => false,
    }
}
