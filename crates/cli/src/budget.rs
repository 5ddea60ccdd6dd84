//! The budget of an object: the switches of every verb that reads one, and their values.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use clap::Args;
use millrace::Budgets;
use millrace_check::Budget;

/// What every object may take.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Budgets")]
pub struct Switches {
    /// Most time for an object over check, model, plan and clang together, in seconds of a processor
    /// [default: 60]
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

static GIVEN: RwLock<Option<Switches>> = RwLock::new(None);

impl Switches {
    /// Makes them those of this process, instead of those before.
    pub fn apply(self) {
        *GIVEN.write().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }
}

/// What every object may take.
pub fn given() -> Budgets {
    let given = *GIVEN.read().unwrap_or_else(PoisonError::into_inner);
    let given = given.unwrap_or_default();
    let usual = Budgets::default();
    Budgets {
        time: given.budget_time.map_or(usual.time, Duration::from_secs),
        memory: given.budget_memory.unwrap_or(usual.memory),
        state: given.map_memory,
    }
}

/// What a function may take; of a linked row ([`share`]) so many times as much time, unless it was given.
pub fn of(word: &str) -> Budgets {
    let all = *GIVEN.read().unwrap_or_else(PoisonError::into_inner);
    let usual = given();
    Budgets {
        time: match all.and_then(|a| a.budget_time) {
            Some(_) => usual.time,
            None => usual.time * share(word),
        },
        ..usual
    }
}

/// How often the usual time a model of what a word names may take. The paths of functions in a row multiply, and each is as long as those
/// of all of them together: the square of their number.
pub fn share(word: &str) -> u32 {
    let functions = match std::path::Path::new(word).exists() {
        true => 1,
        false => word.split('+').count().min(8) as u32,
    };
    functions * functions
}

/// Most seconds for the model of what a word names: those that were given, or the usual ones.
pub fn seconds(given: u64, word: &str) -> u64 {
    match given {
        millrace_model::SECONDS => given * u64::from(share(word)),
        given => given,
    }
}

/// The budget of an object, which begins now.
pub fn begin() -> Budget {
    given().begin()
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
