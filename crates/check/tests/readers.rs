//! Handlers that read a packet several times with what `millrace/nf.h` has for it: every pair of readers, and every triple of those that
//! find most. Each walk over the headers leaves a few positions behind, which must not multiply.
//!
//! `MILLRACE_READERS=4` checks every combination of that many.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use millrace_check::{Options, check};
use millrace_turns::of_today;

use crate::refusals::compile;

/// A reader: its name, what it declares, how its result is used once all have read, and when it has found nothing. `#` is a number.
type Reader = (&'static str, &'static str, &'static str, &'static str);

const READERS: &[Reader] = &[
    (
        "transport",
        "struct transport t# = packet_transport(p);",
        "if (t#.protocol == PROTOCOL_UDP) n += ((struct udp *)t#.header)->length;",
        "!t#.protocol",
    ),
    (
        "find_flow",
        "struct flow f#; enum flow_kind k# = packet_find_flow(p, &f#);",
        "if (k# == FLOW_OWN) n += f#.ports;",
        "k# == FLOW_BAD",
    ),
    (
        "flow",
        "struct flow g#; _Bool b# = packet_flow(p, &g#);",
        "if (b#) n += g#.ports;",
        "!b#",
    ),
    (
        "tcp",
        "struct tcp *tcp# = packet_tcp(p);",
        "if (tcp# && tcp#->flags & TCP_SYN) n += 1;",
        "!tcp#",
    ),
    (
        "find_flow4",
        "struct flow4 h#; struct flow4_headers hh#; enum flow_kind l# = packet_find_flow4(p, &h#, &hh#);",
        "if (l# == FLOW_OWN) n += h#.ports;",
        "l# == FLOW_BAD",
    ),
    (
        "ipv4",
        "__be16 y#; __u32 at# = packet_network(p, &y#); struct ipv4 *ip# = at# && y# == htons(ETHERTYPE_IPV4) ? ipv4_at(p, at#) : 0;",
        "if (ip#) n += ip#->ttl;",
        "!ip#",
    ),
    (
        "ipv6",
        "__be16 z#; __u32 a# = packet_network(p, &z#); struct ipv6 *six# = a# && z# == htons(ETHERTYPE_IPV6) ? ipv6_at(p, a#) : 0;",
        "if (six#) n += six#->hop_limit;",
        "!six#",
    ),
];

/// The handler that reads with these, one after the other. Those that give up drop the packet as soon as one has found nothing.
fn source(readers: &[&Reader], gives_up: bool) -> String {
    let mut text =
        "#include <millrace/nf.h>\nPORTS(LAN, WAN);\nVECTOR(seen, __u64, .capacity = 4);\n\
        ON_PACKET(p)\n{\n\t__u64 n = 0, *v;\n"
            .to_owned();
    for (i, (_, declares, uses, nothing)) in readers.iter().enumerate() {
        let i = i.to_string();
        writeln!(text, "\t{}", declares.replace('#', &i)).unwrap();
        if gives_up {
            let nothing = nothing.replace('#', &i);
            writeln!(text, "\tif ({nothing}) return DROP_BECAUSE(nothing{i});").unwrap();
            writeln!(text, "\t{}", uses.replace('#', &i)).unwrap();
        }
    }
    for (i, (_, _, uses, _)) in readers.iter().enumerate().filter(|_| !gives_up) {
        writeln!(text, "\t{}", uses.replace('#', &i.to_string())).unwrap();
    }
    text + "\tv = vector_at(&seen, 0);\n\tif (v) *v += n;\n\treturn FORWARD(peer(p));\n}\n"
}

/// Every sequence of so many.
fn sequences(readers: &[Reader], many: usize) -> Vec<Vec<&Reader>> {
    let mut all = vec![Vec::new()];
    for _ in 0..many {
        let longer = all
            .into_iter()
            .flat_map(|s: Vec<&Reader>| readers.iter().map(move |r| [s.as_slice(), &[r]].concat()));
        all = longer.collect();
    }
    all
}

/// Why the checker refuses a handler, in a scratch folder; none if it does not. An error if there is no compiler.
fn refused(name: &str, text: &str, scratch: &Path) -> Result<Option<String>, ()> {
    let path = scratch.join(name).with_extension("c");
    std::fs::write(&path, text).unwrap();
    let object = compile(&path, scratch).ok_or(())?;
    let program = millrace_object::load_file(&object).unwrap();
    let answer = check(&program, &Options::default());
    Ok(answer.err().map(|why| format!("{name}: {why:?}\n{text}")))
}

#[test]
fn several_in_one_handler() {
    let cases: Vec<_> = match std::env::var("MILLRACE_READERS") {
        Ok(many) => sequences(READERS, many.parse().expect("a number")),
        Err(_) => {
            let all = [sequences(READERS, 2), sequences(&READERS[..3], 3)].concat();
            of_today("sequences of readers", all, 4)
        }
    };
    let scratch = tempfile::tempdir().unwrap();
    let next = AtomicUsize::new(0);
    let one = || -> Result<Vec<String>, ()> {
        let mut wrong = Vec::new();
        while let Some(readers) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            for gives_up in [false, true].into_iter().take(readers.len() - 1) {
                let names: Vec<&str> = readers.iter().map(|r| r.0).collect();
                let name = format!("{}_{gives_up}", names.join("_"));
                wrong.extend(refused(&name, &source(readers, gives_up), scratch.path())?);
            }
        }
        Ok(wrong)
    };
    let wrong = std::thread::scope(|scope| {
        let other = scope.spawn(one);
        let mine = one();
        [mine, other.join().unwrap()]
    });
    for each in wrong {
        match each {
            Ok(wrong) => assert!(
                wrong.is_empty(),
                "{} refused:\n{}",
                wrong.len(),
                wrong.join("\n")
            ),
            Err(()) => println!("skipped: no clang that compiles for BPF"),
        }
    }
}
