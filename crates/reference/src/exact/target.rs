//! Targets of redirects and of tail calls.

use millrace_object::contract::{Destination, Holds};
use millrace_object::helper::TAIL_CALL;
use millrace_object::insn::Insn;
use millrace_object::program::{FunctionId, ObjectId, Role, StateObject};

use super::super::{Call, Machine};
use super::{ENOENT, error};

/// Target of the verdict `XDP_REDIRECT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// the port of this number, which may not exist
    Port(u32),
    /// every port but the ingress
    Others,
    /// the host's network stack
    Host,
    /// a socket
    Socket,
    /// a broadcast to nobody
    Nobody,
}

const ABORTED: u64 = 0;
const REDIRECT: u64 = 4;
/// Flags of a redirect by a map: the verdict when nothing is there; and of a broadcast.
const ACTION: u64 = 3;
const BROADCAST: u64 = 8;
const NOT_INGRESS: u64 = 16;
const MOST_TAIL_CALLS: u32 = 33;

impl Machine<'_> {
    /// Says how many ports there are; none until then.
    pub fn ports(&mut self, ports: u32) {
        if let Some(exact) = &mut self.exact {
            exact.ports = ports;
        }
    }

    /// Target of the packet's last redirect; none if it was not, or to no port's interface.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        self.exact.as_ref()?.target
    }

    fn aim(&mut self, target: Option<Target>) {
        if let Some(exact) = &mut self.exact {
            exact.target = target;
        }
    }

    pub(super) fn redirect(&mut self, interface: u32, flags: u64) -> u64 {
        if flags != 0 {
            return ABORTED;
        }
        self.aim(interface.checked_sub(1).map(Target::Port));
        REDIRECT
    }

    pub(super) fn redirect_map(
        &mut self,
        id: ObjectId,
        object: &StateObject,
        index: u32,
        flags: u64,
    ) -> u64 {
        match redirected(object, flags) {
            Redirected::Nowhere => return ABORTED,
            Redirected::All => {
                let target = self.broadcast(id, flags);
                self.aim(target);
                return REDIRECT;
            }
            Redirected::One => {}
        }
        let entry = self.entries(id).remove(&index.to_le_bytes()[..]);
        let number = entry.as_deref().and_then(first);
        let target = number.map(|n| match object.kind.holds {
            Holds::Targets(Destination::Cpu) => Some(Target::Host),
            Holds::Targets(Destination::Socket) => Some(Target::Socket),
            _ => n.checked_sub(1).map(Target::Port),
        });
        self.aim(target.flatten());
        if number.is_some() {
            REDIRECT
        } else {
            flags & ACTION
        }
    }

    /// A set of ports is a target if it is empty, one port, or all but the ingress.
    fn broadcast(&self, id: ObjectId, flags: u64) -> Option<Target> {
        let exact = self.exact.as_ref()?;
        let mut named: Vec<u32> = (self.entries(id).values())
            .filter_map(|value| first(value)?.checked_sub(1))
            .filter(|port| *port < exact.ports)
            .filter(|port| flags & NOT_INGRESS == 0 || *port != exact.port)
            .collect();
        named.sort_unstable();
        named.dedup();
        match named.as_slice() {
            [] => Some(Target::Nobody),
            [only] => Some(Target::Port(*only)),
            all => {
                let others = (0..exact.ports).filter(|p| *p != exact.port);
                others.eq(all.iter().copied()).then_some(Target::Others)
            }
        }
    }

    /// After an instruction: the program that a tail call goes on with. Where there is none the call
    /// answers that.
    pub(crate) fn onward(&mut self, c: &mut Call, insn: Insn) -> Option<FunctionId> {
        let is_tail = |h| h == TAIL_CALL.number;
        let exact = self.exact.as_mut()?;
        if !matches!(insn, Insn::Call { helper } if is_tail(helper)) {
            return None;
        }
        let number = c.regs[0].and_then(|n| (n as usize).checked_sub(1));
        let entries = self.program.entries.iter().filter(|e| e.role == Role::Xdp);
        let function = number.and_then(|n| entries.map(|e| e.function).nth(n));
        c.regs[0] = Some(error(ENOENT));
        if exact.tail_calls >= MOST_TAIL_CALLS {
            return None;
        }
        exact.tail_calls += u32::from(function.is_some());
        if let (Some(log), true) = (&mut self.log, function.is_some()) {
            let call = log
                .touches
                .iter()
                .rev()
                .find(|t| t.operation == "tail_call");
            let element = call.and_then(|t| Some((t.object, *t.key.first_chunk()?)));
            let element = element.map(|(o, key)| (o, u32::from_le_bytes(key)));
            log.went_on.extend(element);
        }
        c.regs[1] = function.map(|_| self.context);
        function
    }
}

/// Request of a redirect by a map.
pub(crate) enum Redirected {
    /// the flags are not known
    Nowhere,
    /// one entry
    One,
    /// all of them
    All,
}

/// Request in the flags of a redirect by this map.
pub(crate) fn redirected(object: &StateObject, flags: u64) -> Redirected {
    let known = if object.kind.holds_interfaces() {
        ACTION | BROADCAST | NOT_INGRESS
    } else {
        ACTION
    };
    if flags & !known != 0 {
        Redirected::Nowhere
    } else if flags & BROADCAST != 0 {
        Redirected::All
    } else {
        Redirected::One
    }
}

/// An element's first number, if it is one: 0 is an absent one.
fn first(value: &[u8]) -> Option<u32> {
    let number = value.first_chunk().map(|b| u32::from_le_bytes(*b))?;
    (number != 0).then_some(number)
}
