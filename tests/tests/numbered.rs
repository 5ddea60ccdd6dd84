//! A number that is leased is nobody else's while it is, whatever the strategy: two flows never leave with one. `millrace
//! verify` takes numbers of one worker for other ones than the same of another; this looks at the packets alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use millrace_model::weaken::NUMBERS_APART;
use millrace_tests::command::millrace;
use millrace_tests::stateful::capture;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const WORKERS: &str = "4";
const PACKETS: u64 = 3000;
const HOSTS: u32 = 40;

/// What has a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    Flow,
    Host,
    Pair,
}

/// What is kept under numbers beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    Nothing,
    Map,
    Vector,
}

/// What a packet that carries a number is held against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    Nothing,
    Peer,
    Unasked,
}

fn program(whose: Whose, kept: Kept, held: Held, capacity: u32) -> String {
    let mut c = String::from(
        "#include <millrace/nf.h>\n#include <millrace/rewrite.h>\n\nPORTS(LAN, WAN);\n\n\
         struct whose { __be32 src, dst; __be16 sport, dport; };\n\
         struct number { __u32 id; };\nstruct counted { __u64 packets; __be32 src, dst; };\n\n",
    );
    let _ = writeln!(
        c,
        "ALLOCATOR(numbers, struct whose, .first = 1000, .capacity = {capacity});"
    );
    c.push_str("MAP(names, struct whose, struct number, .capacity = 8192);\n");
    match kept {
        Kept::Nothing => {}
        Kept::Map => {
            c.push_str("MAP(counts, struct number, struct counted, .capacity = 8192);\n");
        }
        Kept::Vector => {
            let _ = writeln!(c, "VECTOR(counts, struct counted, .capacity = {capacity});");
        }
    }
    c.push_str(
        "\nON_PACKET(p)\n{\n\tstruct flow4_headers headers;\n\tstruct whose w = {};\n\tstruct number *known, n = {};\n\
         \tstruct flow4 f;\n\t__s64 lease;\n\n\tif (packet_find_flow4(p, &f, &headers) != FLOW_OWN || f.protocol != PROTOCOL_UDP)\n\
         \t\treturn DROP_BECAUSE(other);\n\tif (p->port == WAN) {\n",
    );
    match held {
        Held::Unasked => c.push_str("\t\treturn DROP_BECAUSE(unasked);\n"),
        _ => {
            c.push_str(
                "\t\tstruct whose *of = allocator_get(&numbers, ntohs(f.dport));\n\t\tif (!of",
            );
            if held == Held::Peer {
                c.push_str(" || of->dst != f.src");
            }
            c.push_str(
                ")\n\t\t\treturn DROP_BECAUSE(unasked);\n\
                 \t\trewrite_destination(&headers, (struct endpoint){ of->src, of->sport });\n\t\treturn FORWARD(LAN);\n",
            );
        }
    }
    c.push_str("\t}\n\tw.src = f.src;\n");
    if whose != Whose::Host {
        c.push_str("\tw.dst = f.dst;\n");
    }
    if whose == Whose::Flow {
        c.push_str("\tw.sport = f.sport;\n\tw.dport = f.dport;\n");
    }
    c.push_str(
        "\tknown = map_get(&names, &w);\n\tif (known) {\n\t\tn = *known;\n\t} else {\n\t\tlease = allocator_lease(&numbers, &w);\n\
         \t\tif (lease < 0)\n\t\t\treturn DROP_BECAUSE(full);\n\t\tn.id = lease;\n\t\tif (!map_put(&names, &w, &n))\n\
         \t\t\treturn DROP_BECAUSE(full);\n",
    );
    if kept == Kept::Map {
        c.push_str("\t\tmap_put(&counts, &n, &(struct counted){ 0, w.src, w.dst });\n");
    }
    c.push_str("\t}\n");
    match kept {
        Kept::Nothing => {}
        Kept::Map => c.push_str(
            "\tstruct counted *count = map_get(&counts, &n);\n\tif (!count || count->src != w.src)\n\
             \t\treturn DROP_BECAUSE(another);\n\tcount->packets++;\n",
        ),
        Kept::Vector => c.push_str(
            "\tstruct counted *count = vector_at(&counts, n.id - 1000);\n\tif (!count || (count->src && count->src != w.src))\n\
             \t\treturn DROP_BECAUSE(another);\n\tcount->src = w.src;\n\tcount->packets++;\n",
        ),
    }
    c.push_str(
        "\trewrite_source(&headers, (struct endpoint){ f.src, htons(n.id) });\n\treturn FORWARD(WAN);\n}\n",
    );
    c
}

fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2);
    let sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// A datagram without a checksum; its identification repeats the source port, which the program changes.
fn datagram(src: [u8; 4], dst: [u8; 4], sport: u16, dport: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28]);
    frame.extend(sport.to_be_bytes());
    frame.extend([0x40, 0, 64, 17, 0, 0]);
    frame.extend(src);
    frame.extend(dst);
    let sum = sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    frame.extend([0, 8, 0, 0]);
    frame.extend([0; 18]);
    frame
}

