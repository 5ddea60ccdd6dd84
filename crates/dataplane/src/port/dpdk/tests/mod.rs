//! Devices of software, opened in this process.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::sync::atomic::AtomicBool;

mod sharing;

use super::{open, raw, word};
use crate::port::{self, Departure, Frame, LiveOptions, LivePort, Queue};

static STOP: AtomicBool = AtomicBool::new(false);

fn opened(text: &str, queues: u32) -> LivePort {
    looped(text, queues, None)
}

/// The same; what could begin again does not.
fn opened_once(text: &str, queues: u32) -> LivePort {
    looped(text, queues, Some(1))
}

fn looped(text: &str, queues: u32, loops: Option<u64>) -> LivePort {
    let options = LiveOptions {
        queues,
        loops,
        ..LiveOptions::of_one_queue(32, &STOP)
    };
    port::live(text, &options)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .1
}

fn received(queue: &mut Box<dyn Queue>) -> Vec<Frame> {
    let mut frames = Vec::new();
    queue.receive(&mut frames, 32, u64::MAX).unwrap();
    frames
}

fn departure(frame: &Frame, may_keep: bool) -> Departure {
    let length = (frame.end.addr() - frame.data.addr()) as u32;
    Departure {
        data: frame.data,
        length,
        wire: length,
        stamp: 0,
        port: 0,
        pool: frame.pool,
        buffer: frame.buffer,
        may_keep,
        kept: false,
    }
}

#[test]
fn a_packet_around_a_ring_grows_both_ways_and_keeps_its_buffer() {
    let mut ring = opened("dpdk:net_ring70", 1);
    let queue = ring.queues.first_mut().unwrap();
    // A packet of nobody's pool is copied.
    let bytes = [7_u8; 60];
    let foreign = Departure {
        data: bytes.as_ptr(),
        length: 60,
        wire: 60,
        stamp: 0,
        port: 0,
        pool: port::Pool::fresh(),
        buffer: 0,
        may_keep: true,
        kept: false,
    };
    let mut out = [foreign];
    assert_eq!(queue.transmit(&mut out).unwrap(), 1);
    assert!(out.iter().all(|d| !d.kept));
    let mut grown = 0;
    let mut buffer = None;
    // Each round 64 bytes are put before it: into the headroom, and beyond what DPDK takes for the buffer.
    for round in 0..4 {
        let frames = received(queue);
        let [frame] = frames.as_slice() else {
            panic!("round {round}: {} packets", frames.len())
        };
        assert_eq!(frame.end.addr() - frame.data.addr(), 60 + grown);
        assert!(frame.ceiling.addr() - frame.end.addr() >= 256);
        if let Some(before) = buffer {
            assert_eq!(before, frame.buffer, "round {round}: it was copied");
        }
        let room = frame.data.addr() - frame.floor.addr();
        assert_eq!(room, 256 - grown, "round {round}");
        let mut longer = *frame;
        longer.data = frame.data.wrapping_sub(64);
        // SAFETY: the frame is lent to this test, and 64 bytes lie between its floor and its data.
        unsafe { std::ptr::write_bytes(longer.data, 9, 64) };
        let mut out = [departure(&longer, true)];
        assert_eq!(queue.transmit(&mut out).unwrap(), 1);
        let kept = out.iter().all(|d| d.kept);
        // Two rounds fit into DPDK's own headroom.
        assert_eq!(kept, round < 2, "round {round}");
        if !kept {
            queue.release(&frames);
            let copy = received(queue);
            assert!(copy.iter().all(|f| f.buffer != frame.buffer));
            assert_eq!(copy.len(), 1);
            queue.release(&copy);
            break;
        }
        buffer = Some(frame.buffer);
        grown += 64;
    }
    assert!(received(queue).is_empty());
    assert!(queue.idle());
    assert_eq!(queue.counts(), port::QueueCounts::default());
}

