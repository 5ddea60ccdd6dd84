//! Network interfaces of the kernel, and what live ports need of the system besides packets.

mod attach;
mod bpf;
mod interface;
mod longest;
mod map;
mod offload;
mod segment;
mod socket;
mod watch;

pub use attach::attach;
pub use bpf::{Like, Link, Mode, SocketMap, XdpProgram};
pub use interface::{
    Interface, Promiscuous, SHORTEST, address, bring_up, exists, is_up, request, set_mtu,
};
pub use longest::Longest;
pub use map::Map;
pub use offload::{Header, finish, looks_unfinished};
pub use segment::Segments;
pub use socket::{Socket, busy, ok, overflows};
pub use watch::Watch;

use super::{PortError, rights};

/// An error of the system about a port: what was tried, and what to do. Missing permission has the same remedy whatever was tried.
pub fn failed(word: &str, what: &str, error: &std::io::Error, help: &str) -> PortError {
    let permission = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    let help = match permission {
        true => rights::help(word),
        false => help.to_owned(),
    };
    PortError::Live {
        word: word.to_owned(),
        what: format!("{what}: {error}"),
        help,
    }
}
