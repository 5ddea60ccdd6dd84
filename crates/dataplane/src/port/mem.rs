//! `mem:FILE`: a capture held in memory and looped over, for measuring without the file's cost.

use millrace_traffic::capture::{Reader, Record};

use super::{Input, InputOptions, Kind, PortError};

/// Captures in memory.
pub const KIND: Kind = Kind {
    scheme: "mem",
    form: "mem:FILE.pcap",
    what: "a capture looped from memory, for measuring",
    input: Some(open),
    output: None,
    live: None,
    spelled: |rest| match rest {
        "" => Err(PortError::Nameless {
            word: format!("{}:", KIND.scheme),
        }),
        _ => Ok(()),
    },
};

struct Entry {
    start: usize,
    length: u32,
    original_length: u32,
    time: u64,
}

struct Memory {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    loops: Option<u64>,
    round: u64,
    /// index of the next packet
    next: usize,
    /// ns from the first packet of a round to the first of the next
    period: u64,
}

fn open(word: &str, options: &InputOptions) -> Result<Box<dyn Input>, PortError> {
    let whole = format!("mem:{word}");
    if word.is_empty() {
        return Err(PortError::Nameless { word: whole });
    }
    let mut reader = Reader::open(word)?;
    let (mut bytes, mut entries) = (Vec::new(), Vec::new());
    while let Some(record) = reader.next()? {
        entries.push(Entry {
            start: bytes.len(),
            length: record.data.len() as u32,
            original_length: record.original_length,
            time: record.time_ns,
        });
        bytes.extend_from_slice(record.data);
    }
    bytes.shrink_to_fit();
    entries.shrink_to_fit();
    let times = || entries.iter().map(|e: &Entry| e.time);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return Err(PortError::Hollow { word: whole });
    };
    // One mean gap after its last packet the capture begins again; at least a nanosecond a packet,
    // so that time goes on in a capture whose stamps are all the same.
    let span = last - first;
    let gaps = entries.len().saturating_sub(1).max(1) as u64;
    let period = span.saturating_add(span / gaps).max(entries.len() as u64);
    Ok(Box::new(Memory {
        bytes,
        entries,
        loops: options.loops,
        round: 0,
        next: 0,
        period,
    }))
}

impl Input for Memory {
    fn advance(&mut self) -> Result<bool, PortError> {
        if self.next == self.entries.len() {
            if self.loops.is_some_and(|loops| self.round + 1 >= loops) {
                // One past the end: `record` finds nothing.
                self.next = self.entries.len() + 1;
                return Ok(false);
            }
            self.round += 1;
            self.next = 0;
        }
        if self.next > self.entries.len() || self.loops == Some(0) {
            return Ok(false);
        }
        self.next += 1;
        Ok(true)
    }

    fn record(&self) -> Option<Record<'_>> {
        let entry = self.entries.get(self.next.checked_sub(1)?)?;
        Some(Record {
            time_ns: entry
                .time
                .saturating_add(self.round.saturating_mul(self.period)),
            original_length: entry.original_length,
            interface: 0,
            data: self
                .bytes
                .get(entry.start..)?
                .get(..entry.length as usize)?,
        })
    }

    fn progress(&self) -> Option<(u64, u64)> {
        let each = self.entries.len() as u64;
        let done = self
            .round
            .saturating_mul(each)
            .saturating_add(self.next as u64);
        self.loops.map(|loops| (done, loops.saturating_mul(each)))
    }

    fn bytes(&self) -> u64 {
        (self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_traffic::capture::Writer;
    use std::sync::atomic::AtomicBool;

    static STOP: AtomicBool = AtomicBool::new(false);

    fn times(stamps: &[u64], loops: u64) -> Vec<u64> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pcap");
        let mut writer = Writer::create(&file, &["a"]).unwrap();
        for stamp in stamps {
            writer.write(*stamp, 0, 3, &[1, 2, 3]).unwrap();
        }
        writer.finish().unwrap();
        let options = InputOptions {
            loops: Some(loops),
            stop: &STOP,
        };
        let mut input = open(file.to_str().unwrap(), &options).unwrap();
        let mut times = Vec::new();
        while input.advance().unwrap() {
            times.push(input.record().unwrap().time_ns);
        }
        assert!(!input.advance().unwrap() && input.record().is_none());
        times
    }

    #[test]
    fn rounds_follow_each_other_in_time() {
        assert_eq!(times(&[100, 110, 120], 2), [100, 110, 120, 130, 140, 150]);
        assert_eq!(times(&[7, 7], 3), [7, 7, 9, 9, 11, 11]);
        assert_eq!(times(&[5], 3), [5, 6, 7]);
        assert_eq!(times(&[5], 0), [] as [u64; 0]);
    }

    #[test]
    fn a_capture_without_packets_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pcap");
        Writer::create(&file, &["a"]).unwrap().finish().unwrap();
        let options = InputOptions {
            loops: None,
            stop: &STOP,
        };
        let result = open(file.to_str().unwrap(), &options);
        assert!(matches!(result, Err(PortError::Hollow { .. })));
    }
}
