//! What is known of an interface, and promiscuous mode.

use std::ffi::CString;
use std::io;
use std::net::IpAddr;

use super::{Socket, failed, ok};
use crate::port::PortError;

/// `ETHTOOL_GDRVINFO` (linux/ethtool.h).
const ETHTOOL_GDRVINFO: u32 = 3;

/// `ETHTOOL_GCHANNELS`.
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// An interface, as it is when it is opened.
#[derive(Clone, Debug)]
pub struct Interface {
    /// its number in this network namespace
    pub index: u32,
    /// the largest packet without its Ethernet header, bytes
    pub mtu: u32,
    /// the name of its driver; empty when it has none
    pub driver: String,
}

/// The shortest frame that interfaces send, bytes: an Ethernet header.
pub const SHORTEST: usize = 14;

impl Interface {
    /// Finds an interface that is there and up.
    ///
    /// # Errors
    /// [`PortError::Live`] when it is missing or down.
    pub fn find(word: &str, name: &str) -> Result<Self, PortError> {
        let live = |what: String, help: String| PortError::Live {
            word: word.to_owned(),
            what,
            help,
        };
        let c_name = CString::new(name)
            .ok()
            .filter(|n| (1..libc::IFNAMSIZ).contains(&n.as_bytes().len()))
            .ok_or_else(|| {
                live(
                    format!("`{name}` is no name of an interface"),
                    "interface names have 1 to 15 characters; `ip link` lists them".into(),
                )
            })?;
        // SAFETY: a zero-terminated name that outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(live(
                format!("there is no interface `{name}` in this network namespace"),
                format!("`ip link` lists those there are; {}", names()),
            ));
        }
        let ask = |e: io::Error| failed(word, "cannot ask about the interface", &e, "try again");
        let socket = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(ask)?;
        let mut request = request(&c_name);
        control(&socket, libc::SIOCGIFFLAGS, &mut request).map_err(ask)?;
        // SAFETY: SIOCGIFFLAGS filled this member.
        let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
        if flags & libc::IFF_UP == 0 {
            return Err(live(
                format!("interface `{name}` is down"),
                format!("bring it up: `ip link set {name} up`"),
            ));
        }
        control(&socket, libc::SIOCGIFMTU, &mut request).map_err(ask)?;
        // SAFETY: SIOCGIFMTU filled this member.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(Self {
            index,
            mtu: mtu.max(0) as u32,
            driver: driver(&socket, &c_name),
        })
    }

    /// Its MTU has changed since it was found; false when it is as it was, or the system does not say.
    pub fn renew(&mut self, name: &std::ffi::CStr) -> bool {
        let now = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).and_then(|socket| {
            let mut request = request(name);
            control(&socket, libc::SIOCGIFMTU, &mut request)?;
            // SAFETY: SIOCGIFMTU filled this member.
            Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as u32)
        });
        let before = self.mtu;
        self.mtu = now.unwrap_or(before);
        self.mtu != before
    }

    /// How many receive queues it has, at least 1.
    #[must_use]
    pub fn receive_queues(&self, name: &str) -> u32 {
        let found = CString::new(name).ok().and_then(|name| {
            let socket = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
            // struct ethtool_channels (linux/ethtool.h): a command, four maxima, four counts: receive,
            // transmit, other, combined.
            let mut channels = [0_u32; 9];
            *channels.first_mut()? = ETHTOOL_GCHANNELS;
            let mut request = request(&name);
            request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
            control(&socket, libc::SIOCETHTOOL, &mut request).ok()?;
            Some(channels.get(5)?.saturating_add(*channels.get(8)?))
        });
        found.unwrap_or(1).max(1)
    }

    /// The longest frame that it sends, bytes: its MTU, the Ethernet header and a VLAN tag.
    #[must_use]
    pub fn sends(&self) -> usize {
        self.mtu as usize + SHORTEST + 4
    }

    /// The longest frame that it takes, bytes: its MTU, the Ethernet header and two VLAN tags.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.mtu as usize + 14 + 8
    }
}

/// Whether there is an interface of this name in this network namespace.
#[must_use]
pub fn exists(name: &str) -> bool {
    // SAFETY: a zero-terminated name that outlives the call.
    CString::new(name).is_ok_and(|name| unsafe { libc::if_nametoindex(name.as_ptr()) } != 0)
}

