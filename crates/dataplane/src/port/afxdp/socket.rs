//! One AF_XDP socket: one receive and one transmit queue of an interface, and the memory of both.
//!
//! The memory is cut into chunks of 2 KiB, or of 4 KiB where the interface has longer packets. A chunk is in one of five places: our free list, the fill
//! ring (the kernel's, to receive into), lent to a worker, the transmit ring (the kernel's, to send),
//! or the completion ring (ours again when we look).

use std::io;
use std::mem::size_of;

use super::ring::{Offsets, Ring};
use crate::port::device::{Map, SHORTEST, Socket, busy, finish, looks_unfinished};
use crate::port::{Departure, Frame, Pool};

/// Bytes of a chunk: the least and the most that aligned memory may have. Packets that begin at the same
/// place of every page share a few sets of the caches, so the smaller is better.
const CHUNK: std::ops::RangeInclusive<usize> = 2048..=4096;
/// Bytes that the kernel leaves before a received packet (XDP_PACKET_HEADROOM).
const KERNEL_ROOM: usize = 256;
/// The longest frame that fits behind that room.
pub const LONGEST: usize = *CHUNK.end() - KERNEL_ROOM;
/// The same of the smaller chunks.
const LONGEST_OF_SMALL: usize = *CHUNK.start() - KERNEL_ROOM;
/// Kicks of one flush: each sends at most 32 packets in copy mode.
const KICKS: usize = 4;
/// Chunks that are given to the kernel at once.
const REFILL: u32 = 64;

/// How a socket is set up.
#[derive(Clone, Copy)]
pub struct SocketOptions {
    /// entries of each ring, a power of two
    pub ring: u32,
    /// the interface
    pub index: u32,
    /// its queue
    pub queue: u32,
    /// the longest packet, bytes, at most [`LONGEST`]
    pub longest: usize,
    /// the longest frame that the interface sends, bytes
    pub sends: usize,
    /// µs that the kernel polls the device itself when it is asked, 0 for never
    pub busy_poll: u32,
    /// finish checksums that look as if left to a device
    pub checksums: bool,
    /// the function's port
    pub port: u32,
}

/// What is tried where packet memory is handed to the kernel, which locks it.
pub const REGISTER: &str = "cannot register memory with the kernel";

/// Bytes of a chunk of a socket's memory.
fn chunk_of(options: &SocketOptions) -> usize {
    match options.longest {
        ..=LONGEST_OF_SMALL => *CHUNK.start(),
        _ => *CHUNK.end(),
    }
}

/// Bytes of memory that a socket locks: as many chunks to receive into as to send from.
pub fn memory(options: &SocketOptions) -> usize {
    2 * options.ring as usize * chunk_of(options)
}

/// The socket. Drop order is that of the fields: rings and memory after the socket is closed.
pub struct Xsk {
    socket: Socket,
    fill: Ring<u64>,
    completion: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    memory: Map,
    /// bytes of a chunk of it, a power of two
    chunk: usize,
    free: Vec<u64>,
    pool: Pool,
    options: SocketOptions,
    /// packets were put into the transmit ring that the kernel was not told of
    untold: bool,
    /// packets in the transmit ring or on their way
    sending: u32,
    /// chunks that the kernel has to receive into
    receiving: u32,
    pub(super) zero_copy: bool,
    pub(super) too_long: u64,
    /// packets to send that are no frames of this interface
    pub(super) refused: u64,
}

