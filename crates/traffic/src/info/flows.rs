//! Flows and how many packets each has.

use std::collections::HashMap;

use super::description::{Flows, Quantiles};

/// Packets by flow. A flow is known by 64 bits that its addresses, ports and protocol hash to: among
/// eight million flows two agree with a probability below 1 in 500,000.
pub(super) struct FlowTable {
    packets: HashMap<u64, u64>,
    limit: usize,
    exceeded: bool,
}

impl FlowTable {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            packets: HashMap::new(),
            limit,
            exceeded: false,
        }
    }

    pub(super) fn count(&mut self, flow: u64) {
        if let Some(packets) = self.packets.get_mut(&flow) {
            *packets += 1;
        } else if self.packets.len() < self.limit {
            self.packets.insert(flow, 1);
        } else {
            self.exceeded = true;
        }
    }

    pub(super) fn describe(self) -> Flows {
        let mut sizes: Vec<u64> = self.packets.into_values().collect();
        sizes.sort_unstable();
        let packets: u64 = sizes.iter().sum();
        let share = |count: usize| {
            let top: u64 = sizes.iter().rev().take(count).sum();
            if packets > 0 {
                top as f64 / packets as f64
            } else {
                0.0
            }
        };
        let quantile = |hundredths: usize| {
            let rank = (sizes.len() * hundredths).div_ceil(100).max(1);
            sizes.get(rank - 1).copied().unwrap_or(0)
        };
        Flows {
            count: sizes.len() as u64,
            exceeded: self.exceeded,
            packets,
            largest_share: share(1),
            top_percent_share: share(sizes.len().div_ceil(100)),
            sizes: Quantiles {
                min: sizes.first().copied().unwrap_or(0),
                p10: quantile(10),
                p25: quantile(25),
                p50: quantile(50),
                p75: quantile(75),
                p90: quantile(90),
                p99: quantile(99),
                max: sizes.last().copied().unwrap_or(0),
            },
        }
    }
}
