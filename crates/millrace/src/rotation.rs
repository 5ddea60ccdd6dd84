//! A timer that draws another secret key for the hash of a function whose buckets move, while packets come.
//!
//! Whoever finds out which packets come to one worker, by probing how long they take, can aim at it; a key that is not there for long is of no use
//! to them. A rotation is a move of all entries at once ([`Classes::rotate`]), so that it is worth it seldom.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use millrace_dataplane::classes::{Classes, MoveError};

use crate::seed;

/// How long it waits for a bucket that moves, or for somebody who looks at the state, before it tries again.
const AGAIN: Duration = Duration::from_millis(20);

/// A rotation at work on a thread of its own, which ends when this is dropped.
pub struct Rotation {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Rotation {
    /// Of the key of these classes, which are buckets, `every` so often. `say` hears why one did not happen, once as long as it is for the same
    /// reason.
    ///
    /// # Errors
    /// The key cannot change: [`MoveError::OneKey`] or [`MoveError::Cluster`].
    pub fn begin(
        classes: &Arc<Classes>,
        every: Duration,
        mut say: impl FnMut(&MoveError) + Send + 'static,
    ) -> Result<Self, MoveError> {
        classes.rotates(seed::keys())?;
        let (stop, classes) = (Arc::new(AtomicBool::new(false)), classes.clone());
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("rotation".to_owned());
        let thread = thread.spawn(move || {
            let mut told = None;
            let mut due = Instant::now().checked_add(every);
            while !stopped.load(Ordering::Relaxed) {
                let Some(at) = due else {
                    // Longer than a clock goes.
                    std::thread::park();
                    continue;
                };
                let left = at.saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    std::thread::park_timeout(left);
                    continue;
                }
                match classes.rotate(seed::keys()) {
                    Err(MoveError::Ends) => return,
                    Err(MoveError::Busy | MoveError::Asked) => {
                        std::thread::park_timeout(AGAIN);
                        continue;
                    }
                    Err(why) => {
                        if told.replace(why) != Some(why) {
                            say(&why);
                        }
                        if why == MoveError::Changed {
                            return;
                        }
                    }
                    Ok(_) => told = None,
                }
                // From now on: a rotation that takes longer than that is not followed by the next one at once.
                due = Instant::now().checked_add(every);
            }
        });
        Ok(Self {
            stop,
            thread: thread.ok(),
        })
    }
}

impl Drop for Rotation {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked rotates nothing any more.
            let _ = thread.join();
        }
    }
}
