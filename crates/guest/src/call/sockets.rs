//! Sockets: pairs within a guest, queries about its port `@`, and datagrams to addresses that `send=` names.
//!
//! A guest is a machine with one interface and no network. Behind a socket for queries stands one of the kernel's that
//! is connected to nothing: it can be polled and never has data, connecting and sending fail at once, and binding and
//! listening succeed without effect. No address and no control message of a guest's reaches the kernel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::files::{File, made};
use super::interface;
use super::{Call, Entry, How, Way, entry, kernel};
use crate::memory::Errno;
use crate::sent::Sent;
use crate::shared::lock;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(libc::SYS_socket, "socket", How::Here(socket)),
    entry(libc::SYS_socketpair, "socketpair", How::Here(pair)),
    entry(libc::SYS_connect, "connect", How::Here(connect)),
    entry(libc::SYS_bind, "bind", How::Here(bind)),
    entry(libc::SYS_listen, "listen", How::Here(listen)),
    entry(libc::SYS_accept, "accept", How::Here(accept)),
    entry(libc::SYS_accept4, "accept4", How::Here(accept)),
    entry(libc::SYS_getsockname, "getsockname", How::Here(own_name)),
    entry(libc::SYS_getpeername, "getpeername", How::Here(peer_name)),
    entry(libc::SYS_setsockopt, "setsockopt", How::Here(set_option)),
    entry(libc::SYS_getsockopt, "getsockopt", How::Here(get_option)),
    entry(libc::SYS_shutdown, "shutdown", How::Here(shutdown)),
    entry(libc::SYS_sendto, "sendto", How::Here(send_to)),
    entry(libc::SYS_sendmsg, "sendmsg", How::Here(send_message)),
    entry(libc::SYS_recvfrom, "recvfrom", How::Here(receive_from)),
    entry(libc::SYS_recvmsg, "recvmsg", How::Here(receive_message)),
];

/// The longest datagram, and the most parts of a message.
const LONGEST: usize = 1 << 16;
const PARTS: usize = 64;
/// Flags of sending and receiving that are handed to the kernel.
const SEND: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_EOR | libc::MSG_MORE;
const RECEIVE: i32 = libc::MSG_DONTWAIT | libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_WAITALL;

/// What stands behind a socket.
#[derive(Debug)]
enum Role {
    /// the other end, which is the guest's too
    Pair,
    /// nothing: it answers queries
    Query,
    /// rtnetlink, whose answers are written to this end
    Netlink(OwnedFd),
    /// packets, which are sent at the port that it is bound to; its preload receives (preload/packet.h), and to who
    /// polls it is always readable, by what was written to the other end
    Packet(#[expect(dead_code, reason = "held open")] OwnedFd),
    /// the kernel's UDP, connected only to what `send=` names
    Datagrams,
}

/// A guest's socket.
#[derive(Debug)]
pub struct Socket {
    family: i32,
    kind: i32,
    role: Role,
    /// where it is connected to
    peer: Mutex<Option<SocketAddr>>,
    /// where packets leave, 0 or 1
    port: Mutex<u16>,
}

impl Call<'_> {
    /// A socket, and the host's descriptor behind it.
    fn socket(&self) -> Result<(Arc<Socket>, i32), Errno> {
        let state = self.guest.state();
        let file = state.files.open.get(&self.int(0)).ok_or(libc::EBADF)?;
        let socket = file.socket.clone().ok_or(libc::ENOTSOCK)?;
        Ok((socket, file.host.as_raw_fd()))
    }

    fn denied(&self, what: String, errno: Errno) -> Result<i64, Errno> {
        self.guest.state().note(what);
        Err(errno)
    }

    fn add(&self, host: OwnedFd, socket: Socket) -> Result<i64, Errno> {
        let file = File {
            host: Arc::new(host),
            path: PathBuf::from("(socket)"),
            socket: Some(Arc::new(socket)),
        };
        self.guest.state().files.lowest(file, 0)
    }
}

fn plain(family: i32, kind: i32) -> Result<OwnedFd, Errno> {
    let kind = kind | libc::SOCK_CLOEXEC;
    kernel(
        libc::SYS_socket,
        [family as usize, kind as usize, 0, 0, 0, 0],
    )
    .map(made)
}

