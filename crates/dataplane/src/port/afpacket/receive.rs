//! The receive ring: blocks that the kernel fills with packets and hands over whole.

use std::cell::Cell;
use std::mem::offset_of;
use std::time::{Duration, Instant};

use libc::{tpacket_block_desc, tpacket_hdr_v1, tpacket3_hdr};
use millrace_wire::ethernet;

use super::{ETH_P_ALL, SMALLER, socket};
use crate::packet::Layout;
use crate::port::device::{Header, Interface, Map, Segments, Socket, failed, finish};
use crate::port::{Buffers, Frame, PortError, QueueCounts};

/// Bytes of a block: room for the largest packet that a local TCP hands over (64 KiB) and its headers.
const BLOCK: usize = 128 << 10;
/// Bytes of `struct virtio_net_hdr`, which stands right before the packet.
const HEADER: usize = size_of::<Header>();
/// Where a block says whose it is.
const STATUS: usize =
    offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, block_status);
const COUNT: usize = offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, num_pkts);
const FIRST: usize =
    offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, offset_to_first_pkt);
/// Looks at an empty ring between two questions whether the interface is still there.
const LOOKS: u32 = 64;

/// How large the ring is, and for whom.
pub struct RingOptions {
    /// blocks
    pub blocks: u32,
    /// ms after which a block is handed over unfilled
    pub timeout: u32,
    /// the function's port
    pub port: u32,
    /// packets a burst
    pub burst: usize,
}

/// Where the reader is.
#[derive(Default)]
struct Place {
    block: usize,
    /// packets left in the block, once it is ours
    left: u32,
    open: bool,
    /// of the packet that is next, from the beginning of the map
    offset: usize,
    /// of a packet that is cut: the segment that is next
    segment: usize,
}

/// A packet in the ring.
struct Entry {
    data: usize,
    length: usize,
    header: Header,
    vlan: Option<[u8; 4]>,
    stamp: u64,
    /// the kernel kept all of it
    whole: bool,
    next: usize,
}

/// The ring of one worker.
pub struct Ring {
    map: Map,
    socket: Socket,
    word: String,
    index: u32,
    blocks: usize,
    at: Place,
    buffers: Buffers,
    timeout: u32,
    /// when the last block has been handed over, once nothing more is received
    closing: Option<Instant>,
    empty: u32,
    unfit: u64,
    missed: Cell<u64>,
}

impl Ring {
    /// Opens it; packets come from [`Ring::begin`] on.
    pub fn open(
        word: &str,
        interface: &Interface,
        options: &RingOptions,
    ) -> Result<Self, PortError> {
        let no = |what: &str, e: &std::io::Error| failed(word, what, e, SMALLER);
        let socket = socket(word)?;
        let set = |option, value: i32| {
            socket
                .set(libc::SOL_PACKET, option, value)
                .map_err(|e| no("cannot set up a packet socket", &e))
        };
        set(libc::PACKET_VNET_HDR, 1)?;
        // What we send ourselves, and what the host sends, is not what comes in.
        set(libc::PACKET_IGNORE_OUTGOING, 1)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: options.blocks,
            tp_frame_size: 2048,
            tp_frame_nr: options.blocks * (BLOCK as u32 / 2048),
            tp_retire_blk_tov: options.timeout,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket
            .set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(|e| no("cannot make a receive ring", &e))?;
        let map = Map::shared(socket.fd(), BLOCK * options.blocks as usize, 0)
            .map_err(|e| no("cannot map the receive ring", &e))?;
        let ring = Self {
            map,
            socket,
            word: word.to_owned(),
            index: interface.index,
            blocks: options.blocks as usize,
            at: Place::default(),
            buffers: Buffers::new(options.burst, options.port, Layout::Pooled),
            timeout: options.timeout,
            closing: None,
            empty: 0,
            unfit: 0,
            missed: Cell::new(0),
        };
        // A fanout group takes sockets that are bound; until then the protocol keeps packets away.
        ring.bind()
            .map_err(|e| no("cannot bind to the interface", &e))?;
        Ok(ring)
    }

