//! Each XDP function against the kernel: the same packets, and after each the same verdict and bytes;
//! in the end the same maps and the same records.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;

use libbpf_rs::MapType;
use millrace_dataplane::packet::Fate;
use millrace_object::program::Dialect;
use millrace_tests::command::{captures, nfs};
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Kernel, unavailable};
use millrace_traffic::capture::Reader;

/// The kernel runs a program on frames of at least an Ethernet header, in a buffer of a page.
const LENGTHS: std::ops::RangeInclusive<usize> = 14..=3000;

/// What the kernel calls it. Port 0 is where all packets come in.
fn verdict(fate: Fate) -> &'static [u32] {
    match fate {
        Fate::Aborted => &[0],
        Fate::Dropped(_) => &[1],
        Fate::Passed => &[2],
        Fate::Forwarded(0) => &[3],
        // bpf_redirect itself answers XDP_REDIRECT.
        Fate::Forwarded(_) => &[4],
        Fate::Flooded | Fate::Consumed => &[],
    }
}

/// Packets to run: every capture, and after each packet mutants of it, made with a fixed seed.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below
    };
    for capture in captures() {
        let mut reader = Reader::open(capture.to_str().unwrap()).unwrap();
        while let Some(record) = reader.next().unwrap() {
            let frame = record.data.to_vec();
            let mut mutant = frame.clone();
            for _ in 0..=draw(3) {
                // Most of what matters is in the first bytes.
                let at = draw(mutant.len().min(60));
                mutant[at] = [draw(256) as u8, 0, 6, 17, 0x45, 0x46, 100, 101, 102][draw(9)];
            }
            mutant.truncate(if draw(4) == 0 {
                14 + draw(60)
            } else {
                mutant.len()
            });
            packets.extend([frame, mutant]);
        }
    }
    // Knocks, so that doors open and packets are transmitted.
    for source in 0..50_u8 {
        for port in [100_u16, 101, 102, 80, 100, 102, 101] {
            let mut frame = vec![0; 60];
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[14] = 0x45;
            frame[16..18].copy_from_slice(&46_u16.to_be_bytes());
            frame[23] = 6;
            frame[26..30].copy_from_slice(&[10, 0, 0, source % 40]);
            frame[36..38].copy_from_slice(&port.to_be_bytes());
            packets.push(frame);
        }
    }
    // A flow of enough bytes to pass the heavy hitter's threshold.
    for _ in 0..800 {
        let mut frame = vec![0; 1400];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&1386_u16.to_be_bytes());
        frame[23] = 17;
        packets.push(frame);
    }
    packets.retain(|p| LENGTHS.contains(&p.len()));
    packets
}

#[test]
fn xdp_functions_do_what_they_do_in_the_kernel() {
    if let Some(why) = unavailable() {
        println!("skipped: comparison with the kernel, {why}");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let packets = packets();
    let mut compared = 0;
    for nf in nfs() {
        let mut ours = Emitted::nf(&cache.path().join("cache"), &nf, 2).unwrap();
        if ours.program.dialect != Dialect::Xdp {
            continue;
        }
        compared += 1;
        let mut kernel = Kernel::load(&ours.object).unwrap();
        let (mut fates, mut records) = (HashMap::<u32, u64>::new(), Vec::new());
        for (number, packet) in packets.iter().enumerate() {
            let theirs = kernel
                .run(packet)
                .unwrap_or_else(|e| panic!("{nf}, {number}: {e}"));
            let outcome = ours.run(packet).unwrap();
            assert!(
                verdict(outcome.fate).contains(&theirs.verdict),
                "{nf}, packet {number} of {} bytes: {:?} here, {} in the kernel\n{packet:02x?}",
                packet.len(),
                outcome.fate,
                theirs.verdict
            );
            assert!(
                outcome.packet == theirs.packet,
                "{nf}, packet {number}: bytes differ"
            );
            records.extend(ours.records());
            *fates.entry(theirs.verdict).or_default() += 1;
        }
        for (name, kind) in kernel.maps() {
            if kind == MapType::RingBuf {
                let theirs = kernel.records(&name).unwrap();
                let ours: Vec<Vec<u8>> = records
                    .iter()
                    .filter(|(n, _)| *n == name)
                    .map(|(_, b)| b.clone())
                    .collect();
                assert_eq!(ours, theirs, "{nf}: records of {name}");
                assert!(
                    !theirs.is_empty(),
                    "{nf}: {name} was never written; the test shows nothing"
                );
            } else {
                let (mine, theirs) = (ours.entries(&name).unwrap(), kernel.entries(&name).unwrap());
                assert_eq!(mine.len(), theirs.len(), "{nf}: entries of {name}");
                assert!(mine == theirs, "{nf}: entries of {name} differ");
                assert!(
                    !theirs.is_empty(),
                    "{nf}: {name} was never written; the test shows nothing"
                );
            }
        }
        println!("{nf}: {} packets agree, verdicts {fates:?}", packets.len());
    }
    assert!(compared >= 3, "only {compared} functions are XDP");
}
