//! Programs that read headers without a look at what these say of themselves: odd packets are steered in software, by
//! the bytes that the program reads, and meet all others that touch the same entry.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use millrace_place::{Strategy, Treatment};
use millrace_plan::Plan;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{kind, modelled, object, port};

const FROM: &str = "source-address";
const TO: &str = "destination-address";
const PORTS: [&str; 2] = ["source-port", "destination-port"];

/// A program, what its keys are, and by what TCP has to be steered.
struct Case {
    name: &'static str,
    lines: &'static [(&'static str, &'static str)],
    /// the entry that a frame touches, as the program's text says
    touches: fn(&[u8]) -> Option<Vec<u8>>,
    /// the kind that is looked at, and the fields that must count for it; none where it must not shard
    by: Option<(&'static str, &'static [&'static str])>,
}

fn plan(lines: &[(&str, &str)], nic: &str) -> Option<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut text = std::fs::read_to_string(folder.join("unchecked.c")).unwrap();
    for (define, value) in lines {
        let start = format!("#define {define} ");
        let old = text.lines().find(|l| l.starts_with(&start)).unwrap();
        text = text.replace(&old.to_owned(), &format!("{start}{value}"));
    }
    let include = format!("#include \"{}/", folder.display());
    text = text.replace("#include \"", &include);
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("unchecked.c");
    std::fs::write(&source, text).unwrap();
    Some(modelled(&source)?.plan(nic))
}

/// The header behind the EtherType, behind up to `tags` tags, if it is this one and so long.
fn header(frame: &[u8], tags: usize, kind: [u8; 2], bytes: usize) -> Option<&[u8]> {
    let mut at = 12;
    for _ in 0..tags {
        if !matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
            break;
        }
        at += 4;
    }
    let found = frame.get(at..at + 2)? == kind;
    let rest = frame.get(at + 2..)?;
    (found && rest.len() >= bytes).then_some(rest)
}

fn four(frame: &[u8], bytes: usize) -> Option<&[u8]> {
    header(frame, 0, [8, 0], bytes)
}

