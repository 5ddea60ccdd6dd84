//! The budget of an object: the switches of every verb that reads one, and their values.

use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;
use millrace_check::{Budget, budget};

use crate::failure::Failure;
use crate::function::Function;
use crate::quantity::bytes;

/// Most objects that a message names.
const NAMED: usize = 3;

/// The machine's memory where the system does not say: 8 GiB.
const MACHINE: u64 = 8 << 30;

/// What every object may take.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Budgets")]
pub struct Switches {
    /// Most time for an object over check, model, plan and clang together, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS", global = true, value_parser = clap::value_parser!(u64).range(1..))]
    budget_time: Option<u64>,

    /// Most memory for the same, as in 512M or 4G [default: 2G]
    #[arg(long, value_name = "SIZE", global = true, value_parser = size)]
    budget_memory: Option<u64>,

    /// Most memory that the state of a function may take when it runs, over all workers [default: half of the
    /// machine's]
    #[arg(long, value_name = "SIZE", global = true, value_parser = size)]
    map_memory: Option<u64>,
}

static GIVEN: OnceLock<Switches> = OnceLock::new();

impl Switches {
    /// Makes them those of this process; the first ones count.
    pub fn apply(self) {
        let _ = GIVEN.set(self);
    }
}

fn given() -> Switches {
    GIVEN.get().copied().unwrap_or_default()
}

/// The budget of an object, which begins now.
pub fn begin() -> Budget {
    let given = given();
    let time = given.budget_time.map_or(budget::TIME, Duration::from_secs);
    Budget::begin(time, given.budget_memory.unwrap_or(budget::MEMORY))
}

/// Refuses a function whose objects take more than they may; of each it is said how many copies there are.
///
/// # Errors
/// They do: the largest are named.
pub fn maps(function: &Function, copies: impl Fn(usize) -> u64) -> Result<(), Failure> {
    let declared = function.module.objects().iter().enumerate();
    let mut objects: Vec<(&str, u64)> = declared
        .map(|(i, o)| (o.name.as_str(), o.bytes.saturating_mul(copies(i))))
        .collect();
    let all = objects.iter().fold(0_u64, |sum, o| sum.saturating_add(o.1));
    let most = given().map_memory.unwrap_or_else(|| machine() / 2);
    if all <= most {
        return Ok(());
    }
    objects.sort_by_key(|o| std::cmp::Reverse(o.1));
    let largest = objects.iter().take(NAMED);
    let largest: Vec<_> = largest
        .map(|(name, n)| format!("{name} {}", bytes(*n)))
        .collect();
    Err(Failure::wrong(format!(
        "run: the state objects of {} take {}, and the budget of their memory is {}; the largest: {}",
        function.name,
        bytes(all),
        bytes(most),
        largest.join(", ")
    ))
    .help("raise it with `--map-memory SIZE`, or give them fewer entries with `--capacity OBJECT=N`"))
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

/// `512M`, `4G`: bytes, in units of 1024.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || "not a size; write it as in 512M or 4G".to_owned();
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << shift)
        .filter(|n| *n > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("4096"), Ok(4096));
        for wrong in ["", "G", "0", "4X", "-1", "99999999999G", "4 G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