impl Xsk {
    /// Opens it and binds it to its queue.
    ///
    /// # Errors
    /// What was tried, and the system's word.
    pub fn open(options: SocketOptions) -> Result<Self, (&'static str, io::Error)> {
        let ring = options.ring;
        let socket = Socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)
            .map_err(|e| ("cannot open an AF_XDP socket", e))?;
        let chunk = chunk_of(&options);
        let chunks = (memory(&options) / chunk) as u64;
        let memory = Map::zeros(memory(&options)).map_err(|e| ("cannot map memory", e))?;
        let region = libc::xdp_umem_reg {
            addr: memory.base().expose_provenance() as u64,
            len: memory.len() as u64,
            chunk_size: chunk as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        let set = |option, what| {
            socket
                .set(libc::SOL_XDP, option, ring)
                .map_err(|e| (what, e))
        };
        socket
            .set(libc::SOL_XDP, libc::XDP_UMEM_REG, region)
            .map_err(|e| (REGISTER, e))?;
        set(libc::XDP_UMEM_FILL_RING, "cannot make the fill ring")?;
        set(
            libc::XDP_UMEM_COMPLETION_RING,
            "cannot make the completion ring",
        )?;
        set(libc::XDP_RX_RING, "cannot make the receive ring")?;
        set(libc::XDP_TX_RING, "cannot make the transmit ring")?;
        // SAFETY: an all-zero xdp_mmap_offsets is a valid value of this C struct.
        let none: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let offsets = socket
            .get(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, none)
            .map_err(|e| ("cannot learn where the rings lie", e))?;
        let no_map = |e| ("cannot map a ring", e);
        let fd = socket.fd();
        let fill = Ring::map(
            fd,
            ring,
            Offsets::from(offsets.fr),
            libc::XDP_UMEM_PGOFF_FILL_RING as i64,
        );
        let completion = Ring::map(
            fd,
            ring,
            Offsets::from(offsets.cr),
            libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64,
        );
        let receive = Ring::map(fd, ring, Offsets::from(offsets.rx), libc::XDP_PGOFF_RX_RING);
        let transmit = Ring::map(fd, ring, Offsets::from(offsets.tx), libc::XDP_PGOFF_TX_RING);
        let mut xsk = Self {
            fill: fill.map_err(no_map)?,
            completion: completion.map_err(no_map)?,
            receive: receive.map_err(no_map)?,
            transmit: transmit.map_err(no_map)?,
            memory,
            chunk,
            free: (0..chunks).map(|c| c * chunk as u64).collect(),
            pool: Pool::fresh(),
            options,
            untold: false,
            sending: 0,
            receiving: 0,
            zero_copy: false,
            too_long: 0,
            refused: 0,
            socket,
        };
        xsk.refill();
        xsk.bind()?;
        Ok(xsk)
    }

    fn bind(&mut self) -> Result<(), (&'static str, io::Error)> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            // Neither XDP_ZEROCOPY nor XDP_COPY: the kernel takes the first if the driver has it.
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: self.options.index,
            sxdp_queue_id: self.options.queue,
            sxdp_shared_umem_fd: 0,
        };
        self.socket
            .bind(address)
            .map_err(|e| ("cannot bind to the interface's queue", e))?;
        let options = libc::xdp_options { flags: 0 };
        let options = self.socket.get(libc::SOL_XDP, libc::XDP_OPTIONS, options);
        self.zero_copy = options.is_ok_and(|o| o.flags & libc::XDP_OPTIONS_ZEROCOPY != 0);
        if self.options.busy_poll > 0 {
            // SO_PREFER_BUSY_POLL, SO_BUSY_POLL and SO_BUSY_POLL_BUDGET (asm-generic/socket.h).
            for (option, value) in [(69, 1), (46, self.options.busy_poll as i32), (70, 64)] {
                self.socket
                    .set(libc::SOL_SOCKET, option, value)
                    .map_err(|e| ("cannot turn busy polling on", e))?;
            }
        }
        Ok(())
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The memory.
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// Lends at most `most` packets.
    pub fn receive(&mut self, into: &mut Vec<Frame>, most: usize) -> usize {
        let start = into.len();
        while into.len() - start < most {
            let Some(entry) = self.receive.take() else {
                break;
            };
            self.receiving = self.receiving.saturating_sub(1);
            let chunk = self.chunk_of(entry.addr);
            match self.frame(chunk, entry.addr as usize, entry.len as usize) {
                Some(frame) => into.push(frame),
                None => {
                    self.too_long += 1;
                    self.free.push(chunk);
                }
            }
        }
        let received = into.len() - start;
        if received > 0 {
            self.receive.done();
        }
        received
    }

    fn chunk_of(&self, address: u64) -> u64 {
        address & !(self.chunk as u64 - 1)
    }

    fn frame(&self, chunk: u64, offset: usize, length: usize) -> Option<Frame> {
        let floor = self.memory.at(chunk as usize, self.chunk)?;
        let data = self.memory.at(offset, length)?;
        let (end, ceiling) = (data.wrapping_add(length), floor.wrapping_add(self.chunk));
        if end.addr() > ceiling.addr() {
            return None;
        }
        if self.options.checksums {
            // SAFETY: the chunk came out of the receive ring and is ours until it is filled again.
            let bytes = unsafe { std::slice::from_raw_parts_mut(data, length) };
            if let Some((start, place)) = looks_unfinished(bytes) {
                finish(bytes, start, place);
            }
        }
        Some(Frame {
            data,
            end,
            floor,
            ceiling,
            stamp: 0,
            wire: length as u32,
            port: self.options.port,
            class: 0,
            hops: 0,
            hash: 0,
            pool: self.pool,
            buffer: chunk,
        })
    }