/// An address that the host has on an interface, link-local ones of IPv6 aside: those each interface has by itself.
#[must_use]
pub fn address(name: &str) -> Option<IpAddr> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: getifaddrs(3) writes the head of a list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = list;
    // SAFETY: elements of the list are valid until it is freed, and names in it are zero-terminated.
    while let Some(element) = unsafe { next.as_ref() } {
        next = element.ifa_next;
        // SAFETY: as above.
        let of_this =
            unsafe { std::ffi::CStr::from_ptr(element.ifa_name) }.to_bytes() == name.as_bytes();
        if !of_this || element.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: an address has at least its family, and is as long as that says.
        let address = match i32::from(unsafe { (*element.ifa_addr).sa_family }) {
            libc::AF_INET => {
                // SAFETY: the family says which struct it is; it may be unaligned for it.
                let v4: libc::sockaddr_in = unsafe {
                    element
                        .ifa_addr
                        .cast::<libc::sockaddr_in>()
                        .read_unaligned()
                };
                IpAddr::from(v4.sin_addr.s_addr.to_ne_bytes())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6: libc::sockaddr_in6 = unsafe {
                    element
                        .ifa_addr
                        .cast::<libc::sockaddr_in6>()
                        .read_unaligned()
                };
                IpAddr::from(v6.sin6_addr.s6_addr)
            }
            _ => continue,
        };
        let by_itself = matches!(address, IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80);
        if !by_itself {
            found = Some(address);
            break;
        }
    }
    // SAFETY: the list that getifaddrs made, of which nothing is used any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// Whether an interface is up.
///
/// # Errors
/// The system's; `ENODEV` when it is gone.
pub fn is_up(name: &std::ffi::CStr) -> io::Result<bool> {
    let socket = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut request = request(name);
    control(&socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS filled this member.
    let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
    Ok(flags & libc::IFF_UP != 0)
}

/// Brings an interface up.
///
/// # Errors
/// The system's.
pub fn bring_up(name: &std::ffi::CStr) -> io::Result<()> {
    let socket = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut request = request(name);
    control(&socket, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS filled this member.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    control(&socket, libc::SIOCSIFFLAGS, &mut request)
}

/// Sets an interface's MTU, bytes.
///
/// # Errors
/// The system's.
pub fn set_mtu(name: &std::ffi::CStr, mtu: u32) -> io::Result<()> {
    let socket = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut request = request(name);
    request.ifr_ifru.ifru_mtu = mtu as libc::c_int;
    control(&socket, libc::SIOCSIFMTU, &mut request)
}

/// The interfaces there are, as a phrase.
fn names() -> String {
    let entries = std::fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.truncate(8);
    format!("for instance {}", names.join(", "))
}

/// A request about an interface.
pub fn request(name: &std::ffi::CStr) -> libc::ifreq {
    // SAFETY: an all-zero ifreq is a valid value of this C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len().saturating_sub(1);
    for (to, from) in request
        .ifr_name
        .iter_mut()
        .zip(name.to_bytes().iter().take(room))
    {
        *to = *from as libc::c_char;
    }
    request
}

/// Asks or tells about an interface.
fn control(socket: &Socket, what: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the requests used here read and write an ifreq, which outlives the call.
    ok(unsafe { libc::ioctl(socket.fd(), what as _, &raw mut *request) })
}

/// The name of the interface's driver; empty when it has none.
fn driver(socket: &Socket, name: &std::ffi::CStr) -> String {
    // struct ethtool_drvinfo (linux/ethtool.h): a command, then texts of 32 bytes, 196 bytes in all.
    let mut info = [0_u8; 196];
    if let Some(command) = info.first_chunk_mut() {
        *command = ETHTOOL_GDRVINFO.to_ne_bytes();
    }
    let mut request = request(name);
    request.ifr_ifru.ifru_data = info.as_mut_ptr().cast();
    if control(socket, libc::SIOCETHTOOL, &mut request).is_err() {
        return String::new();
    }
    let text = info.get(4..36).unwrap_or_default();
    let text = text.split(|b| *b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Keeps an interface in promiscuous mode as long as it lives: functions forward packets that are
/// addressed to others. The kernel counts who asks, and forgets us when the socket closes, so nothing
/// stays behind after a kill.
pub struct Promiscuous(#[allow(dead_code, reason = "held open")] Socket);

impl Promiscuous {
    /// Asks for it.
    ///
    /// # Errors
    /// [`PortError::Live`] when the system refuses.
    pub fn enter(word: &str, interface: &Interface) -> Result<Self, PortError> {
        const PACKET_MR_PROMISC: u16 = 1;
        let no = |e: io::Error| {
            failed(
                word,
                "cannot enter promiscuous mode",
                &e,
                "use another interface",
            )
        };
        // Protocol 0: this socket receives nothing.
        let socket = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(no)?;
        let membership = libc::packet_mreq {
            mr_ifindex: interface.index as libc::c_int,
            mr_type: PACKET_MR_PROMISC,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket
            .set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, membership)
            .map_err(no)?;
        Ok(Self(socket))
    }
}
