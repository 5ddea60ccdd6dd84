//! Capabilities of a process that an ordinary user runs (the service's user, or a command with file capabilities): in
//! effect only while ports are opened, and gone before the first packet.
//!
//! Capabilities belong to threads, and a thread inherits those of the one that makes it (capabilities(7)). So they are put
//! aside at the start, when there is one thread; threads that are made before the ports are open give up what they
//! inherited; those that are made afterwards inherit nothing. Programs that this process starts get none: the ambient set
//! is cleared. Root is left as it is: it would lose what it opens files with, and has all of them again in any program
//! that it starts.

use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
};

/// Capabilities that were put aside.
#[derive(Debug, Default)]
pub struct Aside(Option<CapabilitySet>);

/// Puts aside what this thread has; to be called before there is another one.
#[must_use]
pub fn put_aside() -> Aside {
    if geteuid().is_root() {
        return Aside(None);
    }
    // A kernel without ambient capabilities (before Linux 4.3) has none to clear.
    let _ = clear_ambient_capability_set();
    let Ok(now) = capabilities(None) else {
        return Aside(None);
    };
    set(CapabilitySet::empty(), now.permitted);
    Aside((!now.permitted.is_empty()).then_some(now.permitted))
}

impl Aside {
    /// Does something with the capabilities in effect on this thread.
    pub fn with<T>(&self, privileged: impl FnOnce() -> T) -> T {
        let Some(permitted) = self.0 else {
            return privileged();
        };
        set(permitted, permitted);
        let done = privileged();
        set(CapabilitySet::empty(), permitted);
        done
    }

    /// Gives them up for good on this thread, and on those that it will make.
    pub fn give_up(self) {
        if self.0.is_some() {
            set(CapabilitySet::empty(), CapabilitySet::empty());
        }
    }

    /// The same, but for what reading the maps of BPF programs needs in kernels that restrict it.
    pub fn give_up_but_maps(self) {
        if let Some(permitted) = self.0 {
            let kept = permitted & CapabilitySet::BPF;
            set(kept, kept);
        }
    }
}

/// Gives up what a new thread inherited. Root is left as it is.
pub fn none_here() {
    if !geteuid().is_root() {
        set(CapabilitySet::empty(), CapabilitySet::empty());
    }
}

/// Nothing is inheritable. Lowering cannot fail, and raising within what is permitted neither (capget(2)).
fn set(effective: CapabilitySet, permitted: CapabilitySet) {
    let _ = set_capabilities(
        None,
        CapabilitySets {
            effective,
            permitted,
            inheritable: CapabilitySet::empty(),
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_is_gone_on_this_thread_and_those_it_makes() {
        // A thread of its own: others of this program go on with what they have.
        std::thread::spawn(|| {
            // As for an ordinary user, also where the tests run as root.
            let had = capabilities(None).unwrap().permitted;
            set(CapabilitySet::empty(), had);
            let aside = Aside(Some(had));
            let inside = aside.with(|| capabilities(None).unwrap().effective);
            assert_eq!(inside, had);
            assert!(capabilities(None).unwrap().effective.is_empty());
            aside.give_up();
            let left = std::thread::spawn(|| capabilities(None).unwrap());
            let left = left.join().unwrap();
            assert!(left.permitted.is_empty() && left.effective.is_empty());
        })
        .join()
        .unwrap();
    }
}