fn ends(kind: i32) -> Result<[OwnedFd; 2], Errno> {
    let mut ends = [0_i32; 2];
    let family = libc::AF_UNIX as usize;
    let kind = (kind | libc::SOCK_CLOEXEC) as usize;
    kernel(
        libc::SYS_socketpair,
        [family, kind, 0, ends.as_mut_ptr().addr(), 0, 0],
    )?;
    Ok(ends.map(|end| made(i64::from(end))))
}

/// The type of a socket without flags, and `SOCK_NONBLOCK` if it has it.
fn kind_of(kind: i32) -> (i32, i32) {
    (kind & 0xf, kind & libc::SOCK_NONBLOCK)
}

fn socket(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (family, (kind, wait)) = (call.int(0), kind_of(call.int(1)));
    let protocol = call.int(2);
    let datagram = libc::SOCK_DGRAM;
    let silent = libc::SOCK_NONBLOCK;
    let unconnected = || plain(libc::AF_UNIX, datagram | silent);
    let udp = [0, libc::IPPROTO_UDP].contains(&protocol);
    let (host, role) = match (family, kind) {
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM)
            if udp && !call.guest.spec.send.is_empty() =>
        {
            (plain(family, kind | wait)?, Role::Datagrams)
        }
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) if udp => (unconnected()?, Role::Query),
        // Packets of IP of its own leave by no interface: libnet opens one even where it sends nothing.
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM | libc::SOCK_RAW)
        | (libc::AF_UNIX, libc::SOCK_STREAM)
        | (libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_SEQPACKET) => (unconnected()?, Role::Query),
        (libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_DGRAM)
            if protocol == libc::NETLINK_ROUTE =>
        {
            let [own, other] = ends(datagram | silent)?;
            (own, Role::Netlink(other))
        }
        (libc::AF_PACKET, libc::SOCK_RAW) => {
            let [own, other] = ends(datagram | wait)?;
            let byte = [0_u8];
            let fd = other.as_raw_fd() as usize;
            kernel(libc::SYS_sendto, [fd, byte.as_ptr().addr(), 1, 0, 0, 0])?;
            (own, Role::Packet(other))
        }
        // Of other interfaces, and of what the kernel offers besides, there is nothing.
        (libc::AF_NETLINK, _) => return Err(libc::EPROTONOSUPPORT),
        _ => {
            let what = format!("a socket of family {family}, type {kind} was denied");
            return call.denied(what, libc::EACCES);
        }
    };
    let socket = Socket {
        family,
        kind,
        role,
        peer: Mutex::new(None),
        port: Mutex::new(1),
    };
    call.add(host, socket)
}

fn pair(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (kind, wait) = kind_of(call.int(1));
    if call.int(0) != libc::AF_UNIX {
        return Err(libc::EAFNOSUPPORT);
    }
    let mut numbers = Vec::new();
    for end in ends(kind | wait)? {
        let socket = Socket {
            family: libc::AF_UNIX,
            kind,
            role: Role::Pair,
            peer: Mutex::new(None),
            port: Mutex::new(0),
        };
        numbers.extend((call.add(end, socket)? as i32).to_ne_bytes());
    }
    call.put(call.arg(3), &numbers).map(|()| 0)
}

/// What a `struct sockaddr` names.
enum Name {
    Internet(SocketAddr),
    /// an index of an interface
    Interface(u32),
    Path(String),
    Nothing,
}

fn name(call: &Call<'_>, address: usize, length: usize) -> Result<Name, Errno> {
    let bytes = call.bytes(address, length, 128)?;
    let family = bytes.first_chunk::<2>().ok_or(libc::EINVAL)?;
    let family = i32::from(u16::from_ne_bytes(*family));
    let rest = bytes.get(2..).unwrap_or_default();
    Ok(match family {
        libc::AF_INET => {
            let [p0, p1, a, b, c, d, ..] = *rest else {
                return Err(libc::EINVAL);
            };
            let ip = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
            Name::Internet(SocketAddr::new(ip, u16::from_be_bytes([p0, p1])))
        }
        libc::AF_INET6 => {
            let &[p0, p1, _, _, _, _, ref rest @ ..] = rest else {
                return Err(libc::EINVAL);
            };
            let ip = Ipv6Addr::from(*rest.first_chunk::<16>().ok_or(libc::EINVAL)?);
            Name::Internet(SocketAddr::new(
                IpAddr::V6(ip),
                u16::from_be_bytes([p0, p1]),
            ))
        }
        libc::AF_PACKET => {
            let [_, _, a, b, c, d, ..] = *rest else {
                return Err(libc::EINVAL);
            };
            Name::Interface(u32::from_ne_bytes([a, b, c, d]))
        }
        libc::AF_UNIX => {
            let path = rest.split(|b| *b == 0).next().unwrap_or_default();
            Name::Path(String::from_utf8_lossy(path).into_owned())
        }
        _ => Name::Nothing,
    })
}

