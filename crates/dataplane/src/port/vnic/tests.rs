use super::*;
use crate::port::{Departure, Frame, Pool};
use millrace_traffic::capture::Writer;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);

/// UDP packets from many hosts, each with its number behind the headers.
fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0_u8; length.max(60)];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[23] = 17;
    frame[26..30].copy_from_slice(&(0x0a00_0000 + number * 7919).to_be_bytes());
    frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
    frame[34..36].copy_from_slice(&(1000 + number as u16).to_be_bytes());
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame.truncate(length);
    frame
}

struct Fixture {
    _dir: tempfile::TempDir,
    file: String,
}

fn capture(frames: &[Vec<u8>]) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.pcap");
    let mut writer = Writer::create(&file, &["a"]).unwrap();
    for (number, frame) in frames.iter().enumerate() {
        writer
            .write(number as u64 * 1000, 0, frame.len() as u32, frame)
            .unwrap();
    }
    writer.finish().unwrap();
    Fixture {
        file: file.to_str().unwrap().to_owned(),
        _dir: dir,
    }
}

fn options(queues: u32, loops: Option<u64>) -> LiveOptions<'static> {
    LiveOptions {
        queues,
        loops,
        ..LiveOptions::of_one_queue(32, &STOP)
    }
}

fn nic(fixture: &Fixture, more: &str, options: &LiveOptions<'_>) -> (Nic, Vec<Box<dyn Queue>>) {
    let word = format!("{}?measure=off{more}", fixture.file);
    let settings = Settings::parse(&word, options.queues).unwrap();
    Nic::open(&settings, options).unwrap()
}

fn bytes(frame: &Frame) -> Vec<u8> {
    let length = frame.end.addr() - frame.data.addr();
    // SAFETY: a queue lent it and it has not been given back.
    unsafe { std::slice::from_raw_parts(frame.data, length) }.to_vec()
}

fn departure(frame: &Frame, pool: Pool) -> Departure {
    Departure {
        data: frame.data,
        length: (frame.end.addr() - frame.data.addr()) as u32,
        wire: frame.wire,
        stamp: frame.stamp,
        port: 0,
        pool,
        buffer: frame.buffer,
        may_keep: true,
        kept: false,
    }
}

/// Forwards all until every queue has ended; gives what came on each.
fn forward(queues: &mut [Box<dyn Queue>], own_pool: bool) -> Vec<Vec<Vec<u8>>> {
    let mut came = vec![Vec::new(); queues.len()];
    let deadline = Instant::now() + Duration::from_secs(60);
    while !queues.iter().all(|q| q.ended()) {
        assert!(Instant::now() < deadline, "it never ends");
        for (queue, came) in queues.iter_mut().zip(&mut came) {
            let mut frames = Vec::new();
            queue.receive(&mut frames, 32, u64::MAX).unwrap();
            came.extend(frames.iter().map(bytes));
            let pool = |f: &Frame| if own_pool { f.pool } else { Pool::fresh() };
            let mut out: Vec<_> = frames.iter().map(|f| departure(f, pool(f))).collect();
            let mut sent = 0;
            while sent < out.len() {
                sent += queue.transmit(&mut out[sent..]).unwrap();
                queue.flush().unwrap();
                std::thread::yield_now();
            }
            let back: Vec<Frame> = frames
                .iter()
                .zip(&out)
                .filter(|(_, d)| !d.kept)
                .map(|(f, _)| *f)
                .collect();
            assert_eq!(back.is_empty(), own_pool || frames.is_empty());
            queue.release(&back);
        }
        std::thread::yield_now();
    }
    while !queues.iter().all(|q| q.idle()) {
        assert!(Instant::now() < deadline, "it never sends all");
        std::thread::yield_now();
    }
    came
}

#[test]
fn every_packet_comes_once_in_order_and_is_sent() {
    let frames: Vec<_> = (0..300)
        .map(|i| frame(i, [60, 64, 65, 1514][i as usize % 4]))
        .collect();
    let fixture = capture(&frames);
    for own_pool in [true, false] {
        let options = options(1, Some(20));
        let (nic, mut queues) = nic(&fixture, "&depth=64&txdepth=64", &options);
        let came = forward(&mut queues, own_pool);
        assert_eq!(came[0].len(), 6000);
        for (index, packet) in came[0].iter().enumerate() {
            assert!(*packet == frames[index % 300], "packet {index}");
        }
        let counts = nic.counts();
        assert_eq!((counts.delivered[0], counts.sent), (6000, 6000));
        assert_eq!((counts.missed, counts.unfit), (0, 0));
        let total: usize = frames.iter().map(|f| f.len() * 20).sum();
        assert_eq!(counts.sent_bytes, total as u64);
        assert_eq!(counts.times.total(), if own_pool { 6000 } else { 0 });
    }
}

