//! `afpacket:IF`: an interface through packet sockets (packet(7), TPACKET_V3), the most portable live
//! port: any interface, any driver.
//!
//! The host's own stack sees every received packet too; a function's interfaces therefore have no
//! addresses, or belong to a namespace that does not forward. Packets of local processes come with
//! checksums and segmentation left to the device; both are done here, so that functions see what
//! would be on a wire. VLAN tags that the kernel took out are put back.
//!
//! Options: `blocks=N` (receive ring, blocks of 128 KiB, default 32), `frames=N` (transmit ring,
//! default 512), `timeout=MS` (the longest that a received packet waits in an unfilled block, default
//! 1), `bypass` (send past the interface's queueing discipline), `promisc=off`.

mod receive;
mod send;

use std::io;

use super::device::{Interface, Promiscuous, Socket, failed};
use super::{Departure, Frame, Kind, LiveOptions, LivePort, PortError, Query, Queue, QueueCounts};
use receive::{Ring as Receive, RingOptions};
use send::{Ring as Send, SendOptions};

/// Packet sockets.
pub const KIND: Kind = Kind {
    scheme: "afpacket",
    form: "afpacket:IF",
    what: "an interface through packet sockets",
    input: None,
    output: None,
    live: Some(open),
    spelled: |rest| Asked::of(rest).map(drop),
};

/// All protocols, in network order (linux/if_ether.h).
pub(super) const ETH_P_ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// What helps when a ring cannot be had.
const SMALLER: &str = "make the ring smaller";

/// A socket for a ring of TPACKET_V3. Its protocol is 0: nothing is received until it is bound to another.
fn socket(word: &str) -> Result<Socket, PortError> {
    let no = |what: &str, e: &io::Error| failed(word, what, e, SMALLER);
    let socket = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map_err(|e| no("cannot open a packet socket", &e))?;
    let version = libc::tpacket_versions::TPACKET_V3 as i32;
    socket
        .set(libc::SOL_PACKET, libc::PACKET_VERSION, version)
        .map_err(|e| no("cannot set up a packet socket", &e))?;
    Ok(socket)
}

/// What a word asks for.
struct Asked {
    query: Query,
    blocks: u32,
    timeout: u32,
    send: SendOptions,
    promiscuous: bool,
}

impl Asked {
    fn of(rest: &str) -> Result<Self, PortError> {
        let mut query = Query::parse(KIND.scheme, rest)?;
        let asked = Self {
            blocks: query.number("blocks", 32, 2..=4096)? as u32,
            timeout: query.number("timeout", 1, 1..=1000)? as u32,
            send: SendOptions {
                frames: query.number("frames", 512, 16..=1 << 16)? as u32,
                bypass: query.switch("bypass", false)?,
            },
            promiscuous: query.switch("promisc", true)?,
            query,
        };
        asked
            .query
            .finish("blocks, timeout, frames, bypass and promisc")?;
        Ok(asked)
    }
}

fn open(rest: &str, options: &LiveOptions) -> Result<LivePort, PortError> {
    let Asked {
        query,
        blocks,
        timeout,
        send,
        promiscuous,
    } = Asked::of(rest)?;
    let receive = RingOptions {
        blocks,
        timeout,
        port: options.port,
        burst: options.burst,
    };
    let word = query.word().to_owned();
    let interface = Interface::find(&word, &query.name)?;
    let mut facts = vec![format!("{word}: TPACKET_V3, MTU {}", interface.mtu)];
    if options.queues > 1 {
        let queues = options.queues;
        facts.push(format!(
            "{word}: {queues} queues by the kernel's symmetric flow hash (PACKET_FANOUT_HASH)"
        ));
    }
    let mut fanout = Fanout::default();
    let mut queues: Vec<Box<dyn Queue>> = Vec::new();
    for _ in 0..options.queues.max(1) {
        let mut ring = Receive::open(&word, &interface, &receive)?;
        if options.queues > 1 {
            fanout
                .join(ring.socket())
                .map_err(|e| failed(&word, "cannot share out packets", &e, "use one worker"))?;
        }
        ring.begin();
        queues.push(Box::new(Pair {
            receive: ring,
            send: Send::open(&word, &query.name, &interface, &send)?,
        }));
    }
    let hold = match promiscuous {
        true => {
            Some(Box::new(Promiscuous::enter(&word, &interface)?) as Box<dyn std::marker::Send>)
        }
        false => None,
    };
    Ok(LivePort {
        queues,
        hold,
        told: false,
        table: None,
        facts,
    })
}

/// The group of sockets that the kernel divides packets among.
#[derive(Default)]
struct Fanout {
    id: Option<u16>,
}

impl Fanout {
    fn join(&mut self, socket: &Socket) -> io::Result<()> {
        // A group looks at its own flag and not at the sockets' PACKET_IGNORE_OUTGOING.
        const HASH: u32 = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        let unique = match self.id {
            // The kernel chooses a number that no other process has.
            None => libc::PACKET_FANOUT_FLAG_UNIQUEID,
            Some(_) => 0,
        };
        let word = u32::from(self.id.unwrap_or(0)) | (HASH | unique) << 16;
        socket.set(libc::SOL_PACKET, libc::PACKET_FANOUT, word)?;
        let told = socket.get(libc::SOL_PACKET, libc::PACKET_FANOUT, 0_u32)?;
        self.id = Some(told as u16);
        Ok(())
    }
}

struct Pair {
    receive: Receive,
    send: Send,
}

// SAFETY: frames come from `Receive`, which lends buffers of `Buffers` only.
unsafe impl Queue for Pair {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        _before: u64,
    ) -> Result<usize, PortError> {
        self.receive.receive(into, most)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        self.send.transmit(packets)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.send.flush()
    }

    fn release(&mut self, frames: &[Frame]) {
        self.receive.release(frames);
    }

    fn close(&mut self) {
        self.receive.close();
    }

    fn idle(&self) -> bool {
        self.send.idle()
    }

    fn counts(&self) -> QueueCounts {
        QueueCounts {
            failed: self.send.failed(),
            ..self.receive.counts()
        }
    }

    fn descriptor(&self) -> Option<i32> {
        Some(self.receive.socket().fd())
    }

    fn memory(&self) -> u64 {
        self.receive.memory() + self.send.memory()
    }
}