/// Makes the kernel's UDP socket one that sends to this address and receives from it alone, if it may.
fn towards(call: &Call<'_>, socket: &Socket, host: i32, to: SocketAddr) -> Result<(), Errno> {
    if !matches!(socket.role, Role::Datagrams) || !call.guest.spec.send.contains(&to) {
        // One to nowhere is how the C library sorts addresses.
        if !to.ip().is_unspecified() {
            call.guest.state().note(format!(
                "sending to {to} was denied (send={to} would allow UDP there)"
            ));
        }
        return Err(libc::ENETUNREACH);
    }
    let mut peer = lock(&socket.peer);
    if *peer != Some(to) {
        let bytes = sockaddr(to);
        kernel(
            libc::SYS_connect,
            [host as usize, bytes.as_ptr().addr(), bytes.len(), 0, 0, 0],
        )?;
        *peer = Some(to);
    }
    Ok(())
}

/// `struct sockaddr_in` or `sockaddr_in6`.
fn sockaddr(address: SocketAddr) -> Vec<u8> {
    let family = |f: i32| (f as u16).to_ne_bytes();
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&family(libc::AF_INET)[..], &port, &ip.octets(), &[0; 8]].concat(),
        IpAddr::V6(ip) => [
            &family(libc::AF_INET6)[..],
            &port,
            &[0; 4],
            &ip.octets(),
            &[0; 4],
        ]
        .concat(),
    }
}

fn connect(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (socket, host) = call.socket()?;
    match name(call, call.arg(1), call.arg(2))? {
        Name::Internet(to) => towards(call, &socket, host, to).map(|()| 0),
        Name::Path(path) => call.denied(format!("connecting to {path} was denied"), libc::ENOENT),
        Name::Interface(_) | Name::Nothing => Ok(0),
    }
}

/// Succeeds without effect; a socket of packets sends at the interface that it is bound to.
fn bind(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (socket, _) = call.socket()?;
    if let (Role::Packet(_), Name::Interface(index)) =
        (&socket.role, name(call, call.arg(1), call.arg(2))?)
    {
        *lock(&socket.port) = match index {
            0 | 1 => 1,
            2 => 0,
            _ => return Err(libc::ENODEV),
        };
    }
    Ok(0)
}

fn listen(call: &mut Call<'_>) -> Result<i64, Errno> {
    call.socket()?;
    call.guest
        .state()
        .note("it listens for connections: none can come".into());
    Ok(0)
}

fn accept(call: &mut Call<'_>) -> Result<i64, Errno> {
    call.socket()?;
    Err(libc::EAGAIN)
}

/// Puts an address and its length where a call wants them.
fn tell(call: &Call<'_>, address: usize, length_at: usize, name: &[u8]) -> Result<i64, Errno> {
    if address == 0 || length_at == 0 {
        return Ok(0);
    }
    let room = u32::from_ne_bytes(call.get(length_at)?) as usize;
    let part = name.get(..room).unwrap_or(name);
    if !part.is_empty() {
        call.put(address, part)?;
    }
    call.put(length_at, &(name.len() as u32).to_ne_bytes())
        .map(|()| 0)
}

/// `struct sockaddr_nl` with this port.
fn netlink_name(port: i32) -> Vec<u8> {
    let family = libc::AF_NETLINK as u32;
    [family.to_ne_bytes(), port.to_ne_bytes(), [0; 4]].concat()
}

