//! Packets with numbers that are written into a run while it is changed, and programs that see them.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::Value;

use super::live::{self, Live, from, header, record};
use crate::common::{read, root};

/// Whether a program is there; says so when it is not.
pub fn installed(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: {program} is not installed (scripts/setup.sh test)");
    }
    there
}

/// Writes packets with numbers into a run's standard input until it is told to end; says how many.
pub struct Stream {
    pub stop: Arc<AtomicBool>,
    pub sent: Arc<AtomicU32>,
    thread: std::thread::JoinHandle<()>,
}

impl Stream {
    pub fn into(live: &mut Live) -> Self {
        Self::of(live, from)
    }

    /// The same of packets that this makes of their sources.
    pub fn of(live: &mut Live, packet: fn([u8; 4]) -> Vec<u8>) -> Self {
        let mut pipe = live.child.stdin.take().unwrap();
        let (stop, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU32::new(0)),
        );
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            pipe.write_all(&header()).unwrap();
            let mut number = 0_u32;
            while !stopped.load(Ordering::Relaxed) {
                let mut piece = Vec::new();
                for _ in 0..17 {
                    let mut packet = packet([10, 0, (number >> 8) as u8, number as u8]);
                    packet[40..44].copy_from_slice(&number.to_be_bytes());
                    piece.extend(record(number, &packet));
                    number += 1;
                }
                pipe.write_all(&piece).unwrap();
                count.store(number, Ordering::Relaxed);
                // A stream, not a flood: changes fall into its middle.
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        Self { stop, sent, thread }
    }

    /// Waits until so many more have been sent.
    pub fn more(&self, packets: u32) {
        let until = self.sent.load(Ordering::Relaxed) + packets;
        let began = std::time::Instant::now();
        while self.sent.load(Ordering::Relaxed) < until {
            assert!(began.elapsed() < live::LONG, "the stream stands still");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    pub fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.sent.load(Ordering::Relaxed)
    }
}

/// The numbers of the packets of a capture.
pub fn numbers(path: &Path) -> Vec<u32> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[40..44].try_into().unwrap());
    read(path)
        .iter()
        .map(|(_, _, bytes)| number(bytes))
        .collect()
}

pub fn elements(answer: &Value) -> Vec<&str> {
    let all = answer["elements"].as_array().unwrap();
    all.iter().map(|e| e.as_str().unwrap()).collect()
}

/// A guest that counts, from its source.
pub fn receiver(folder: &Path) -> PathBuf {
    let program = folder.join("receiver");
    let room = root().join("crates/guest");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-pthread", "-I"])
        .arg(room.join("preload"))
        .arg("-o")
        .arg(&program)
        .arg(room.join("tests/programs/receiver.c"))
        .status()
        .unwrap();
    assert!(built.success());
    program
}

/// A program that counts packets by source, in a map of this capacity and value type.
pub fn counter(folder: &Path, name: &str, capacity: u32, value: &str) -> String {
    let source = format!(
        r#"#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {{
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, {capacity});
	__type(key, __u32);
	__type(value, {value});
}} sources SEC(".maps");
SEC("xdp") int count(struct xdp_md *ctx)
{{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 key;
	{value} one = 1, *n;

	if (data + 30 > end)
		return XDP_DROP;
	__builtin_memcpy(&key, data + 26, 4);
	n = bpf_map_lookup_elem(&sources, &key);
	if (n)
		++*n;
	else
		bpf_map_update_elem(&sources, &key, &one, BPF_ANY);
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}}
char _license[] SEC("license") = "GPL";
"#
    );
    let path = folder.join(name);
    std::fs::write(&path, source).unwrap();
    path.display().to_string()
}
