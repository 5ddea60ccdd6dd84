//! Each XDP function against the kernel: the same packets, and after each the same verdict and bytes;
//! in the end the same maps and the same records.
//!
//! Time is the one thing that cannot be the same: the kernel's passes while the test runs, ours stands at
//! 0. [`CLOCKS`] says which functions look at it, how they are set so that no verdict depends on it, and
//! which bytes of their values are times.

use std::collections::HashMap;

use libbpf_rs::MapType;
use millrace_dataplane::packet::Fate;
use millrace_object::program::Dialect;
use millrace_tests::command::{captures, nfs, root};
use millrace_tests::emitted::Emitted;
use millrace_tests::kernel::{Entries, Kernel, unavailable};
use millrace_tests::random::Random;
use millrace_traffic::capture::Reader;

/// The kernel runs a program on frames of at least an Ethernet header, in a buffer of a page.
const LENGTHS: std::ops::RangeInclusive<usize> = 14..=3000;

/// How a function that reads the clock is compared.
struct Clock {
    nf: &'static str,
    /// parameters, for both
    set: &'static [(&'static str, &'static str)],
    /// the map whose values hold a time, and where
    map: &'static str,
    time: std::ops::Range<usize>,
}

const CLOCKS: &[Clock] = &[
    // Without a rate no bucket fills, however long the test takes: three packets of a flow pass.
    Clock {
        nf: "tokenbucket",
        set: &[("rate", "0"), ("burst", "3")],
        map: "buckets",
        time: 8..16,
    },
    // Its shortest time-out is four minutes; the test takes seconds.
    Clock {
        nf: "conntrack",
        set: &[],
        map: "connections",
        time: 0..8,
    },
];

/// The entries of a map with the times in its values set to zero.
fn timeless(nf: &str, map: &str, mut entries: Entries) -> Entries {
    for clock in CLOCKS.iter().filter(|c| c.nf == nf && c.map == map) {
        for value in entries.values_mut() {
            value[clock.time.clone()].fill(0);
        }
    }
    entries
}

/// A TCP conversation of whole connections and of segments that belong to none, with a fixed seed.
fn conversation(draw: &mut dyn FnMut(usize) -> usize) -> Vec<Vec<u8>> {
    const FLAGS: [u8; 10] = [2, 18, 16, 24, 16, 17, 17, 16, 4, 20];
    let mut packets = Vec::new();
    // The next sequence number of both ends of each connection.
    let mut next = [[0_u32; 2]; 40];
    for step in 0..12_000 {
        let (mut connection, mut side) = (draw(next.len()), draw(2));
        let mut flags = FLAGS[draw(FLAGS.len())];
        if step % 3 == 0 {
            // Some order, so that connections get somewhere: each in turn opens, sends and closes.
            connection = step / 21 % next.len();
            (side, flags) =
                [(0, 2), (1, 18), (0, 16), (1, 24), (0, 17), (1, 17), (0, 16)][step / 3 % 7];
        }
        let ends = &mut next[connection];
        let data = if flags & 8 != 0 { draw(100) } else { 0 };
        // A connection that follows another has a higher number.
        let off = if draw(12) == 0 { draw(3) as u32 } else { 0 };
        let seq = ends[side]
            .wrapping_add(u32::from(flags == 2))
            .wrapping_sub(off);
        let ack = ends[1 - side].wrapping_add(if draw(12) == 0 { draw(3) as u32 } else { 0 });
        let mut frame = vec![0; 54 + data];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40 + data as u16).to_be_bytes());
        frame[23] = 6;
        let addresses = [[10, 0, 0, connection as u8], [192, 0, 2, 1]];
        frame[26..30].copy_from_slice(&addresses[side]);
        frame[30..34].copy_from_slice(&addresses[1 - side]);
        let ports = [1000_u16, 80];
        frame[34..36].copy_from_slice(&ports[side].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1 - side].to_be_bytes());
        frame[38..42].copy_from_slice(&seq.to_be_bytes());
        frame[42..46].copy_from_slice(&ack.to_be_bytes());
        frame[46] = 5 << 4;
        frame[47] = flags;
        packets.push(frame);
        let end = seq
            .wrapping_add(data as u32)
            .wrapping_add(u32::from(flags & 3 != 0));
        if end.wrapping_sub(ends[side]) < 1 << 30 {
            ends[side] = end;
        }
    }
    packets
}

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
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut draw = |n| random.below(n);
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
    packets.extend(conversation(&mut draw));
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
        // Most of the other dialect are not even compiled.
        let source = root().join(format!("nfs/{nf}/{nf}.c"));
        if std::fs::read_to_string(source)
            .unwrap()
            .contains("<millrace/nf.h>")
        {
            continue;
        }
        let clock = CLOCKS.iter().find(|c| c.nf == nf);
        let set = clock.map_or(&[][..], |c| c.set);
        let mut ours = Emitted::nf(&cache.path().join("cache"), &nf, 2, set).unwrap();
        if ours.program.dialect != Dialect::Xdp {
            continue;
        }
        compared += 1;
        let rodata = ours.program.objects.iter().find(|o| o.name == ".rodata");
        let rodata = rodata
            .filter(|_| !set.is_empty())
            .and_then(|o| o.initial.as_deref());
        let mut kernel = Kernel::load_with(&ours.object, rodata).unwrap();
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
                let mine = timeless(&nf, &name, ours.entries(&name).unwrap());
                let theirs = timeless(&nf, &name, kernel.entries(&name).unwrap());
                assert_eq!(mine.len(), theirs.len(), "{nf}: entries of {name}");
                assert!(mine == theirs, "{nf}: entries of {name} differ");
                assert!(
                    !theirs.is_empty(),
                    "{nf}: {name} was never written; the test shows nothing"
                );
            }
        }
        if nf == "conntrack" {
            let entries = ours.entries("connections").unwrap();
            let states: std::collections::BTreeSet<u8> = entries.values().map(|v| v[8]).collect();
            assert_eq!(
                states.into_iter().collect::<Vec<_>>(),
                [1, 2, 3, 4, 5, 6],
                "not every state was reached"
            );
        }
        println!("{nf}: {} packets agree, verdicts {fates:?}", packets.len());
    }
    assert!(compared >= 6, "only {compared} functions are XDP");
    for clock in CLOCKS {
        assert!(
            nfs().contains(&clock.nf.to_owned()),
            "there is no {}",
            clock.nf
        );
    }
}
