//! Random draws: functions of a seed, the packet's number and how many it has had.

use super::Machine;

/// The n-th draw of a seed (fastpath/base.h, `mr_random`: splitmix64).
pub(super) fn of(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Machine<'_> {
    /// What random draws come from; 0 until then.
    pub fn seed(&mut self, seed: u64) {
        if let Some(exact) = &mut self.exact {
            exact.seed = seed;
        }
    }

    /// The number of the next packet; from 0 until then.
    pub fn numbered(&mut self, number: u64) {
        if let Some(exact) = &mut self.exact {
            exact.next = number;
        }
    }

    /// A draw of the seed (fastpath/helpers/get_prandom_u32.h).
    pub(super) fn random(&mut self) -> u64 {
        let Some(exact) = &mut self.exact else {
            return 0;
        };
        let of_packet = of(exact.seed, exact.number);
        exact.draws += 1;
        of(of_packet, exact.draws - 1) >> 32
    }
}