const CASES: &[Case] = &[
    Case {
        name: "by source",
        lines: &[],
        touches: |frame| Some(four(frame, 24)?[12..16].to_vec()),
        by: Some(("ipv4-tcp", &[FROM])),
    },
    Case {
        name: "by destination behind tags",
        lines: &[("STEP", "1"), ("KEY", "{ key.words[0] = WORD(ip, 16); }")],
        touches: |frame| Some(header(frame, 2, [8, 0], 24)?[16..20].to_vec()),
        by: Some(("ipv4-udp", &[TO])),
    },
    Case {
        name: "flows of TCP at a fixed place",
        lines: &[
            ("KNOWN", "(BYTE(ip, 9) == 6)"),
            (
                "KEY",
                "{ key.words[0] = WORD(ip, 12); key.words[1] = WORD(ip, 16); key.words[2] = WORD(l4, 0); }",
            ),
        ],
        touches: |frame| {
            let ip = four(frame, 24)?;
            (ip[9] == 6).then(|| ip[12..24].to_vec())
        },
        by: Some(("ipv4-tcp", &[FROM, TO, PORTS[0], PORTS[1]])),
    },
    Case {
        name: "flows of TCP and UDP behind the header",
        lines: &[
            ("KNOWN", "(BYTE(ip, 9) == 6 || BYTE(ip, 9) == 17)"),
            ("TRANSPORT", "(ip + (BYTE(ip, 0) & 15) * 4)"),
            (
                "KEY",
                "{ key.words[0] = WORD(ip, 12); key.words[1] = WORD(ip, 16); key.words[2] = WORD(l4, 0); \
                 key.words[3] = BYTE(ip, 9); }",
            ),
        ],
        touches: |frame| {
            let ip = four(frame, 20)?;
            let at = usize::from(ip[0] & 15) * 4;
            let ports = ip.get(at..at + 4)?;
            let named = matches!(ip[9], 6 | 17);
            named.then(|| [&ip[12..20], ports, &ip[9..10]].concat())
        },
        by: Some(("ipv4-udp", &[FROM, TO, PORTS[0], PORTS[1]])),
    },
    Case {
        name: "ports of whatever protocol",
        lines: &[(
            "KEY",
            "{ key.words[0] = WORD(ip, 12); key.words[1] = HALF(l4, 2); }",
        )],
        touches: |frame| {
            let ip = four(frame, 24)?;
            Some([&ip[12..16], &ip[22..24]].concat())
        },
        by: Some(("ipv4-tcp", &[FROM, PORTS[1]])),
    },
    Case {
        name: "one port alone",
        lines: &[
            ("KNOWN", "(BYTE(ip, 9) == 17)"),
            ("KEY", "{ key.words[0] = HALF(l4, 2); }"),
        ],
        touches: |frame| {
            let ip = four(frame, 24)?;
            (ip[9] == 17).then(|| ip[22..24].to_vec())
        },
        by: Some(("ipv4-udp", &[PORTS[1]])),
    },
    Case {
        name: "TCP by source and UDP by destination",
        lines: &[
            ("KNOWN", "(BYTE(ip, 9) == 6 || BYTE(ip, 9) == 17)"),
            (
                "KEY",
                "{ key.words[0] = BYTE(ip, 9) == 6 ? WORD(ip, 12) : WORD(ip, 16); }",
            ),
        ],
        touches: |frame| {
            let ip = four(frame, 24)?;
            match ip[9] {
                6 => Some(ip[12..16].to_vec()),
                17 => Some(ip[16..20].to_vec()),
                _ => None,
            }
        },
        by: Some(("ipv4-udp", &[TO])),
    },
    Case {
        name: "the length is looked at, the version is not",
        lines: &[
            ("KNOWN", "((BYTE(ip, 0) & 15) == 5 && BYTE(ip, 9) == 6)"),
            (
                "KEY",
                "{ key.words[0] = WORD(ip, 16); key.words[1] = HALF(l4, 2); }",
            ),
        ],
        touches: |frame| {
            let ip = four(frame, 24)?;
            let known = ip[0] & 15 == 5 && ip[9] == 6;
            known.then(|| [&ip[16..20], &ip[22..24]].concat())
        },
        by: Some(("ipv4-tcp", &[TO, PORTS[1]])),
    },
    Case {
        name: "IPv6 by source and port",
        lines: &[
            ("SIX", "1"),
            ("KNOWN", "(BYTE(ip, 6) == 6)"),
            ("TRANSPORT", "(ip + 40)"),
            (
                "KEY",
                "{ for (int i = 0; i < 4; i++) key.words[i] = WORD(ip, 8 + 4 * i); key.words[4] = HALF(l4, 0); }",
            ),
        ],
        touches: |frame| {
            let ip = header(frame, 0, [0x86, 0xdd], 44)?;
            (ip[6] == 6).then(|| [&ip[8..24], &ip[40..42]].concat())
        },
        by: Some(("ipv6-tcp", &[FROM, PORTS[0]])),
    },
    Case {
        name: "the source beside what a table says",
        lines: &[
            ("ZONED", "1"),
            (
                "KEY",
                "{ key.words[0] = *zone; key.words[1] = WORD(ip, 12); }",
            ),
        ],
        touches: |frame| Some(four(frame, 24)?[12..16].to_vec()),
        by: Some(("ipv4-tcp", &[FROM])),
    },
    Case {
        name: "the identification",
        lines: &[("KEY", "{ key.words[0] = HALF(ip, 4); }")],
        touches: |frame| Some(four(frame, 24)?[4..6].to_vec()),
        by: None,
    },
];

