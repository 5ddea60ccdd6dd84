//! What a run takes of memory: predicted from declared capacities, and measured.

use serde::Serialize;

use crate::packet::Burst;
use crate::port::CAPTURE_BYTES;
use crate::runner::BURST;

/// What the process takes besides state, buffers and ports, bytes: its own pages and the C library's,
/// the module's code, and the heap that reading a program leaves. Measured as VmRSS less the other two
/// parts, in MB, when the module comes from the cache: 21.5 to 21.9 over three functions, of which 17 are pages of files, most of them
/// this program's own code, that other runs share; in a debug build, where most crates are not optimised, 30.2 to 32.1 over four, and
/// 31.2 to 33.6 with the ports of DPDK.
pub const BASE: u64 = if cfg!(debug_assertions) {
    31_500_000
} else {
    21_700_000
};

/// Gives freed heap back to the system: what proving a large program took need not stay resident
/// while it runs.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer, and may be called at any time from any thread (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Predicted and measured resident memory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// state objects: what the program declares
    pub objects: u64,
    /// packet buffers and the ports' own
    pub runtime: u64,
    /// the process without them, [`BASE`]
    pub base: u64,
    /// the sum of the three
    pub predicted: u64,
    /// VmRSS at the end of the run, before anything was released; 0 when the system does not say
    pub resident: u64,
    /// VmHWM: the most there ever was
    pub peak: u64,
}

impl Memory {
    /// Adds this many bytes of packet buffers and ports to the prediction.
    pub fn takes(&mut self, bytes: u64) {
        *self = Self {
            resident: self.resident,
            peak: self.peak,
            ..Self::predict(self.objects, self.runtime.saturating_add(bytes))
        };
    }

    /// A prediction from its parts, bytes.
    #[must_use]
    pub fn predict(objects: u64, runtime: u64) -> Self {
        let predicted = objects.saturating_add(runtime).saturating_add(BASE);
        Self {
            objects,
            runtime,
            base: BASE,
            predicted,
            resident: 0,
            peak: 0,
        }
    }

    /// The prediction for the plainest run: bursts of the usual size, from one capture to another.
    #[must_use]
    pub fn from_capture_to_capture(objects: u64) -> Self {
        Self::predict(objects, Burst::bytes(BURST).saturating_add(CAPTURE_BYTES))
    }

    /// The same with what the system measures now.
    #[must_use]
    pub fn measured(mut self) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        self.resident = field(&status, "VmRSS:");
        self.peak = field(&status, "VmHWM:");
        self
    }
}

/// A field of /proc/self/status, which is in KiB, as bytes.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|l| l.strip_prefix(name));
    let number = line
        .and_then(|l| l.split_whitespace().next())
        .and_then(|n| n.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_kib() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(field(status, "VmRSS:"), 1 << 20);
        assert_eq!(field(status, "VmHWM:"), 2 << 20);
        assert_eq!(field(status, "VmSwap:"), 0);
    }

    #[test]
    fn this_process_has_memory() {
        let memory = Memory::predict(1, 2).measured();
        assert_eq!(memory.predicted, BASE + 3);
        assert!(memory.resident > 0 && memory.peak >= memory.resident / 2);
    }
}
