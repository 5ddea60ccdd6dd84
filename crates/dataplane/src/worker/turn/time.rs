//! Time: timers and alarms that are due, and how long a worker without packets may sleep.

use std::time::{Duration, Instant};

use super::{NAP, Worker};
use crate::clock::now;
use crate::worker::counters::OfStage;
use crate::worker::stage::Stage;

impl Worker {
    /// Whether a port that carries its own time still holds packets.
    pub(super) fn pending(&self) -> bool {
        self.queues.iter().any(|q| q.queue.next_stamp().is_some())
    }

    pub(super) fn until_timer(&self, deadline: Option<Instant>) -> Duration {
        let next = self.next_timer().min(self.next_alarm());
        let timer = Duration::from_nanos(next.saturating_sub(now()));
        let end = deadline.map_or(NAP, |d| d.saturating_duration_since(Instant::now()));
        NAP.min(timer).min(end)
    }

    pub(super) fn next_timer(&self) -> u64 {
        let timers = self.chain.stages.iter().map(|s| s.timers.next());
        timers.min().unwrap_or(u64::MAX)
    }

    /// When a timer of a map may be due next. Packets fire them by themselves.
    pub(super) fn next_alarm(&self) -> u64 {
        let alarms = self.chain.stages.iter().map(|s| s.next_alarm());
        alarms.min().unwrap_or(u64::MAX)
    }

    /// Lets elements run that may have something to do without packets.
    pub(super) fn idle(&mut self) {
        for stage in &mut self.chain.stages {
            stage.idle();
        }
        self.emit(false);
        self.emit(true);
    }

    /// The time for timers when nothing came: that of the next packet where packets carry their own.
    pub(super) fn queues_time(&self) -> u64 {
        let stamps = self.queues.iter().filter_map(|q| q.queue.next_stamp());
        match stamps.min() {
            Some(stamp) => stamp,
            // At the end of a capture time stands still, and so it does until the next packet of a pipe tells it.
            None if self.queues.iter().all(|q| q.queue.ended()) => self.clock,
            None if self.in_packets_time() => self.clock,
            None => now(),
        }
    }

    /// Whether packets with a time of their own may still come.
    pub(super) fn in_packets_time(&self) -> bool {
        let mut queues = self.queues.iter();
        queues.any(|q| q.queue.keeps_time() && !q.queue.ended())
    }

    /// Fires the timers that are due at this time.
    pub(super) fn fire(&mut self, time: u64) {
        if self.next_timer() > time {
            return;
        }
        self.clock = self.clock.max(time);
        for stage in &mut self.chain.stages {
            for (moment, timer) in stage.timers.take(time) {
                let fired = u64::from(stage.fire(timer, moment));
                stage.life.add(self.number, OfStage::Timers, fired);
            }
        }
    }

    /// Fires the timers of maps that are due at this time.
    pub(super) fn alarms(&mut self, time: u64) {
        if self.next_alarm() > time {
            return;
        }
        self.clock = self.clock.max(time);
        for stage in &mut self.chain.stages {
            stage.alarm(time);
        }
    }

    pub(super) fn handlers(&mut self, each: impl Fn(&mut Stage, u64)) {
        for stage in &mut self.chain.stages {
            each(stage, self.clock);
        }
        self.records();
    }
}
