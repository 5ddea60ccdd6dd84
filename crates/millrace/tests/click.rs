//! Chains of the repository: the function that each becomes does what the reference interpreter does.

use std::path::Path;

use millrace::click::compare::{Both, Given};
use millrace::click::joined::Joined;
use millrace::packet_test::execute;
use millrace::{Asked, Make, Source};
use millrace_synth::{Options, Synthesis, reference};
use millrace_traffic::language::Case;
use millrace_turns::{its_turn, of_today};

use super::of_repository;

/// Packets of the comparison of a chain.
const PACKETS: usize = 4000;

fn compared(chain: &str) -> [u64; 3] {
    let (file, options) = chain.split_once(':').unwrap_or((chain, ""));
    let path = of_repository(&format!("chains/{file}.click"));
    let word = match options {
        "" => path,
        options => format!("{path}:{options}"),
    };
    let (path, options) = millrace::click::named(&word).unwrap();
    let of = millrace::click::read(Path::new(path), false, options).unwrap();
    let function = millrace::find(&word).unwrap();
    let function = function.load(&Make::default(), &mut |_| {}).unwrap();
    let mut both = Both::new(&function, &of).unwrap();
    if of.flows.any() {
        both.sessions(7, PACKETS);
    } else {
        let made = reference::witnesses(&of, 500).into_iter();
        let all = made.chain(reference::random(&of, 7).take(PACKETS));
        both.all(all.enumerate().map(|(number, (port, bytes))| Given {
            port,
            time: number as u64,
            bytes,
        }));
    }
    assert_eq!(both.found.difference, None, "{chain}");
    both.found.fates
}

#[test]
fn chains_do_what_the_interpreter_does() {
    let chains = [
        "routers/routers-1",
        "routers/routers-10",
        "firewall-router/firewall-router",
        "napts/napts-1",
        "napts/napts-10",
        "napts/zones",
        "example/example",
        "acl/acl-251",
        "acl/acl-8550",
        "acl/acl-251:lists",
    ];
    for chain in of_today("chains against the interpreter", chains, 3) {
        let [forwarded, dropped, _] = compared(chain);
        assert!(
            forwarded > 20 && dropped > 50,
            "{chain}: {forwarded} forwarded, {dropped} dropped"
        );
    }
}

/// Packets end at any of k NAPTs, their time to live from 1 to k + 1: the merged function does what k interpreters do.
#[test]
fn packets_may_end_at_any_of_k_napts() {
    let rows = [(1_u8, ""), (2, ""), (10, ""), (1, EARLY), (10, EARLY)];
    for (hops, early) in of_today("rows of NAPTs in which packets end", rows, 3) {
        let path = of_repository(&format!("chains/napts/napts-{hops}.click"));
        dies(&path, early, hops, 3 * PACKETS, None);
    }
}

/// Flows have packets in one direction only for longer than any age: they live on, and so do the words that answers come to. Ages are those
/// of Click, a day for TCP.
#[test]
fn a_direction_may_be_quiet_for_longer_than_the_longest_age() {
    let rows = [(1_u8, ""), (2, ""), (2, EARLY)];
    for (hops, early) in of_today("rows of NAPTs with a quiet direction", rows, 3) {
        let path = of_repository(&format!("chains/napts/napts-{hops}.click"));
        dies(&path, early, hops, PACKETS, Some(1800));
    }
}