/// What it was bound to is of no consequence: an address of its family, and nothing in it.
fn own_name(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (socket, _) = call.socket()?;
    let name = match socket.family {
        libc::AF_NETLINK => netlink_name(call.guest.state().process),
        libc::AF_INET => sockaddr(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0)),
        libc::AF_INET6 => sockaddr(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0)),
        libc::AF_PACKET => {
            let index = if *lock(&socket.port) == 0 { 2 } else { 1 };
            interface::Interface::of(&call.guest.spec).link_name(index)
        }
        family => (family as u16).to_ne_bytes().to_vec(),
    };
    tell(call, call.arg(1), call.arg(2), &name)
}

fn peer_name(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (socket, _) = call.socket()?;
    let peer = *lock(&socket.peer);
    let name = match (&socket.role, peer) {
        (Role::Pair, _) => (libc::AF_UNIX as u16).to_ne_bytes().to_vec(),
        (_, Some(peer)) => sockaddr(peer),
        _ => return Err(libc::ENOTCONN),
    };
    tell(call, call.arg(1), call.arg(2), &name)
}

/// Buffers and time-outs of what has another end; all else concerns a network, and succeeds without effect.
fn set_option(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (socket, host) = call.socket()?;
    let [_, level, option, value, length, _] = call.args;
    let real = matches!(socket.role, Role::Pair | Role::Datagrams);
    let buffers = [
        libc::SO_SNDBUF,
        libc::SO_RCVBUF,
        libc::SO_SNDTIMEO,
        libc::SO_RCVTIMEO,
    ];
    if matches!(socket.role, Role::Packet(_)) && level as i32 == libc::SOL_PACKET {
        // What concerns receiving is the preload's; a ring to send from, or a group that shares packets, is not there.
        return match option as i32 {
            libc::PACKET_ADD_MEMBERSHIP | libc::PACKET_QDISC_BYPASS => Ok(0),
            _ => Err(libc::ENOPROTOOPT),
        };
    }
    if !real || level as i32 != libc::SOL_SOCKET || !buffers.contains(&(option as i32)) {
        return Ok(0);
    }
    kernel(
        libc::SYS_setsockopt,
        [host as usize, level, option, call.own(value)?, length, 0],
    )
}

fn get_option(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (socket, host) = call.socket()?;
    let [_, level, option, value, length, _] = call.args;
    if level as i32 != libc::SOL_SOCKET {
        return Err(libc::ENOPROTOOPT);
    }
    let known = match option as i32 {
        libc::SO_TYPE => socket.kind,
        libc::SO_DOMAIN => socket.family,
        libc::SO_ERROR | libc::SO_SNDBUF | libc::SO_RCVBUF => {
            let args = [
                host as usize,
                level,
                option,
                call.own(value)?,
                call.own(length)?,
                0,
            ];
            return kernel(libc::SYS_getsockopt, args);
        }
        _ => return Err(libc::ENOPROTOOPT),
    };
    tell(call, value, length, &known.to_ne_bytes())
}

fn shutdown(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (socket, host) = call.socket()?;
    match socket.role {
        Role::Pair => kernel(libc::SYS_shutdown, [host as usize, call.arg(1), 0, 0, 0, 0]),
        _ => Err(libc::ENOTCONN),
    }
}

/// The parts of a message.
fn parts(call: &Call<'_>, at: usize, count: usize, way: Way) -> Result<Vec<[usize; 2]>, Errno> {
    match count > PARTS {
        true => Err(libc::EMSGSIZE),
        false => call.vector(at, count, way),
    }
}

/// `struct msghdr` for the kernel: parts, and neither address nor control messages.
fn header(parts: &[[usize; 2]]) -> [usize; 7] {
    [0, 0, parts.as_ptr().addr(), parts.len(), 0, 0, 0]
}

fn send_to(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [_, data, length, flags, address, size] = call.args;
    let to = match address {
        0 => None,
        address => Some(name(call, address, size)?),
    };
    send(
        call,
        &[[call.own(data)?, length]],
        flags as i32,
        to.as_ref(),
    )
}

fn send_message(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [address, size, vector, count, _, control, _] = call.words::<7, 56>(call.arg(1))?;
    if control != 0 {
        // Descriptors in it would be the host's.
        return call.denied(
            "a control message of a socket was denied".into(),
            libc::EINVAL,
        );
    }
    let to = match address {
        0 => None,
        address => Some(name(call, address, size & 0xffff_ffff)?),
    };
    let parts = parts(call, vector, count, Way::Out)?;
    send(call, &parts, call.int(2), to.as_ref())
}

