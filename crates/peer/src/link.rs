//! Packets between machines, in Geneve over UDP.
//!
//! A frame of Ethernet's usual 1500 bytes does not fit behind the headers where links between machines carry no more than that: the host cuts the
//! datagram into fragments of IP then and joins them at the other end, which costs both some time. What is too long for any datagram, or for a
//! path that the host may not cut for, is dropped (`peer_mtu`). Links between nodes had better carry 1600 bytes.
//!
//! Each datagram is signed with the cluster's secret: what is not from a member is counted (`malformed`) and goes no further. One that is said again is
//! a packet that comes again, as a network may bring any.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use millrace_cluster::{NodeId, Standing};
use millrace_dataplane::account::Account;
use millrace_dataplane::classes::away::{Elsewhere, MARK, PeerCounts, Refusal, Stray};
use millrace_dataplane::port::{Arrival, Arrivals, PortError, overflows};
use millrace_wire::geneve::{Carries, Forwarded, TAG, WHOLE};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::figures::{Board, Figures};
use crate::mark::{Mark, Marks};
use crate::secret::Signer;
use crate::{MOST_HOPS, Secret};

/// Bytes of the largest datagram of UDP over IPv4.
const LARGEST: usize = 65_507;
/// Datagrams that are no packets of peers, after which a queue is left for the next poll iteration.
const STRANGE: usize = 64;

/// Bytes of the socket's receive buffer: some 2,000 packets of 1,500 bytes, as the kernel counts them. A burst of one sender of TCP fits, which the
/// usual 208 KiB (92 packets) do not hold.
const BUFFER: usize = 4 << 20;

/// This machine's end of the links to others.
pub struct Link {
    standing: Arc<Standing>,
    socket: UdpSocket,
    network: u32,
    signer: Signer,
    /// ports of the function
    ports: u16,
    counts: Counters,
    marks: Marks,
    /// of copies, where there are some
    copies: OnceLock<Arc<crate::standby::Counters>>,
    board: Board,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    older: AtomicU64,
    malformed: AtomicU64,
    parked: AtomicU64,
    marks: AtomicU64,
    unmarked: AtomicU64,
    given: AtomicU64,
    taken: AtomicU64,
    entries: AtomicU64,
    refused: AtomicU64,
}