#[test]
fn what_the_ring_does_not_take_stays_with_the_sender() {
    let mut ring = opened("dpdk:net_ring71", 1);
    let queue = ring.queues.first_mut().unwrap();
    let (short, long) = ([1_u8; 60], vec![2_u8; 9000]);
    let of = |bytes: &[u8]| Departure {
        data: bytes.as_ptr(),
        length: bytes.len() as u32,
        wire: 0,
        stamp: 0,
        port: 0,
        pool: port::Pool::fresh(),
        buffer: 0,
        may_keep: false,
        kept: false,
    };
    let mut sent = 0;
    // The ring of net_ring holds 1023.
    for _ in 0..64 {
        let mut burst: Vec<_> = (0..32).map(|_| of(&short)).collect();
        burst.insert(3, of(&long));
        sent += queue.transmit(&mut burst).unwrap();
    }
    let refused = queue.counts().failed;
    assert!(refused > 30, "longer than a buffer: {refused}");
    let mut came = 0;
    loop {
        let frames = received(queue);
        if frames.is_empty() {
            break;
        }
        came += frames.len();
        queue.release(&frames);
    }
    assert_eq!(came, 1023);
    assert_eq!(sent as u64, came as u64 + refused);
}

/// What devices that were told a key of 40 equal bytes say of themselves: hashed types, and the table.
fn told(byte: u8) -> Vec<(u64, [u16; 128])> {
    let mut found = Vec::new();
    // As many as DPDK has.
    for number in 0..32 {
        let (mut read, mut types, mut table) = ([0_u8; raw::KEY], 0, [9_u16; 128]);
        // SAFETY: places for the results, of the sizes said.
        let status = unsafe {
            raw::mr_rss(
                number,
                read.as_mut_ptr(),
                40,
                &raw mut types,
                table.as_mut_ptr(),
                table.len() as u16,
            )
        };
        if status == 0 && read.iter().take(40).all(|b| *b == byte) {
            found.push((types, table));
        }
    }
    found
}

#[test]
fn rss_is_told_to_a_device_that_has_it() {
    // RTE_ETH_RSS_IPV4 and RTE_ETH_RSS_NONFRAG_IPV4_TCP of rte_ethdev.h.
    const IP: u64 = 1 << 2;
    const TCP: u64 = 1 << 4;
    let all = opened(&format!("dpdk:net_null70?key={}", "a7".repeat(40)), 2);
    let facts = all.facts.join("; ");
    assert!(facts.contains("RSS of the device over 2 queues"), "{facts}");
    let [(types, table)] = told(0xa7)[..] else {
        panic!("none, or several")
    };
    assert_eq!(types & (IP | TCP), IP | TCP);
    assert!(
        table
            .iter()
            .enumerate()
            .all(|(i, q)| usize::from(*q) == i % 2)
    );

    let options = "fields=source-address+destination-address&steer=device";
    let key = "b8".repeat(40);
    let _addresses = opened(&format!("dpdk:net_null73?{options}&key={key}"), 3);
    let [(types, table)] = told(0xb8)[..] else {
        panic!("none, or several")
    };
    assert_eq!(types & (IP | TCP), IP);
    assert!(
        table
            .iter()
            .enumerate()
            .all(|(i, q)| usize::from(*q) == i % 3)
    );
}

#[test]
fn a_device_goes_and_comes_again() {
    for _ in 0..3 {
        let mut port = opened("dpdk:net_null71", 1);
        let queue = port.queues.first_mut().unwrap();
        let frames = received(queue);
        assert_eq!(frames.len(), 32);
        queue.release(&frames);
    }
    assert!(word::Device::parse("net_null71").is_ok());
    let options = LiveOptions {
        queues: 200,
        ..LiveOptions::of_one_queue(32, &STOP)
    };
    let insisted = open::open("net_ring72?steer=device", &options);
    let refused = insisted.err().expect("refused");
    assert!(refused.to_string().contains("does not hash"), "{refused}");
}