#[test]
fn queues_get_what_the_hash_says_whatever_the_threads() {
    let frames: Vec<_> = (0..500).map(|i| frame(i, 60)).collect();
    let fixture = capture(&frames);
    let device = millrace_steer::nic::named("e810").unwrap();
    let rss = millrace_steer::Rss::new(&device, 3);
    let expected = |queue: u32| {
        let mine = || frames.iter().filter(|f| rss.queue(f) == queue);
        mine().chain(mine()).cloned().collect::<Vec<_>>()
    };
    for threads in 1..=3 {
        let more = format!("&nic=e810&threads={threads}&depth=64");
        let (nic, mut queues) = nic(&fixture, &more, &options(3, Some(2)));
        let came = forward(&mut queues, true);
        for (queue, packets) in came.iter().enumerate() {
            assert!(*packets == expected(queue as u32), "{threads} {queue}");
        }
        assert_eq!(nic.counts().offered(), 1000);
    }
}

#[test]
fn spraying_deals_packets_in_turn() {
    let frames: Vec<_> = (0..100).map(|i| frame(i, 60)).collect();
    let fixture = capture(&frames);
    for threads in 1..=2 {
        let more = format!("&steer=spray&threads={threads}");
        let (_nic, mut queues) = nic(&fixture, &more, &options(3, Some(3)));
        let came = forward(&mut queues, true);
        for (queue, packets) in came.iter().enumerate() {
            let numbers = (queue..300).step_by(3);
            let expected: Vec<_> = numbers.map(|n| frames[n % 100].clone()).collect();
            assert!(*packets == expected, "{threads} {queue}");
        }
    }
}

#[test]
fn what_nobody_takes_in_time_is_lost_and_counted() {
    let frames: Vec<_> = (0..100).map(|i| frame(i, 60)).collect();
    let fixture = capture(&frames);
    let (nic, mut queues) = nic(&fixture, "&depth=64&rate=50k", &options(1, Some(10)));
    // The first look starts the device; then nobody looks.
    let mut frames = Vec::new();
    queues[0].receive(&mut frames, 0, u64::MAX).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while nic.counts().offered() < 1000 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
    let counts = nic.counts();
    // All 64 descriptors were filled, in the order of the packets, and the rest is lost.
    assert_eq!((counts.delivered[0], counts.missed), (64, 936));
    assert_eq!(queues[0].counts().missed, 936);
    let came = forward(&mut queues, true);
    assert_eq!(came[0].len(), 64);
    assert!(came[0][63] == frame(63, 60));
}

/// Packets of one worker are rows for all others, so that none may come before the last worker is there.
#[test]
fn nothing_comes_before_every_queue_was_looked_at() {
    let frames: Vec<_> = (0..100).map(|i| frame(i, 60)).collect();
    let fixture = capture(&frames);
    let more = "&steer=spray&threads=2&rate=1M";
    let (nic, mut queues) = nic(&fixture, more, &options(2, Some(10)));
    let mut frames = Vec::new();
    queues[0].receive(&mut frames, 0, u64::MAX).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(nic.counts().offered(), 0);
    forward(&mut queues, true);
    assert_eq!(nic.counts().offered(), 1000);
}

#[test]
fn packets_longer_than_a_buffer_are_unfit() {
    let room = Settings::room();
    let lengths = [room + 1, room, 0, 9000, 60];
    let frames: Vec<_> = lengths.iter().map(|l| frame(1, *l)).collect();
    let fixture = capture(&frames);
    let (nic, mut queues) = nic(&fixture, "", &options(1, Some(1)));
    let came = forward(&mut queues, true);
    let seen: Vec<_> = came[0].iter().map(Vec::len).collect();
    assert_eq!(seen, [room, 0, 60]);
    assert_eq!((nic.counts().unfit, queues[0].counts().unfit), (2, 2));
}

#[test]
fn a_rate_is_kept_and_can_be_changed() {
    let fixture = capture(&[frame(0, 60)]);
    let (nic, mut queues) = nic(&fixture, "&rate=20k", &options(1, None));
    nic.set_rate(None);
    let mut run = |time: Duration| {
        let (begin, before) = (Instant::now(), nic.counts());
        while begin.elapsed() < time {
            let mut frames = Vec::new();
            queues[0].receive(&mut frames, 32, u64::MAX).unwrap();
            queues[0].release(&frames);
            std::thread::yield_now();
        }
        let counts = nic.counts().since(&before);
        let seconds = begin.elapsed().as_secs_f64();
        // Other work on the machine stops both sides now and then: what was missed meanwhile is left out, so that there are never
        // more packets than the rate says, and fewer only where stalls are counted.
        let running = seconds - counts.stalled_ns / 1e9;
        (counts.offered() as f64, seconds, running)
    };
    assert!(run(Duration::from_millis(20)).0 < 1.0);
    nic.set_rate(Some(Rate::PerSecond(20_000.0)));
    // What other work takes is not all counted as stalls, so that one of these is enough.
    let kept = (0..20).any(|_| {
        let (offered, seconds, running) = run(Duration::from_millis(100));
        // As late as a stall begins, packets of a tenth of a millisecond come at once.
        assert!(offered <= 20_000.0 * seconds + 3.0, "{offered} {seconds}");
        offered >= 10_000.0 * running
    });
    assert!(kept);
}

