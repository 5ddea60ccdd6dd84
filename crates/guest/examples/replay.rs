//! Runs one guest over a capture, without a chain: `replay CAPTURE 'tcpdump -n -i @'`. For looking at a guest alone.

#![allow(unsafe_code, reason = "packets cross to the guest by address")]

use millrace_guest::port::Packet;
use millrace_guest::{Hosted, Spec, describe};
use millrace_traffic::capture::Reader;

/// Packets a burst.
const BURST: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(capture), Some(command)) = (words.next(), words.next()) else {
        return Err("usage: replay CAPTURE 'PROGRAM ARGUMENTS'".into());
    };
    let mut reader = Reader::open(capture)?;
    let mut guest =
        Hosted::start(Spec::parse(&command)?).inspect_err(|e| eprintln!("help: {}", e.help()))?;
    eprintln!("{} asked for packets after {:?}", guest.name(), guest.took);
    let mut frames: Vec<(Vec<u8>, u64, u32)> = Vec::new();
    let mut more = true;
    while more {
        frames.clear();
        while frames.len() < BURST {
            let Some(record) = reader.next()? else {
                more = false;
                break;
            };
            frames.push((record.data.to_vec(), record.time_ns, record.original_length));
        }
        let packet = |(data, time, wire): &mut (Vec<u8>, u64, u32)| Packet::of(data, *time, *wire);
        let mut packets: Vec<Packet> = frames.iter_mut().map(packet).collect();
        // SAFETY: each packet lies in a buffer of its own in `frames`, which is not touched during the call.
        unsafe { guest.burst(&mut packets) };
    }
    guest.finish();
    eprintln!("{} sent {} packets", guest.name(), guest.sent.len());
    if let Some(over) = guest.over() {
        eprintln!("{}: {}", guest.name(), describe(over));
    }
    for (note, times) in guest.notes() {
        eprintln!("{}: {note} ({times} times)", guest.name());
    }
    Ok(())
}
