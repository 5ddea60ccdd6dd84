//! Which threads are inside a module. What a module does for one packet has an end, which may be seconds away: who asks
//! the process to stop is told instead of waiting for it.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// One thread's calls: it is odd while one is under way. The thread is its only writer.
type Calls = AtomicU64;

static ALL: Mutex<Vec<Weak<Calls>>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: OnceCell<Arc<Calls>> = const { OnceCell::new() };
}

fn registered() -> Arc<Calls> {
    let own = Arc::new(Calls::default());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|calls| calls.strong_count() > 0);
    all.push(Arc::downgrade(&own));
    own
}

/// Calls a module. Two stores to a line that this thread has for itself.
pub(crate) fn call<T>(module: impl FnOnce() -> T) -> T {
    OWN.with(|own| {
        let own = own.get_or_init(registered);
        let before = own.load(Ordering::Relaxed);
        own.store(before.wrapping_add(1), Ordering::Relaxed);
        let done = module();
        own.store(before.wrapping_add(2), Ordering::Relaxed);
        done
    })
}

/// The calls that are under way.
#[derive(Clone, Debug, Default)]
pub struct Under(Vec<(Weak<Calls>, u64)>);

/// The calls that are under way now.
#[must_use]
pub fn now() -> Under {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let calls = all.iter().filter_map(|calls| {
        let count = calls.upgrade()?.load(Ordering::Relaxed);
        (count % 2 == 1).then(|| (calls.clone(), count))
    });
    Under(calls.collect())
}

impl Under {
    /// Whether one of them has not ended yet.
    #[must_use]
    pub fn lasts(&self) -> bool {
        let same = |(calls, count): &(Weak<Calls>, u64)| {
            calls
                .upgrade()
                .is_some_and(|c| c.load(Ordering::Relaxed) == *count)
        };
        self.0.iter().any(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_lasts_until_it_ends() {
        let inside = call(|| {
            let now = now();
            assert!(now.lasts());
            now
        });
        assert!(!inside.lasts());
        call(|| assert!(!inside.lasts()));
    }
}
