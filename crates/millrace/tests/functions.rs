//! Functions without state between Click configurations: as elements of one function they do what the row of all does, packet by packet.
//! The reference is Click's interpreter, in which each function runs as itself, in the interpreter of programs.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use millrace::Make;
use millrace::click::compare::{Both, Given};
use millrace::click::joined::Joined;
use millrace_chain::{Description, Function as Asked, What};
use millrace_click::function::{Base, Decided, End, Field, Guard};
use millrace_synth::function::{self, Function};
use millrace_synth::{Synthesis, emit, reference};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Filters in the style of public ones, and whether they become elements.
const FILTERS: [(&str, bool); 11] = [
    ("drop_udp_port", true),
    ("blocklist", true),
    ("icmp_only", true),
    // A write behind the IP header.
    ("port_redirect", false),
    ("ttl_decrement", true),
    ("vlan_check", true),
    // Bytes of the link header that are no constants.
    ("reflect", false),
    ("ipv6_drop", true),
    ("fragments_drop", true),
    ("martians", true),
    ("checked", true),
];

/// Rows of a test run; `MILLRACE_SYNTH_SEEDS` asks for more.
const ROWS: u64 = 3;
/// Packets of each, of those that paths name and of random ones.
const PATHS: usize = 400;
const RANDOM: usize = 3000;

fn source(name: &str) -> String {
    crate::of_repository(&format!("crates/millrace/tests/elements/{name}.c"))
}

fn element(name: &str, word: &str) -> millrace_chain::Element {
    millrace_chain::Element {
        name: name.into(),
        line: None,
        keys: Vec::new(),
        what: What::Function(Asked {
            word: word.into(),
            ..Asked::default()
        }),
    }
}

/// A function by its source, and why it is no element.
fn stateless(name: &str, word: &str) -> Result<(Synthesis, Arc<Function>), String> {
    let described = Description::default();
    let element = element(name, word);
    let What::Function(asked) = &element.what else {
        return Err("it is a guest".into());
    };
    millrace::click::function::of(&described, &element, asked)
}

/// Packets of all paths, random ones, and what others leave out: frames that end anywhere, options, fragments, tags, IPv6.
fn packets(of: &Synthesis, seed: u64) -> Vec<Given> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let made = reference::witnesses(of, PATHS).into_iter();
    let frames = made.chain(reference::random(of, seed).take(RANDOM));
    let changed = frames.map(|(port, mut frame)| {
        match rng.random_range(0..12) {
            0 => frame.truncate(rng.random_range(0..80)),
            1 if frame.len() > 14 => frame[14] = 0x40 | rng.random_range(0..16_u8),
            2 if frame.len() > 21 => {
                frame[20] = [0x20, 0x40, 0, 0x1f][rng.random_range(0..4_usize)];
                frame[21] = rng.random_range(0..3);
            }
            3 if frame.len() > 16 => {
                let id: u16 = [100, 200, 0x1064, 7][rng.random_range(0..4_usize)];
                let [a, b] = id.to_be_bytes();
                frame.splice(12..12, [0x81, 0, a, b]);
            }
            4 => {
                frame.resize(frame.len().max(60), 0);
                frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
                frame[20] = [58, 17, 6][rng.random_range(0..3_usize)];
                frame[54] = rng.random_range(130..140);
            }
            5 if frame.len() > 38 => {
                frame[23] = [1, 6, 17][rng.random_range(0..3_usize)];
                let port: u16 = [7, 53, 1023, 1024][rng.random_range(0..4_usize)];
                frame[36..38].copy_from_slice(&port.to_be_bytes());
            }
            _ => {}
        }
        (port, frame)
    });
    let given = changed.enumerate().map(|(number, (port, bytes))| Given {
        port,
        time: number as u64 * 1_000_000,
        bytes,
    });
    given.collect()
}

/// A synthesis, compiled, against its reference.
fn compared(of: &Synthesis, seed: u64, folder: &Path) -> millrace::click::compare::Compared {
    let path = folder.join("one.c");
    std::fs::write(&path, emit::lined(of)).unwrap();
    let found = millrace::find(path.to_str().unwrap()).unwrap();
    let function = found.load(&Make::default(), &mut |_| {}).unwrap();
    let mut both = Both::new(&function, of).unwrap();
    both.all(packets(of, seed).into_iter());
    both.found
}

