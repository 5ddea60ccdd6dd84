//! Guests that fail and packets that ports lose, told while the run lasts: looked for ten times a second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use millrace_dataplane::account::{Account, QueueAccount};
use millrace_dataplane::worker::condition::Watched;

use crate::log::{Level, Message};
use crate::quantity::grouped;

/// Time between two messages about the same losses.
const SELDOM: Duration = Duration::from_secs(10);

/// A kind of losses of a port: its name, how many packets a queue has lost so, what that means, and what to do.
type Loss = (
    &'static str,
    fn(&QueueAccount) -> u64,
    &'static str,
    &'static str,
);

const LOSSES: [Loss; 3] = [
    (
        "missed",
        |q| q.missed,
        "came faster than they were received",
        "`millrace top` shows whether all workers are busy or one; more --cores, or a larger ring=",
    ),
    (
        "unfit",
        |q| q.unfit,
        "did not fit into a buffer",
        "if the MTU was raised, start the run again; else switch GRO and LRO off (`ethtool -K IF gro off lro off`)",
    ),
    (
        "failed",
        |q| q.failed,
        "were not sent: the device refused them",
        "compare the MTU of the interface with that of the others: longer packets cannot leave",
    ),
];

/// What has been told already.
#[derive(Default)]
pub struct Lookout {
    /// by element and class, the number of the next event
    told: BTreeMap<(u64, u32), u64>,
    /// by port and kind, the losses that have been told, and when
    losses: BTreeMap<(String, &'static str), (u64, Instant)>,
    /// the elements of the chain
    chain: Vec<String>,
    /// packets read when that was told last, and when
    read: Option<(u64, Instant)>,
    /// it has been told that packets for the host do not reach it
    passed: bool,
}

impl Lookout {
    /// Over a run that begins with these elements.
    pub fn new(chain: Vec<String>) -> Self {
        Self {
            chain,
            ..Self::default()
        }
    }

    /// Tells of an account of now: losses of ports, changes of the chain, and at the level of details how it goes.
    pub fn account(&mut self, account: &Account, now: Instant, say: &mut dyn FnMut(&Message)) {
        self.losses(&account.queues, now, say);
        let there = account.stages.iter().filter(|s| !s.left);
        let chain: Vec<String> = there.map(|s| s.name.clone()).collect();
        if chain != self.chain {
            let names = chain.join(" - ");
            self.chain = chain;
            let what = format!("the chain is {names} now");
            say(&Message::new(Level::Info, what));
        }
        let (before, when) = *self.read.get_or_insert((account.read, now));
        if now.duration_since(when) >= SELDOM {
            let lost = account.lost.unwrap_or_default();
            let text = format!(
                "{} packets read in {:.0} s, {} in all; dropped {}, aborted {}; ports lost {}",
                grouped(account.read.saturating_sub(before)),
                now.duration_since(when).as_secs_f64(),
                grouped(account.read),
                grouped(account.dropped),
                grouped(account.aborted),
                grouped(lost.missed + lost.unfit + lost.failed),
            );
            say(&Message::new(Level::Debug, text));
            self.read = Some((account.read, now));
        }
    }

    /// Tells what ports have lost since that was told last: at once where it begins.
    fn losses(&mut self, queues: &[QueueAccount], now: Instant, say: &mut dyn FnMut(&Message)) {
        for (kind, of, what, help) in LOSSES {
            let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
            for queue in queues {
                *sums.entry(&queue.name).or_default() += of(queue);
            }
            for (port, lost) in sums.into_iter().filter(|(_, lost)| *lost > 0) {
                let key = (port.to_owned(), kind);
                let before = self.losses.get(&key);
                let told = before.map_or(0, |(told, _)| *told);
                let soon = before.is_some_and(|(_, when)| now.duration_since(*when) < SELDOM);
                if lost <= told || soon {
                    continue;
                }
                let text = format!("{} packets {what} ({kind})", grouped(lost - told));
                let message = Message::new(Level::Warning, text).about("port", port);
                say(&message.help(help));
                self.losses.insert(key, (lost, now));
            }
        }
    }

    /// Tells once that packets which functions pass to the host do not reach it: these ports take them from the kernel.
    pub fn passed(&mut self, passed: u64, ports: &[String], say: &mut dyn FnMut(&Message)) {
        if passed == 0 || ports.is_empty() || self.passed {
            return;
        }
        self.passed = true;
        let text = format!(
            "packets are passed to the host and do not reach it: {} takes them from the kernel",
            ports.join(", ")
        );
        let message = Message::new(Level::Warning, text);
        say(&message.help("--pass tap:NAME hands them to the host's own stack (docs/ports.md)"));
    }