    /// Puts packets into the transmit ring: by their own chunk where it is ours, else copied.
    pub fn transmit(&mut self, packets: &mut [Departure]) -> usize {
        let base = self.memory.base().addr();
        for (taken, packet) in packets.iter_mut().enumerate() {
            let length = packet.length as usize;
            if length < SHORTEST || length > self.options.sends.min(self.chunk - KERNEL_ROOM) {
                // The kernel would lose it and say nothing.
                self.refused += 1;
                continue;
            }
            if !self.transmit.has_room() {
                return taken;
            }
            let own = packet.pool == self.pool && packet.may_keep;
            let address = if own {
                (packet.data.addr() - base) as u64
            } else {
                if self.free.is_empty() {
                    self.reap();
                }
                let Some(chunk) = self.free.pop() else {
                    return taken;
                };
                let offset = chunk as usize + KERNEL_ROOM;
                self.memory.write(offset, packet.bytes());
                offset as u64
            };
            packet.kept = own;
            self.transmit.put(libc::xdp_desc {
                addr: address,
                len: packet.length,
                options: 0,
            });
            self.sending += 1;
            self.untold = true;
        }
        packets.len()
    }

    /// Tells the kernel, takes back what it has sent, and gives it memory to receive into.
    ///
    /// # Errors
    /// The system's, when it takes no packets any more.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.untold {
            self.transmit.submit();
        }
        let mut result = Ok(());
        if self.untold || self.sending > 0 {
            for _ in 0..KICKS {
                if !self.transmit.wants_wakeup() || self.transmit.outstanding() == 0 {
                    break;
                }
                match self.socket.kick() {
                    Ok(()) => (),
                    // EAGAIN says that there is more than it sends at once.
                    Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => (),
                    Err(e) if busy(&e) => break,
                    Err(e) => {
                        result = Err(e);
                        break;
                    }
                }
            }
            self.untold = false;
            self.reap();
        }
        self.refill();
        result
    }

    /// Tells the kernel that there is memory to receive into, if it waits for that.
    pub fn wake(&self) {
        if self.fill.wants_wakeup() {
            // SAFETY: no bytes are received, so no memory is written.
            unsafe {
                libc::recvfrom(
                    self.socket.fd(),
                    std::ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                );
            }
        }
    }

    fn reap(&mut self) {
        let mut reaped = 0;
        while let Some(address) = self.completion.take() {
            self.free.push(self.chunk_of(address));
            reaped += 1;
        }
        if reaped > 0 {
            self.completion.done();
            self.sending = self.sending.saturating_sub(reaped);
        }
    }

    /// Keeps as many chunks free as a full transmit ring could need. Some at a time, and by our own count
    /// of what the kernel has: it moves the ring's index with every packet, and each look of ours at it
    /// would take the line away from the processor that receives.
    fn refill(&mut self) {
        let ring = self.options.ring;
        if self.receiving + REFILL.min(ring / 4) > ring {
            return;
        }
        let mut filled = false;
        while self.free.len() > ring as usize / 2 && self.fill.has_room() {
            let Some(chunk) = self.free.pop() else { break };
            self.fill.put(chunk);
            self.receiving += 1;
            filled = true;
        }
        if filled {
            self.fill.submit();
        }
    }

    /// Takes frames back.
    pub fn release<'a>(&mut self, frames: impl Iterator<Item = &'a Frame>) {
        self.free.extend(frames.map(|f| f.buffer));
    }

    /// Whether everything has been sent.
    pub fn idle(&self) -> bool {
        self.sending == 0
    }

    /// The kernel's counts: lost before they were ours, and refused.
    pub fn counts(&self) -> (u64, u64) {
        // SAFETY: an all-zero xdp_statistics is a valid value of this C struct.
        let none: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let Ok(s) = self.socket.get(libc::SOL_XDP, libc::XDP_STATISTICS, none) else {
            return (0, 0);
        };
        (s.rx_dropped + s.rx_ring_full, s.tx_invalid_descs)
    }

    /// Bytes that it keeps resident.
    pub fn memory(&self) -> u64 {
        const ENTRIES: usize = 2 * size_of::<u64>() + 2 * size_of::<libc::xdp_desc>();
        (self.memory.len() + self.options.ring as usize * ENTRIES) as u64
    }
}