impl Link {
    /// At this address, which is the node's `peer`, for a function with so many ports.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn open(
        address: SocketAddr,
        standing: &Arc<Standing>,
        secret: &Secret,
        ports: usize,
    ) -> std::io::Result<Arc<Self>> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // Beyond the system's limit where this process may; else as much as that allows. What finds no room is counted.
        if set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            let _ = set_socket_recv_buffer_size(&socket, BUFFER);
        }
        Ok(Arc::new(Self {
            standing: standing.clone(),
            socket,
            network: secret.network(),
            signer: secret.signer(),
            ports: u16::try_from(ports).unwrap_or(u16::MAX),
            counts: Counters::default(),
            marks: Marks::default(),
            copies: OnceLock::new(),
            board: Board::default(),
        }))
    }

    /// The end that packets of others come from.
    ///
    /// # Errors
    /// The system gives no further descriptor.
    pub fn arrivals(self: &Arc<Self>) -> std::io::Result<Box<dyn Arrivals>> {
        Ok(Box::new(Inbound {
            socket: self.socket.try_clone()?,
            link: self.clone(),
            datagram: vec![0; LARGEST + 1],
        }))
    }

    /// Sends what is no packet to a node; whether it went.
    fn tell(&self, to: NodeId, (bucket, port, carries): (u16, u16, Carries), what: &[u8]) -> bool {
        let table = self.standing.table();
        let Some(node) = table.node(to).filter(|node| node.alive) else {
            return false;
        };
        let head = Forwarded {
            bucket,
            port,
            version: table.version,
            hops: 1,
            carries,
        };
        let datagram = self.datagram(&head, what);
        self.socket.send_to(&datagram, node.peer).is_ok()
    }

    /// A datagram, signed.
    fn datagram(&self, head: &Forwarded, what: &[u8]) -> Vec<u8> {
        let mut datagram = [&head.header(self.network)[..], what].concat();
        let tag = Forwarded::signed(&datagram).map(|(parts, _)| self.signer.tag(parts));
        if let (Some(tag), Some(to)) = (tag, datagram.get_mut(WHOLE - TAG..WHOLE)) {
            to.copy_from_slice(&tag);
        }
        datagram
    }

    /// What is counted of copies.
    pub(crate) fn copies(&self, counts: &Arc<crate::standby::Counters>) {
        let _ = self.copies.set(counts.clone());
    }

    /// What the run has counted so far, for those who look at this machine.
    pub fn post(&self, account: &Account) {
        self.board.post(account);
    }

    /// The last of it, with how this machine stands; none before the first.
    pub(crate) fn figures(&self) -> Option<Figures> {
        let now = millrace_cluster::now();
        let standing = &self.standing;
        let left = standing.left(now);
        Some(Figures {
            version: standing.version(),
            stale: standing.stale(),
            accepts: standing.holds(now),
            lease: left.map(|ns| ns as f64 / 1e9),
            ..self.board.last()?
        })
    }

    /// A bucket with so many entries left.
    pub(crate) fn gave(&self, entries: u64) {
        self.counts.given.fetch_add(1, Ordering::Relaxed);
        self.counts.entries.fetch_add(entries, Ordering::Relaxed);
    }

    /// A bucket with so many entries came.
    pub(crate) fn took(&self, entries: u64) {
        self.counts.taken.fetch_add(1, Ordering::Relaxed);
        self.counts.entries.fetch_add(entries, Ordering::Relaxed);
    }

    /// A hand-over was refused, here or there.
    pub(crate) fn refused(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Elsewhere for Link {
    fn accepts(&self) -> bool {
        self.standing.holds(millrace_cluster::now())
    }

    fn send(&self, packet: &Stray<'_>) -> Result<(), Refusal> {
        let (hops, mark) = (packet.hops & !MARK, packet.hops & MARK != 0);
        if hops >= MOST_HOPS {
            return Err(Refusal::Circle);
        }
        let table = self.standing.table();
        let owner = table.owner(packet.class.into());
        let owner = owner.filter(|owner| *owner != self.standing.me());
        let node = owner.and_then(|owner| table.node(owner));
        let node = node.filter(|node| node.alive).ok_or(Refusal::NoOwner)?;
        let head = Forwarded {
            bucket: packet.class,
            port: packet.port as u16,
            version: table.version,
            hops: hops + 1,
            carries: match mark {
                true => Carries::Mark,
                false => Carries::Packet,
            },
        };
        if WHOLE + packet.frame.len() > LARGEST {
            return Err(Refusal::TooLong);
        }
        let datagram = self.datagram(&head, packet.frame);
        match self.socket.send_to(&datagram, node.peer) {
            Ok(_) => {
                self.counts
                    .sent
                    .fetch_add(u64::from(!mark), Ordering::Relaxed);
                Ok(())
            }
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()) => {
                Err(Refusal::TooLong)
            }
            Err(_) => Err(Refusal::Full),
        }
    }

    fn counts(&self) -> PeerCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        PeerCounts {
            // Workers know which they have.
            buckets: 0,
            sent: load(&counts.sent),
            received: load(&counts.received),
            older: load(&counts.older),
            malformed: load(&counts.malformed),
            missed: overflows(self.socket.as_fd()),
            parked: load(&counts.parked),
            marks: load(&counts.marks),
            unmarked: load(&counts.unmarked),
            given: load(&counts.given),
            taken: load(&counts.taken),
            entries: load(&counts.entries),
            refused: load(&counts.refused),
            copies: self.copies.get().map(|copies| copies.seen()),
        }
    }

    fn parked(&self) {
        self.counts.parked.fetch_add(1, Ordering::Relaxed);
    }

    fn owner(&self, class: u16) -> Option<u16> {
        self.standing
            .table()
            .owner(class.into())
            .map(|owner| owner.0)
    }

    fn mark(&self, class: u16, port: u32, by: u16) -> Option<u64> {
        let mark = self.marks.next(self.standing.me());
        let datagram = (class, port as u16, Carries::Mark);
        if !self.tell(NodeId(by), datagram, &mark.bytes()) {
            return None;
        }
        self.counts.marks.fetch_add(1, Ordering::Relaxed);
        Some(mark.number)
    }

    fn passed(&self, number: u64) -> bool {
        self.marks.take(number)
    }

    fn reached(&self, class: u16, mark: &[u8]) {
        let Some(mark) = Mark::read(mark) else { return };
        if mark.of == self.standing.me() {
            self.marks.came(mark.number);
        } else {
            // One that is lost is not waited for longer than it may be.
            self.tell(mark.of, (class, 0, Carries::Through), &mark.bytes());
        }
    }

    fn unmarked(&self) {
        self.counts.unmarked.fetch_add(1, Ordering::Relaxed);
    }
}