#[test]
fn filters_in_the_style_of_public_ones_are_elements() {
    let folder = tempfile::tempdir().unwrap();
    for (name, fits) in FILTERS {
        let made = stateless(name, &source(name));
        let (of, _) = match (made, fits) {
            (Ok(made), true) => made,
            (Err(why), false) => {
                println!("{name}: {why}");
                continue;
            }
            (Ok(_), false) => panic!("{name} is an element"),
            (Err(why), true) => panic!("{name}: {why}"),
        };
        let found = compared(&of, 1, folder.path());
        assert_eq!(found.difference, None, "{name}");
        let [forwarded, other, _] = found.fates;
        assert!(
            forwarded > 0 && other + forwarded > 3000,
            "{name}: {found:?}"
        );
    }
}

#[test]
fn functions_of_the_repository_with_state_are_no_elements() {
    let of = |word: &str| stateless("f", &crate::of_repository(word)).map(|_| ());
    let why = of("nfs/firewall/firewall.c").unwrap_err();
    assert!(why.starts_with("it has state: "), "{why}");
    let why = of("nfs/dummy/dummy.c").unwrap_err();
    assert!(why.starts_with("its parameter "), "{why}");
    assert_eq!(of("nfs/nop/nop.c"), Ok(()));
}

#[test]
fn a_bound_that_is_one_off_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (_, own) = stateless("f", &source("drop_udp_port")).unwrap();
    let ports = ["0".to_owned(), "1".to_owned()];
    let files = || {
        std::rc::Rc::new(std::cell::RefCell::new(
            millrace_click::interpreter::Memory::default(),
        ))
    };
    let with = |decided: Decided| {
        let changed = Arc::new(own.with(decided));
        let of = function::synthesise("f", changed, &ports, files()).unwrap();
        compared(&of, 1, folder.path()).difference
    };
    assert_eq!(with((*own.decided).clone()), None);
    let off = |guard: &Guard| match guard {
        Guard::Within(
            field @ Field::Bits {
                base: Base::Upper(_),
                ..
            },
            ranges,
        ) => {
            let moved = ranges
                .iter()
                .map(|(low, high)| (low.saturating_add(1), high.saturating_add(1)));
            Guard::Within(*field, moved.collect())
        }
        other => other.clone(),
    };
    let difference = with(changed(&own.decided, &off)).unwrap();
    assert!(difference.contains("interpreter"), "{difference}");
    // One byte less of UDP's header.
    let short = |guard: &Guard| match guard {
        Guard::Room(at, bytes) => Guard::Room(*at, bytes - 1),
        other => other.clone(),
    };
    assert!(with(changed(&own.decided, &short)).is_some());
}

/// The same with the parts of its guards replaced.
fn changed(of: &Decided, part: &dyn Fn(&Guard) -> Guard) -> Decided {
    fn all(guard: &Guard, part: &dyn Fn(&Guard) -> Guard) -> Guard {
        let each = |parts: &[Guard]| parts.iter().map(|p| all(p, part)).collect::<Vec<_>>();
        match guard {
            Guard::If(parts) => {
                let [a, b, c] = &**parts;
                Guard::If(Arc::new([all(a, part), all(b, part), all(c, part)]))
            }
            Guard::All(parts) => Guard::All(each(parts).into()),
            Guard::Any(parts) => Guard::Any(each(parts).into()),
            other => part(other),
        }
    }
    let mut of = of.clone();
    for way in of.inputs.iter_mut().flatten() {
        way.guard = all(&way.guard, part);
    }
    of
}

