//! The transmit ring: frames that we fill, and that the kernel takes when it is told.

use libc::tpacket3_hdr;
use std::mem::offset_of;

use super::{SMALLER, socket};
use crate::port::device::{Interface, Longest, Map, Socket, busy, failed};
use crate::port::{Departure, PortError};

/// Bytes of a block of frames.
const BLOCK: usize = 1 << 20;
/// Where the packet lies in a frame: behind its header (TPACKET3_HDRLEN less the address, packet(7)).
const DATA: usize = libc::TPACKET3_HDRLEN - size_of::<libc::sockaddr_ll>();
const STATUS: usize = offset_of!(tpacket3_hdr, tp_status);
const LENGTH: usize = offset_of!(tpacket3_hdr, tp_len);

/// How large the ring is.
#[derive(Clone)]
pub struct SendOptions {
    /// frames
    pub frames: u32,
    /// past the queueing discipline
    pub bypass: bool,
}

/// The ring of one worker.
pub struct Ring {
    map: Map,
    socket: Socket,
    word: String,
    frame: usize,
    frames: usize,
    /// the frame to fill next
    next: usize,
    /// the oldest frame that was filled and not yet seen to be free again
    oldest: usize,
    used: usize,
    /// frames were filled since the kernel was told
    told: bool,
    longest: usize,
    known: Longest,
    options: SendOptions,
    failed: u64,
}

impl Ring {
    /// Opens it.
    pub fn open(
        word: &str,
        name: &str,
        interface: &Interface,
        options: &SendOptions,
    ) -> Result<Self, PortError> {
        let no = |what: &str, e: &std::io::Error| failed(word, what, e, SMALLER);
        let socket = socket(word)?;
        let set = |option, value: i32| {
            socket
                .set(libc::SOL_PACKET, option, value)
                .map_err(|e| no("cannot set up a packet socket", &e))
        };
        if options.bypass {
            set(libc::PACKET_QDISC_BYPASS, 1)?;
        }
        let frame = (DATA + interface.longest()).next_power_of_two().max(2048);
        let frames = (options.frames as usize).max(16);
        let block = BLOCK.max(frame);
        let blocks = (frames * frame).div_ceil(block);
        let frames = blocks * (block / frame);
        let request = libc::tpacket_req3 {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame as u32,
            tp_frame_nr: frames as u32,
            tp_retire_blk_tov: 0,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket
            .set(libc::SOL_PACKET, libc::PACKET_TX_RING, request)
            .map_err(|e| no("cannot make a transmit ring", &e))?;
        let map = Map::shared(socket.fd(), blocks * block, 0)
            .map_err(|e| no("cannot map the transmit ring", &e))?;
        // SAFETY: an all-zero sockaddr_ll is a valid value of this C struct.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = interface.index as i32;
        socket
            .bind(address)
            .map_err(|e| no("cannot bind to the interface", &e))?;
        Ok(Self {
            map,
            socket,
            word: word.to_owned(),
            frame,
            frames,
            next: 0,
            oldest: 0,
            used: 0,
            told: true,
            longest: interface.longest(),
            known: Longest::new(name, interface),
            options: options.clone(),
            failed: 0,
        })
    }

    /// A packet is longer than what the interface sends, as far as it is known. True when it was found to send more, and
    /// the ring has frames of that size: the present one where they are large enough, else a new one, once the kernel has
    /// sent what is in this one.
    #[cold]
    fn grow(&mut self) -> bool {
        if !self.known.renew() && self.known.interface().longest() <= self.longest {
            return false;
        }
        let longest = self.known.interface().longest();
        if DATA + longest <= self.frame {
            let raised = longest > self.longest;
            self.longest = longest;
            return raised;
        }
        if self.flush().is_err() || self.used > 0 {
            return false;
        }
        let (name, word) = (self.known.name().to_owned(), self.word.clone());
        let Ok(larger) = Self::open(&word, &name, &self.known.interface().clone(), &self.options)
        else {
            return false;
        };
        let failed = self.failed;
        *self = Self { failed, ..larger };
        true
    }

    /// Fills frames, from the front; what the interface could never send is taken and counted.
    pub fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        if self.used + packets.len() > self.frames {
            self.reap();
        }
        for (taken, packet) in packets.iter().enumerate() {
            let bytes = packet.bytes();
            let fits = bytes.len() <= self.longest || self.grow() && bytes.len() <= self.longest;
            if !fits || bytes.len() < 14 {
                self.failed += 1;
                continue;
            }
            if self.used == self.frames {
                return Ok(taken);
            }
            let base = self.next * self.frame;
            self.map.write(base + DATA, bytes);
            let length = bytes.len() as u32;
            self.map.write(base + LENGTH, &length.to_ne_bytes());
            self.map.store(base + STATUS, libc::TP_STATUS_SEND_REQUEST);
            self.next = (self.next + 1) % self.frames;
            self.used += 1;
            self.told = false;
        }
        Ok(packets.len())
    }

    /// Tells the kernel.
    pub fn flush(&mut self) -> Result<(), PortError> {
        if self.told {
            return Ok(());
        }
        self.told = true;
        let result = self.socket.kick();
        self.reap();
        match result {
            Ok(()) => Ok(()),
            Err(error) if busy(&error) => {
                // The rest is sent at the next kick.
                self.told = self.used == 0;
                Ok(())
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL)) => {
                // One frame was refused; `reap` has counted it, and those behind it go on.
                self.told = self.used == 0;
                Ok(())
            }
            Err(error) => Err(failed(
                &self.word,
                "the interface does not take packets",
                &error,
                "it went down or away while it was in use; bring it up and run again",
            )),
        }
    }

    /// Looks which frames are free again.
    fn reap(&mut self) {
        while self.used > 0 {
            let status = self.oldest * self.frame + STATUS;
            match self.map.load(status) & 7 {
                libc::TP_STATUS_AVAILABLE => (),
                libc::TP_STATUS_WRONG_FORMAT => {
                    self.failed += 1;
                    self.map.store(status, libc::TP_STATUS_AVAILABLE);
                }
                _ => return,
            }
            self.oldest = (self.oldest + 1) % self.frames;
            self.used -= 1;
        }
    }

    /// Whether the kernel has taken everything.
    pub fn idle(&self) -> bool {
        self.used == 0
    }

    /// Packets that could not be sent.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Bytes that it keeps resident.
    pub fn memory(&self) -> u64 {
        self.map.len() as u64
    }
}
