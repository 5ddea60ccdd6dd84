//! One budget of time and memory for an object, over every stage that reads it: check, model, plan and clang.
//!
//! Each stage has limits of its own that count what it does, so that its answer is the same on every machine. This is
//! what stands behind them: processor time of the thread, and the bytes by which the process may grow.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use crate::moment::Moment;

/// The time for an object where nobody says otherwise. A debug build takes a multiple.
pub const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 300 } else { 60 });

/// The memory for an object where nobody says otherwise: 2 GiB.
pub const MEMORY: u64 = 2 << 30;

/// How to raise the time.
pub const RAISE_TIME: &str = "raise it with `--budget-time SECONDS`";

/// How to raise the memory.
pub const RAISE_MEMORY: &str = "raise it with `--budget-memory SIZE`";

/// Longer than any run; clocks do not count to the end of a [`Duration`].
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Between two looks at the size of the process, which is a read from /proc.
const LOOK: Duration = Duration::from_millis(20);

/// Gives what was freed back to the system, so that the size of the process says what is in use.
static GIVE_BACK: OnceLock<fn()> = OnceLock::new();

/// Has this called before memory counts as used up: what a stage has freed may still be the process's. The first one
/// counts.
pub fn give_back_by(give_back: fn()) {
    let _ = GIVE_BACK.set(give_back);
}

/// What is left for an object, in one thread. A copy is the same budget: it ends at the same moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    until: Moment,
    time: Duration,
    memory: u64,
    /// bytes of the process when it began
    base: u64,
}

/// What is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spent {
    /// all of this time
    Time(Duration),
    /// all of these bytes
    Memory(u64),
}

impl Budget {
    /// Begins now.
    #[must_use]
    pub fn begin(time: Duration, memory: u64) -> Self {
        let time = time.min(LONGEST);
        Self {
            until: Moment::now() + time,
            time,
            memory,
            base: resident().unwrap_or(0),
        }
    }

    /// When it ends, by the clock of the thread in which it began.
    #[must_use]
    pub fn until(&self) -> Moment {
        self.until
    }

    /// The time that is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.until.since(Moment::now())
    }

    /// All of its time.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The bytes by which the process may grow, and that a process which it starts may take.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Whether something is used up. A read of a file: not for inner loops, which have a [`Watch`].
    #[must_use]
    pub fn spent(&self) -> Option<Spent> {
        if Moment::now() >= self.until {
            return Some(Spent::Time(self.time));
        }
        let grown = || Some(resident()?.saturating_sub(self.base) > self.memory);
        if grown()?
            && let Some(give_back) = GIVE_BACK.get()
        {
            give_back();
        }
        grown()?.then_some(Spent::Memory(self.memory))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::begin(TIME, MEMORY)
    }
}

impl Spent {
    /// How to raise it.
    #[must_use]
    pub fn raise(&self) -> &'static str {
        match self {
            Self::Time(_) => RAISE_TIME,
            Self::Memory(_) => RAISE_MEMORY,
        }
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "the object's budget of {} s", time.as_secs_f64()),
            Self::Memory(bytes) if *bytes < 1 << 20 => {
                write!(f, "the object's budget of {} KiB", bytes >> 10)
            }
            Self::Memory(bytes) => write!(f, "the object's budget of {} MiB", bytes >> 20),
        }
    }
}

/// Looks at a budget now and then.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    budget: Budget,
    asked: u32,
    next: Moment,
}

/// Between two looks at the clock.
const EACH: u32 = 256;

impl Watch {
    /// Over this one.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            asked: 0,
            next: Moment::now(),
        }
    }

    /// The same of what counts these bytes as kept, on every machine alike.
    pub fn holds(&mut self, bytes: u64) -> Option<Spent> {
        if bytes > self.budget.memory {
            return Some(Spent::Memory(self.budget.memory));
        }
        self.spent()
    }

    /// Whether something is used up, as far as it looks: at the clock each 256th time, at the memory each 20 ms.
    pub fn spent(&mut self) -> Option<Spent> {
        self.asked += 1;
        if self.asked < EACH {
            return None;
        }
        self.asked = 0;
        let now = Moment::now();
        if now < self.next && now < self.budget.until {
            return None;
        }
        self.next = now + LOOK;
        self.budget.spent()
    }
}

/// Bytes of the process that are in memory (proc_pid_statm(5), the second number, in pages).
fn resident() -> Option<u64> {
    /// Pages of x86-64 and of most other machines; with larger ones the budget is only tighter in pages.
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}