/// A test of a packet in C; `e`, `ip` and `l4` (four bytes of the transport header) are there where it is asked.
fn test(rng: &mut ChaCha8Rng) -> String {
    let mut pick = |n: u32| rng.random_range(0..n);
    let address = ["0x0a000000", "0x08080800", "0xc0000200", "0x0a010000"][pick(4) as usize];
    let mask = ["0xff000000", "0xffffff00", "0xffffffff", "0xffff0000"][pick(4) as usize];
    let side = ["saddr", "daddr"][pick(2) as usize];
    let port = [53, 80, 1000, 1024, 8080][pick(5) as usize];
    let at = ["l4[0] << 8 | l4[1]", "l4[2] << 8 | l4[3]"][pick(2) as usize];
    match pick(12) {
        0 => format!("(bpf_ntohl(ip->{side}) & {mask}) == ({address} & {mask})"),
        1 => format!("bpf_ntohl(ip->{side}) >= {address}"),
        2 => format!("ip->{side} == bpf_htonl({address})"),
        3 => format!("ip->protocol == {}", [1, 6, 17][pick(3) as usize]),
        4 => format!("({at}) == {port}"),
        5 => format!(
            "({at}) >= {port} && ({at}) < {}",
            port + pick(3) as i32 * 100
        ),
        6 => "ip->frag_off & bpf_htons(0x1fff)".into(),
        7 => format!("ip->ttl < {}", 2 + pick(3)),
        8 => format!("ip->ihl > {}", 4 + pick(3)),
        9 => format!(
            "bpf_ntohs(ip->tot_len) {} {}",
            ["<", ">="][pick(2) as usize],
            20 + pick(80)
        ),
        10 => format!("(ip->tos & 0xfc) == {}", pick(4) * 4),
        _ => format!("end - data > {}", 40 + pick(80)),
    }
}

/// A filter of a few such tests; some lower the time to live.
fn filter(rng: &mut ChaCha8Rng) -> String {
    let mut text = String::from(
        "#include \"filter.h\"\nSEC(\"xdp\")\nint filter(struct xdp_md *ctx)\n{\n\
         void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;\n\
         struct iphdr *ip = ipv4(ctx);\n__u8 *l4;\n",
    );
    let verdict = |rng: &mut ChaCha8Rng| {
        ["XDP_DROP", "XDP_DROP", "onward(ctx)", "XDP_PASS"][rng.random_range(0..4_usize)]
    };
    let _ = writeln!(
        text,
        "if (!ip) return {};",
        ["XDP_DROP", "onward(ctx)"][rng.random_range(0..2_usize)]
    );
    if rng.random_range(0..2) == 0 {
        text.push_str("if (ip->version != 4 || ip->ihl < 5) return XDP_DROP;\n");
    }
    let _ = writeln!(
        text,
        "if ({}) return {};",
        test(rng)
            .replace("l4[", "data[")
            .replace("data[0]", "ip->tos")
            .replace("data[1]", "ip->ttl")
            .replace("data[2]", "ip->tos")
            .replace("data[3]", "ip->ttl"),
        verdict(rng)
    );
    let _ = writeln!(
        text,
        "l4 = (void *)ip + ip->ihl * 4;\nif ((void *)(l4 + 4) > end) return {};",
        verdict(rng)
    );
    for _ in 0..rng.random_range(1..4) {
        let _ = writeln!(text, "if ({}) return {};", test(rng), verdict(rng));
    }
    if rng.random_range(0..2) == 0 {
        text.push_str("if (ip->ttl <= 1) return XDP_DROP;\n{ __u32 c = ip->check; c += bpf_htons(0x0100);\nip->check = (__u16)(c + (c >= 0xffff)); ip->ttl--; }\n");
    }
    text.push_str("return onward(ctx);\n}\n");
    text
}

/// A configuration between two ports.
fn configuration(rng: &mut ChaCha8Rng, rewriters: &mut usize) -> String {
    let filter = [
        "IPFilter(deny udp && dst port 53, allow all)",
        "IPFilter(deny src net 10.1.0.0/16, allow tcp || udp, deny all)",
        "IPFilter(allow dst port > 60, allow icmp, deny all)",
        "DecIPTTL",
        "Null",
    ][rng.random_range(0..5_usize)];
    if *rewriters == 0 && rng.random_range(0..3) == 0 {
        *rewriters += 1;
        let pattern =
            ["pattern 192.0.2.1 1024-65535 - - 0 1", "keep 0 1"][rng.random_range(0..2_usize)];
        return format!(
            "rw :: IPRewriter({pattern}, drop);\n\
             FromDevice(in) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> {filter} -> [0] rw;\n\
             FromDevice(out) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [1] rw;\n\
             rw[0] -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(out);\n\
             rw[1] -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04) -> ToDevice(in);\n"
        );
    }
    format!(
        "FromDevice(in) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> {filter} -> Unstrip(14) -> ToDevice(out);\n\
         FromDevice(out) -> Classifier(12/0800) -> MarkIPHeader(14) -> {filter} -> ToDevice(in);\n"
    )
}