#[test]
fn closing_ends_what_has_no_end() {
    let fixture = capture(&[frame(0, 60)]);
    let (nic, mut queues) = nic(&fixture, "", &options(2, None));
    for queue in &mut queues {
        let mut frames = Vec::new();
        queue.receive(&mut frames, 32, u64::MAX).unwrap();
        queue.release(&frames);
        assert!(!queue.ended());
    }
    queues[0].close();
    let came = forward(&mut queues, true);
    let total: usize = came.iter().map(Vec::len).sum();
    assert!(nic.counts().sent as usize == total);
}

#[test]
fn stamps_go_on_and_a_burst_ends_before_a_moment() {
    let fixture = capture(&[frame(0, 60)]);
    let (_nic, mut queues) = nic(&fixture, "&stamps&depth=64", &options(1, Some(500)));
    let deadline = Instant::now() + Duration::from_secs(60);
    let (mut last, mut count) = (0, 0);
    while !queues[0].ended() {
        assert!(Instant::now() < deadline);
        let mut frames = Vec::new();
        let next = queues[0].next_stamp();
        if let Some(next) = next {
            assert_eq!(queues[0].receive(&mut frames, 32, next).unwrap(), 0);
            queues[0].receive(&mut frames, 32, next + 1).unwrap();
            assert!(!frames.is_empty() && frames.iter().all(|f| f.stamp == next));
        } else {
            queues[0].receive(&mut frames, 0, u64::MAX).unwrap();
        }
        for frame in &frames {
            assert!(frame.stamp >= last);
            last = frame.stamp;
        }
        count += frames.len();
        queues[0].release(&frames);
        std::thread::yield_now();
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert_eq!(count, 500);
    assert!((now.as_nanos() as u64).abs_diff(last) < 60_000_000_000);
}

#[test]
fn a_split_feeds_two_ports() {
    let frames: Vec<_> = (0..64).map(|i| frame(i * 100, 60)).collect();
    let fixture = capture(&frames);
    let prefix: millrace_traffic::split::Split = "lan=10.0.0.0/16".parse().unwrap();
    for (named, inside) in [("lan", 0), ("wan", 1)] {
        let more = format!("&split={named}=10.0.0.0/16");
        let (_nic, mut queues) = nic(&fixture, &more, &options(1, Some(1)));
        let mut ports: HashMap<bool, Vec<u32>> = HashMap::new();
        while !queues[0].ended() {
            let mut frames = Vec::new();
            queues[0].receive(&mut frames, 32, u64::MAX).unwrap();
            for frame in &frames {
                let named = prefix.side(&bytes(frame)) == millrace_traffic::split::Side::Named;
                ports.entry(named).or_default().push(frame.port);
            }
            queues[0].release(&frames);
            std::thread::yield_now();
        }
        assert!(ports[&true].iter().all(|p| *p == inside));
        assert!(ports[&false].iter().all(|p| *p == 1 - inside));
    }
}

#[test]
fn the_dispatch_cost_is_measured_and_can_be_charged() {
    let fixture = capture(&[frame(0, 60)]);
    let cost = |more: &str| {
        let settings = Settings::parse(&format!("{}{more}", fixture.file), 1).unwrap();
        // The least of some: another process may have had the processor meanwhile.
        let some = (0..5).map(|_| dispatch_cost(&settings).unwrap());
        some.fold(f64::INFINITY, f64::min)
    };
    let (plain, charged) = (cost(""), cost("?dispatch=2000"));
    assert!(plain > 0.0 && plain < 2000.0, "{plain}");
    assert!(charged >= plain + 1800.0, "{plain} {charged}");
}

#[test]
fn a_port_says_what_it_is_and_what_it_costs() {
    let fixture = capture(&[frame(0, 60)]);
    let port = crate::port::live(
        &format!("vnic:{}?nic=ena", fixture.file),
        &options(2, Some(1)),
    );
    let (_, port) = port.unwrap();
    assert_eq!(port.queues.len(), 2);
    let facts = port.facts.join("; ");
    assert!(
        facts.contains("model ena") && facts.contains("measured at start"),
        "{facts}"
    );
    for word in ["vnic:", "vnic:/nonexistent.pcap", "vnic:x?speed=1"] {
        assert!(
            crate::port::live(word, &options(1, Some(1))).is_err(),
            "{word}"
        );
    }
    let empty = capture(&[]);
    let word = format!("vnic:{}", empty.file);
    assert!(matches!(
        crate::port::live(&word, &options(1, Some(1))),
        Err(PortError::Hollow { .. })
    ));
}
