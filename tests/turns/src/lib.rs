//! Tests that do the same to each of many functions, take long, and seldom find anything: each day another part of them has its
//! turn, so that `make test` stays short and in some days all have been there. `MILLRACE_LONG=1` (`make test-long`) takes all of them each
//! time, and `MILLRACE_DAY=N` those of a certain day: what was left out is said with that number, so that a failure can be
//! repeated on another day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// The number of the day, from 1970 in UTC or as `MILLRACE_DAY` says.
fn day() -> u64 {
    let said = std::env::var("MILLRACE_DAY").ok();
    let said = said.and_then(|text| text.parse().ok());
    said.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs() / DAY)
    })
}

/// Whether a test has its turn today: it is the one with this number, from 0, of as many as there are days. Who names tests (`cargo test
/// … -- NAME`) gets them on each. `what` says which one is left out.
pub fn its_turn(what: &str, number: u64, days: u64) -> bool {
    let (day, days) = (day(), days.max(1));
    let asked = std::env::var_os("MILLRACE_LONG").is_some() || named(std::env::args().skip(1));
    let turn = asked || number % days == day % days;
    if !turn {
        println!(
            "skipped: {what} has its turn on another day than {day} (MILLRACE_LONG=1: each day)"
        );
    }
    turn
}

/// Whether the words that a test program was given name tests.
fn named(mut words: impl Iterator<Item = String>) -> bool {
    while let Some(word) = words.next() {
        match word.as_str() {
            "--color" | "--format" | "--logfile" | "--shuffle-seed" | "--skip"
            | "--test-threads" | "-Z" => drop(words.next()),
            option if option.starts_with('-') => {}
            _ => return true,
        }
    }
    false
}

/// Those of `all` that have their turn today, where each has one every so many days. `what` names them where some are left out.
pub fn of_today<T>(what: &str, all: impl IntoIterator<Item = T>, days: u64) -> Vec<T> {
    let all: Vec<T> = all.into_iter().collect();
    if std::env::var_os("MILLRACE_LONG").is_some() {
        return all;
    }
    let (count, day) = (all.len(), day());
    let days = days.max(1);
    let turn = (0_u64..)
        .zip(all)
        .filter(|(place, _)| place % days == day % days);
    let turn: Vec<T> = turn.map(|(_, case)| case).collect();
    if turn.len() < count {
        println!(
            "skipped: {} of {count} {what} have their turn on another day than {day} (MILLRACE_LONG=1: all)",
            count - turn.len()
        );
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn names_are_told_from_options() {
        let named = |words: &str| named(words.split_whitespace().map(str::to_owned));
        for none in [
            "",
            "--show-output",
            "--test-threads 1 --nocapture",
            "--skip a --test-threads=1",
        ] {
            assert!(!named(none), "{none}");
        }
        for some in [
            "live::nodes",
            "--exact a::b",
            "--nocapture --test-threads 2 a",
        ] {
            assert!(named(some), "{some}");
        }
    }
}
