//! Signals: handlers and timers are the guest's own, and nothing of them reaches the process.
//!
//! A handler is called where the guest asks for packets (preload/receive.c), not where it happens to be.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::{Answer, Call, Entry, How, entry, kernel};
use crate::fault::Fault;
use crate::memory::Errno;
use crate::shared::monotonic;
use crate::trap::Left;

/// The calls.
pub const CALLS: &[Entry] = &[
    entry(libc::SYS_rt_sigaction, "rt_sigaction", How::Here(sigaction)),
    entry(
        libc::SYS_rt_sigprocmask,
        "rt_sigprocmask",
        How::Here(sigprocmask),
    ),
    entry(
        libc::SYS_rt_sigpending,
        "rt_sigpending",
        How::Here(sigpending),
    ),
    entry(libc::SYS_sigaltstack, "sigaltstack", How::Accept),
    entry(libc::SYS_kill, "kill", How::End(kill)),
    entry(libc::SYS_tkill, "tkill", How::End(kill)),
    entry(libc::SYS_tgkill, "tgkill", How::End(kill)),
    entry(libc::SYS_alarm, "alarm", How::Here(alarm)),
    entry(libc::SYS_setitimer, "setitimer", How::Here(setitimer)),
    entry(libc::SYS_getitimer, "getitimer", How::Here(getitimer)),
    entry(libc::SYS_pause, "pause", How::Here(wait_forever)),
    entry(
        libc::SYS_rt_sigsuspend,
        "rt_sigsuspend",
        How::Here(wait_forever),
    ),
    entry(
        libc::SYS_rt_sigtimedwait,
        "rt_sigtimedwait",
        How::Here(wait_for_signal),
    ),
];

/// The kernel's `struct sigaction`: handler, flags, restorer, mask.
type Action = [u64; 4];
/// Numbers of signals, 0 among them.
const SIGNALS: usize = 65;

/// A guest's handlers and its timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    actions: Vec<Action>,
    mask: u64,
    /// of its timer, ns; 0: it fires once
    interval: u64,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            actions: vec![[0; 4]; SIGNALS],
            mask: 0,
            interval: 0,
        }
    }
}

impl Signals {
    /// A signal's handler, and whether it takes three arguments.
    #[must_use]
    pub fn handler(&self, signal: i32) -> Option<(usize, bool)> {
        let [handler, flags, ..] = self.actions.get(usize::try_from(signal).ok()?)?;
        // SIG_DFL and SIG_IGN are no functions.
        (*handler > 1).then_some((*handler as usize, flags & libc::SA_SIGINFO as u64 != 0))
    }

    /// Whether it has as many handlers as there are signals; one that was read may not.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.actions.len() == SIGNALS
    }

    fn ignored(&self, signal: i32) -> bool {
        let action = usize::try_from(signal)
            .ok()
            .and_then(|s| self.actions.get(s));
        let ignored = action.is_some_and(|[handler, ..]| *handler == libc::SIG_IGN as u64);
        let harmless = [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT];
        ignored || harmless.contains(&signal)
    }

    /// When its timer fires next, if it has just fired at `now`.
    #[must_use]
    pub fn next_alarm(&self, now: u64) -> Option<u64> {
        (self.interval > 0).then(|| now + self.interval)
    }
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.try_into().map(u64::from_le_bytes).unwrap_or(0);
    }
    words
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn sigaction(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [signal, new, old, ..] = call.args;
    let wanted = if new == 0 {
        None
    } else {
        Some(words::<4>(&call.get::<32>(new)?))
    };
    let before = {
        let mut state = call.guest.state();
        let action = state
            .signals
            .actions
            .get_mut(signal)
            .filter(|_| signal > 0)
            .ok_or(libc::EINVAL)?;
        let before = *action;
        if let Some(wanted) = wanted {
            *action = wanted;
        }
        before
    };
    if old != 0 {
        call.put(old, &bytes(&before))?;
    }
    Ok(0)
}

fn sigprocmask(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [how, new, old, ..] = call.args;
    let wanted = if new == 0 {
        None
    } else {
        Some(u64::from_le_bytes(call.get::<8>(new)?))
    };
    let before = {
        let mut state = call.guest.state();
        let mask = &mut state.signals.mask;
        let before = *mask;
        match (wanted, how as i32) {
            (None, _) => {}
            (Some(set), libc::SIG_BLOCK) => *mask |= set,
            (Some(set), libc::SIG_UNBLOCK) => *mask &= !set,
            (Some(set), libc::SIG_SETMASK) => *mask = set,
            _ => return Err(libc::EINVAL),
        }
        before
    };
    if old != 0 {
        call.put(old, &before.to_le_bytes())?;
    }
    Ok(0)
}

fn sigpending(call: &mut Call<'_>) -> Result<i64, Errno> {
    call.put(call.arg(0), &[0; 8]).map(|()| 0)
}

