//! Which process serves an interface, so that two that serve one do not go unnoticed.
//!
//! A process binds an abstract Unix socket for each interface that it serves (unix(7)): such a name belongs to a network
//! namespace, is bound once, and goes with its process, also by a kill.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::sockopt::socket_peercred;

/// Interfaces that this process has told others that it serves.
#[derive(Debug, Default)]
pub struct Claims(Vec<UnixListener>);

/// Another process that serves an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// its number; none in another process namespace
    pub process: Option<u32>,
}

impl std::fmt::Display for Other {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}"),
            None => f.write_str("another process"),
        }
    }
}

impl Claims {
    /// Tells others that this process serves an interface. Who serves it already, if another process does; where the
    /// system has no such names, nobody is found.
    pub fn add(&mut self, interface: &str) -> Option<Other> {
        let address = address(interface)?;
        if let Ok(listener) = UnixListener::bind_addr(&address) {
            self.0.push(listener);
            return None;
        }
        let peer = UnixStream::connect_addr(&address).ok()?;
        let process = socket_peercred(&peer).ok()?.pid.as_raw_pid();
        let process = u32::try_from(process).ok().filter(|p| *p > 0);
        (process != Some(std::process::id())).then_some(Other { process })
    }
}

fn address(interface: &str) -> Option<SocketAddr> {
    SocketAddr::from_abstract_name(format!("millrace/port/{interface}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_claimed_once_and_released_with_its_owner() {
        let name = format!("test{}", std::process::id());
        let mut first = Claims::default();
        assert_eq!(first.add(&name), None);
        assert_eq!(first.0.len(), 1);
        // This process itself is no other.
        let mut second = Claims::default();
        assert_eq!(second.add(&name), None);
        assert!(second.0.is_empty());
        drop(first);
        assert_eq!(second.add(&name), None);
        assert_eq!(second.0.len(), 1);
    }
}
