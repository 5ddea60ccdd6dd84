//! Interface queries: the one interface of a guest's machine is its port `@`, and there is nothing of the host's.
//!
//! Structures are the kernel's ABI: `struct ifreq` and `struct ifconf` (netdevice(7)), `rtnetlink(7)`.

use std::net::Ipv4Addr;

use super::Call;
use crate::command::Spec;
use crate::memory::Errno;

/// Bytes of a name, and of a `struct ifreq`.
const NAME: usize = 16;
const REQUEST: usize = 40;
/// up, broadcast, running, promiscuous, multicast
const FLAGS: u16 = 0x1 | 0x2 | 0x40 | 0x100 | 0x1000;
const MTU: u32 = 1500;
const QUEUE: u32 = 1000;

/// What is said of `@`.
pub struct Interface {
    address: Ipv4Addr,
    bits: u8,
    mac: [u8; 6],
}

impl Interface {
    /// From the options of its guest: without an address it has 0.0.0.0/0, as libpcap says of it.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        let (address, bits) = spec.address.unwrap_or((Ipv4Addr::UNSPECIFIED, 0));
        let mut mac = [2, 0, 0, 0, 0, 0];
        let text = spec.mac.as_deref().unwrap_or_default();
        for (byte, hex) in mac.iter_mut().zip(text.split(':')) {
            *byte = u8::from_str_radix(hex, 16).unwrap_or(*byte);
        }
        Self { address, bits, mac }
    }

    /// `struct sockaddr_ll` of the interface of this index.
    #[must_use]
    pub fn link_name(&self, index: i32) -> Vec<u8> {
        let mut name = (libc::AF_PACKET as u16).to_ne_bytes().to_vec();
        name.extend((libc::ETH_P_ALL as u16).to_be_bytes());
        name.extend(index.to_ne_bytes());
        name.extend(libc::ARPHRD_ETHER.to_ne_bytes());
        name.extend([0, self.mac.len() as u8]);
        name.extend(self.mac);
        name.resize(20, 0);
        name
    }

    fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0)
    }

    fn broadcast(&self) -> u32 {
        self.address.to_bits() | !self.mask()
    }
}

/// `@` is 1, as `@1`; `@0`, by which packets leave at the other port, is 2.
fn index(name: &str) -> Option<u32> {
    match name {
        "@0" => Some(2),
        name if name.starts_with('@') => Some(1),
        _ => None,
    }
}

/// A `struct sockaddr_in` without port.
fn internet(address: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    let family = (libc::AF_INET as u16).to_ne_bytes();
    for (place, byte) in bytes.iter_mut().zip(
        family
            .into_iter()
            .chain([0; 2])
            .chain(address.to_be_bytes()),
    ) {
        *place = byte;
    }
    bytes
}

/// Answers an interface query on a socket.
///
/// # Errors
/// ENODEV for any other interface, EPERM for what would change one, ENOTTY for what is no query.
pub fn ioctl(call: &Call<'_>) -> Result<i64, Errno> {
    let interface = Interface::of(&call.guest.spec);
    let at = call.arg(2);
    let command = call.arg(1) as libc::Ioctl;
    match command {
        libc::SIOCGIFCONF => return list(call, &interface, at),
        libc::SIOCGIFNAME => {
            let request: [u8; 20] = call.get(at)?;
            let name: &[u8; 16] = match request.last_chunk::<4>().map(|i| u32::from_ne_bytes(*i)) {
                Some(1) => b"@\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                Some(2) => b"@0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                _ => return Err(libc::ENODEV),
            };
            return call.put(at, name).map(|()| 0);
        }
        _ => {}
    }
    let mut answer = match command {
        libc::SIOCGIFADDR | libc::SIOCGIFDSTADDR => internet(interface.address.to_bits()).to_vec(),
        libc::SIOCGIFNETMASK => internet(interface.mask()).to_vec(),
        libc::SIOCGIFBRDADDR => internet(interface.broadcast()).to_vec(),
        libc::SIOCGIFHWADDR => [&libc::ARPHRD_ETHER.to_ne_bytes(), &interface.mac[..]].concat(),
        libc::SIOCGIFFLAGS => FLAGS.to_ne_bytes().to_vec(),
        libc::SIOCGIFMTU => MTU.to_ne_bytes().to_vec(),
        libc::SIOCGIFTXQLEN => QUEUE.to_ne_bytes().to_vec(),
        libc::SIOCGIFMETRIC => 0_u32.to_ne_bytes().to_vec(),
        libc::SIOCGIFINDEX => Vec::new(),
        // Promiscuous mode: it sees all packets of its chain anyway.
        libc::SIOCSIFFLAGS => Vec::new(),
        libc::SIOCETHTOOL => return Err(libc::EOPNOTSUPP),
        libc::SIOCSIFADDR | libc::SIOCSIFNETMASK | libc::SIOCSIFHWADDR | libc::SIOCSIFMTU => {
            call.guest
                .state()
                .note("a change of an interface was denied".into());
            return Err(libc::EPERM);
        }
        _ => return Err(libc::ENOTTY),
    };
    let name: [u8; NAME] = call.get(at)?;
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    let index = std::str::from_utf8(name).ok().and_then(index);
    let index = index.ok_or(libc::ENODEV)?;
    if command == libc::SIOCGIFINDEX {
        answer = index.to_ne_bytes().to_vec();
    }
    call.put(at + NAME, &answer).map(|()| 0)
}

