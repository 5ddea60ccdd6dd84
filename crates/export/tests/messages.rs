//! What is written is what a reader that is not ours reads.

use std::collections::BTreeMap;
use std::time::Instant;

use millrace_dataplane::packet::Fate;
use millrace_export::flows::{End, Flows};
use millrace_export::ipfix::{self, ENTERPRISE, Facts, MOST, Message};
use millrace_export::sample::{Ends, Key, Sample};
use netflow_parser::variable_versions::ipfix::FlowSetBody;
use netflow_parser::{NetflowPacket, NetflowParser};

/// The records of messages, each as its fields in words, and the sequence numbers.
pub fn read(parser: &mut NetflowParser, message: &[u8]) -> (u32, Vec<Vec<(String, String)>>) {
    let read = parser.parse_bytes(message);
    assert!(read.error.is_none(), "{:?}", read.error);
    let mut records = Vec::new();
    let mut sequence = None;
    for packet in read.packets {
        let NetflowPacket::IPFix(packet) = packet else {
            panic!("{packet:?}");
        };
        assert_eq!(usize::from(packet.header.length), message.len());
        sequence = Some(packet.header.sequence_number);
        for set in packet.flowsets {
            let fields = match set.body {
                FlowSetBody::Data(data) => data.fields,
                FlowSetBody::OptionsData(data) => data.fields,
                FlowSetBody::NoTemplate(_) => panic!("no template for {:?}", set.header),
                _ => continue,
            };
            let words = |record: Vec<_>| {
                let each = record.iter().map(|(f, v)| (format!("{f:?}"), said(v)));
                each.collect()
            };
            records.extend(fields.into_iter().map(words));
        }
    }
    (sequence.expect("a header"), records)
}

fn said(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn key(ends: Ends, fate: Fate) -> Key {
    Key {
        ends,
        protocol: 17,
        class: 0xb8,
        ports: (53, 4_000),
        ingress: 1,
        fate,
        element: "firewall".into(),
        reason: matches!(fate, Fate::Dropped(_)).then(|| "no_flow".into()),
        line: matches!(fate, Fate::Dropped(_)).then(|| "firewall.c:33".into()),
    }
}

const V4: Ends = Ends::V4([192, 0, 2, 1], [198, 51, 100, 7]);

fn facts() -> Facts {
    Facts {
        every: 1000,
        ports: vec!["LAN".into(), "WAN".into()],
    }
}

fn sample(key: Key) -> Sample {
    Sample {
        key,
        octets: 100,
        frame: 114,
        time: 1_700_000_000_123_000_000,
        flags: 0x12,
    }
}

/// Records of these samples, and the messages that hold them.
fn written(samples: Vec<Sample>, sequence: &mut u32) -> Vec<Vec<u8>> {
    let (mut flows, now) = (Flows::default(), Instant::now());
    for sample in samples {
        flows.add(sample, now, &mut |_, _, _| panic!("there is room"));
    }
    let mut messages = Vec::new();
    let mut message = Message::new(*sequence, 7);
    flows.all(End::Forced, &mut |key, flow, end| {
        let record = ipfix::record(key, flow, end);
        if !message.add(ipfix::template(key), &record) {
            let full = std::mem::replace(&mut message, Message::new(0, 7));
            messages.push(full.done(sequence));
            message = Message::new(*sequence, 7);
            assert!(message.add(ipfix::template(key), &record));
        }
    });
    messages.push(message.done(sequence));
    messages
}

fn field(record: &[(String, String)], name: &str) -> String {
    let found = record.iter().find(|(f, _)| f.contains(name));
    found
        .unwrap_or_else(|| panic!("no {name} in {record:?}"))
        .1
        .clone()
}

#[test]
fn a_reader_that_is_not_ours_reads_what_was_counted() {
    let mut parser = NetflowParser::default();
    let mut sequence = 0;
    let mut options = Vec::new();
    for message in ipfix::preamble(&facts(), &mut sequence, 7) {
        options.extend(read(&mut parser, &message).1);
    }
    // One of sampling, two ports, three elements of ours.
    assert_eq!((options.len(), sequence), (6, 6));
    let text = format!("{options:?}");
    for word in [
        "999",
        "LAN",
        "WAN",
        "millraceDropReason",
        "millraceDropLine",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let dropped = key(V4, Fate::Dropped(3));
    let six = Ends::V6([0x20; 16], [0xfd; 16]);
    let link = Ends::Link([1; 6], [2; 6], 0x0806);
    let all = vec![
        sample(dropped.clone()),
        sample(dropped),
        sample(key(six, Fate::Forwarded(0))),
        sample(key(link, Fate::Passed)),
        sample(key(V4, Fate::Consumed)),
    ];
    let messages = written(all, &mut sequence);
    assert_eq!((messages.len(), sequence), (1, 10));
    let (at, records) = read(&mut parser, &messages[0]);
    assert_eq!((at, records.len()), (6, 4));
    let by: BTreeMap<String, _> = records
        .iter()
        .map(|r| (field(r, "ForwardingStatus"), r))
        .collect();
    let packets: u64 = records
        .iter()
        .map(|r| number(&field(r, "PacketDeltaCount")))
        .sum();
    assert_eq!(packets, 5);
    let dropped = by.iter().find(|(s, _)| s.contains("Dropped"));
    let dropped = dropped.unwrap_or_else(|| panic!("{by:?}")).1;
    let text = format!("{dropped:?}");
    for word in ["192.0.2.1", "198.51.100.7"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let own = |n: u16| field(dropped, &format!("{ENTERPRISE}, field_number: {n} "));
    let bytes = |text: &str| format!("{:?}", text.as_bytes()).replace(' ', "");
    assert!(own(1).contains(&bytes("firewall")), "{text}");
    assert!(own(2).contains(&bytes("no_flow")), "{text}");
    assert!(own(3).contains(&bytes("firewall.c:33")), "{text}");
    assert_eq!(number(&field(dropped, "OctetDeltaCount")), 200);
    assert_eq!(number(&field(dropped, "SourceTransportPort")), 53);
}

/// The number in a value's words.
pub fn number(text: &str) -> u64 {
    let digits: String = text
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .skip_while(|c| *c == 'U')
        .collect();
    // As in {"DataNumber":{"U64":5}}: the last run of digits.
    let last = digits
        .split(|c: char| !c.is_ascii_digit())
        .rfind(|part| !part.is_empty());
    last.and_then(|d| d.parse().ok())
        .unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn messages_fit_a_link_and_are_counted_on() {
    let mut parser = NetflowParser::default();
    let mut sequence = u32::MAX - 7;
    for message in ipfix::preamble(&facts(), &mut sequence, 7) {
        assert!(message.len() <= MOST);
        read(&mut parser, &message);
    }
    let flow = |n: u16| {
        let mut key = key(V4, Fate::Dropped(1));
        key.ports.0 = n;
        // As long as a text can be: it is cut, at a character.
        key.reason = Some("ä".repeat(150).as_str().into());
        sample(key)
    };
    let messages = written((0..40).map(flow).collect(), &mut sequence);
    let mut next = u32::MAX - 1;
    let mut all = 0;
    for message in &messages {
        assert!(message.len() <= MOST, "{}", message.len());
        let (at, records) = read(&mut parser, message);
        assert_eq!(at, next);
        next = next.wrapping_add(records.len() as u32);
        all += records.len();
    }
    assert_eq!((all, next), (40, sequence));
}