/// The same, where ages differ by hop: the middle one knows flows for the shortest time, the last one ages TCP as UDP.
#[test]
fn ages_may_differ_by_napt() {
    if !its_turn("ages that differ by NAPT", 1, 2) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ages.click");
    let napt = |n: u8, class: &str, ages: &str| {
        format!(
            "rw{n} :: {class}(pattern 192.0.2.{n} 1024-65535 - - 0 1, drop, {ages});\n\
             rw{n}[0] -> DecIPTTL -> o{n} :: Null; rw{n}[1] -> DecIPTTL -> i{n} :: Null;\n"
        )
    };
    let text = [
        napt(1, "IPRewriter", "TCP_TIMEOUT 400, TCP_DONE_TIMEOUT 300"),
        napt(
            2,
            "IPRewriter",
            "TCP_TIMEOUT 245, TCP_NODATA_TIMEOUT 100, UDP_TIMEOUT 20",
        ),
        napt(3, "UDPRewriter", "UDP_TIMEOUT 250"),
        "FromDevice(in) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [0] rw1;\n\
         o1 -> [0] rw2; o2 -> [0] rw3; o3 -> Unstrip(14) -> ToDevice(out);\n\
         FromDevice(out) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> [1] rw3;\n\
         i3 -> [1] rw2; i2 -> [1] rw1; i1 -> Unstrip(14) -> ToDevice(in);\n"
            .to_owned(),
    ]
    .concat();
    std::fs::write(&path, text).unwrap();
    for early in ["", EARLY] {
        dies(path.to_str().unwrap(), early, 3, 3 * PACKETS, None);
        dies(path.to_str().unwrap(), early, 3, PACKETS, Some(15));
    }
}

/// Gives packets with a time to live from 1 to one more than there are hops; of few flows, where packets are as many seconds `apart`.
fn dies(path: &str, early: &str, hops: u8, packets: usize, apart: Option<u64>) {
    let options = Options {
        early_discard: !early.is_empty(),
        ..Options::default()
    };
    let of = millrace::click::read(Path::new(path), false, options).unwrap();
    let found = millrace::find(&format!("{path}{early}")).unwrap();
    let function = found.load(&Make::default(), &mut |_| {}).unwrap();
    let mut both = Both::new(&function, &of).unwrap();
    match apart {
        None => both.dying(u64::from(hops), packets, hops + 1),
        Some(apart) => both.apart(u64::from(hops), packets, hops + 1, apart * 1_000_000_000),
    }
    let found = &both.found;
    println!("{path}{early}: {:?}", found.fates);
    assert_eq!(found.difference, None, "{path}{early}");
    assert_eq!(found.relaxed, 0, "{path}{early}");
    assert!(
        found.fates[0] > packets as u64 / 12,
        "{path}{early}: {:?}",
        found.fates
    );
}

/// The function of --early-discard.
const EARLY: &str = ":early-discard";

/// Packet tests of a chain, `chains/FOLDER/tests/NAME/*.pkt`.
#[test]
fn packet_tests_of_chains_pass() {
    let mut run = 0;
    for folder in ["acl", "example", "firewall-router", "napts", "routers"] {
        let tests = of_repository(&format!("chains/{folder}/tests"));
        for of in std::fs::read_dir(&tests).unwrap().flatten() {
            let name = of.file_name().into_string().unwrap();
            // The first and the last of those that differ by a number: `millrace test` runs the others.
            let number = name.rsplit_once('-').and_then(|n| n.1.parse::<u32>().ok());
            if number.is_some_and(|n| ![0, 1, 10, 251].contains(&n)) {
                continue;
            }
            let path = of_repository(&format!("chains/{folder}/{name}.click"));
            let found = millrace::find(&path).unwrap();
            let function = found.load(&Make::default(), &mut |_| {}).unwrap();
            for case in std::fs::read_dir(of.path()).unwrap().flatten() {
                let text = std::fs::read_to_string(case.path()).unwrap();
                let case_name = case.path().display().to_string();
                let parsed = Case::parse(&case_name, &text).unwrap();
                for burst in [1, 32] {
                    execute(&function, &parsed, &[], burst)
                        .unwrap_or_else(|e| panic!("{case_name}:{}: {}", e.line, e.message));
                }
                run += 1;
            }
        }
    }
    assert!(run > 15, "{run} cases");
}

