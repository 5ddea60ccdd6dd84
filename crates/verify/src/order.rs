//! Check of the order in which workers that share state committed their packets: one core could have had it.
//!
//! Nothing of what the sequential program makes of it would show that: it does any order that it is given. So it is looked
//! at by itself: each worker's packets, and so each flow's, are in it in the order in which they came; commits of a window
//! lie behind all of the window before; and the times that the program had for its packets do not go back, are none
//! before the packet came, and none that no packet has come at. Where packets are transactions, their order comes from the versions
//! that they read, and time may go back in it but from who wrote to who read (`history.rs`).

use std::collections::HashMap;

use crate::compare::Kind;
use crate::lane::Done;
use crate::trace::Packet;

/// Commits so far.
#[derive(Default, Debug)]
pub struct Order {
    commit: u64,
    time: u64,
    /// packets are transactions
    transacts: bool,
}

/// Fault of a packet's place, if any.
pub type Wrong = Option<(Kind, String)>;

impl Order {
    /// Of workers whose packets are transactions, or not.
    pub fn of(transacts: bool) -> Self {
        Self {
            transacts,
            ..Self::default()
        }
    }

    /// Looks at a window's packets, of workers that share state or do not.
    pub fn look(&mut self, shares: bool, window: &[Packet], done: &[Option<Done>]) -> Vec<Wrong> {
        let mut wrong: Vec<Wrong> = window.iter().map(|_| None).collect();
        let latest = window.iter().map(|p| p.time).max().unwrap_or(0);
        let mut order: Vec<(u64, u64, usize)> = Vec::with_capacity(window.len());
        for (i, (packet, done)) in window.iter().zip(done).enumerate() {
            let Some(outcome) = done.as_ref().map(|d| &d.outcome) else {
                continue;
            };
            let (came, had) = (packet.time, outcome.time);
            let what = if !shares && had != came {
                Some("shares nothing with others, and had another time than it came at".to_owned())
            } else if had < came {
                Some(format!("had a time {} ns before it came", came - had))
            } else if had > latest {
                Some(format!(
                    "had a time {} ns behind all that have come",
                    had - latest
                ))
            } else {
                None
            };
            if let (Some(what), Some(place)) = (what, wrong.get_mut(i)) {
                *place = Some((Kind::Time, format!("a packet {what}")));
            }
            // What does not cross the border is done by nobody.
            if shares && outcome.commit > 0 {
                order.push((outcome.commit, had, i));
            }
        }
        order.sort_unstable();
        let begin = self.commit;
        let mut last: HashMap<u32, usize> = HashMap::new();
        for (commit, time, i) in order {
            let worker = done
                .get(i)
                .and_then(Option::as_ref)
                .map_or(0, |d| d.outcome.worker);
            let before = last.insert(worker, i);
            let what = if commit < begin {
                Some((
                    Kind::Order,
                    "committed before packets that were done when it came".to_owned(),
                ))
            } else if before.is_some_and(|b| b > i) {
                Some((
                    Kind::Order,
                    "a later packet of its worker committed before it".to_owned(),
                ))
            } else if time < self.time && !self.transacts {
                let by = self.time - time;
                let what = format!("time goes back by {by} ns in the order of commits");
                Some((Kind::Time, what))
            } else {
                None
            };
            self.commit = self.commit.max(commit);
            self.time = self.time.max(time);
            if let Some(place) = wrong.get_mut(i)
                && place.is_none()
            {
                *place = what;
            }
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use millrace_dataplane::packet::Fate;

    /// Packets that came at these times, were done by these workers, with these commits and times.
    fn looked(all: &[(u64, u32, u64, u64)]) -> Vec<Option<Kind>> {
        let window: Vec<Packet> = (0..)
            .zip(all)
            .map(|(number, (time, ..))| Packet {
                number,
                port: 0,
                time: *time,
                wire: 0,
                frame: Vec::new(),
            })
            .collect();
        let done = |(_, worker, commit, time): &(u64, u32, u64, u64)| {
            Some(Done {
                given: Vec::new(),
                outcome: Outcome {
                    fate: Fate::Dropped(0),
                    bytes: Vec::new(),
                    records: Vec::new(),
                    leases: Vec::new(),
                    worker: *worker,
                    turn: 0,
                    commit: *commit,
                    time: *time,
                    saw: None,
                },
            })
        };
        let done: Vec<_> = all.iter().map(done).collect();
        let wrong = Order::default().look(true, &window, &done);
        wrong.into_iter().map(|w| w.map(|w| w.0)).collect()
    }

    #[test]
    fn an_order_of_one_core_is_right_and_others_are_not() {
        // The second packet committed first, and the first one moved on to its time.
        assert_eq!(looked(&[(10, 0, 4, 20), (20, 1, 2, 20)]), [None, None]);
        assert_eq!(
            looked(&[(10, 0, 4, 10), (20, 1, 2, 20)]),
            [Some(Kind::Time), None]
        );
        assert_eq!(
            looked(&[(10, 0, 4, 20), (20, 0, 2, 20)]),
            [Some(Kind::Order), None]
        );
        assert_eq!(looked(&[(10, 0, 2, 9)]), [Some(Kind::Time)]);
        assert_eq!(looked(&[(10, 0, 2, 11)]), [Some(Kind::Time)]);
        // Readers between two writers are sorted by their times.
        assert_eq!(
            looked(&[(10, 0, 3, 10), (20, 1, 3, 20), (20, 0, 3, 20)]),
            [None, None, None]
        );
    }
}
