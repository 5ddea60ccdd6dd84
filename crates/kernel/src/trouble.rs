//! Errors of libbpf and the kernel, with the words that libbpf printed on the way.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{ErrorKind, PrintLevel};
use millrace_dataplane::port::{PortError, rights};

/// Limit of libbpf's messages since [`listen`], bytes: a verifier's log can be megabytes long.
const MOST: usize = 1 << 16;
/// Lines of it that an error repeats: the last, where the verifier says why.
const LINES: usize = 12;

static SAID: Mutex<String> = Mutex::new(String::new());

#[allow(
    clippy::needless_pass_by_value,
    reason = "the type that libbpf-rs wants"
)]
fn hear(_: PrintLevel, text: String) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.push_str(&text);
    if said.len() > MOST {
        let from = said.len() - MOST / 2;
        let from = (from..said.len()).find(|at| said.is_char_boundary(*at));
        said.drain(..from.unwrap_or(0));
    }
}

/// From here on what libbpf warns about is kept for errors, not printed.
pub fn listen() {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
}

/// An error about a port.
pub fn live(word: &str, what: String, help: &str) -> PortError {
    PortError::Live {
        word: word.to_owned(),
        what,
        help: help.to_owned(),
    }
}

/// An error of libbpf or the kernel: what was tried, and what they said.
pub fn refused(word: &str, what: &str, error: &libbpf_rs::Error, help: &str) -> PortError {
    let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    let lines: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..);
    let mut text = format!("{what}: {error:#}");
    for line in last.unwrap_or_default() {
        text.push_str("\n  ");
        text.push_str(line);
    }
    let help = match error.kind() {
        ErrorKind::PermissionDenied => &format!(
            "the kernel's verifier refuses it, or a capability is missing; {}",
            rights::help("xdp:")
        ),
        _ if help.is_empty() => {
            "use afxdp: or afpacket:, which do not need the kernel to take the program"
        }
        _ => help,
    };
    live(word, text, help)
}