/// What is behind the header of a datagram.
fn behind(datagram: &[u8]) -> Option<&[u8]> {
    Forwarded::read(datagram).ok().map(|(.., frame)| frame)
}

/// Packets of other machines.
struct Inbound {
    socket: UdpSocket,
    link: Arc<Link>,
    datagram: Vec<u8>,
}

impl Inbound {
    /// What a datagram of this many bytes says, where it is from a node of the table.
    fn read(&self, length: usize, from: SocketAddr) -> Option<Forwarded> {
        let datagram = self.datagram.get(..length)?;
        let (said, network, frame) = Forwarded::read(datagram).ok()?;
        let whole = said.carries == Carries::Packet || Mark::read(frame).is_some();
        let table = self.link.standing.table();
        let known = table.nodes.iter().any(|node| node.peer == from);
        let bucket = usize::from(said.bucket) < table.owners.len();
        let fits = network == self.link.network && said.port < self.link.ports;
        let ours = known && bucket && fits && whole && said.hops <= MOST_HOPS;
        (ours && self.link.signer.verifies(datagram)).then_some(said)
    }
}

impl Arrivals for Inbound {
    fn next(&mut self) -> Result<Option<Arrival<'_>>, PortError> {
        let counts = &self.link.counts;
        let mut found = None;
        for _ in 0..STRANGE {
            let (length, from) = match self.socket.recv_from(&mut self.datagram) {
                Ok(came) => came,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                // A peer that is not there says so for what was sent to it.
                Err(_) => continue,
            };
            if let Some(said) = self.read(length, from) {
                self.link
                    .standing
                    .hear(said.version, millrace_cluster::now());
                if said.carries == Carries::Through {
                    let answer = self.datagram.get(..length).and_then(behind);
                    if let Some(mark) = answer.and_then(Mark::read) {
                        self.link.marks.came(mark.number);
                    }
                    continue;
                }
                if said.carries == Carries::Mark {
                    found = Some((length, said));
                    break;
                }
                let older = said.version < self.link.standing.version();
                counts.older.fetch_add(u64::from(older), Ordering::Relaxed);
                counts.received.fetch_add(1, Ordering::Relaxed);
                found = Some((length, said));
                break;
            }
            counts.malformed.fetch_add(1, Ordering::Relaxed);
        }
        let Some((length, said)) = found else {
            return Ok(None);
        };
        let frame = self.datagram.get(..length).and_then(behind);
        let mark = match said.carries {
            Carries::Mark => MARK,
            Carries::Packet | Carries::Through => 0,
        };
        Ok(Some(Arrival {
            port: said.port.into(),
            hops: said.hops | mark,
            class: said.bucket,
            frame: frame.unwrap_or_default(),
        }))
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