fn send(
    call: &Call<'_>,
    parts: &[[usize; 2]],
    flags: i32,
    to: Option<&Name>,
) -> Result<i64, Errno> {
    let (socket, host) = call.socket()?;
    let gathered = || -> Result<Vec<u8>, Errno> {
        let mut all = Vec::new();
        for [base, length] in parts {
            all.extend(call.bytes(*base, *length, LONGEST)?);
        }
        if all.len() > LONGEST - 1 {
            return Err(libc::EMSGSIZE);
        }
        Ok(all)
    };
    match &socket.role {
        Role::Pair => {}
        Role::Datagrams => match to {
            Some(Name::Internet(to)) => towards(call, &socket, host, *to)?,
            _ if lock(&socket.peer).is_some() => {}
            _ => return Err(libc::EDESTADDRREQ),
        },
        Role::Query => {
            if let Some(Name::Internet(to)) = to {
                towards(call, &socket, host, *to)?;
            }
            return Err(libc::ENOTCONN);
        }
        Role::Netlink(answers) => {
            let request = gathered()?;
            let process = call.guest.state().process;
            let answer = interface::netlink(&call.guest.spec, process, &request);
            let args = [
                answers.as_raw_fd() as usize,
                answer.as_ptr().addr(),
                answer.len(),
            ];
            let [fd, data, length] = args;
            kernel(libc::SYS_sendto, [fd, data, length, 0, 0, 0])?;
            return Ok(request.len() as i64);
        }
        Role::Packet(_) => {
            let port = match to {
                Some(Name::Interface(2)) => 0,
                Some(Name::Interface(_)) => 1,
                _ => *lock(&socket.port),
            };
            let bytes = gathered()?;
            let length = bytes.len() as i64;
            let sent = Sent {
                port,
                after: true,
                bytes,
            };
            return call.guest.send(sent).map(|()| length);
        }
    }
    let header = header(parts);
    let flags = flags & SEND | libc::MSG_NOSIGNAL;
    let message = header.as_ptr().addr();
    kernel(
        libc::SYS_sendmsg,
        [host as usize, message, flags as usize, 0, 0, 0],
    )
}

fn receive_from(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [_, data, length, flags, address, size] = call.args;
    let (got, _, name) = receive(call, &[[call.own(data)?, length]], flags as i32)?;
    tell(call, address, size, &name)?;
    Ok(got)
}

fn receive_message(call: &mut Call<'_>) -> Result<i64, Errno> {
    let at = call.arg(1);
    let [address, _, vector, count, ..] = call.words::<7, 56>(at)?;
    let parts = parts(call, vector, count, Way::In)?;
    let (got, flags, name) = receive(call, &parts, call.int(2))?;
    if address != 0 {
        tell(call, address, at + 8, &name)?;
    }
    // No control messages, and the flags.
    let rest = [0, u64::from(flags)];
    let rest: Vec<u8> = rest.iter().flat_map(|w| w.to_ne_bytes()).collect();
    call.put(at + 40, &rest).map(|()| got)
}

/// Bytes received, flags of the message, and the address of its sender.
fn receive(
    call: &Call<'_>,
    parts: &[[usize; 2]],
    flags: i32,
) -> Result<(i64, u32, Vec<u8>), Errno> {
    let (socket, host) = call.socket()?;
    let name = match &socket.role {
        Role::Netlink(_) => netlink_name(0),
        Role::Datagrams => match *lock(&socket.peer) {
            Some(peer) => sockaddr(peer),
            // One that is not connected could hear anybody.
            None => return Err(libc::EAGAIN),
        },
        Role::Packet(_) => {
            let what = "receiving packets by a system call of its own was denied: by libpcap or the C library it would";
            call.guest.state().note(what.into());
            return Err(libc::EOPNOTSUPP);
        }
        _ => Vec::new(),
    };
    let mut header = header(parts);
    let got = kernel(
        libc::SYS_recvmsg,
        [
            host as usize,
            header.as_mut_ptr().addr(),
            (flags & RECEIVE) as usize,
            0,
            0,
            0,
        ],
    )?;
    Ok((got, header[6] as u32, name))
}
