//! Elements that cannot be linked, and why.

use std::fmt;

use millrace_object::helper;
use millrace_object::insn::{Imm64, Insn, Operand};
use millrace_object::program::{Dialect, FunctionId, Program, Role};
use millrace_topology::Topology;

use crate::Element;
use crate::handler::FLOOD;

/// An element that cannot be linked with the others of its chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{element} cannot be linked: {reason}")]
pub struct Unlinkable {
    /// the element's name
    pub element: String,
    /// why
    pub reason: Reason,
}

/// Why an element cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// it has no packet handler, or several
    Programs(usize),
    /// it makes tail calls, or is the target of some: the other program's verdict would be the whole chain's
    TailCalls,
    /// its atomic instructions, which handlers do not have
    Atomics,
    /// it calls a helper that depends on something of which a chain has one for each element
    Helper(&'static str),
    /// it looks at what `bpf_redirect` answers, or does not return it
    Redirect,
    /// it returns what `bpf_redirect` answers or a number of which nothing is known, and which of both is not known
    Verdicts,
    /// another element on the way draws random numbers, too: in a row each counts its draws from 0
    Draws(String),
    /// it draws random numbers, and a packet may come to it again: in a row it begins its draws anew
    DrawsAgain,
    /// it may send packets back to an element that may send them to it again
    Back(String),
    /// it has more than two ports and floods, which a chain does not do inside
    Floods,
    /// a load finds the port in the context in some calls of a function and another number in others
    Port(String),
    /// its license differs from that of the first, and not both are compatible with the GPL
    License(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Programs(0) => write!(f, "no program of it takes packets"),
            Self::Programs(n) => write!(f, "{n} programs of it take packets; name one of them"),
            Self::TailCalls => write!(f, "it makes tail calls"),
            Self::Atomics => write!(f, "it has atomic instructions"),
            Self::Helper(name) => write!(
                f,
                "it calls `{name}`, which works on something that each element of a chain has for itself"
            ),
            Self::Redirect => write!(
                f,
                "it looks at the answer of `bpf_redirect`, or does not return it (return it as it is)"
            ),
            Self::Verdicts => write!(
                f,
                "one `return` gives back the answer of `bpf_redirect` or a number that is read or computed (let constants be the other verdicts)"
            ),
            Self::Draws(other) => write!(
                f,
                "it draws random numbers, and so does {other}: in a row each element begins its own draws"
            ),
            Self::DrawsAgain => write!(
                f,
                "it draws random numbers, and packets may come back to it: in a row it begins its draws anew"
            ),
            Self::Back(other) => write!(
                f,
                "it may send packets back to {other}, which may send them to it again"
            ),
            Self::Floods => write!(f, "it has more than two ports and floods"),
            Self::Port(function) => write!(
                f,
                "its function `{function}` reads the port by a pointer that is not always the packet's"
            ),
            Self::License(other) => write!(f, "its license does not go with that of {other}"),
        }
    }
}

impl Element<'_> {
    pub(crate) fn refused(&self, reason: Reason) -> Unlinkable {
        Unlinkable {
            element: self.name.to_owned(),
            reason,
        }
    }
}

/// The function that an element's packets run.
pub(crate) fn packets(element: &Element<'_>) -> Result<FunctionId, Unlinkable> {
    let takes = |role| matches!(role, Role::Xdp | Role::OnPacket);
    let mut entries = element.program.entries.iter().filter(|e| takes(e.role));
    match (entries.next(), entries.count()) {
        (Some(entry), 0) => Ok(entry.function),
        (first, more) => {
            Err(element.refused(Reason::Programs(usize::from(first.is_some()) + more)))
        }
    }
}

fn calls(program: &Program) -> impl Iterator<Item = &'static helper::Helper> {
    let insns = program.functions.iter().flat_map(|f| &f.insns);
    insns.filter_map(|insn| match insn {
        Insn::Call { helper } => helper::by_number(*helper),
        _ => None,
    })
}

/// Whether an element draws random numbers.
pub(crate) fn draws(element: &Element<'_>) -> bool {
    calls(element.program).any(|h| h.effects.random)
}

/// What tells that an element cannot be linked, whatever stands beside it, or with which others.
pub(crate) fn elements(elements: &[Element<'_>], topology: &Topology) -> Result<(), Unlinkable> {
    let mut draws: Option<&Element<'_>> = None;
    for (at, element) in elements.iter().enumerate() {
        packets(element)?;
        let program = element.program;
        if program.objects.iter().any(|o| o.kind.holds_programs())
            || calls(program).any(|h| h.number == helper::TAIL_CALL.number)
        {
            return Err(element.refused(Reason::TailCalls));
        }
        let mut insns = program.functions.iter().flat_map(|f| &f.insns);
        if insns.any(|i| matches!(i, Insn::Atomic { .. })) {
            return Err(element.refused(Reason::Atomics));
        }
        // Metadata and the redirect target are forgotten between two elements; the routing table has a name of its own.
        let apart = |h: &&helper::Helper| {
            let named = matches!(h.name, "redirect_map" | "xdp_adjust_meta");
            named || helper::implied(h).is_some()
        };
        if let Some(helper) = calls(program).find(apart) {
            return Err(element.refused(Reason::Helper(helper.name)));
        }
        if self::draws(element) {
            if let Some(other) = draws {
                return Err(element.refused(Reason::Draws(other.name.to_owned())));
            }
            draws = Some(element);
        }
        if program.dialect == Dialect::Handlers && topology.ports(at).len() > 2 && floods(program) {
            return Err(element.refused(Reason::Floods));
        }
        if let Some(first) = elements.first()
            && license([first, element].into_iter()).is_none()
        {
            return Err(element.refused(Reason::License(first.name.to_owned())));
        }
    }
    Ok(())
}

/// Licenses that the kernel takes for compatible with the GPL (include/linux/license.h): their code may go into one program under it.
const WITH_GPL: [&str; 6] = [
    "GPL",
    "GPL v2",
    "GPL and additional rights",
    "Dual BSD/GPL",
    "Dual MIT/GPL",
    "Dual MPL/GPL",
];

/// The license of a program of these elements: theirs where they have one, the GPL where all are compatible with it; none otherwise.
pub(crate) fn license<'a>(elements: impl Iterator<Item = &'a Element<'a>>) -> Option<String> {
    let mut joint: Option<&str> = None;
    for element in elements {
        let own = element.program.license.as_str();
        joint = Some(match joint {
            None => own,
            Some(joint) if joint == own => own,
            // The version is one's own if another has none.
            Some(joint) if WITH_GPL.contains(&joint) && WITH_GPL.contains(&own) => {
                match [joint, own].contains(&"GPL v2") {
                    true => "GPL v2",
                    false => "GPL",
                }
            }
            Some(_) => return None,
        });
    }
    Some(joint.unwrap_or_default().to_owned())
}

/// Whether the verdict FLOOD is among a program's constants.
fn floods(program: &Program) -> bool {
    let mut insns = program.functions.iter().flat_map(|f| &f.insns);
    insns.any(|insn| match *insn {
        Insn::Alu {
            src: Operand::Imm(n),
            ..
        } => n == FLOOD,
        Insn::LoadImm {
            value: Imm64::Number(n),
            ..
        } => n == FLOOD as u64,
        _ => false,
    })
}
