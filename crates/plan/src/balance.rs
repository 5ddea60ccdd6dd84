//! An indirection table for a load that is known from a trace.
//!
//! All ports and all who hash have one table over the bits of the hash that packets agree in which must meet, so
//! the loads of an index are added up over all ports.

use millrace_steer::table::{balanced, imbalance, repeated};
use millrace_steer::{RssError, Steering};

use crate::plan::Plan;

/// Packets of a trace by the index of the indirection table that they have under some keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loads(Vec<u64>);

impl Loads {
    /// Counts a packet of a port; ports that there are not count as the last.
    pub fn add(&mut self, steering: &[Steering], port: usize, frame: &[u8]) {
        let Some(of) = steering.get(port).or(steering.last()) else {
            return;
        };
        let index = of.hash(frame) as usize & (self.0.len().wrapping_sub(1));
        if let Some(load) = self.0.get_mut(index) {
            *load += 1;
        }
    }

    /// Packets counted.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The heaviest index's part of all packets, 0 to 1; 0 without packets.
    #[must_use]
    pub fn heaviest(&self) -> f64 {
        let most = self.0.iter().max().copied().unwrap_or(0);
        most as f64 / self.packets().max(1) as f64
    }

    /// The part of all packets, 0 to 1, that the busiest of `cores` workers has under a table made for these
    /// loads.
    #[must_use]
    pub fn busiest(&self, cores: u32) -> f64 {
        let cores = cores.max(1);
        let table = balanced(&self.0, cores);
        imbalance(&self.0, &table, cores) / f64::from(cores)
    }
}

impl Plan {
    /// No packets yet, for each index that steering looks at: a power of two.
    #[must_use]
    pub fn loads(&self) -> Loads {
        Loads(vec![0; 1 << self.solved.space.index_bits()])
    }

    /// Gives every port of a [`Plan::steering`] the table that these loads, counted under its keys, are
    /// balanced by: longest processing time first.
    ///
    /// # Errors
    /// [`RssError`] as [`Plan::steering`].
    pub fn balance(&self, steering: &mut [Steering], loads: &Loads) -> Result<(), RssError> {
        let queues = balanced(&loads.0, self.cores);
        for port in steering {
            let table = repeated(&queues, port.nic.table().len());
            port.nic = port
                .nic
                .clone()
                .with_table(&self.device, &table, self.cores)?;
            for rss in port.software.values_mut() {
                let table = repeated(&queues, rss.table().len());
                *rss = rss.clone().with_table(&self.software, &table, self.cores)?;
            }
        }
        Ok(())
    }
}
