//! `afxdp:IF`: an interface through AF_XDP sockets, the fastest way to an interface of the kernel.
//!
//! A small XDP program gives what arrives at the interface's receive queues to our sockets; the host's
//! own stack sees none of it. Each worker has the sockets of some of the queues. The driver's memory
//! is ours where it can be (zero copy), otherwise packets are copied once.
//!
//! A packet from a local process behind a veth comes with its checksum left to the device, and XDP is
//! not told: see [`super::device::looks_unfinished`]. Attaching a program to a veth makes its peer cut
//! large packets itself.
//!
//! Options: `ring=N` (entries of each ring, a power of two, default 2048), `mode=native|generic` (who
//! runs the program; without it the driver where it can), `busy-poll=US` (the kernel polls the device
//! when it is asked, this long), `checksum=on|off` (finish checksums; on for veth), `promisc=off`.

mod ring;
mod socket;

use std::io;

use super::device::{Interface, Mode, Promiscuous, SocketMap, Watch, XdpProgram, attach, failed};
use super::{
    Departure, Frame, Kind, LiveOptions, LivePort, PortError, Query, Queue, QueueCounts, rights,
};
use socket::{LONGEST, SocketOptions, Xsk};

/// AF_XDP sockets.
pub const KIND: Kind = Kind {
    scheme: "afxdp",
    form: "afxdp:IF",
    what: "an interface through AF_XDP sockets",
    input: None,
    output: None,
    live: Some(open),
    spelled: |rest| Asked::of(rest).map(drop),
};

/// The most receive queues that are looked at.
const MOST_QUEUES: u32 = 256;

/// What a word asks for.
struct Asked {
    query: Query,
    ring: u32,
    wanted: Option<Mode>,
    busy_poll: u32,
    checksum: Option<String>,
    promiscuous: bool,
}

impl Asked {
    fn of(rest: &str) -> Result<Self, PortError> {
        let mut query = Query::parse(KIND.scheme, rest)?;
        let ring = query.number("ring", 2048, 64..=1 << 16)? as u32;
        if !ring.is_power_of_two() {
            return Err(query.wrong("ring", "a power of two"));
        }
        let wanted = Mode::take(&mut query)?;
        let busy_poll = query.number("busy-poll", 0, 0..=1000)? as u32;
        let checksum = query.text("checksum");
        let promiscuous = query.switch("promisc", true)?;
        let known = matches!(checksum.as_deref(), None | Some("" | "on" | "off"));
        if !known {
            return Err(query.wrong("checksum", "`on` or `off`"));
        }
        query.finish("ring, mode, busy-poll, checksum and promisc")?;
        Ok(Self {
            query,
            ring,
            wanted,
            busy_poll,
            checksum,
            promiscuous,
        })
    }
}