#[test]
fn nested_napts_shard_in_the_lines_of_their_configuration() {
    if !its_turn("nested NAPTs in parts", 0, 2) {
        return;
    }
    let path = of_repository("chains/napts/napts-10.click");
    let found = millrace::find(&path).unwrap();
    let make = Make::default();
    let written = found.read(&make).unwrap();
    let proved = written.check(make.begin()).unwrap();
    let asked = Asked {
        cores: 16,
        ..Asked::default()
    };
    let within = (millrace::model::SECONDS, make.begin());
    let mut model = proved.model_for(asked.purpose(), within, &mut || {});
    let plan = proved
        .arrange(&mut model, &asked)
        .unwrap()
        .several(16)
        .unwrap();
    let plan = plan.plan.as_ref().unwrap();
    for object in &plan.objects {
        assert_eq!(
            object.treatment,
            millrace::Treatment::Shard,
            "{}",
            object.name
        );
    }
}

#[test]
fn what_cannot_be_synthesised_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.click");
    let text = "FromDevice(a) -> c :: Counter(COUNT_CALL 3 stop) -> ToDevice(a);\n\
                InfiniteSource -> Discard;\n";
    std::fs::write(&path, text).unwrap();
    let error = millrace::find(path.to_str().unwrap()).unwrap_err();
    let detail = error.detail.unwrap();
    assert!(
        detail.contains("made.click:1:18: c :: Counter cannot be synthesised"),
        "{detail}"
    );
}

/// Click configurations of a chain file are one function, connected as it says: the row of the example, whose functions have three ports.
#[test]
fn click_configurations_of_a_chain_file_are_one_function() {
    let found = millrace::find(&of_repository("chains/example/row.toml")).unwrap();
    let written = found.read(&Make::default()).unwrap();
    let program = &written.program;
    assert_eq!(program.name, "napt+firewall+balancer");
    assert_eq!(program.ports, ["inside", "domain1", "domain0"]);
    let names: Vec<&str> = program.objects.iter().map(|o| o.name.as_str()).collect();
    // One map of flows, as in example.click.
    let flows = names.iter().filter(|n| n.contains("flows"));
    assert_eq!(flows.count(), 1, "{names:?}");
    // Its slow path is named by element.
    let handed = found.handed();
    assert!(
        handed
            .iter()
            .any(|(element, _)| element.starts_with("napt/IPFragmenter")),
        "{handed:?}"
    );
}

/// What the file gives its functions is theirs in the linked program, and what has no model is refused in its line.
#[test]
fn a_chain_file_gives_its_functions_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edge.toml");
    let nf = |name: &str| of_repository(&format!("nfs/{name}"));
    let file = format!(
        "[[element]]\nname = \"fw\"\nnf = \"{}\"\ncapacity = {{ flows = 1000 }}\n[[element]]\nname = \"up\"\nnf = \"{}\"\n",
        nf("firewall"),
        nf("policer")
    );
    std::fs::write(&path, &file).unwrap();
    let found = millrace::find(path.to_str().unwrap()).unwrap();
    let written = found.read(&Make::default()).unwrap();
    let flows = written
        .program
        .objects
        .iter()
        .find(|o| o.name == "fw:flows");
    assert_eq!(flows.map(|o| o.capacity), Some(1000));

    std::fs::write(&path, format!("{file}[[element]]\nguest = \"cat\"\n")).unwrap();
    let why = millrace::find(path.to_str().unwrap()).unwrap_err();
    assert!(
        why.what.contains("edge.toml:9") && why.what.contains("guest"),
        "{}",
        why.what
    );
}

