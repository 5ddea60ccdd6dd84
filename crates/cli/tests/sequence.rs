//! `millrace sequence`: the golden sequenced captures of the paper's functions, which every make of the sequencer has to
//! give (tests/sequencer), and captures that are not what the sequencer gives.

use std::fmt::Write;
use std::path::PathBuf;

use crate::common;
use common::{Packet, capture, json, millrace, output, read, refused, root, success};

const SECOND: u64 = 1_000_000_000;

/// The paper's functions, with slots for three cores: as many as fit XDP's headroom, at most twelve.
const FUNCTIONS: &[(&str, &str)] = &[
    ("conntrack", "6"),
    ("ddos", "12"),
    ("heavyhitter", "9"),
    ("portknock", "12"),
    ("tokenbucket", "9"),
];

fn folder() -> PathBuf {
    root().join("tests/sequencer")
}

struct Made {
    packets: Vec<Packet>,
    time: u64,
}

impl Made {
    fn put(&mut self, after: u64, mut bytes: Vec<u8>) {
        self.time += after;
        bytes.resize(bytes.len().max(14), 0);
        self.packets.push((self.time, bytes));
    }

    fn tcp(
        &mut self,
        after: u64,
        (from, to): (u8, u8),
        ports: (u16, u16),
        tcp: (u32, u32, u8, usize),
    ) {
        self.put(after, ip(from, to, 6, &[], 0, &segment(ports, tcp)));
    }
}

fn segment(
    (sport, dport): (u16, u16),
    (seq, ack, flags, payload): (u32, u32, u8, usize),
) -> Vec<u8> {
    let mut all = Vec::new();
    all.extend(sport.to_be_bytes());
    all.extend(dport.to_be_bytes());
    all.extend(seq.to_be_bytes());
    all.extend(ack.to_be_bytes());
    all.extend([0x50, flags, 0x20, 0, 0, 0, 0, 0]);
    all.extend((0..payload).map(|i| i as u8));
    all
}