/// `SIOCGIFCONF`: a length and a buffer, which is null when only the length is asked for.
fn list(call: &Call<'_>, interface: &Interface, at: usize) -> Result<i64, Errno> {
    let conf: [u8; 16] = call.get(at)?;
    let (length, buffer) = conf.split_at(8);
    let room = length
        .first_chunk::<4>()
        .map_or(0, |l| i32::from_ne_bytes(*l));
    let buffer = buffer.try_into().map(usize::from_ne_bytes).unwrap_or(0);
    let mut filled = REQUEST as i32;
    if buffer != 0 {
        if room < filled {
            filled = 0;
        } else {
            let mut request = [0; REQUEST];
            request[0] = b'@';
            request[NAME..2 * NAME].copy_from_slice(&internet(interface.address.to_bits()));
            call.put(buffer, &request)?;
        }
    }
    call.put(at, &filled.to_ne_bytes()).map(|()| 0)
}

/// A message of netlink: its header (length, type, flags, sequence, port) and what follows.
fn message(kind: u16, flags: u16, to: [u8; 8], body: &[u8]) -> Vec<u8> {
    let length = (16 + body.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(to);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn attribute(into: &mut Vec<u8>, kind: u16, value: &[u8]) {
    into.extend((4 + value.len() as u16).to_ne_bytes());
    into.extend(kind.to_ne_bytes());
    into.extend(value);
    into.resize(into.len().next_multiple_of(4), 0);
}

/// The answer of rtnetlink to a request of a guest that has this process number: links and addresses of `@`, empty
/// lists of all else, EOPNOTSUPP for what is no list.
#[must_use]
pub fn netlink(spec: &Spec, process: i32, request: &[u8]) -> Vec<u8> {
    const MULTI: u16 = 2;
    const DUMP: u16 = 0x300;
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    let interface = Interface::of(spec);
    let Some(header) = request.first_chunk::<16>() else {
        return Vec::new();
    };
    let [_, _, _, _, k0, k1, f0, f1, s0, s1, s2, s3, ..] = *header;
    let (kind, flags) = (u16::from_ne_bytes([k0, k1]), u16::from_ne_bytes([f0, f1]));
    let [p0, p1, p2, p3] = process.to_ne_bytes();
    let to = [s0, s1, s2, s3, p0, p1, p2, p3];
    let dump = flags & DUMP == DUMP;
    let multi = if dump { MULTI } else { 0 };
    let mut answer = match kind {
        libc::RTM_GETLINK => {
            let mut body = vec![0, 0];
            body.extend(libc::ARPHRD_ETHER.to_ne_bytes());
            body.extend(1_i32.to_ne_bytes());
            body.extend(u32::from(FLAGS).to_ne_bytes());
            body.extend(0_u32.to_ne_bytes());
            attribute(&mut body, libc::IFLA_IFNAME, b"@\0");
            attribute(&mut body, libc::IFLA_ADDRESS, &interface.mac);
            attribute(&mut body, libc::IFLA_BROADCAST, &[0xff; 6]);
            attribute(&mut body, libc::IFLA_MTU, &MTU.to_ne_bytes());
            attribute(&mut body, libc::IFLA_TXQLEN, &QUEUE.to_ne_bytes());
            message(libc::RTM_NEWLINK, multi, to, &body)
        }
        libc::RTM_GETADDR if spec.address.is_some() && dump => {
            let address = interface.address.octets();
            let mut body = vec![libc::AF_INET as u8, interface.bits, 0x80, 0];
            body.extend(1_u32.to_ne_bytes());
            attribute(&mut body, libc::IFA_ADDRESS, &address);
            attribute(&mut body, libc::IFA_LOCAL, &address);
            attribute(&mut body, libc::IFA_LABEL, b"@\0");
            message(libc::RTM_NEWADDR, multi, to, &body)
        }
        _ if dump => Vec::new(),
        _ => {
            let body = [&(-libc::EOPNOTSUPP).to_ne_bytes(), &header[..]].concat();
            message(ERROR, 0, to, &body)
        }
    };
    if dump {
        answer.extend(message(DONE, MULTI, to, &0_i32.to_ne_bytes()));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netlink_lists_one_link_and_the_address_that_was_given() {
        let mut spec = Spec::parse("sh").unwrap();
        let request = |kind: u16, flags: u16| message(kind, flags, [7; 8], &[0; 4]);
        let kinds = |answer: &[u8]| {
            let mut rest = answer;
            let mut kinds = Vec::new();
            while let [a, b, c, d, k0, k1, ..] = *rest {
                kinds.push(u16::from_ne_bytes([k0, k1]));
                let length = u32::from_ne_bytes([a, b, c, d]) as usize;
                rest = &rest[length.next_multiple_of(4)..];
            }
            kinds
        };
        let ask = |spec: &Spec, kind, flags| kinds(&netlink(spec, 9, &request(kind, flags)));
        assert_eq!(ask(&spec, libc::RTM_GETLINK, 0x301), [16, 3]);
        assert_eq!(ask(&spec, libc::RTM_GETADDR, 0x301), [3]);
        assert_eq!(ask(&spec, libc::RTM_GETROUTE, 0x301), [3]);
        assert_eq!(ask(&spec, libc::RTM_NEWLINK, 1), [2]);
        spec.address = Some((Ipv4Addr::new(192, 0, 2, 1), 24));
        assert_eq!(ask(&spec, libc::RTM_GETADDR, 0x301), [20, 3]);
        assert_eq!(Interface::of(&spec).broadcast(), 0xc000_02ff);
        for length in 0..16 {
            assert!(netlink(&spec, 9, &request(18, 1)[..length]).is_empty());
        }
    }
}
