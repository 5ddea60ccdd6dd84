//! Snapshots of a guest now and then, so that one that fails can go on from the last.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::command::Spec;
use crate::migrate::desk::Desk;
use crate::migrate::{self, Report};
use crate::snapshot::SnapshotError;

/// Takes them, each in a thread of its own.
pub struct Saver {
    file: PathBuf,
    every: Duration,
    next: Instant,
    busy: Option<JoinHandle<Result<Report, SnapshotError>>>,
    taken: u64,
    /// the longest that one stopped its guest
    stopped: Duration,
    /// why the last that failed did
    failed: Option<String>,
}

impl Saver {
    /// None for a guest of which no snapshots are asked for.
    #[must_use]
    pub fn of(spec: &Spec) -> Option<Self> {
        Some(Self {
            file: spec.snapshot.clone()?,
            every: spec.every,
            next: Instant::now() + spec.every,
            busy: None,
            taken: 0,
            stopped: Duration::ZERO,
            failed: None,
        })
    }

    /// Begins one when it is time, and takes note of one that is done.
    pub fn look(&mut self, desk: &Arc<Desk>) {
        if self.busy.as_ref().is_some_and(JoinHandle::is_finished) {
            self.note();
        }
        if self.busy.is_some() || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.every;
        let (desk, file) = (desk.clone(), self.file.clone());
        let thread = std::thread::Builder::new().name("guest snapshot".into());
        match thread.spawn(move || migrate::save(&desk, &file)) {
            Ok(thread) => self.busy = Some(thread),
            Err(error) => self.failed = Some(error.to_string()),
        }
    }

    fn note(&mut self) {
        let Some(done) = self.busy.take() else {
            return;
        };
        match done.join() {
            Ok(Ok(report)) => {
                self.taken += 1;
                self.stopped = self.stopped.max(report.stopped);
            }
            Ok(Err(error)) => self.failed = Some(error.to_string()),
            Err(_) => self.failed = Some("its thread failed".into()),
        }
    }

    /// The last that was taken of this guest.
    #[must_use]
    pub fn last(&self) -> Option<PathBuf> {
        (self.taken > 0).then(|| self.file.clone())
    }

    /// The report. A snapshot that is under way is waited for.
    #[must_use]
    pub fn told(mut self) -> String {
        self.note();
        let mut text = format!(
            "{} snapshots, which stopped it for at most {:.1} ms",
            self.taken,
            self.stopped.as_secs_f64() * 1e3
        );
        if let Some(why) = &self.failed {
            text += &format!("; one failed: {why}");
        }
        text
    }
}
