//! Bounds on what an object may take while it is examined and built, and on the memory of its state when it runs.

use std::time::Duration;

use millrace_check::{Budget, budget};
use millrace_dataplane::Module;

use crate::Error;

/// Most objects that a message names.
const NAMED: usize = 3;

/// The machine's memory where the system does not say: 8 GiB.
const MACHINE: u64 = 8 << 30;

/// What every object may take.
#[derive(Clone, Copy, Debug)]
pub struct Budgets {
    /// most time for an object over check, model, plan and clang together
    pub time: Duration,
    /// most memory for the same, bytes
    pub memory: u64,
    /// most memory that the state of a function may take when it runs, over all workers, bytes; none: half of the
    /// machine's
    pub state: Option<u64>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            time: budget::TIME,
            memory: budget::MEMORY,
            state: None,
        }
    }
}

impl Budgets {
    /// The budget of one object, which begins now.
    #[must_use]
    pub fn begin(&self) -> Budget {
        Budget::begin(self.time, self.memory)
    }

    /// Refuses a function whose objects take more than they may; of each it is said how many copies there are.
    pub(crate) fn holds(
        &self,
        name: &str,
        module: &Module,
        copies: impl Fn(usize) -> u64,
    ) -> Result<(), Error> {
        let declared = module.objects().iter().enumerate();
        let mut objects: Vec<(&str, u64)> = declared
            .map(|(i, o)| (o.name.as_str(), o.bytes.saturating_mul(copies(i))))
            .collect();
        let all = objects.iter().fold(0_u64, |sum, o| sum.saturating_add(o.1));
        let most = self.state.unwrap_or_else(|| machine() / 2);
        if all <= most {
            return Ok(());
        }
        objects.sort_by_key(|o| std::cmp::Reverse(o.1));
        let largest = objects.iter().take(NAMED);
        let largest: Vec<_> = largest
            .map(|(name, n)| format!("{name} {}", bytes(*n)))
            .collect();
        Err(Error::wrong(format!(
            "run: the state objects of {name} take {}, and the budget of their memory is {}; the largest: {}",
            bytes(all),
            bytes(most),
            largest.join(", ")
        ))
        .help("raise it with `--map-memory SIZE`, or give them fewer entries with `--capacity OBJECT=N`"))
    }
}

/// The memory of the machine, or what the control group leaves of it.
fn machine() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let total = total.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    let total = total.map_or(MACHINE, |kib| kib.saturating_mul(1024));
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    group.map_or(total, |most| total.min(most))
}

/// Bytes in the unit that keeps them short: KiB, MiB, GiB.
#[must_use]
pub fn bytes(number: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number as f64;
    let mut unit = "B";
    for next in units {
        unit = next;
        if value < 1024.0 {
            break;
        }
        if next != "TiB" {
            value /= 1024.0;
        }
    }
    if unit == "B" {
        format!("{number} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
