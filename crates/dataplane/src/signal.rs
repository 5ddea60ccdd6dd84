//! SIGINT, SIGTERM and SIGHUP ask a run to drain and report; a second SIGINT or SIGTERM ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn raise(_signal: libc::c_int) {
    // A store to a lock-free atomic is all that happens here, so it is safe in a signal handler.
    STOP.store(true, Ordering::Relaxed);
}

/// The flag, raised by nobody until [`install`] was called.
#[must_use]
pub fn flag() -> &'static AtomicBool {
    &STOP
}

/// From here on the three signals raise the flag. Waiting reads are interrupted (no `SA_RESTART`), and
/// a second SIGINT or SIGTERM has its usual effect (`SA_RESETHAND`), so a run that hangs can be ended. A second SIGHUP
/// changes nothing: when a terminal goes away, the kernel and the shell both send one. A process that was started to
/// ignore it (nohup(1)) goes on to.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if signal == libc::SIGHUP && ignored(signal) {
            continue;
        }
        // SAFETY: an all-zero sigaction is a valid value of this C struct.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = raise as extern "C" fn(libc::c_int) as libc::sighandler_t;
        if signal != libc::SIGHUP {
            action.sa_flags = libc::SA_RESETHAND;
        }
        // SAFETY: the mask belongs to `action`; the handler only stores to an atomic. The call fails
        // only for signals that do not exist or cannot be caught.
        unsafe {
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Whether the process ignores a signal.
fn ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero sigaction is a valid value of this C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the present one.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
