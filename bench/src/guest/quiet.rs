//! Standard error kept silent for as long as programs run that talk there.

use std::fs::File;
use std::os::fd::OwnedFd;

use anyhow::Result;
use rustix::stdio::{dup2_stderr, stderr};

/// Standard error as it was, which it is again when this is dropped.
pub struct Quiet(OwnedFd);

impl Quiet {
    /// From here on nothing comes through.
    pub fn begin() -> Result<Self> {
        let before = rustix::io::fcntl_dupfd_cloexec(stderr(), 3)?;
        dup2_stderr(File::options().write(true).open("/dev/null")?)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A descriptor that is open cannot be refused.
        let _ = dup2_stderr(&self.0);
    }
}
