//! Transports: UDP, TCP, and a collector that is away.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use millrace_dataplane::module::Instance;
use millrace_dataplane::packet::Fate;
use millrace_dataplane::worker::watch::{Decided, Follow, Observer, Sight};
use millrace_export::flows::Timeouts;
use millrace_export::{Collector, Exporter, Lines, Sampler, Setting};
use netflow_parser::NetflowParser;

use crate::messages::{number, read};

/// Nobody knows lines.
struct Silent;

impl Lines for Silent {
    fn line(&mut self, _: u64, _: &mut Instance, _: &Sight<'_>) -> Option<std::sync::Arc<str>> {
        None
    }
}

const BURST: u64 = 32;

/// So many bursts through a sampler; gives how many packets it took.
fn bursts(sampler: &mut Sampler, from: u64, bursts: u64) -> u64 {
    let mut taken = 0;
    for burst in from..from + bursts {
        if !sampler.burst(BURST as usize) {
            continue;
        }
        let mut on_way = Vec::new();
        for place in 0..BURST {
            let number = burst * BURST + place;
            // A header of IPv4 and UDP, of a flow in sixteen.
            let mut frame = [0_u8; 60];
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
            frame[17] = 46;
            frame[23] = 17;
            frame[30..34].copy_from_slice(&[10, 0, 0, (number % 16) as u8]);
            let sight = Sight {
                number,
                port: 0,
                time: 1_000_000_000 + number,
                wire: 60,
                frame: &frame,
            };
            if sampler.follows(&sight) != Follow::No {
                on_way.push(number);
            }
        }
        taken += on_way.len() as u64;
        let decided = Decided {
            place: 0,
            id: 0,
            name: "",
            reasons: &[],
        };
        for number in on_way {
            sampler.ends(number, Fate::Forwarded(1), &decided);
        }
    }
    taken
}

fn begun(word: &str, every: u32) -> (Exporter, Sampler) {
    let collector: Collector = word.parse().unwrap();
    let timeouts = Timeouts {
        idle: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let setting = Setting {
        every,
        collector,
        timeouts,
    };
    let (exporter, mut feeds) = Exporter::begin(&setting, &["A".into()], 1).unwrap();
    let feed = feeds.pop().unwrap();
    let sampler = Sampler::new(every, "nop", feed, Box::new(Silent), true);
    (exporter, sampler)
}

/// Packets in these messages' records.
fn packets(messages: &[Vec<u8>]) -> u64 {
    let mut parser = NetflowParser::default();
    let mut sum = 0;
    for message in messages {
        for record in read(&mut parser, message).1 {
            let count = record.iter().find(|(f, _)| f.contains("PacketDeltaCount"));
            sum += count.map_or(0, |(_, value)| number(value));
        }
    }
    sum
}

fn received(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut messages = Vec::new();
    let mut buffer = [0; 2048];
    while let Ok(length) = socket.recv(&mut buffer) {
        messages.push(buffer[..length].to_vec());
    }
    messages
}

#[test]
fn every_nth_packet_is_counted_once() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let word = format!("ipfix:{}", socket.local_addr().unwrap());
    let (exporter, mut sampler) = begun(&word, 7);
    let taken = bursts(&mut sampler, 0, 100);
    assert_eq!(taken, 100 * BURST / 7);
    let counts = exporter.end();
    assert_eq!((counts.sampled, counts.missed, counts.lost), (taken, 0, 0));
    assert_eq!(packets(&received(&socket)), taken);
}

#[test]
fn a_stream_of_tcp_is_read_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let word = format!("ipfix+tcp:{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let (mut messages, mut rest) = (Vec::new(), &bytes[..]);
        while !rest.is_empty() {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            messages.push(rest[..length].to_vec());
            rest = &rest[length..];
        }
        messages
    });
    let (exporter, mut sampler) = begun(&word, 1);
    let taken = bursts(&mut sampler, 0, 20);
    let counts = exporter.end();
    assert_eq!((counts.lost, counts.templates), (0, 1), "{counts:?}");
    assert_eq!(packets(&reader.join().unwrap()), taken);
}

/// Nothing waits for it, all is counted, and what comes after it is back is read, templates first.
#[test]
fn a_collector_that_is_away_is_counted_and_comes_back() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let (exporter, mut sampler) = begun(&format!("ipfix:{address}"), 1);
    let began = Instant::now();
    let mut burst = 0;
    // Until the thread has noticed: it counts a message that nobody took.
    while exporter.counts().lost == 0 && began.elapsed() < Duration::from_secs(60) {
        bursts(&mut sampler, burst, 4);
        burst += 4;
        std::thread::sleep(Duration::from_millis(20));
    }
    let lost = exporter.counts();
    assert!(lost.lost > 0, "{lost:?}");
    // What is on its way is lost too.
    std::thread::sleep(Duration::from_millis(300));
    let templates = exporter.counts().templates;
    let socket = UdpSocket::bind(address).unwrap();
    while exporter.counts().templates < templates + 2 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let taken = bursts(&mut sampler, burst, 4);
    let counts = exporter.end();
    assert!(packets(&received(&socket)) >= taken, "{counts:?}");
}

#[test]
fn a_collector_of_tcp_that_is_away_loses_records_and_holds_up_nothing() {
    // Nobody is there: records are made and lost.
    let (exporter, mut sampler) = begun("ipfix+tcp:127.0.0.1:1", 1);
    let taken = bursts(&mut sampler, 0, 4000);
    let counts = exporter.end();
    assert_eq!((taken, counts.sampled), (4000 * BURST, 4000 * BURST));
    assert_eq!(counts.records, 0, "{counts:?}");
    assert!(counts.lost > 0, "{counts:?}");
}

#[test]
fn words_that_are_no_collector_are_refused() {
    for word in [
        "",
        "ipfix",
        "ipfix:",
        "ipfix:host",
        "ipfix:host:0",
        "ipfix:host:70000",
        "ipfix::4739",
        "netflow:host:4739",
    ] {
        let refused = word.parse::<Collector>();
        assert!(refused.is_err(), "{word}: {refused:?}");
    }
    let word = "ipfix+tcp:[2001:db8::1]:4739";
    assert_eq!(word.parse::<Collector>().unwrap().to_string(), word);
}