/// Ten routers in ten configurations are the function that ten routers in one are: as many tests, and writes of the last alone.
#[test]
fn ten_files_are_as_large_a_function_as_one() {
    let of = |text: &str| of_repository(&format!("chains/routers/{text}"));
    let row = millrace_chain::file::read(Path::new(&of("row-10.toml"))).unwrap();
    let joined = Joined::of(&row, false);
    assert!(joined.apart.is_empty(), "{:?}", joined.apart);
    let [group] = joined.groups.as_slice() else {
        panic!("{} groups", joined.groups.len());
    };
    let whole = Path::new(&of("routers-10.click")).to_owned();
    let whole = millrace::click::read(&whole, false, Options::default()).unwrap();
    let nodes = |s: &Synthesis| s.store.reachable(s.root).len();
    assert_eq!(group.synthesis.ports, whole.ports);
    assert_eq!(nodes(&group.synthesis), nodes(&whole));
    // Lines are those of the file of each element.
    let c = millrace_synth::emit::lined(&group.synthesis);
    let lines = c.lines().filter(|l| l.starts_with("#line "));
    assert!(lines.clone().all(|l| l.contains("router")), "{c}");
    assert!(lines.count() > 0);
    // The function of some of them, from the file or from words.
    let some = millrace::find(&format!("{}:r2+r3", of("row-10.toml"))).unwrap();
    let file = of("routers-1.click");
    let words = millrace::find(&format!("{file}+{file}")).unwrap();
    for found in [some, words] {
        assert!(matches!(found.source, Source::C(_)), "{:?}", found.source);
        let program = found.read(&Make::default()).unwrap().program;
        assert_eq!(program.ports, ["inside", "outside"]);
    }
}

/// An inspector of requests, as courses have it: what a checked packet carries is read where it is, whatever the frame has behind it.
const INSPECTOR: &str = "
FromDevice(a) -> Print(came) -> CheckIPHeader(14) -> p :: IPClassifier(tcp dst port 80, -);
p[0] -> m :: Classifier(66/505554, 66/504f5354, 66/474554, -);
m[0] -> s :: Search(\"secret\") -> UnstripAnno -> ToIPSummaryDump(seen) -> ToDevice(b); s[1] -> Discard;
m[1] -> Queue -> ToDevice(c); m[2] -> CheckLength(100) -> ToDevice(d); m[3] -> Discard;
p[1] -> StoreEtherAddress(2:0:0:0:0:9, src) -> IPPrint(other) -> ToDevice(e);
FromDevice(b) -> HostEtherFilter(2:0:0:0:0:1) -> ToDevice(a);
Script(print came)
DriverManager(print >report \"$(m.count)\", pause)
";

/// Of whoever looks at a configuration, and whoever runs its function, no file is written, whatever its elements name.
#[test]
fn what_packets_carry_is_inspected_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inspector.click");
    std::fs::write(&path, INSPECTOR).unwrap();
    for name in ["seen", "report"] {
        std::fs::write(folder.path().join(name), "of somebody").unwrap();
    }
    let of = millrace::click::read(&path, false, Options::default()).unwrap();
    let quiet = of.quiet().len();
    assert_eq!(
        quiet, 5,
        "Print, IPPrint, ToIPSummaryDump, Script, DriverManager"
    );
    let found = millrace::find(path.to_str().unwrap()).unwrap();
    let function = found.load(&Make::default(), &mut |_| {}).unwrap();
    let mut both = Both::new(&function, &of).unwrap();
    let made = reference::witnesses(&of, 500).into_iter();
    let secret = |text: &str| {
        let mut frame = vec![0; 14];
        frame.splice(12..14, [8, 0]);
        let mut header = vec![
            0x45, 0, 0, 100, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        let sum = millrace_wire::checksum::Sum::default()
            .bytes(&header)
            .checksum();
        header.splice(10..12, sum.to_be_bytes());
        frame.extend(header);
        frame.extend([
            4, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x10, 0, 0, 0, 0, 0, 0,
        ]);
        frame.extend([1; 12]);
        frame.extend_from_slice(text.as_bytes());
        frame.resize(114, 0);
        (0, frame)
    };
    let puts = ["PUT /secret", "PUT /other", "POST /secret"].map(secret);
    let all = made
        .chain(puts)
        .chain(reference::random(&of, 7).take(PACKETS));
    both.all(all.enumerate().map(|(number, (port, bytes))| Given {
        port,
        time: number as u64,
        bytes,
    }));
    assert_eq!(both.found.difference, None);
    let [forwarded, dropped, handed] = both.found.fates;
    assert!(
        forwarded > 20 && dropped > 50 && handed > 1,
        "{:?}",
        both.found.fates
    );
    for name in ["seen", "report"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(text, "of somebody", "{name}");
    }
}
