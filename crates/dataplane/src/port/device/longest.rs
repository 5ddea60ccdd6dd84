//! The longest frame of an interface, whose MTU may change while it is in use.
//!
//! A port learns the MTU when it is opened. A packet that is longer than that makes it look again, at most five times a
//! second: one that was raised is followed without a restart.

use std::ffi::CString;
use std::time::{Duration, Instant};

use super::Interface;

/// Time between two looks at the interface.
const EVERY: Duration = Duration::from_millis(200);

/// What is known of the frames of an interface.
pub struct Longest {
    name: CString,
    interface: Interface,
    next: Option<Instant>,
}

impl Longest {
    /// Of an interface of this name.
    #[must_use]
    pub fn new(name: &str, interface: &Interface) -> Self {
        Self {
            name: CString::new(name).unwrap_or_default(),
            interface: interface.clone(),
            next: None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    /// The interface as it was seen last.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// A packet is too long for what is known: looks again. True when the MTU has changed.
    #[cold]
    pub fn renew(&mut self) -> bool {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + EVERY);
        self.interface.renew(&self.name)
    }
}
