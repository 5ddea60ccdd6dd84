//! When the device's packets come, and in which order a thread of it takes them.

use super::settings::Rate;

/// A device late by more than this was not running (another thread had its processor): what it
/// missed is not sent in one go, as no link would, but left out, and the time counted as a stall.
const LATE_NS: f64 = 100_000.0;

/// When packets are due.
#[derive(Clone, Debug)]
pub struct Schedule {
    rate: Option<Rate>,
    ns_per_tick: f64,
    /// the moment of packet `first`, ticks
    start: u64,
    first: u64,
}

impl Schedule {
    /// Packet `first` is due at `now` (ticks), the others behind it at the rate; none, never.
    #[must_use]
    pub fn new(rate: Option<Rate>, ns_per_tick: f64, now: u64, first: u64) -> Self {
        Self {
            rate,
            ns_per_tick,
            start: now,
            first,
        }
    }

    /// The number of the first packet that is not due at `now`, and how many ticks of a stall were
    /// left out; `next` is the first packet that was not sent yet.
    #[inline]
    pub fn due(&mut self, now: u64, next: u64) -> (u64, u64) {
        let rate = match self.rate {
            None => return (0, 0),
            Some(Rate::Taken) => return (u64::MAX, 0),
            Some(Rate::PerSecond(rate)) => rate,
        };
        let per_tick = rate * self.ns_per_tick / 1e9;
        let elapsed = now.saturating_sub(self.start);
        let due = self.first + (elapsed as f64 * per_tick) as u64;
        let late = due.saturating_sub(next) as f64 / per_tick;
        // One packet late at a low rate is no stall.
        if late * self.ns_per_tick > LATE_NS && due > next + 1 {
            self.start = now;
            self.first = next;
            return (next, late as u64);
        }
        (due, 0)
    }
}

/// The packets of one thread, without end: their numbers over all, the entry of the capture, the queue.
#[derive(Clone, Debug)]
pub enum Order {
    /// by the queue that each entry has: the entries of this thread's queues
    Fixed {
        /// indexes of entries
        entries: Vec<u32>,
        /// entries of the whole capture
        all: u64,
    },
    /// packet `i` to queue `(i / group) mod queues`, of which this thread has `mine` from `from` on
    Spray {
        /// packets in a row that go to the same queue
        group: u64,
        /// the first queue of this thread
        from: u64,
        /// its queues
        mine: u64,
        /// queues of the device
        queues: u64,
        /// entries of the capture
        all: u64,
    },
}

/// One packet of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// its number over all threads, from 0
    pub number: u64,
    /// the entry of the capture
    pub entry: usize,
    /// the queue, where the order says it
    pub queue: Option<u64>,
    /// only its key's owner has its state, so that it has no row
    pub sharded: bool,
}

/// What a thread finds when it looks for its next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// it is due
    Packet(Turn),
    /// it is not due, or was not found yet
    Later,
    /// first the threads choose heavy keys anew
    Border,
    /// there is none
    End,
}

impl Order {
    /// The `index`th packet of this thread, from 0; none when it has none at all.
    #[inline]
    #[must_use]
    pub fn at(&self, index: u64) -> Option<Turn> {
        match self {
            Self::Fixed { entries, all } => {
                let length = entries.len() as u64;
                let (round, place) = (index.checked_div(length)?, index.checked_rem(length)?);
                let entry = entries.get(place as usize)?;
                Some(Turn {
                    number: round * all + u64::from(*entry),
                    entry: *entry as usize,
                    queue: None,
                    sharded: false,
                })
            }
            Self::Spray {
                group,
                from,
                mine,
                queues,
                all,
            } => {
                let (groups, within) = (index.checked_div(*group)?, index.checked_rem(*group)?);
                let (cycle, place) = (groups.checked_div(*mine)?, groups.checked_rem(*mine)?);
                let queue = from + place;
                let number = (cycle * queues + queue) * group + within;
                Some(Turn {
                    number,
                    entry: number.checked_rem(*all)? as usize,
                    queue: Some(queue),
                    sharded: false,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_due_at_their_rate() {
        // Two ns a tick, a packet every 100 ns.
        let mut schedule = Schedule::new(Some(Rate::PerSecond(1e7)), 2.0, 1000, 0);
        assert_eq!(schedule.due(1000, 0), (0, 0));
        assert_eq!(schedule.due(1050, 0), (1, 0));
        assert_eq!(schedule.due(1500, 1), (10, 0));
        assert_eq!(Schedule::new(None, 2.0, 0, 0).due(1 << 40, 0).0, 0);
        let mut taken = Schedule::new(Some(Rate::Taken), 2.0, 0, 0);
        assert_eq!(taken.due(0, 0).0, u64::MAX);
    }

    #[test]
    fn a_stall_is_left_out_and_counted() {
        let mut schedule = Schedule::new(Some(Rate::PerSecond(1e7)), 1.0, 0, 0);
        // A millisecond: ten thousand packets, none of them sent.
        let (due, stalled) = schedule.due(1_000_000, 0);
        assert_eq!(due, 0);
        assert!((999_000..=1_000_000).contains(&stalled), "{stalled}");
        assert_eq!(schedule.due(1_000_100, 0), (1, 0));
        // Ten packets a second: the next one comes in time, however long that is.
        let mut slow = Schedule::new(Some(Rate::PerSecond(10.0)), 1.0, 0, 0);
        assert_eq!(slow.due(100_000_000, 0), (1, 0));
    }

    #[test]
    fn threads_together_take_every_packet_once() {
        let fixed = |entries: &[u32]| Order::Fixed {
            entries: entries.to_vec(),
            all: 5,
        };
        let spray = |group, from, mine| Order::Spray {
            group,
            from,
            mine,
            queues: 3,
            all: 5,
        };
        for threads in [
            [fixed(&[0, 2, 3]), fixed(&[1, 4])],
            [spray(1, 0, 2), spray(1, 2, 1)],
            [spray(4, 0, 2), spray(4, 2, 1)],
        ] {
            let mut numbers: Vec<u64> = threads
                .iter()
                .flat_map(|order| (0..20).map(|i| order.at(i).unwrap().number))
                .filter(|n| *n < 24)
                .collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..24).collect::<Vec<_>>());
            let turn = threads[1].at(1).unwrap();
            assert_eq!(turn.entry as u64, turn.number % 5);
        }
        assert_eq!(fixed(&[]).at(0), None);
        assert_eq!(spray(1, 1, 1).at(2).unwrap().queue, Some(1));
        let grouped = (0..9).map(|i| spray(2, 0, 2).at(i).unwrap());
        let grouped: Vec<_> = grouped.map(|t| (t.number, t.queue.unwrap())).collect();
        let first = [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 1),
            (6, 0),
            (7, 0),
            (8, 1),
            (9, 1),
            (12, 0),
        ];
        assert_eq!(grouped, first);
    }
}