    fn bind(&self) -> std::io::Result<()> {
        // SAFETY: an all-zero sockaddr_ll is a valid value of this C struct.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETH_P_ALL;
        address.sll_ifindex = self.index as i32;
        self.socket.bind(address)
    }

    /// Forgets what an earlier state of the interface left as an error of the socket.
    pub fn begin(&mut self) {
        let _ = self.socket.pending_error();
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Lends at most `most` packets.
    pub fn receive(&mut self, into: &mut Vec<Frame>, most: usize) -> Result<usize, PortError> {
        let start = into.len();
        while into.len() - start < most && self.buffers.free() > 0 {
            if !self.at.open && !self.enter() {
                break;
            }
            if self.at.left == 0 {
                self.leave();
                continue;
            }
            let Some(entry) = self.entry(self.at.offset) else {
                // The kernel's ring does not make sense; nothing in it can be trusted.
                return Err(self.gone("its receive ring is damaged"));
            };
            let done = self.lend(&entry, into);
            if done {
                self.at.segment = 0;
                self.at.left -= 1;
                self.at.offset = entry.next;
            }
        }
        let received = into.len() - start;
        if received > 0 {
            self.empty = 0;
            return Ok(received);
        }
        match self.closing {
            // A drain ends at the first empty answer, so it waits for the block being filled.
            Some(end) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(1));
                self.receive(into, most)
            }
            Some(_) => Ok(0),
            None => self.look().map(|()| 0),
        }
    }

    /// Takes the next block if it is ours.
    fn enter(&mut self) -> bool {
        let base = self.at.block * BLOCK;
        if self.map.load(base + STATUS) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        self.at.left = self.map.read(base + COUNT).unwrap_or(0);
        self.at.offset = base + self.map.read::<u32>(base + FIRST).unwrap_or(0) as usize;
        self.at.open = true;
        true
    }

    /// Gives the block back to the kernel.
    fn leave(&mut self) {
        let base = self.at.block * BLOCK;
        self.map.store(base + STATUS, libc::TP_STATUS_KERNEL);
        self.at.open = false;
        self.at.block = (self.at.block + 1) % self.blocks;
    }

    /// The packet at an offset; none when it would lie outside its block.
    fn entry(&self, offset: usize) -> Option<Entry> {
        let end = (self.at.block + 1) * BLOCK;
        let head: tpacket3_hdr = self.map.read(offset)?;
        let data = offset + usize::from(head.tp_mac);
        let length = head.tp_snaplen as usize;
        let header = self.map.read(data.checked_sub(HEADER)?)?;
        let vlan = (head.tp_status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
            let kind = match head.tp_status & libc::TP_STATUS_VLAN_TPID_VALID {
                0 => ethernet::VLAN,
                _ => head.hv1.tp_vlan_tpid,
            };
            let [a, b] = kind.to_be_bytes();
            let [c, d] = (head.hv1.tp_vlan_tci as u16).to_be_bytes();
            [a, b, c, d]
        });
        let stamp = u64::from(head.tp_sec) * 1_000_000_000 + u64::from(head.tp_nsec);
        (data + length <= end).then_some(Entry {
            data,
            length,
            header,
            vlan,
            stamp,
            whole: head.tp_len == head.tp_snaplen,
            next: offset + head.tp_next_offset as usize,
        })
    }

    /// Lends a packet, or as many of its segments as there are buffers for; true when it is done with.
    fn lend(&mut self, entry: &Entry, into: &mut Vec<Frame>) -> bool {
        // SAFETY: the block is ours until `leave`; the kernel does not write it.
        let bytes = unsafe { self.map.bytes(entry.data, entry.length) };
        let Some(bytes) = bytes.filter(|_| entry.whole) else {
            self.unfit += 1;
            return true;
        };
        if entry.header.gso_type == 0 {
            let frame = self.buffers.lend(entry.length + 4, |place| {
                place.get_mut(..entry.length)?.copy_from_slice(bytes);
                let (start, offset) = (entry.header.csum_start, entry.header.csum_offset);
                let body = place.get_mut(..entry.length)?;
                if entry.header.unfinished() && !finish(body, start.into(), offset.into()) {
                    return None;
                }
                tag(place, entry.length, entry.vlan)
            });
            match frame {
                Some(frame) => into.push(stamped(frame, entry.stamp)),
                None => self.unfit += 1,
            }
            return true;
        }
        let Some(cut) = Segments::of(bytes, &entry.header) else {
            self.unfit += 1;
            return true;
        };
        let Some(length) = (self.at.segment < cut.count).then(|| cut.length(self.at.segment))
        else {
            return true;
        };
        let frame = self.buffers.lend(length + 4, |place| {
            let length = cut.write(bytes, self.at.segment, place)?;
            tag(place, length, entry.vlan)
        });
        match frame {
            Some(frame) => into.push(stamped(frame, entry.stamp)),
            None => self.unfit += 1,
        }
        self.at.segment += 1;
        self.at.segment == cut.count
    }

    /// Takes frames back.
    pub fn release(&mut self, frames: &[Frame]) {
        self.buffers.release(frames);
    }

    /// Stops receiving. The kernel's blocks that were handed over before are still taken, and so is
    /// the one being filled, when its timeout hands it over.
    pub fn close(&mut self) {
        if self.closing.is_none() {
            self.closing =
                Some(Instant::now() + Duration::from_millis(u64::from(self.timeout) + 2));
            // A filter that takes nothing: one instruction, `return 0` (BPF_RET | BPF_K).
            let mut nothing = libc::sock_filter {
                code: 6,
                jt: 0,
                jf: 0,
                k: 0,
            };
            let program = libc::sock_fprog {
                len: 1,
                filter: &raw mut nothing,
            };
            // If the kernel refuses, the worker's bound on its last turns ends the run all the same.
            let _ = self
                .socket
                .set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program);
        }
    }

    /// Now and then: whether the interface is still there.
    fn look(&mut self) -> Result<(), PortError> {
        self.empty = self.empty.wrapping_add(1);
        if !self.empty.is_multiple_of(LOOKS) {
            return Ok(());
        }
        match self.socket.pending_error() {
            Some(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                Err(self.gone("the interface went down or away while it was in use"))
            }
            _ => Ok(()),
        }
    }

    fn gone(&self, what: &str) -> PortError {
        PortError::Live {
            word: self.word.clone(),
            what: what.into(),
            help: "what was received before is accounted; bring the interface up and run again"
                .into(),
        }
    }

    /// What was lost and what could not be presented.
    pub fn counts(&self) -> QueueCounts {
        // Asking resets the kernel's count.
        let none = libc::tpacket_stats_v3 {
            tp_packets: 0,
            tp_drops: 0,
            tp_freeze_q_cnt: 0,
        };
        let asked = self
            .socket
            .get(libc::SOL_PACKET, libc::PACKET_STATISTICS, none);
        if let Ok(counts) = asked {
            self.missed
                .set(self.missed.get() + u64::from(counts.tp_drops));
        }
        QueueCounts {
            missed: self.missed.get(),
            unfit: self.unfit,
            ..QueueCounts::default()
        }
    }

    /// Bytes that it keeps resident.
    pub fn memory(&self) -> u64 {
        self.map.len() as u64 + self.buffers.memory()
    }
}

fn stamped(frame: Frame, stamp: u64) -> Frame {
    Frame { stamp, ..frame }
}

/// Puts a VLAN tag back behind the Ethernet addresses of the `length` bytes in `place`; the new length.
fn tag(place: &mut [u8], length: usize, vlan: Option<[u8; 4]>) -> Option<usize> {
    let Some(tag) = vlan else { return Some(length) };
    let rest = place.get_mut(12..length + 4)?;
    rest.copy_within(..length.checked_sub(12)?, 4);
    *rest.first_chunk_mut()? = tag;
    Some(length + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_put_back_where_it_was() {
        let mut place: Vec<u8> = (0..20).collect();
        let length = tag(&mut place, 16, Some([0x81, 0, 0, 7])).unwrap();
        let expected = [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0, 7, 12, 13, 14, 15,
        ];
        assert_eq!((length, place.as_slice()), (20, &expected[..]));
        assert_eq!(tag(&mut place, 8, Some([0; 4])), None);
        assert_eq!(tag(&mut place, 8, None), Some(8));
    }
}
