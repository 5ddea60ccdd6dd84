//! Support of several test files.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use millrace_traffic::capture::{Error, Reader};

/// The folder of public captures, or none with a line that says so.
pub fn corpora() -> Option<PathBuf> {
    let folder = match std::env::var_os("MILLRACE_CORPORA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora"),
    };
    let folder = folder.join("pcap");
    if folder.join("index.csv").is_file() {
        return Some(folder);
    }
    eprintln!("skipped: no corpora (set MILLRACE_CORPORA to the folder that holds pcap/index.csv)");
    None
}

/// A packet that has outlived its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub time_ns: u64,
    pub original_length: u32,
    pub interface: u32,
    pub data: Vec<u8>,
}

/// All packets, and the error that ended them.
pub fn drain(mut reader: Reader) -> (Vec<Owned>, Option<Error>) {
    let mut packets = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(record)) => packets.push(Owned {
                time_ns: record.time_ns,
                original_length: record.original_length,
                interface: record.interface,
                data: record.data.to_vec(),
            }),
            Ok(None) => return (packets, None),
            Err(error) => return (packets, Some(error)),
        }
    }
}

/// Reads bytes as a capture.
pub fn read(bytes: &[u8]) -> Result<(Vec<Owned>, Option<Error>), Error> {
    let reader = Reader::new("test", std::io::Cursor::new(bytes.to_vec()))?;
    Ok(drain(reader))
}

/// A sink that can be looked at afterwards and that fails after `limit` bytes.
#[derive(Clone)]
pub struct Sink {
    pub bytes: Arc<Mutex<Vec<u8>>>,
    pub limit: usize,
}

impl Sink {
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: Arc::default(),
            limit,
        }
    }
}

impl std::io::Write for Sink {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap();
        let room = self.limit - bytes.len();
        if room == 0 && !from.is_empty() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let n = from.len().min(room);
        bytes.extend_from_slice(&from[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