    /// Tells what has happened since the last look.
    pub fn look(&mut self, guests: &[Watched], say: &mut dyn FnMut(&Message)) {
        for guest in guests {
            let key = (guest.element, guest.class.unwrap_or(0));
            let next = self.told.entry(key).or_default();
            for event in guest.condition.events(*next) {
                if event.number > *next {
                    let lost = event.number - *next;
                    let what = format!("{lost} events before the next one are not told");
                    say(&about(guest, Level::Warning, what));
                }
                *next = event.number + 1;
                let level = if event.failure {
                    Level::Warning
                } else {
                    Level::Info
                };
                let message = about(guest, level, event.what);
                say(&match event.failure {
                    true => message.help(
                        "`millrace ctl guests` shows its state; docs/guests.md, \"When it fails\"",
                    ),
                    false => message,
                });
            }
        }
        // Of elements that have left the chain nothing is told any more.
        self.told
            .retain(|(element, _), _| guests.iter().any(|g| g.element == *element));
    }
}

fn about(guest: &Watched, level: Level, what: String) -> Message {
    let what = match guest.class {
        Some(class) => format!("class {class}: {what}"),
        None => what,
    };
    Message::new(level, what).about("element", &guest.name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millrace_dataplane::account::StageAccount;
    use millrace_dataplane::worker::condition::Condition;

    use super::*;

    #[test]
    fn every_event_is_told_once() {
        let condition = Arc::new(Condition::new("tcpdump", 0));
        let guests = [Watched {
            element: 1,
            name: "tap".into(),
            class: None,
            condition: condition.clone(),
        }];
        let mut lookout = Lookout::default();
        let mut look = |guests: &[Watched]| {
            let mut said = Vec::new();
            lookout.look(guests, &mut |message| said.push(message.clone()));
            said
        };
        assert!(look(&guests).is_empty());
        condition.failed("SIGSEGV", "a null pointer", "failed: a null pointer");
        condition.restarted(0, "started again");
        let said = look(&guests);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(look(&guests).is_empty());
        for _ in 0..100 {
            condition.failed("stuck", "stuck", "failed: stuck");
        }
        let said = look(&guests);
        assert_eq!(
            said.len(),
            65,
            "64 are kept, and it is said that others are not: {said:?}"
        );
        assert!(look(&[]).is_empty());
    }

    #[test]
    fn changes_of_the_chain_are_told_and_details_seldom() {
        let mut lookout = Lookout::new(vec!["a".into()]);
        let began = Instant::now();
        let mut look = |names: &[&str], read, seconds| {
            let stage = |name: &&str| StageAccount {
                name: (*name).to_owned(),
                ..StageAccount::default()
            };
            let account = Account {
                read,
                stages: names.iter().map(stage).collect(),
                ..Account::default()
            };
            let mut said = Vec::new();
            let now = began + Duration::from_secs(seconds);
            lookout.account(&account, now, &mut |message| {
                said.push(format!("{message:?}"));
            });
            said.join(";")
        };
        assert_eq!(look(&["a"], 1, 0), "");
        let said = look(&["a", "b"], 2, 5);
        assert!(
            said.contains("\"the chain is a - b now\"") && said.contains("Info"),
            "{said}"
        );
        let said = look(&["a", "b"], 1001, 11);
        assert!(
            said.contains("\"1 000 packets read in 11 s") && said.contains("Debug"),
            "{said}"
        );
        assert_eq!(look(&["a", "b"], 1001, 12), "");
    }

    #[test]
    fn that_the_host_gets_nothing_is_told_once() {
        let mut lookout = Lookout::default();
        let port = ["afxdp:eth0".to_owned()];
        let mut look = |passed: u64, ports: &[String]| {
            let mut said = 0;
            lookout.passed(passed, ports, &mut |_| said += 1);
            said
        };
        assert_eq!(look(0, &port), 0);
        assert_eq!(look(1, &[]), 0);
        assert_eq!(look(1, &port), 1);
        assert_eq!(look(9, &port), 0);
    }

    #[test]
    fn losses_are_told_when_they_begin_and_then_seldom() {
        let mut lookout = Lookout::default();
        let began = Instant::now();
        let mut look = |failed: u64, seconds: u64| {
            let queue = |worker, failed| QueueAccount {
                name: "afpacket:eth0".into(),
                worker,
                failed,
                ..QueueAccount::default()
            };
            let mut said = Vec::new();
            let now = began + Duration::from_secs(seconds);
            lookout.losses(&[queue(0, failed), queue(1, 1)], now, &mut |message| {
                said.push(format!("{message:?}"));
            });
            said
        };
        let first = look(6, 0);
        assert!(
            first.len() == 1
                && first
                    .iter()
                    .all(|m| m.contains("\"7 packets were not sent")),
            "{first:?}"
        );
        assert!(look(9, 5).is_empty(), "soon after");
        let next = look(9, 11);
        assert!(
            next.iter().all(|m| m.contains("\"3 packets")) && next.len() == 1,
            "{next:?}"
        );
        assert!(look(9, 60).is_empty(), "no more");
    }
}
