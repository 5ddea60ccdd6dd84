//! `tap:NAME`: an interface that is made here and whose other end is the host's own stack.
//!
//! What the stack sends through the interface comes in, what leaves is received by the stack. The
//! interface exists as long as the port does, may be given addresses, and may be moved to another
//! network namespace while it runs. Checksums and segmentation are left to nobody
//! (`TUNSETOFFLOAD` 0): the kernel does both before it hands a packet over.
//!
//! Options: `mtu=N`, `up=off` (leave it down).

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use super::device::{Interface, bring_up, failed, ok, request, set_mtu};
use super::{
    Buffers, Departure, Frame, Kind, LiveOptions, LivePort, PortError, Query, Queue, QueueCounts,
};
use crate::packet::{Layout, MAX_FRAME};

/// Interfaces of our own.
pub const KIND: Kind = Kind {
    scheme: "tap",
    form: "tap:NAME",
    what: "an interface that is made for the run",
    input: None,
    output: None,
    live: Some(open),
    spelled: |rest| Asked::of(rest).map(drop),
};

/// The device is gone.
const GONE: i32 = libc::EBADFD;

/// What a word asks for.
struct Asked {
    query: Query,
    name: CString,
    /// 0: as the kernel makes it
    mtu: u64,
    up: bool,
}

impl Asked {
    fn of(rest: &str) -> Result<Self, PortError> {
        let mut query = Query::parse(KIND.scheme, rest)?;
        let mtu = query.number("mtu", 0, 0..=65_521)?;
        let up = query.switch("up", true)?;
        query.finish("mtu and up")?;
        let name = CString::new(query.name.as_str())
            .ok()
            .filter(|n| (1..libc::IFNAMSIZ).contains(&n.as_bytes().len()))
            .ok_or_else(|| PortError::Live {
                word: query.word().to_owned(),
                what: format!("`{}` is no name for an interface", query.name),
                help: "interface names have 1 to 15 characters".into(),
            })?;
        Ok(Self {
            query,
            name,
            mtu,
            up,
        })
    }
}

fn open(rest: &str, options: &LiveOptions) -> Result<LivePort, PortError> {
    let Asked {
        query,
        name,
        mtu,
        up,
    } = Asked::of(rest)?;
    let word = query.word().to_owned();
    let queues = options.queues.max(1);
    let mut files = Vec::new();
    for _ in 0..queues {
        files.push(attach(&word, &name, queues > 1)?);
    }
    if mtu > 0 {
        set_mtu(&name, mtu as u32)
            .map_err(|e| failed(&word, "cannot set the MTU", &e, "choose another mtu="))?;
    }
    let longest = if up {
        bring_up(&name)
            .map_err(|e| failed(&word, "cannot bring the interface up", &e, "use up=off"))?;
        Interface::find(&word, &query.name)?.longest()
    } else {
        mtu.max(1500) as usize + 22
    };
    let queues = files.into_iter().map(|file| -> Box<dyn Queue> {
        Box::new(Tap {
            file,
            word: word.clone(),
            longest,
            spill: vec![0; MAX_FRAME],
            buffers: Buffers::new(options.burst, options.port, Layout::Pooled),
            counts: QueueCounts::default(),
            closed: false,
        })
    });
    Ok(LivePort {
        queues: queues.collect(),
        hold: None,
        told: false,
        table: None,
        facts: vec![format!("{word}: {} bytes a frame at most", longest)],
    })
}

/// Opens a queue of the interface, which the first one makes.
fn attach(word: &str, name: &std::ffi::CStr, several: bool) -> Result<File, PortError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(|e| {
            failed(
                word,
                "cannot open /dev/net/tun",
                &e,
                "load the driver: `modprobe tun`",
            )
        })?;
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI;
    if several {
        flags |= libc::IFF_MULTI_QUEUE;
    }
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes an ifreq, which outlives the call.
    let made = ok(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) });
    made.map_err(|e| {
        failed(
            word,
            "cannot make the interface",
            &e,
            "choose another name: one in use, or made with other queues, cannot be taken",
        )
    })?;
    // SAFETY: TUNSETOFFLOAD takes a number.
    let plain = ok(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, 0) });
    plain.map_err(|e| {
        failed(
            word,
            "cannot turn offloads off",
            &e,
            "use another kind of port",
        )
    })?;
    Ok(file)
}

struct Tap {
    file: File,
    word: String,
    /// frames are read into buffers of this size
    longest: usize,
    /// what is longer goes on here
    spill: Vec<u8>,
    buffers: Buffers,
    counts: QueueCounts,
    closed: bool,
}

impl Tap {
    /// A frame that is longer than any before it: the MTU was raised. Those behind it are read at once.
    #[cold]
    fn longer(&mut self, bytes: &[u8]) -> Option<Frame> {
        if bytes.len() > MAX_FRAME {
            return None;
        }
        self.longest = bytes.len();
        self.buffers.lend(bytes.len(), |place| {
            place.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Some(bytes.len())
        })
    }

    fn gone(&self, error: &std::io::Error) -> PortError {
        failed(
            &self.word,
            "the interface went away while it was in use",
            error,
            "what was received before is accounted; run again",
        )
    }
}

// SAFETY: frames come from `Buffers`, which leaves a lent buffer alone until it is released.
unsafe impl Queue for Tap {
    fn receive(
        &mut self,
        into: &mut Vec<Frame>,
        most: usize,
        _before: u64,
    ) -> Result<usize, PortError> {
        let start = into.len();
        while into.len() - start < most && self.buffers.free() > 0 && !self.closed {
            let mut result = Ok(0);
            let (file, longest, spill) = (&mut self.file, self.longest, &mut self.spill);
            let mut long = None;
            let frame = self.buffers.lend(longest, |place| {
                let place = place.get_mut(..longest)?;
                let mut parts = [IoSliceMut::new(place), IoSliceMut::new(spill)];
                result = file.read_vectored(&mut parts);
                let length = *result.as_ref().ok().filter(|n| **n > 0)?;
                if length <= longest {
                    return Some(length);
                }
                long = spill
                    .get(..length - longest)
                    .map(|rest| [&*place, rest].concat());
                None
            });
            let frame = match long {
                Some(bytes) => self.longer(&bytes),
                None => frame,
            };
            match (frame, result) {
                (Some(frame), _) => into.push(frame),
                (None, Ok(_)) => self.counts.unfit += 1,
                (None, Err(e)) if e.raw_os_error() == Some(GONE) => return Err(self.gone(&e)),
                (None, Err(e)) if e.kind() == ErrorKind::Interrupted => (),
                (None, Err(_)) => break,
            }
        }
        Ok(into.len() - start)
    }

    fn transmit(&mut self, packets: &mut [Departure]) -> Result<usize, PortError> {
        for (taken, packet) in packets.iter().enumerate() {
            match self.file.write(packet.bytes()) {
                Ok(_) => (),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(taken),
                Err(e) if e.raw_os_error() == Some(GONE) => return Err(self.gone(&e)),
                // Down, or a frame that the interface does not take.
                Err(_) => self.counts.failed += 1,
            }
        }
        Ok(packets.len())
    }

    fn release(&mut self, frames: &[Frame]) {
        self.buffers.release(frames);
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn counts(&self) -> QueueCounts {
        self.counts
    }

    fn descriptor(&self) -> Option<i32> {
        Some(self.file.as_raw_fd())
    }

    fn memory(&self) -> u64 {
        self.buffers.memory()
    }
}
