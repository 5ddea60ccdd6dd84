//! Workers that share the queues of a device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use millrace_traffic::capture::Writer;

use super::{departure, opened, opened_once, received};
use crate::port::dpdk::raw;
use crate::port::{self, Departure, Queue};

/// Bytes of a test's packets.
const LENGTH: usize = 64;

/// UDP over IPv4 of a flow, with a number behind its headers.
fn packet(flow: u16, number: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14..24].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17]);
    // An odd factor, so that flows differ in many bits of the hash.
    bytes[26..30].copy_from_slice(&(0x0a00_0000 + u32::from(flow) * 40_503).to_be_bytes());
    bytes[30..34].copy_from_slice(&[192, 0, 2, 1]);
    bytes[34..38].copy_from_slice(&[(flow >> 8) as u8, flow as u8, 0, 53]);
    bytes[42..50].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn flow_and_number(bytes: &[u8]) -> (u16, u64) {
    let flow = [bytes[34], bytes[35]];
    let number = bytes[42..50].try_into().unwrap();
    (u16::from_be_bytes(flow), u64::from_be_bytes(number))
}

fn capture(path: &Path, packets: u64) {
    let mut writer = Writer::create(path, &["a"]).unwrap();
    for number in 0..packets {
        let bytes = packet((number % 97) as u16, number);
        let stamp = 1_000_000_000 + number * 1000;
        writer.write(stamp, 0, bytes.len() as u32, &bytes).unwrap();
    }
    writer.finish().unwrap();
}

fn bytes(frame: &port::Frame) -> Vec<u8> {
    let length = frame.end.addr() - frame.data.addr();
    // SAFETY: the frame is lent to this test.
    unsafe { std::slice::from_raw_parts(frame.data, length) }.to_vec()
}

/// What each worker gets of a port that ends, one after the other in turns.
fn by_worker(word: &str, workers: u32) -> Vec<Vec<Vec<u8>>> {
    let mut port = opened_once(word, workers);
    let mut got = vec![Vec::new(); workers as usize];
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        std::thread::yield_now();
        for (queue, got) in port.queues.iter_mut().zip(&mut got) {
            let frames = received(queue);
            got.extend(frames.iter().map(bytes));
            queue.release(&frames);
            queue.flush().unwrap();
        }
        if port.queues.iter().all(|q| q.ended()) {
            break;
        }
    }
    assert!(port.queues.iter().all(|q| q.ended()));
    got
}

#[test]
fn packets_come_to_the_workers_that_the_software_nic_gives_them_to() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.pcap");
    capture(&file, 3000);
    let file = file.to_str().unwrap();
    let key: String = (0..52).map(|i| format!("{:02x}", i * 37 % 251)).collect();
    for (number, options) in [
        String::new(),
        format!("&nic=e810&table=2048&key={key}"),
        format!("&nic=e810&symmetric&key={key}"),
        "&nic=e810&fields=source-address".to_owned(),
        "&fields=source-address+destination-address".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        // One number for each: the software NIC's threads take a processor from other tests.
        for workers in if number == 0 { vec![2, 5] } else { vec![3] } {
            let device = format!("net_pcap{}", 100 + 10 * number + workers as usize);
            let word = format!("dpdk:{device},rx_pcap={file}?steer=software{options}");
            let here = by_worker(&word, workers);
            let there = by_worker(
                &format!("vnic:{file}?measure=off{options}&rate=max"),
                workers,
            );
            let counts = |got: &[Vec<_>]| got.iter().map(Vec::len).collect::<Vec<_>>();
            assert_eq!(counts(&here), counts(&there), "{options}");
            assert!(here == there, "{options}: others came");
            assert_eq!(counts(&here).iter().sum::<usize>(), 3000);
        }
    }
}

