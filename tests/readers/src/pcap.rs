//! A whole capture of either format.

use std::io::{Cursor, Read};

use millrace_traffic::capture::{Format, Reader, Writer};
use millrace_traffic::info::Describer;
use millrace_traffic::split::Split;

/// A stream that gives few bytes at a time, as a pipe does, so that records straddle reads.
struct Drip(Cursor<Vec<u8>>);

impl Read for Drip {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let few = to.len().min(61);
        match to.get_mut(..few) {
            Some(to) => self.0.read(to),
            None => Ok(0),
        }
    }
}

/// Reads `data` as a capture and does with each packet what commands do. What one way of reading gives
/// the other must give too, and what was written must be as many packets.
pub fn run(data: &[u8]) {
    let whole = packets(Cursor::new(data.to_vec()));
    let dripped = packets(Drip(Cursor::new(data.to_vec())));
    assert_eq!(whole, dripped, "reading depends on how the bytes come");
}

/// How many packets there are, and a sum over what they are.
fn packets(read: impl Read + Send + 'static) -> (u64, u64) {
    let Ok(mut reader) = Reader::new("fuzz", read) else {
        return (0, 0);
    };
    let split: Option<Split> = "lan=10.0.0.0/8,fd00::/8".parse().ok();
    let mut describer = Describer::new(100);
    let mut writers = [Format::Pcap, Format::Pcapng]
        .map(|format| Writer::new("fuzz", std::io::sink(), format, &["lan", "wan"]));
    let (mut count, mut sum, mut refused) = (0_u64, 0_u64, [0_u64; 2]);
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                count += 1;
                sum = sum.rotate_left(5)
                    ^ record.time_ns
                    ^ record
                        .data
                        .iter()
                        .fold(0, |sum: u64, byte| sum * 31 % 65_521 + u64::from(*byte));
                describer.add(&record);
                let _ = split.as_ref().map(|split| split.side(record.data));
                for (writer, refused) in writers.iter_mut().zip(&mut refused) {
                    let length = record.original_length;
                    let port = record.interface % 2;
                    *refused += u64::from(
                        writer
                            .write(record.time_ns, port, length, record.data)
                            .is_err(),
                    );
                }
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    assert!(!describer.finish().to_string().is_empty());
    for (writer, refused) in writers.into_iter().zip(refused) {
        let written = writer.finish().map(|written| written.packets);
        assert_eq!(written.ok(), Some(count - refused));
    }
    (count, sum)
}
