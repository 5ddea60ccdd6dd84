//! The highest rate without loss, by bisection (RFC 2544, section 26.1): offer a rate, count what is
//! lost, halve the interval.

/// How narrow the interval becomes, as a share of the rate.
const PRECISION: f64 = 0.01;
/// Trials at most: the interval halves with each.
const TRIALS: u32 = 24;
/// By how much a rate that passes is raised the first time; each time by more, so that a guess that
/// was far too low costs few trials.
const RAISE: f64 = 1.25;
/// And the most that it is raised at once.
const LEAP: f64 = 4.0;

/// Result of a trial at some rate.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// packets a second that were offered
    pub offered: f64,
    /// packets lost, as a share of those offered
    pub lost: f64,
    /// the software NIC could not offer what was asked for
    pub saturated: bool,
}

/// Result of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// packets a second, the highest rate that passed; 0 when none did
    pub rate: f64,
    /// more could not be offered: the rate is the software NIC's, and the function's may be higher
    pub limited: bool,
    /// trials it took
    pub trials: u32,
}

/// Looks for the highest rate at which at most `loss` of the packets are lost. `guess` is a rate near
/// it, packets a second.
pub fn search(guess: f64, loss: f64, trial: &mut dyn FnMut(f64) -> Trial) -> Found {
    let (mut low, mut high) = (0.0, None);
    let (mut rate, mut raise) = (guess, RAISE);
    let mut trials = 0;
    while trials < TRIALS {
        trials += 1;
        let seen = trial(rate);
        if seen.lost <= loss {
            if seen.saturated {
                let rate = seen.offered.max(low);
                return Found {
                    rate,
                    limited: true,
                    trials,
                };
            }
            low = rate;
        } else {
            high = Some(rate);
        }
        rate = match high {
            None => {
                let next = low * raise;
                raise = (raise * RAISE * RAISE).min(LEAP);
                next
            }
            Some(high) if high - low <= PRECISION * high => break,
            Some(high) => f64::midpoint(low, high),
        };
    }
    Found {
        rate: low,
        limited: false,
        trials,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loses what is beyond a capacity; offers at most `most`.
    fn machine(capacity: f64, most: f64) -> impl FnMut(f64) -> Trial {
        move |rate| {
            let offered = rate.min(most);
            Trial {
                offered,
                lost: ((offered - capacity) / offered).max(0.0),
                saturated: offered < rate,
            }
        }
    }

    #[test]
    fn finds_the_capacity_from_any_guess() {
        for guess in [1e3, 1e6, 3e6, 1e9] {
            let found = search(guess, 0.0, &mut machine(3e6, f64::INFINITY));
            assert!((found.rate / 3e6 - 1.0).abs() < 0.011, "{guess}: {found:?}");
            assert!(!found.limited);
        }
        // A loss of a tenth lets a ninth more in.
        let found = search(1e6, 0.1, &mut machine(3e6, f64::INFINITY));
        assert!((found.rate / 3.333e6 - 1.0).abs() < 0.011, "{found:?}");
    }

    #[test]
    fn says_when_more_could_not_be_offered() {
        let found = search(1e6, 0.0, &mut machine(5e6, 2e6));
        assert!(found.limited && (found.rate - 2e6).abs() < 1.0, "{found:?}");
    }

    #[test]
    fn a_machine_that_always_loses_ends_the_search_at_nothing() {
        let mut always = |rate| Trial {
            offered: rate,
            lost: 1.0,
            saturated: false,
        };
        let found = search(1e6, 0.001, &mut always);
        assert!(found.rate < 1.0 && found.trials <= TRIALS, "{found:?}");
    }
}