/// The text of all configurations of a chain.
fn chain_text(folder: &tempfile::TempDir, of: &Description) -> String {
    let words = of.elements.iter().filter_map(|e| match &e.what {
        What::Function(f) => Some(f.word.clone()),
        What::Guest(_) => None,
    });
    let read = |word: String| std::fs::read_to_string(folder.path().join(word)).unwrap();
    words.map(read).collect()
}

#[test]
fn random_rows_of_configurations_and_filters_do_what_their_functions_do() {
    let asked = std::env::var("MILLRACE_SYNTH_SEEDS").ok();
    let rows: u64 = asked.and_then(|s| s.parse().ok()).unwrap_or(ROWS);
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(
        source("filter").replace(".c", ".h"),
        folder.path().join("filter.h"),
    )
    .unwrap();
    let (mut fates, mut done, mut apart) = ([0; 3], 0, Vec::new());
    for seed in 0..rows {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut chain, mut rewriters) = (String::new(), 0);
        let count = rng.random_range(2..5);
        let click = rng.random_range(0..count);
        for n in 0..count {
            let (key, name, text) = match n == click || rng.random_range(0..3) == 0 {
                true => (
                    "click",
                    format!("r{seed}-{n}.click"),
                    configuration(&mut rng, &mut rewriters),
                ),
                false => ("nf", format!("r{seed}-{n}.c"), filter(&mut rng)),
            };
            std::fs::write(folder.path().join(&name), text).unwrap();
            let _ = writeln!(chain, "[[element]]\nname = \"e{n}\"\n{key} = \"{name}\"");
        }
        let file = folder.path().join("row.toml");
        std::fs::write(&file, &chain).unwrap();
        let described = millrace_chain::file::read(&file).unwrap();
        let joined = Joined::of(&described, true);
        apart.extend(joined.apart.iter().map(|a| (seed, a.why.clone())));
        let Some(group) = joined.groups.first() else {
            continue;
        };
        let found = group.found().unwrap();
        let function = found.load(&Make::default(), &mut |_| {});
        let function = function.unwrap_or_else(|e| panic!("seed {seed}: {e:?}"));
        let of = &group.synthesis;
        let mut both = Both::new(&function, of).unwrap();
        let text = chain_text(&folder, &described);
        // What of a flow is drawn, and what an input of answers knows, differs (docs/click.md): sessions go on with what was given.
        match of.flows.any() {
            true => both.sessions(seed, RANDOM),
            false => both.all(packets(of, seed).into_iter()),
        }
        assert_eq!(both.found.difference, None, "seed {seed}: {text}");
        for (all, one) in fates.iter_mut().zip(both.found.fates) {
            *all += one;
        }
        done += 1;
    }
    println!(
        "{done} of {rows} rows; forwarded, dropped, handed over: {fates:?}; apart: {apart:#?}"
    );
    assert!(
        done > 0 && fates[0] > 0 && fates[1] > 0,
        "{done}, {fates:?}, {apart:?}"
    );
}

#[test]
fn what_a_function_says_of_drops_is_kept() {
    let (of, own) = stateless("f", &source("checked")).unwrap();
    let ways = own.decided.inputs.iter().flatten();
    let reasons = ways.filter_map(|way| match &way.end {
        End::Drop(why) => why.clone(),
        End::Output(_) => None,
    });
    let mut reasons: Vec<String> = reasons.collect();
    reasons.sort();
    reasons.dedup();
    assert_eq!(reasons, ["bad_header", "not_asked_for", "short_frame"]);
    let text = emit::c(&of);
    for reason in reasons {
        assert!(text.contains(&format!("DROP_BECAUSE({reason})")), "{text}");
    }
}
