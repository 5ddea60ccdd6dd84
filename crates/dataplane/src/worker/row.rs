//! Connected functions on bursts that somebody else fills: for measurements of a chain without ports.

use std::sync::Arc;

use millrace_topology::Topology;

use super::chain::{self, Chain, Link};
use super::lives::Life;
use crate::clock;
use crate::module::{ModuleError, abi};
use crate::packet::Burst;
use crate::port::Frame;

/// A chain on one worker, without ports.
pub struct Row {
    chain: Chain,
    frames: Vec<Frame>,
    descriptors: Vec<abi::Packet>,
}

/// Time that a burst took, in ticks of [`crate::clock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Took {
    /// from the first function's start to the last one's end, with what is between
    pub all: u64,
    /// inside the functions alone
    pub functions: u64,
}

impl Row {
    /// Makes the state of each function; `time` is when they start, ns since the epoch. A topology is that of a line if none
    /// is given; `ports` is the number of ports of a chain of one.
    ///
    /// # Errors
    /// The state of an element cannot be made.
    pub fn new(
        links: &[Link],
        topology: Option<&Topology>,
        ports: usize,
        time: u64,
    ) -> Result<Self, ModuleError> {
        let lives: Vec<Arc<Life>> = (0_u64..)
            .zip(links)
            .map(|(id, link)| Arc::new(Life::of(id, link, 1)))
            .collect();
        let topology = topology.cloned().unwrap_or_else(|| match links.len() {
            0 | 1 => Topology::alone(ports),
            several => Topology::line(several),
        });
        let shared = chain::common(links, 1)?;
        let mut chain = Chain::new(links, &lives, &topology, &shared, 0, time)?;
        chain.stages.iter_mut().for_each(|stage| stage.start(time));
        Ok(Self {
            chain,
            frames: Vec::new(),
            descriptors: Vec::new(),
        })
    }

    /// Runs the functions over a burst and sets the fate of each of its packets.
    pub fn burst(&mut self, burst: &mut Burst) -> Took {
        burst.swap(&mut self.frames, &mut self.descriptors);
        let begin = clock::ticks();
        // SAFETY: `Burst` lends descriptors of packets that lie in buffers of their own, which live and stay in place until
        // they are taken back below.
        unsafe { self.chain.run(&mut self.descriptors, &self.frames) };
        let all = clock::ticks().saturating_sub(begin);
        burst.swap(&mut self.frames, &mut self.descriptors);
        Took {
            all,
            functions: self.chain.work.iter().map(|w| w.ticks).sum(),
        }
    }
}
