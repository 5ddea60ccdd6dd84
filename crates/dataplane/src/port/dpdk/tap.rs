//! Whether the interface behind net_tap is still there, which its driver does not notice.
//!
//! The driver's descriptors of /dev/net/tun are the process's own, and the kernel says in
//! /proc/self/fdinfo/FD, line `iff:`, which interface each is attached to: none, once it is deleted. An
//! interface that is renamed or moved to another namespace keeps its descriptors.

use std::collections::BTreeSet;
use std::fs::read_to_string;

/// This process's descriptors and what the kernel says of them.
const DESCRIPTORS: &str = "/proc/self/fdinfo";

/// Descriptors that are attached to an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taps(BTreeSet<u32>);

impl Taps {
    /// All there are now.
    pub fn now() -> Self {
        let entries = std::fs::read_dir(DESCRIPTORS)
            .into_iter()
            .flatten()
            .flatten();
        let numbers = entries.filter_map(|e| e.file_name().to_str()?.parse().ok());
        Self(numbers.filter(|fd| attached(*fd)).collect())
    }

    /// Those that have come since.
    pub fn since(&self, before: &Self) -> Self {
        Self(self.0.difference(&before.0).copied().collect())
    }

    /// Whether none of them is attached any more; false where there were none to begin with.
    pub fn gone(&self) -> bool {
        !self.0.is_empty() && !self.0.iter().any(|fd| attached(*fd))
    }
}

fn attached(fd: u32) -> bool {
    read_to_string(format!("{DESCRIPTORS}/{fd}")).is_ok_and(|text| names_interface(&text))
}

fn names_interface(text: &str) -> bool {
    let mut names = text.lines().filter_map(|l| l.strip_prefix("iff:"));
    names.any(|name| !name.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_understood() {
        assert!(names_interface("pos:\t0\nflags:\t0104002\niff:\tdtap0\n"));
        assert!(!names_interface("pos:\t0\nflags:\t0104002\niff:\t\n"));
        assert!(!names_interface("pos:\t0\nflags:\t0104002\n"));
        let now = Taps::now();
        assert!(now.since(&now) == Taps::default() && !Taps::default().gone());
        assert!(Taps([u32::MAX].into()).gone());
    }
}