/// A frame of few different bytes, so that many have one key, often with a header as it should be.
fn frame(random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for _ in 0..*[0, 0, 0, 1, 2, 3].get(random.random_range(0..6)).unwrap() {
        let tag = [[0x81, 0], [0x88, 0xa8], [0x91, 0]][random.random_range(0..3)];
        frame.extend(tag);
        frame.extend([0, 7]);
    }
    let six = random.random_range(0..4) == 0;
    frame.extend(if six { [0x86, 0xdd] } else { [8, 0] });
    let at = frame.len();
    let protocol = [6, 6, 17, 17, 1, 58, 132, 47, 0, 60][random.random_range(0..10)];
    let few = [1_u8, 2];
    let mut rest: Vec<u8> = (0..90).map(|_| few[random.random_range(0..2)]).collect();
    // Few bytes of addresses and ports differ, wherever they are taken from.
    for (i, byte) in rest.iter_mut().enumerate() {
        if i % 4 != 3 && random.random_range(0..8) != 0 {
            *byte = 1;
        }
    }
    let good = random.random_range(0..2) == 0;
    if six {
        rest[0] = if good {
            0x60
        } else {
            random.random_range(0..=255)
        };
        rest[6] = protocol;
    } else {
        rest[0] = if good {
            0x45
        } else {
            random.random_range(0..=255)
        };
        let part = if good {
            0
        } else {
            [0, 0x20, 0x21, 0x01][random.random_range(0..4)]
        };
        rest[6] = part;
        rest[7] = if part & 1 == 1 { 7 } else { 0 };
        rest[9] = protocol;
    }
    frame.extend(rest);
    if random.random_range(0..8) == 0 {
        frame.truncate(at + random.random_range(0..60));
    }
    frame
}

/// Frames that touch one entry have one owner, whoever asks for it.
fn meet(plan: &Plan, case: &Case, seed: u8) {
    let steering = plan.steering(2, [seed; 32]).unwrap();
    let owners: Vec<_> = steering.iter().map(|s| s.owners()).collect();
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(seed));
    let mut entries: BTreeMap<Vec<u8>, (u32, Vec<u8>)> = BTreeMap::new();
    let mut cores = BTreeSet::new();
    let mut shared = 0;
    for n in 0..20_000 {
        let frame = frame(&mut random);
        let Some(key) = (case.touches)(&frame) else {
            continue;
        };
        // A program without ports has its entries of whatever port.
        let (owners, steering) = (&owners[n % 2], &steering[n % 2]);
        let owner = owners.owner(&frame);
        let told = owners.exception(&frame);
        assert_eq!(told.unwrap_or_else(|| steering.nic.queue(&frame)), owner);
        match entries.get(&key) {
            None => drop(entries.insert(key, (owner, frame))),
            Some((first, other)) => {
                assert_eq!(*first, owner, "{}: {other:x?} and {frame:x?}", case.name);
                shared += 1;
            }
        }
        cores.insert(owner);
    }
    assert!(shared > 200, "{}: {shared}", case.name);
    assert!(cores.len() > 1, "{}: {cores:?}", case.name);
}

#[test]
fn programs_that_check_no_header_shard_and_odd_packets_meet_the_others() {
    for case in CASES {
        for nic in ["generic", "e810", "software"] {
            let Some(plan) = plan(case.lines, nic) else {
                return;
            };
            let o = object(&plan, "counts");
            let Some((of, fields)) = case.by else {
                assert_eq!(o.treatment, Treatment::Lock, "{}: {o:?}", case.name);
                continue;
            };
            assert_eq!(plan.strategy, Strategy::Shard, "{} {nic}: {o:?}", case.name);
            let found = kind(port(&plan, "*"), of);
            assert_eq!(found.fields, fields, "{} {nic}: {found:?}", case.name);
            assert_eq!(
                found.table_rank,
                if nic == "generic" {
                    7
                } else {
                    found.table_rank
                }
            );
            for seed in 0..3 {
                meet(&plan, case, seed);
            }
        }
    }
}