/// To itself; others are none of its business.
fn kill(call: &mut Call<'_>) -> Answer {
    let own = call.guest.state().process;
    let (target, signal) = match call.number {
        libc::SYS_tgkill => (call.int(0), call.int(2)),
        libc::SYS_tkill => (own, call.int(1)),
        _ => (call.int(0), call.int(1)),
    };
    if target != own && target != 0 {
        call.guest
            .state()
            .note(format!("a signal to process {target} was denied"));
        return Answer::Value(i64::from(-libc::EPERM));
    }
    let (ignored, handled) = {
        let state = call.guest.state();
        (
            state.signals.ignored(signal),
            state.signals.handler(signal).is_some(),
        )
    };
    // Of a signal with a handler nothing is done but for those that end a program whatever it does about them; at its
    // end the handler is called (`end.rs`): by such a signal a thread tells another to stop waiting.
    let bit = if (1..=64).contains(&signal) {
        1 << (signal - 1)
    } else {
        0
    };
    let awaited = call.guest.awaited.load(Ordering::Acquire) & bit != 0;
    if handled || awaited {
        call.guest.pending.fetch_or(bit, Ordering::AcqRel);
    }
    if awaited {
        return Answer::Value(0);
    }
    if signal == 0 || signal != libc::SIGABRT && signal != libc::SIGKILL && (ignored || handled) {
        return Answer::Value(0);
    }
    Answer::Leave(Left::Fault(Box::new(Fault::of(
        signal,
        0,
        0,
        call.frame,
        Some(&call.guest),
    ))))
}

/// Sets the timer, and gives what was left of the one before: until it fires, and its interval, ns.
fn set(call: &Call<'_>, first: u64, interval: u64) -> (u64, u64) {
    let now = monotonic();
    let mut state = call.guest.state();
    let before = std::mem::replace(&mut state.signals.interval, interval);
    let due = if first == 0 { 0 } else { now + first };
    let was = call.guest.alarm.swap(due, Ordering::Relaxed);
    (was.saturating_sub(now), before)
}

const SECOND: u64 = 1_000_000_000;

fn alarm(call: &mut Call<'_>) -> Result<i64, Errno> {
    let (left, _) = set(call, call.arg(0) as u64 * SECOND, 0);
    Ok(left.div_ceil(SECOND) as i64)
}

/// `struct itimerval`, from and to nanoseconds.
fn of_timeval(interval: u64, left: u64) -> Vec<u8> {
    bytes(
        &[interval, left]
            .map(|ns| [ns / SECOND, ns % SECOND / 1000])
            .concat(),
    )
}

fn setitimer(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [which, new, old, ..] = call.args;
    if which as i32 != libc::ITIMER_REAL {
        return Err(libc::EINVAL);
    }
    let [every, every_us, first, first_us] = words::<4>(&call.get::<32>(new)?);
    let ns = |s: u64, us: u64| {
        s.saturating_mul(SECOND)
            .saturating_add(us.saturating_mul(1000))
            & (u64::MAX >> 2)
    };
    let (left, interval) = set(call, ns(first, first_us), ns(every, every_us));
    if old != 0 {
        call.put(old, &of_timeval(interval, left))?;
    }
    Ok(0)
}

fn getitimer(call: &mut Call<'_>) -> Result<i64, Errno> {
    let interval = call.guest.state().signals.interval;
    let left = call
        .guest
        .alarm
        .load(Ordering::Relaxed)
        .saturating_sub(monotonic());
    call.put(call.arg(1), &of_timeval(interval, left))
        .map(|()| 0)
}

/// A thread that waits for a signal: it sleeps until its guest is removed.
/// Waits until one of these signals is sent to the guest, which the host does to end it.
fn wait_for_signal(call: &mut Call<'_>) -> Result<i64, Errno> {
    let [set, info, time, ..] = call.args;
    let wanted = u64::from_ne_bytes(call.get(set)?);
    if time != 0 {
        return wait_forever(call);
    }
    call.guest.awaited.fetch_or(wanted, Ordering::AcqRel);
    loop {
        let sent = call.guest.pending.load(Ordering::Acquire) & wanted;
        if sent != 0 {
            call.guest.pending.fetch_and(!sent, Ordering::AcqRel);
            let signal = sent.trailing_zeros() as i32 + 1;
            if info != 0 {
                let mut told = [0; 128];
                told.iter_mut()
                    .zip(signal.to_ne_bytes())
                    .for_each(|(place, byte)| *place = byte);
                call.put(info, &told)?;
            }
            return Ok(i64::from(signal));
        }
        if ends(call) {
            return Err(libc::EINTR);
        }
        moment();
    }
}

/// Whether a thread that waits is to leave its wait.
fn ends(call: &Call<'_>) -> bool {
    call.guest.is_dead()
        || call.guest.rest.wanted() && !call.running.worker
        || call.running.worker && call.guest.watch.overdue()
}

fn moment() {
    let tenth = [0_u64, SECOND / 10];
    let _ = kernel(libc::SYS_nanosleep, [tenth.as_ptr().addr(), 0, 0, 0, 0, 0]);
}

fn wait_forever(call: &mut Call<'_>) -> Result<i64, Errno> {
    while !ends(call) {
        moment();
    }
    Err(libc::EINTR)
}