#[test]
fn a_file_keeps_its_time_for_every_worker() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.pcap");
    capture(&file, 2000);
    let mut port = opened(&format!("dpdk:net_pcap99,rx_pcap={}", file.display()), 3);
    let facts = port.facts.join("; ");
    assert!(facts.contains("RSS in software"), "{facts}");
    let mut read = 0;
    for _ in 0..100_000 {
        for queue in &mut port.queues {
            // Time never runs ahead of a packet that is still to come.
            let bound = queue.next_stamp();
            let frames = received(queue);
            for frame in &frames {
                assert!(bound.is_some_and(|b| b <= frame.stamp), "{bound:?}");
            }
            read += frames.len();
            queue.release(&frames);
        }
        if port.queues.iter().all(|q| q.ended()) {
            break;
        }
    }
    assert_eq!(read, 2000);
    assert!(port.queues.iter().all(|q| q.next_stamp().is_none()));
}

fn leaving(bytes: &[u8]) -> Departure {
    Departure {
        data: bytes.as_ptr(),
        length: bytes.len() as u32,
        wire: bytes.len() as u32,
        stamp: 0,
        port: 0,
        pool: port::Pool::fresh(),
        buffer: 0,
        may_keep: false,
        kept: false,
    }
}

/// One worker makes packets; all of them send what they get around once more, and take it a second time.
#[test]
fn four_threads_share_one_queue_in_order_and_to_the_last_packet() {
    const PACKETS: u64 = 20_000;
    let mut port = opened("dpdk:net_ring81?ring=1024&steer=software", 4);
    let (ended, sent, refused) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let seen = |queue: &mut Box<dyn Queue>, made: &mut u64, maker: bool| {
        let mut last: BTreeMap<(u16, bool), u64> = BTreeMap::new();
        let mut count = 0_u64;
        let mut frames = Vec::new();
        let mut turn = |queue: &mut Box<dyn Queue>| {
            frames.clear();
            queue.receive(&mut frames, 32, u64::MAX).unwrap();
            let mut back = Vec::new();
            for frame in &frames {
                let bytes = bytes(frame);
                let (flow, number) = flow_and_number(&bytes);
                // The first byte says whether it has been around.
                let again = bytes[0] == 1;
                let before = last.insert((flow, again), number);
                assert!(
                    before.is_none_or(|b| b < number),
                    "{flow}: {before:?}, {number}"
                );
                if !again {
                    // SAFETY: the frame is lent to this thread, and not empty.
                    unsafe { *frame.data = 1 };
                    back.push(departure(frame, true));
                }
            }
            count += frames.len() as u64;
            let taken = queue.transmit(&mut back).unwrap();
            sent.fetch_add(taken as u64, Ordering::Relaxed);
            refused.fetch_add((back.len() - taken) as u64, Ordering::Relaxed);
            let kept: Vec<u64> = back.iter().filter(|d| d.kept).map(|d| d.buffer).collect();
            let others: Vec<_> = frames
                .iter()
                .filter(|f| !kept.contains(&f.buffer))
                .copied()
                .collect();
            queue.release(&others);
            queue.flush().unwrap();
            frames.len()
        };
        let mut quiet = 0;
        while quiet < 20_000 {
            if maker && *made < PACKETS {
                let all: Vec<_> = (0..16)
                    .map(|i| packet(((*made + i) % 61) as u16, *made + i))
                    .collect();
                let mut burst: Vec<_> = all.iter().map(|b| leaving(b)).collect();
                let taken = queue.transmit(&mut burst).unwrap() as u64;
                // Numbers that were not taken are made again.
                *made += taken;
                sent.fetch_add(taken, Ordering::Relaxed);
                quiet = 0;
            }
            quiet = if turn(queue) == 0 { quiet + 1 } else { 0 };
            if quiet > 0 {
                std::thread::yield_now();
            }
        }
        ended.fetch_add(1, Ordering::Release);
        queue.close();
        while turn(queue) > 0 {}
        queue.finish().unwrap();
        count
    };
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (port.queues.iter_mut().enumerate())
            .map(|(worker, queue)| scope.spawn(move || seen(queue, &mut 0, worker == 0)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(ended.load(Ordering::Relaxed), 4);
    assert!(counts.iter().all(|c| *c > 100), "{counts:?}");
    let losses = port.queues.iter().map(|q| q.counts());
    let lost: u64 = losses.map(|c| c.missed + c.failed + c.unfit).sum();
    // Each packet that was taken for sending came to a worker, or was counted as lost.
    let (sent, came) = (sent.load(Ordering::Relaxed), counts.iter().sum::<u64>());
    assert_eq!(
        sent,
        came + lost,
        "{lost} lost, {} refused",
        refused.load(Ordering::Relaxed)
    );
    assert!(sent > PACKETS);
}

#[test]
fn a_worker_that_takes_nothing_loses_its_packets_and_nobody_elses() {
    let mut port = opened("dpdk:net_ring82?ring=64&steer=software", 2);
    let mut made = 0_u64;
    let mut came = 0_u64;
    let (first, second) = port.queues.split_at_mut(1);
    let (first, second) = (&mut first[0], &mut second[0]);
    for _ in 0..200 {
        let all: Vec<_> = (0..32)
            .map(|i| packet(i * 7, made + u64::from(i)))
            .collect();
        let mut burst: Vec<_> = all.iter().map(|b| leaving(b)).collect();
        made += first.transmit(&mut burst).unwrap() as u64;
        first.flush().unwrap();
        for _ in 0..4 {
            let frames = received(first);
            came += frames.len() as u64;
            first.release(&frames);
        }
    }
    assert_eq!(made, 6400);
    let (own, others) = (first.counts(), second.counts());
    assert_eq!(own.missed, 0);
    assert!(others.missed > 1000, "{others:?}");
    // The rest waits in the ring of the second.
    second.close();
    first.close();
    second.finish().unwrap();
    first.finish().unwrap();
    let left = second.counts().missed - others.missed;
    assert_eq!(left, 64);
    assert_eq!(made, came + second.counts().missed);
}

#[test]
fn the_hash_is_that_of_dpdk() {
    let key = millrace_steer::toeplitz::MICROSOFT_KEY;
    for flow in 0..1000_u16 {
        let bytes = packet(flow.wrapping_mul(31), 0);
        let input = &bytes[26..38];
        let words: Vec<u32> = (input.chunks_exact(4))
            .map(|w| u32::from_be_bytes(w.try_into().unwrap()))
            .collect();
        // SAFETY: as many words as are said, and a key longer than they are.
        let theirs = unsafe { raw::mr_hash(words.as_ptr(), words.len() as u32, key.as_ptr()) };
        assert_eq!(millrace_steer::toeplitz::hash(&key, input), theirs);
    }
}

#[test]
fn a_worker_that_is_gone_holds_nobody_up() {
    // Twice: the device goes with its last queue, whatever waited in rings.
    for _ in 0..2 {
        let mut port = opened("dpdk:net_ring83?steer=software", 2);
        let all: Vec<_> = (0..32).map(|i| packet(i * 7, u64::from(i))).collect();
        let mut burst: Vec<_> = all.iter().map(|b| leaving(b)).collect();
        let first = port.queues.first_mut().unwrap();
        assert_eq!(first.transmit(&mut burst).unwrap(), 32);
        first.flush().unwrap();
        let frames = received(first);
        let mut came = frames.len();
        assert!(came > 0 && came < 32, "{came}");
        first.release(&frames);
        // As a thread that panics drops it: neither closed nor finished.
        drop(port.queues.pop());
        let first = port.queues.first_mut().unwrap();
        let begin = Instant::now();
        first.close();
        loop {
            let frames = received(first);
            if frames.is_empty() {
                break;
            }
            came += frames.len();
            first.release(&frames);
        }
        first.finish().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert!(came < 32);
    }
}
