//! Notices that an interface goes down or away while it is in use, for ports that are not told.

use std::ffi::CString;
use std::io;
use std::time::{Duration, Instant};

use super::{failed, interface};
use crate::port::PortError;

/// Looks at an empty queue between two looks at the clock.
const LOOKS: u32 = 64;
/// Time between two looks at the interface.
const EVERY: Duration = Duration::from_millis(200);

/// Looks at an interface now and then.
pub struct Watch {
    word: String,
    name: CString,
    looks: u32,
    next: Instant,
}

impl Watch {
    /// For the interface of a port.
    #[must_use]
    pub fn new(word: &str, name: &str) -> Self {
        Self {
            word: word.to_owned(),
            name: CString::new(name).unwrap_or_default(),
            looks: 0,
            next: Instant::now(),
        }
    }

    /// To be called when nothing came: most calls do nothing.
    ///
    /// # Errors
    /// [`PortError::Live`] when the interface is down or gone.
    pub fn look(&mut self) -> Result<(), PortError> {
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS) || Instant::now() < self.next {
            return Ok(());
        }
        self.next = Instant::now() + EVERY;
        match interface::is_up(&self.name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.gone(&io::Error::from_raw_os_error(libc::ENETDOWN))),
            Err(error) => Err(self.gone(&error)),
        }
    }

    /// The error of an interface that went down or away.
    #[must_use]
    pub fn gone(&self, error: &io::Error) -> PortError {
        failed(
            &self.word,
            "the interface went down or away while it was in use",
            error,
            "what was received before is accounted; bring the interface up and run again",
        )
    }
}
