//! A moment at which all workers of a run stand between two bursts.
//!
//! A change that all workers make has a job in the mailbox of each. The jobs meet: none goes on before all have come, and what each says of its
//! part is known to all behind that. So a change is made by all workers or by none, and no packet runs by the new state while another
//! runs by the old one.
//!
//! A worker that sleeps would be waited for until it looks at its mailbox, while the packets of the others wait. So whoever asks first has all
//! workers stay awake ([`crate::mailbox::Desk::stay_awake`]).
//!
//! A job that is dropped before it was done, as that of a worker that ends or panics, breaks the meeting up; those who wait go on, and nothing is
//! done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a worker waits for all others to come before it goes on without the change.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a worker looks again and again before it sleeps: the others are at most a burst away.
const SOON: Duration = Duration::from_micros(200);

/// A meeting of all workers of a run.
pub struct Meeting {
    workers: usize,
    /// raised when something has changed for those who wait
    news: AtomicU64,
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    /// workers that have come to this round
    here: usize,
    /// one of them has said no
    refused: bool,
    /// what the rounds that are complete came to: it stands, whatever becomes of those who met
    agreed: Vec<bool>,
    /// somebody will not come
    broken: bool,
}

/// The place of one worker, which breaks the meeting up when it is dropped before its worker is through.
pub struct Seat {
    meeting: Arc<Meeting>,
    through: bool,
}

impl Meeting {
    /// Of so many workers, at least 1: a seat for each.
    #[must_use]
    pub fn of(workers: usize) -> Vec<Seat> {
        let workers = workers.max(1);
        let meeting = Arc::new(Self {
            workers,
            news: AtomicU64::new(0),
            inside: Mutex::default(),
            changed: Condvar::new(),
        });
        let seat = |_| Seat {
            meeting: meeting.clone(),
            through: false,
        };
        (0..workers).map(seat).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // What a panicking thread has left is as whole as any.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.news.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn break_up(&self) {
        self.lock().broken = true;
        self.tell();
    }
}

impl Seat {
    /// Waits until all workers are here: whether each of them says yes. None: one of them will not come, and nothing must be done.
    ///
    /// In the first round a worker waits at most for 2 s; behind it all are there, and only their work is waited for.
    #[must_use]
    pub fn meet(&self, yes: bool) -> Option<bool> {
        let meeting = &*self.meeting;
        let mut inside = meeting.lock();
        if inside.broken {
            return None;
        }
        let round = inside.agreed.len();
        inside.here += 1;
        inside.refused |= !yes;
        if inside.here == meeting.workers {
            inside.here = 0;
            let agreed = !std::mem::take(&mut inside.refused);
            inside.agreed.push(agreed);
            meeting.tell();
            return Some(agreed);
        }
        let news = meeting.news.load(Ordering::Acquire);
        drop(inside);
        let began = Instant::now();
        while meeting.news.load(Ordering::Acquire) == news && began.elapsed() < SOON {
            // There may be fewer processors than workers.
            std::thread::yield_now();
        }
        let mut inside = meeting.lock();
        loop {
            if let Some(agreed) = inside.agreed.get(round) {
                return Some(*agreed);
            }
            if inside.broken {
                return None;
            }
            let left = PATIENCE.saturating_sub(began.elapsed());
            if round > 0 {
                let waited = meeting.changed.wait(inside);
                inside = waited.unwrap_or_else(PoisonError::into_inner);
            } else if left.is_zero() {
                inside.broken = true;
                meeting.tell();
                return None;
            } else {
                let waited = meeting.changed.wait_timeout(inside, left);
                inside = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// This worker has done its part, or will not: nobody waits for it any more.
    pub fn leave(mut self) {
        self.through = true;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.through {
            self.meeting.break_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hear_what_one_says() {
        for refuses in [None, Some(0), Some(2)] {
            std::thread::scope(|scope| {
                for (worker, seat) in Meeting::of(3).into_iter().enumerate() {
                    scope.spawn(move || {
                        assert_eq!(seat.meet(true), Some(true));
                        assert_eq!(seat.meet(Some(worker) != refuses), Some(refuses.is_none()));
                        // Of a round before nothing is left.
                        assert_eq!(seat.meet(true), Some(true));
                        seat.leave();
                    });
                }
            });
        }
    }

    #[test]
    fn a_worker_that_goes_away_holds_nobody_up() {
        for rounds in [0, 1] {
            std::thread::scope(|scope| {
                let mut seats = Meeting::of(3);
                let leaves = seats.pop().unwrap();
                for seat in seats {
                    scope.spawn(move || {
                        let met: Vec<_> = (0..2).map(|_| seat.meet(true)).collect();
                        assert_eq!(met[..rounds], vec![Some(true); rounds]);
                        assert_eq!(met.last(), Some(&None));
                        seat.leave();
                    });
                }
                for _ in 0..rounds {
                    assert_eq!(leaves.meet(true), Some(true));
                }
                drop(leaves);
            });
        }
    }

    #[test]
    fn a_worker_that_does_not_come_is_not_waited_for_long() {
        let mut seats = Meeting::of(2);
        let (late, there) = (seats.pop().unwrap(), seats.pop().unwrap());
        assert_eq!(there.meet(true), None);
        assert_eq!(late.meet(true), None);
        late.leave();
        there.leave();
    }
}
