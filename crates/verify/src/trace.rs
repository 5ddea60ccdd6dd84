//! The packets that both sides are given.

use millrace_dataplane::runner::Sources;
use millrace_traffic::generate::{Generator, Spec};

/// One packet of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// ingress number, from 0
    pub number: u64,
    /// ingress port
    pub port: u32,
    /// ns since the epoch; never before the packet in front of it
    pub time: u64,
    /// length on the wire, bytes
    pub wire: u32,
    /// the frame, as far as the trace has it
    pub frame: Vec<u8>,
}

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct TraceError {
    /// what is wrong
    pub what: String,
    /// what to do
    pub help: String,
}

/// Traffic that can be gone through more than once, and is the same each time.
pub trait Trace {
    /// From the first packet again.
    ///
    /// # Errors
    /// It cannot be read.
    fn open(&mut self) -> Result<Box<dyn Pass>, TraceError>;
}

/// A packet as it comes: its port, its time (ns), its length on the wire and its bytes.
pub type Arriving<'a> = (u32, u64, u32, &'a [u8]);

/// Once through a trace.
pub trait Pass {
    /// The next packet; none at the end.
    ///
    /// # Errors
    /// The trace is damaged here.
    fn next(&mut self) -> Result<Option<Arriving<'_>>, TraceError>;

    /// How much of it is done, 0 to 1, where that is known.
    fn share(&self) -> Option<f64>;
}

/// Generated traffic: the LAN at port 0, the WAN at port 1.
pub struct Generated(pub Spec);

struct Made {
    generator: Generator,
    all: u64,
    made: u64,
}

impl Trace for Generated {
    fn open(&mut self) -> Result<Box<dyn Pass>, TraceError> {
        let all = self.0.packets;
        let generator = Generator::new(self.0.clone()).map_err(|e| TraceError {
            what: e.to_string(),
            help: "see `millrace trace gen --help` for what can be made".into(),
        })?;
        Ok(Box::new(Made {
            generator,
            all,
            made: 0,
        }))
    }
}

impl Pass for Made {
    fn next(&mut self) -> Result<Option<Arriving<'_>>, TraceError> {
        self.made += 1;
        let record = self.generator.next();
        Ok(record.map(|r| (r.interface, r.time_ns, r.original_length, r.data)))
    }

    fn share(&self) -> Option<f64> {
        Some(self.made as f64 / self.all.max(1) as f64)
    }
}

/// Captures, opened anew for each pass.
pub struct Captured<F>(pub F);

struct Read {
    sources: Sources,
    begun: bool,
}

impl<F: FnMut() -> Result<Sources, TraceError>> Trace for Captured<F> {
    fn open(&mut self) -> Result<Box<dyn Pass>, TraceError> {
        let sources = (self.0)()?;
        Ok(Box::new(Read {
            sources,
            begun: false,
        }))
    }
}

impl Pass for Read {
    fn next(&mut self) -> Result<Option<Arriving<'_>>, TraceError> {
        if self.begun {
            self.sources.advance();
        }
        self.begun = true;
        if let Some(failure) = self.sources.failures().first() {
            return Err(TraceError {
                what: failure.to_string(),
                help: failure.help(),
            });
        }
        let next = self.sources.next();
        Ok(next.map(|(r, port)| (port, r.time_ns, r.original_length, r.data)))
    }

    fn share(&self) -> Option<f64> {
        self.sources.progress()
    }
}

/// The first this many packets of a trace.
pub struct First<T>(pub T, pub u64);

struct Cut {
    pass: Box<dyn Pass>,
    left: u64,
    all: u64,
}

impl<T: Trace> Trace for First<T> {
    fn open(&mut self) -> Result<Box<dyn Pass>, TraceError> {
        let pass = self.0.open()?;
        let all = self.1;
        Ok(Box::new(Cut {
            pass,
            left: all,
            all,
        }))
    }
}

impl Pass for Cut {
    fn next(&mut self) -> Result<Option<Arriving<'_>>, TraceError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.pass.next()
    }

    fn share(&self) -> Option<f64> {
        let own = (self.all - self.left) as f64 / self.all.max(1) as f64;
        self.pass.share().map(|share| share.max(own))
    }
}

/// Packets that are given: for tests, and for traffic that somebody composes.
pub struct Given(pub Vec<Packet>);

struct Listed {
    packets: std::vec::IntoIter<Packet>,
    all: usize,
    at: Packet,
}

impl Trace for Given {
    fn open(&mut self) -> Result<Box<dyn Pass>, TraceError> {
        let packets = self.0.clone().into_iter();
        let all = packets.len();
        let at = Packet {
            number: 0,
            port: 0,
            time: 0,
            wire: 0,
            frame: Vec::new(),
        };
        Ok(Box::new(Listed { packets, all, at }))
    }
}

impl Pass for Listed {
    fn next(&mut self) -> Result<Option<Arriving<'_>>, TraceError> {
        let Some(packet) = self.packets.next() else {
            return Ok(None);
        };
        self.at = packet;
        let at = &self.at;
        Ok(Some((at.port, at.time, at.wire, at.frame.as_slice())))
    }

    fn share(&self) -> Option<f64> {
        let done = self.all - self.packets.len();
        Some(done as f64 / self.all.max(1) as f64)
    }
}
