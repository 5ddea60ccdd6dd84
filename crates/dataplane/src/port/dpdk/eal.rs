//! DPDK's environment: once a process, by arguments that are made here and never asked of anybody.
//!
//! No huge pages, no second process, no telemetry, no processor taken: the one "lcore" that DPDK insists
//! on is whatever processors the calling thread may use anyway. Nothing is probed at start; devices are
//! added by name when ports are opened. What DPDK says at warnings and above goes into the errors of ports
//! instead of onto the terminal.

use std::ffi::CString;
use std::path::Path;
use std::sync::OnceLock;
use std::thread::ThreadId;

use super::raw;
use crate::place;
use crate::port::Pool;

/// Ports of one run that memory is reserved for, each as large as the first.
const PORTS: u64 = 16;
/// MiB for DPDK itself.
const OWN_MEMORY: u64 = 64;
/// The most memory that is reserved, MiB; only what is used becomes resident.
const MOST_MEMORY: u64 = 16 << 10;
/// An address at which there is no device: it makes the PCI bus probe nothing but what is named later.
const NO_DEVICE: &str = "ffff:ff:1f.7";

/// Starts DPDK, the first time; later calls say how that went. `bytes` is what the buffers of one port take.
///
/// # Errors
/// What DPDK said.
pub fn start(bytes: u64) -> Result<(), String> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    STARTED.get_or_init(|| initialise(bytes)).clone()
}

/// Membership of a thread among those of DPDK, for as long as the thread lives.
struct Member(bool);

impl Drop for Member {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: this thread was registered, and uses no buffers any more.
            unsafe { raw::mr_unregister() };
        }
    }
}

/// Makes the calling thread one of DPDK's until it ends, so that it has a cache in each pool. There are 128
/// places; a thread that finds none takes its buffers from the pools' rings, which costs more.
pub fn join() {
    thread_local! {
        // SAFETY: DPDK was started; a thread that is one of its own already only gets its place again.
        static MEMBER: Member = Member(!is_main() && unsafe { raw::mr_register() } == 0);
    }
    MEMBER.with(|_| ());
}

/// Whether the calling thread is the one that started DPDK, which has a place by that.
fn is_main() -> bool {
    MAIN.get() == Some(&std::thread::current().id())
}

/// The thread that started DPDK.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// All buffers of DPDK: each finds its own way back, so a queue may keep those of another.
pub fn pool() -> Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    *POOL.get_or_init(Pool::fresh)
}

/// What DPDK said since it was last asked, in one line.
pub fn said() -> String {
    let mut bytes = [0_u8; 4096];
    // SAFETY: the function writes at most as many bytes as it is told there are.
    let count = unsafe { raw::mr_said(bytes.as_mut_ptr().cast(), bytes.len()) };
    let text = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default());
    let lines: Vec<_> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    lines.join("; ")
}

/// What DPDK said of a failure; its error number, which is often a mere placeholder, where it said nothing.
pub fn explained(status: i32) -> String {
    match said() {
        text if text.is_empty() => {
            std::io::Error::from_raw_os_error(status.saturating_abs()).to_string()
        }
        text => text,
    }
}

fn arguments(bytes: u64) -> Vec<String> {
    let memory = (OWN_MEMORY + (bytes * PORTS).div_ceil(1 << 20)).min(MOST_MEMORY);
    let cpus: Vec<_> = place::cpus().iter().map(ToString::to_string).collect();
    let mut arguments: Vec<String> = [
        "millrace",
        "--no-huge",
        "--no-shconf",
        "--no-telemetry",
        "--iova-mode=va",
        "--log-level=warning",
    ]
    .map(String::from)
    .into();
    arguments.push(format!("-m{memory}"));
    arguments.push(format!("--file-prefix=millrace-{}", std::process::id()));
    arguments.push(format!("--lcores=0@({})", cpus.join(",")));
    if Path::new("/sys/bus/pci/devices").is_dir() {
        arguments.push(format!("--allow={NO_DEVICE}"));
    } else {
        arguments.push("--no-pci".into());
    }
    arguments
}

fn initialise(bytes: u64) -> Result<(), String> {
    MAIN.get_or_init(|| std::thread::current().id());
    let arguments: Vec<CString> = arguments(bytes)
        .into_iter()
        .filter_map(|a| CString::new(a).ok())
        .collect();
    // DPDK keeps the strings, and reorders and keeps the array.
    let pointers: Vec<_> = arguments.iter().map(|a| a.as_ptr().cast_mut()).collect();
    let pointers = Box::leak(pointers.into_boxed_slice());
    std::mem::forget(arguments);
    // SAFETY: the array and its strings live as long as the process; this runs once (`start`).
    let status = unsafe { raw::mr_init(pointers.len() as i32, pointers.as_mut_ptr()) };
    match status {
        0 => {
            // What it says while it looks around is no concern of any port.
            said();
            Ok(())
        }
        status => Err(format!("DPDK does not start: {}", explained(status))),
    }
}