fn ip(from: u8, to: u8, protocol: u8, options: &[u8], fragment: u16, inner: &[u8]) -> Vec<u8> {
    let mut all = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    let header = 20 + options.len();
    all.extend([0x40 | (header / 4) as u8, 0]);
    all.extend(((header + inner.len()) as u16).to_be_bytes());
    all.extend([0, 1]);
    all.extend(fragment.to_be_bytes());
    all.extend([64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    all.extend(options);
    all.extend(inner);
    all
}

/// Connections that begin, go on and end, knocks, floods, fragments, options, other protocols, frames that are cut; a pause
/// of ten minutes, a clock that goes back.
fn traffic() -> Vec<Packet> {
    let (syn, ack, fin) = (0x02, 0x10, 0x01);
    let mut m = Made {
        packets: Vec::new(),
        time: 1_700_000_000 * SECOND,
    };
    m.tcp(0, (1, 2), (1000, 80), (100, 0, syn, 0));
    m.tcp(900, (2, 1), (80, 1000), (500, 101, syn | ack, 0));
    m.tcp(40, (1, 2), (1000, 80), (101, 501, ack, 0));
    for i in 0..5 {
        m.tcp(700, (1, 2), (1000, 80), (101 + 10 * i, 501, ack, 10));
        m.put(
            13,
            ip(3, 4, 17, &[], 0, &[3, 232, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]),
        );
    }
    for port in [100, 101, 102, 22, 22] {
        m.tcp(1_000_000, (5, 6), (4000, port), (1, 0, syn, 0));
    }
    for port in [100, 102, 22] {
        m.tcp(1_000_000, (6, 5), (4000, port), (1, 0, syn, 0));
    }
    // ARP, IPv6, too short, without an IP header.
    m.put(
        5,
        [
            &[255; 6][..],
            &[2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &[7; 20],
        ]
        .concat(),
    );
    m.put(
        5,
        [
            &[2; 12][..],
            &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64],
            &[9; 40],
        ]
        .concat(),
    );
    m.put(
        5,
        ip(1, 2, 6, &[], 0, &segment((1, 100), (0, 0, syn, 0)))[..33].to_vec(),
    );
    m.put(5, vec![1; 14]);
    // Options, of one word and of ten; a header that is too short to be one.
    m.put(
        5,
        ip(
            7,
            8,
            6,
            &[1, 1, 1, 0],
            0,
            &segment((9, 100), (77, 0, syn, 3)),
        ),
    );
    m.put(
        5,
        ip(7, 8, 6, &[1; 40], 0, &segment((9, 101), (80, 0, syn, 0))),
    );
    m.put(5, {
        let mut bytes = ip(7, 8, 6, &[], 0, &segment((9, 101), (80, 0, syn, 0)));
        bytes[14] = 0x44;
        bytes
    });
    // Fragments: the first, and a later one; TCP whose data begins before its header ends.
    m.put(
        5,
        ip(
            3,
            4,
            17,
            &[],
            0x2000,
            &[3, 232, 0, 53, 0, 12, 0, 0, 5, 6, 7, 8],
        ),
    );
    m.put(5, ip(3, 4, 17, &[], 0x0001, &[9, 9, 9, 9]));
    m.put(5, {
        let mut bytes = ip(1, 2, 6, &[], 0, &segment((1000, 80), (151, 501, ack, 0)));
        bytes[14 + 20 + 12] = 0x40;
        bytes
    });
    m.put(5, ip(1, 2, 1, &[], 0, &[8, 0, 0, 0, 0, 0, 0, 0]));
    // A length that says more, and less, than there is.
    m.put(5, {
        let mut bytes = ip(3, 4, 17, &[], 0, &[3, 232, 0, 53, 0, 12, 0, 0]);
        bytes[16..18].copy_from_slice(&[1, 0]);
        bytes
    });
    m.put(5, {
        let mut bytes = ip(3, 4, 17, &[], 0, &[3, 232, 0, 53, 0, 12, 0, 0]);
        bytes[16..18].copy_from_slice(&[0, 22]);
        bytes
    });
    m.tcp(600 * SECOND, (2, 1), (80, 1000), (501, 151, ack, 0));
    m.tcp(50, (1, 2), (1000, 80), (151, 501, ack | fin, 0));
    m.time -= 30;
    m.tcp(0, (2, 1), (80, 1000), (501, 152, ack | fin, 0));
    m.tcp(90, (1, 2), (1000, 80), (152, 502, ack, 0));
    m.tcp(90, (1, 2), (1000, 80), (900, 0, syn, 0));
    for i in 0..8 {
        m.put(
            300_000,
            ip(3, 4, 17, &[], 0, &[3, 232, 0, 53, 0, 12, 0, 0, i, i, i, i]),
        );
    }
    m.packets
}

/// The golden capture of one of the functions, and the words of a command line that make it.
fn golden((name, slots): &(&str, &str)) -> (PathBuf, Vec<String>) {
    let words = ["sequence", name, "--cores", "3", "--slots", slots];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    // 40 s.
    words.extend(["--period".into(), "40000000000".into()]);
    (folder().join(format!("{name}.pcap")), words)
}

#[test]
fn the_papers_functions_give_the_golden_captures() {
    let input = folder().join("traffic.pcap");
    let bless = std::env::var_os("MILLRACE_BLESS").is_some();
    if bless {
        capture(&input, &traffic());
    }
    let packets = read(&input)
        .into_iter()
        .map(|(_, time, bytes)| (time, bytes));
    let packets: Vec<Packet> = packets.collect();
    assert_eq!(packets, traffic(), "MILLRACE_BLESS=1 writes it");
    let made = tempfile::tempdir().unwrap();
    let mut listing = String::new();
    for function in FUNCTIONS {
        let (path, words) = golden(function);
        let out = made.path().join("out.pcap");
        let mut command = millrace();
        command
            .args(&words)
            .arg("--in")
            .arg(&input)
            .arg("--out")
            .arg(&out);
        let (document, status) = json(&mut command);
        assert_eq!(status, 0);
        assert_eq!(document["packets"], packets.len());
        assert_eq!(document["back"], 1);
        assert!(document["heartbeats"].as_u64().unwrap() >= 14);
        let beats = document["heartbeats"].as_u64().unwrap();
        let carriers = packets.len() as u64 + 3 * beats;
        assert_eq!(document["written"].as_u64(), Some(carriers + 1));
        let bytes = std::fs::read(&out).unwrap();
        if bless {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(bytes == std::fs::read(&path).unwrap(), "{}", path.display());
        let mut check = millrace();
        check
            .args(["sequence", function.0, "--list", "--check"])
            .arg(&path);
        let (shown, wrong) = output(&mut check);
        assert_eq!(shown.status.code(), Some(0), "{wrong}");
        let text = String::from_utf8_lossy(&shown.stdout);
        let lines: Vec<&str> = text.lines().collect();
        let rows = lines.iter().filter(|l| l.contains(", row ")).take(4);
        let _ = writeln!(listing, "{}", function.0);
        rows.for_each(|l| {
            let _ = writeln!(listing, "  {l}");
        });
    }
    insta::assert_snapshot!(listing);
}

/// A row of another function, a packet that is another one, a tag without its key.
#[test]
fn what_the_sequencer_does_not_give_is_refused() {
    let work = tempfile::tempdir().unwrap();
    let path = |name: &str| work.path().join(name);
    let check = |name: &str, file: &PathBuf, more: &[&str]| {
        let mut command = millrace();
        command
            .args(["sequence", name, "--check"])
            .arg(file)
            .args(more);
        // A terminal's lines, as one.
        let said = refused(&mut command, 1);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let ddos = folder().join("ddos.pcap");
    let said = check("portknock", &ddos, &[]);
    assert!(said.contains("rows of 4 bytes"), "{said}");
    // The source address of the first packet: its row is another one now.
    let bytes = std::fs::read(&ddos).unwrap();
    let prefix = 34 + 2 + 12 * 4;
    let at = 24 + 16 + 30 + 16 + prefix + 26;
    assert_eq!(bytes[at..at + 4], [10, 0, 0, 1]);
    let mut other = bytes.clone();
    other[at + 3] ^= 1;
    std::fs::write(path("other.pcap"), &other).unwrap();
    let said = check("ddos", &path("other.pcap"), &[]);
    assert!(
        said.contains("record 2: byte 3 of its row is 0x01, and the function gives 0x00"),
        "{said}"
    );
    // Its Ethernet type: it has no row now.
    let mut other = bytes;
    other[at - 14] = 9;
    std::fs::write(path("none.pcap"), &other).unwrap();
    let said = check("ddos", &path("none.pcap"), &[]);
    assert!(said.contains("gives it none"), "{said}");
    std::fs::write(path("key"), b"sequencer-golden").unwrap();
    std::fs::write(path("short"), b"sequencer").unwrap();
    let key = path("key").display().to_string();
    assert!(check("ddos", &ddos, &["--key", &key]).contains("not tagged"));
    let tagged = path("tagged.pcap");
    let mut make = millrace();
    make.args(["sequence", "ddos", "--key", &key, "--in"])
        .arg(folder().join("traffic.pcap"));
    let document = success(make.arg("--out").arg(&tagged));
    assert_eq!(document["tagged"], true);
    assert!(check("ddos", &tagged, &[]).contains("tagged"));
    let document = success(
        millrace()
            .args(["sequence", "ddos", "--key", &key, "--check"])
            .arg(&tagged),
    );
    assert_eq!(document["equal"], true);
    let short = path("short").display().to_string();
    let mut command = millrace();
    command
        .args(["sequence", "ddos", "--key", &short, "--check"])
        .arg(&tagged);
    assert!(refused(&mut command, 2).contains("9 bytes"));
    // A function whose rows no circuit fills: with the line.
    let mut command = millrace();
    command
        .args(["sequence", "nat", "--in"])
        .arg(folder().join("traffic.pcap"));
    let said = refused(command.arg("--out").arg(path("nat.pcap")), 1);
    assert!(
        said.contains("nat.c:") && said.contains("several kinds of memory"),
        "{said}"
    );
}