fn open(rest: &str, options: &LiveOptions) -> Result<LivePort, PortError> {
    // Options first: they are wrong on any machine.
    let Asked {
        query,
        ring,
        wanted,
        busy_poll,
        checksum,
        promiscuous,
    } = Asked::of(rest)?;
    let word = query.word().to_owned();
    let interface = Interface::find(&word, &query.name)?;
    if interface.longest() > LONGEST {
        let most = LONGEST - 22;
        return Err(PortError::Live {
            word,
            what: format!(
                "the MTU of {} is {}, and a buffer holds packets of an MTU of {most}",
                query.name, interface.mtu
            ),
            help: format!(
                "`ip link set {} mtu {most}`, or use afpacket:{}",
                query.name, query.name
            ),
        });
    }
    let queues = interface.receive_queues(&query.name).min(MOST_QUEUES);
    let workers = options.queues.max(1);
    if workers > queues {
        return Err(PortError::Live {
            word,
            what: format!(
                "{workers} workers, and {} has {queues} receive queues",
                query.name
            ),
            help: format!(
                "give the interface more (`ethtool -L {} rx {workers} tx {workers}`) or use fewer cores",
                query.name
            ),
        });
    }
    let no = |what: &'static str, help: &'static str| {
        let word = word.clone();
        move |e: io::Error| failed(&word, what, &e, help)
    };
    let map = SocketMap::new(queues).map_err(no(
        "cannot make a map of sockets",
        "AF_XDP needs a kernel of 5.9 or later with CONFIG_XDP_SOCKETS",
    ))?;
    let program = XdpProgram::to_sockets(&map).map_err(no(
        "cannot load the XDP program",
        "AF_XDP needs a kernel of 5.9 or later",
    ))?;
    // A veth's local senders leave checksums to it; other devices have a wire behind them.
    let checksums = match checksum.as_deref() {
        None => interface.driver == "veth",
        Some(text) => text != "off",
    };
    let (link, mode) = attach(&word, &query.name, program.fd(), &interface, wanted)?;
    let mut pairs: Vec<Pair> = (0..workers)
        .map(|_| Pair {
            sockets: Vec::new(),
            next: 0,
            watch: Watch::new(&word, &query.name),
            closed: false,
        })
        .collect();
    let mut zero_copy = true;
    for queue in 0..queues {
        let options = SocketOptions {
            ring,
            index: interface.index,
            queue,
            longest: interface.longest(),
            sends: interface.sends(),
            busy_poll,
            checksums,
            port: options.port,
        };
        let xsk = Xsk::open(options).map_err(|(what, e)| {
            // The kernel answers ENOBUFS where RLIMIT_MEMLOCK is reached (xdp_umem_account_pages).
            let help = match e.raw_os_error() {
                Some(libc::ENOBUFS) if what == socket::REGISTER => {
                    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
                    rights::locked(socket::memory(&options) as u64, limit.current)
                }
                _ => "make the ring smaller, or stop who else has the queue".to_owned(),
            };
            failed(&word, what, &e, &help)
        })?;
        zero_copy &= xsk.zero_copy;
        map.set(queue, xsk.socket().fd()).map_err(no(
            "cannot give the program a socket",
            "stop who else has the queue",
        ))?;
        if let Some(pair) = pairs.get_mut((queue % workers) as usize) {
            pair.sockets.push(xsk);
        }
    }
    let promiscuous = match promiscuous {
        true => Some(Promiscuous::enter(&word, &interface)?),
        false => None,
    };
    let copy = if zero_copy { "zero copy" } else { "copying" };
    let finished = if checksums {
        ", checksums finished"
    } else {
        ""
    };
    Ok(LivePort {
        queues: pairs
            .into_iter()
            .map(|p| Box::new(p) as Box<dyn Queue>)
            .collect(),
        hold: Some(Box::new((link, program, map, promiscuous))),
        told: false,
        table: None,
        facts: vec![format!(
            "{word}: {mode:?} mode, {copy}, {queues} queues, MTU {}{finished}",
            interface.mtu
        )],
    })
}

/// The sockets of one worker.
struct Pair {
    sockets: Vec<Xsk>,
    /// the socket to receive from first, in turn
    next: usize,
    watch: Watch,
    closed: bool,
}

// SAFETY: frames lie in chunks that came out of a receive ring and go back to the kernel only when
// they are released or sent; each chunk holds one packet.
unsafe impl Queue for Pair {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        _before: u64,
    ) -> Result<usize, PortError> {
        let count = self.sockets.len();
        let mut received = 0;
        for turn in 0..count {
            let index = (self.next + turn) % count;
            let Some(xsk) = self.sockets.get_mut(index) else {
                break;
            };
            received += xsk.receive(into, most - received);
            if received == most {
                break;
            }
        }
        self.next = (self.next + 1) % count.max(1);
        if received == 0 && !self.closed {
            for xsk in &self.sockets {
                xsk.wake();
            }
            self.watch.look()?;
        }
        Ok(received)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        // Several sockets belong to one worker where there are more queues than workers; one of them is
        // enough to send by, and it keeps the packets in order.
        Ok(self
            .sockets
            .first_mut()
            .map_or(0, |xsk| xsk.transmit(packets)))
    }

    fn flush(&mut self) -> Result<(), PortError> {
        for xsk in &mut self.sockets {
            if let Err(error) = xsk.flush() {
                return Err(self.watch.gone(&error));
            }
        }
        Ok(())
    }

    fn release(&mut self, frames: &[Frame]) {
        for xsk in &mut self.sockets {
            let pool = xsk.pool();
            xsk.release(frames.iter().filter(|f| f.pool == pool));
        }
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn idle(&self) -> bool {
        self.sockets.iter().all(Xsk::idle)
    }

    fn counts(&self) -> QueueCounts {
        let mut counts = QueueCounts::default();
        for xsk in &self.sockets {
            let (missed, failed) = xsk.counts();
            counts.missed += missed;
            counts.failed += failed + xsk.refused;
            counts.unfit += xsk.too_long;
        }
        counts
    }

    fn descriptor(&self) -> Option<i32> {
        // A worker with several sockets has several descriptors; it looks again instead of waiting.
        match self.sockets.as_slice() {
            [one] => Some(one.socket().fd()),
            _ => None,
        }
    }

    fn memory(&self) -> u64 {
        self.sockets.iter().map(Xsk::memory).sum()
    }
}