fn traffic(random: &mut ChaCha8Rng, path: &Path) {
    let packets: Vec<(u64, Vec<u8>)> = (0..PACKETS)
        .map(|n| {
            let host = random.random_range(0..HOSTS);
            let server = random.random_range(0..HOSTS);
            let src = [10, 0, (host >> 3) as u8, host as u8];
            let dst = [198, 18, server as u8, 1];
            let port = random.random_range(0..6);
            let frame = datagram(src, dst, 2000 + port * 77, 53 + port % 2);
            (1_000_000_000 + n * 10_000, frame)
        })
        .collect();
    capture::write(path, packets.iter().map(|(t, f)| (*t, f.as_slice()))).unwrap();
}

/// How many packets left; a text where two whose numbers they carry had one, or one had two.
fn numbers(whose: Whose, out: &Path) -> Result<u64, String> {
    let mut of: BTreeMap<Vec<u8>, u16> = BTreeMap::new();
    let mut by: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let packets = capture::read(out)?;
    for (_, frame) in &packets {
        let number = u16::from_be_bytes([frame[34], frame[35]]);
        let owner = match whose {
            Whose::Host => frame[26..30].to_vec(),
            Whose::Pair => frame[26..34].to_vec(),
            Whose::Flow => [&frame[26..34], &frame[18..20], &frame[36..38]].concat(),
        };
        let known = *of.entry(owner.clone()).or_insert(number);
        let owned = by.entry(number).or_insert_with(|| owner.clone());
        if known != number || *owned != owner {
            return Err(format!(
                "{number} is {owner:?}'s and {owned:?}'s, who had {known}"
            ));
        }
    }
    Ok(packets.len() as u64)
}

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let mut random = ChaCha8Rng::seed_from_u64(7);
        traffic(&mut random, &bench.file("lan.pcap"));
        capture::write(&bench.file("wan.pcap"), std::iter::empty()).unwrap();
        bench
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The source of a program.
    fn source(&self, whose: Whose, kept: Kept, held: Held, capacity: u32) -> PathBuf {
        let source = self.file(&format!("{whose:?}_{kept:?}_{held:?}.c"));
        std::fs::write(&source, program(whose, kept, held, capacity)).unwrap();
        source
    }

    /// Runs it; what it left is in `out.pcap`.
    fn run(&self, source: &Path, strategy: &str, weak: &str) -> Output {
        let out = self.file("out.pcap");
        let _ = std::fs::remove_file(&out);
        let mut command = millrace();
        command.env("MILLRACE_WEAKEN", weak);
        command.arg("run").arg(source);
        command.arg("--in").arg(self.file("lan.pcap"));
        command.arg("--in").arg(self.file("wan.pcap"));
        command.arg("--out").arg(out);
        command.args(["--cores", WORKERS, "--strategy", strategy, "--json"]);
        command.output().unwrap()
    }
}

#[test]
fn no_two_have_one() {
    let bench = Bench::new();
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    let cases = [
        (Whose::Flow, Kept::Nothing, Held::Unasked, 16384),
        (Whose::Host, Kept::Nothing, Held::Nothing, 4096),
        (Whose::Pair, Kept::Map, Held::Unasked, 8192),
        (Whose::Host, Kept::Map, Held::Nothing, 4096),
        (Whose::Pair, Kept::Map, Held::Peer, 8192),
        (Whose::Flow, Kept::Vector, Held::Unasked, 16384),
        (Whose::Host, Kept::Vector, Held::Unasked, 60),
    ];
    for (whose, kept, held, capacity) in cases {
        let source = bench.source(whose, kept, held, capacity);
        for strategy in ["best", "shard", "lock", "transact"] {
            let what = format!("{whose:?}, {kept:?}, {held:?}, {capacity} as {strategy}");
            let output = bench.run(&source, strategy, "");
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.contains("cannot run as"), "{what}: {said}");
                *ran.entry(format!("{strategy} refused")).or_default() += 1;
                continue;
            }
            let account: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let packets = numbers(whose, &bench.file("out.pcap"))
                .unwrap_or_else(|two| panic!("{what}: {two}\n{account:#}"));
            let dropped = account["dropped"].as_u64().unwrap();
            assert_eq!(packets + dropped, PACKETS, "{what}: {account:#}");
            // Nothing is dropped but where a part of the numbers is used up.
            let refused = account["relaxations"]["capacity"].as_u64().unwrap_or(0);
            assert!(dropped == 0 || refused > 0, "{what}: {account:#}");
            *ran.entry(strategy.to_owned()).or_default() += 1;
        }
    }
    println!("{ran:?}");
    assert_eq!(ran.get("best"), Some(&cases.len()), "{ran:?}");
    assert!(ran.get("shard").is_some_and(|n| *n >= 2), "{ran:?}");
}

/// With the plan's rule switched off, two cores lease one number, and these programs show it.
#[cfg(debug_assertions)]
#[test]
fn two_would_have_one_without_the_rule() {
    let bench = Bench::new();
    let source = bench.source(Whose::Flow, Kept::Nothing, Held::Unasked, 16384);
    let output = bench.run(&source, "shard", NUMBERS_APART);
    assert!(output.status.success());
    assert!(numbers(Whose::Flow, &bench.file("out.pcap")).is_err());
}
