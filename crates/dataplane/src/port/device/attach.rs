//! Attaching an XDP program to an interface: by its driver where that can, otherwise by the stack.

use std::os::fd::BorrowedFd;

use super::{Interface, Link, Mode, failed};
use crate::port::PortError;

/// Attaches a program, in the mode that is wanted, or natively and where the driver cannot, generically.
///
/// # Errors
/// [`PortError::Live`], with what to do: another program is attached, or neither mode is possible.
pub fn attach(
    word: &str,
    name: &str,
    program: BorrowedFd<'_>,
    interface: &Interface,
    wanted: Option<Mode>,
) -> Result<(Link, Mode), PortError> {
    let first = wanted.unwrap_or(Mode::Native);
    let attached = match Link::attach(program, interface.index, first) {
        // Another program is no reason to try the other way.
        Err(e) if wanted.is_none() && e.raw_os_error() != Some(libc::EBUSY) => {
            let generic = Link::attach(program, interface.index, Mode::Generic);
            generic.map(|link| (link, Mode::Generic))
        }
        other => other.map(|link| (link, first)),
    };
    attached.map_err(|e| {
        let help = match e.raw_os_error() {
            // EEXIST: one of the other mode.
            Some(libc::EBUSY | libc::EEXIST) => format!(
                "another program is attached; take it off: `ip link set {name} xdp off`, or end its owner"
            ),
            _ => "try mode=generic, or use afpacket:".to_owned(),
        };
        failed(word, "cannot attach the XDP program", &e, &help)
    })
}
