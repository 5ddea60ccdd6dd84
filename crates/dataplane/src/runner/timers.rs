//! When timers fire, in the packets' own time.
//!
//! A timer of period P that starts at S is due at S + k P for k from 1. Time is only known at
//! packets, so it fires before the first packet at or after that moment, and is told that moment. If
//! several of its moments have passed since the last packet it fires once, at the latest of them:
//! a capture with a gap of a year must not fire a timer of a millisecond 3e10 times.

/// The timers of one instance.
#[derive(Clone, Debug)]
pub struct Timers {
    start: u64,
    /// (period in ns, moments already past)
    timers: Vec<(u64, u64)>,
    /// the earliest moment that is still to come
    next: u64,
}

impl Timers {
    /// Timers of these periods (ns, each at least 1) that start at `start` (ns).
    #[must_use]
    pub fn new(periods: &[u64], start: u64) -> Self {
        let timers = periods.iter().map(|p| ((*p).max(1), 0)).collect();
        let mut timers = Self {
            start,
            timers,
            next: 0,
        };
        timers.find_next();
        timers
    }

    /// Since when they run, ns, and how many moments of each are past.
    #[must_use]
    pub fn past(&self) -> (u64, Vec<u64>) {
        (
            self.start,
            self.timers.iter().map(|(_, past)| *past).collect(),
        )
    }

    /// Timers of these periods that go on where others of as many were; else they start at `now`.
    #[must_use]
    pub fn resumed(periods: &[u64], start: u64, past: &[u64], now: u64) -> Self {
        if periods.len() != past.len() || start > now {
            return Self::new(periods, now);
        }
        let mut timers = Self::new(periods, start);
        for ((_, own), past) in timers.timers.iter_mut().zip(past) {
            *own = *past;
        }
        timers.find_next();
        timers
    }

    /// Whether a timer is due before a packet of this time.
    #[inline]
    #[must_use]
    pub fn due(&self, time: u64) -> bool {
        time >= self.next
    }

    /// The earliest moment that is still to come, ns; `u64::MAX` when there is none.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What fires before a packet of this time: (moment in ns, index of the timer), in order of the
    /// moment, then of the index.
    pub fn take(&mut self, time: u64) -> Vec<(u64, usize)> {
        let since = time.saturating_sub(self.start);
        let mut fired = Vec::new();
        for (index, (period, past)) in self.timers.iter_mut().enumerate() {
            let now = since / *period;
            if now > *past {
                *past = now;
                fired.push((self.start + now * *period, index));
            }
        }
        fired.sort_unstable();
        self.find_next();
        fired
    }

    /// The same where others fire them.
    pub fn pass(&mut self, time: u64) {
        let since = time.saturating_sub(self.start);
        for (period, past) in &mut self.timers {
            *past = (since / *period).max(*past);
        }
        self.find_next();
    }

    fn find_next(&mut self) {
        let moments = self.timers.iter().map(|(period, past)| {
            self.start
                .saturating_add(past.saturating_add(1).saturating_mul(*period))
        });
        self.next = moments.min().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_at_its_moments_and_not_before() {
        let mut timers = Timers::new(&[10], 100);
        assert!(!timers.due(109));
        assert!(timers.due(110));
        assert_eq!(timers.take(110), [(110, 0)]);
        assert!(!timers.due(119));
        assert_eq!(timers.take(127), [(120, 0)]);
    }

    #[test]
    fn several_periods_fire_once_at_the_latest() {
        let mut timers = Timers::new(&[10], 100);
        assert_eq!(timers.take(159), [(150, 0)]);
        assert!(!timers.due(159));
        assert_eq!(timers.take(160), [(160, 0)]);
    }

    #[test]
    fn several_timers_fire_in_order_of_their_moments() {
        let mut timers = Timers::new(&[10, 3, 10], 0);
        assert_eq!(timers.take(11), [(9, 1), (10, 0), (10, 2)]);
        assert_eq!(timers.take(12), [(12, 1)]);
    }

    #[test]
    fn timers_go_on_where_they_were() {
        let mut timers = Timers::new(&[10, 3], 100);
        timers.take(117);
        let (start, past) = timers.past();
        let mut again = Timers::resumed(&[10, 3], start, &past, 119);
        assert_eq!(again.take(125), timers.take(125));
        // Others begin anew, and so do those of a time to come.
        assert_eq!(Timers::resumed(&[10], start, &past, 119).next(), 129);
        assert_eq!(Timers::resumed(&[10, 3], 200, &past, 119).next(), 122);
        // Nothing that somebody says is past overflows.
        let mut odd = Timers::resumed(&[10, 3], start, &[u64::MAX, 0], 119);
        assert_eq!(odd.take(u64::MAX).len(), 1);
    }

    #[test]
    fn the_end_of_time_is_reached_without_overflow() {
        let mut timers = Timers::new(&[1, u64::MAX], 5);
        assert_eq!(timers.take(u64::MAX), [(u64::MAX, 0)]);
        assert_eq!(timers.take(u64::MAX), []);
        assert!(!Timers::new(&[], 0).due(u64::MAX - 1));
    }
}
