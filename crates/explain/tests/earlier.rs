//! By which earlier packet an entry is as it is, which packet is meant, what a drop lacked, and bad input.

use std::path::Path;
use std::sync::Arc;

use millrace_dataplane::module::Module;
use millrace_explain::Comments;
use millrace_explain::{
    Access, Case, ExplainError, Explanation, Filter, Part, Which, comments, explain, text,
    write_pcapng,
};
use millrace_topology::Topology;
use millrace_traffic::language;
use millrace_verify::{Given, Packet};

use crate::common::Built;

const SECOND: u64 = 1_000_000_000;

fn udp(number: u64, port: u32, time: u64, from: (&str, u16), to: (&str, u16)) -> Packet {
    let text = format!(
        "eth 02:00:00:00:00:01 > 02:00:00:00:00:02 / ip {} > {} / udp {} > {}",
        from.0, to.0, from.1, to.1
    );
    let frame = language::packet(&text).unwrap();
    Packet {
        number,
        port,
        time,
        wire: frame.len() as u32,
        frame,
    }
}

const INSIDE: (&str, u16) = ("10.0.0.1", 1000);
const OUTSIDE: (&str, u16) = ("192.0.2.1", 53);

/// A flow from the LAN, its answer, a refresh, and packets of nobody.
fn talk() -> Given {
    let second = |n| 1_000_000 * SECOND + n * SECOND;
    Given(vec![
        udp(0, 1, second(0), OUTSIDE, INSIDE),
        udp(1, 0, second(1), INSIDE, OUTSIDE),
        udp(2, 0, second(2), ("10.0.0.9", 9), OUTSIDE),
        udp(3, 0, second(3), INSIDE, OUTSIDE),
        udp(4, 1, second(5), OUTSIDE, INSIDE),
        udp(5, 1, second(90), OUTSIDE, INSIDE),
    ])
}

fn explained(
    part: Part<'_>,
    trace: &mut Given,
    which: &Which,
) -> Result<Explanation, ExplainError> {
    let ports = part.ports.clone();
    let parts = [part];
    let topology = Topology::alone(ports.len());
    let case = Case {
        parts: &parts,
        topology: &topology,
        ports: &ports,
        models: None,
    };
    explain(&case, trace, which).map(|e| e.0)
}

fn access<'e>(e: &'e Explanation, operation: &str) -> &'e Access {
    let mut all = e.steps.iter().filter_map(|s| s.access.as_ref());
    all.find(|a| a.operation == operation)
        .unwrap_or_else(|| panic!("{operation}: {e:#?}"))
}

#[test]
fn an_entry_is_of_the_packet_that_put_it_there() {
    let built = Built::named("firewall");
    let e = explained(built.part(), &mut talk(), &Which::Number(4)).unwrap();
    assert!(e.agrees, "{:?}", e.notes);
    assert_eq!(e.verdict, "forwarded to LAN");
    let refresh = access(&e, "map_refresh");
    assert_eq!(
        (refresh.object.as_str(), refresh.found),
        ("flows", Some(true))
    );
    let key = refresh.key.as_deref().unwrap();
    assert!(
        key.contains("10.0.0.1") && key.contains("192.0.2.1") && !key.contains("10.0.0.9"),
        "{key}"
    );
    let by = refresh.by.as_ref().unwrap();
    assert_eq!((by.packet, by.before_ns), (1, 4 * SECOND));
    assert!(
        by.line.as_deref().unwrap().starts_with("firewall.c:"),
        "{by:?}"
    );
    let refreshed = refresh.refreshed.as_ref().unwrap();
    assert_eq!((refreshed.packet, refreshed.before_ns), (3, 2 * SECOND));
    // The line of the refresh is another one than that of the put.
    assert_ne!(refreshed.line, by.line);
}

#[test]
fn a_drop_says_what_it_lacked() {
    let built = Built::named("firewall");
    for number in [0, 5] {
        let e = explained(built.part(), &mut talk(), &Which::Number(number)).unwrap();
        assert_eq!(
            (e.verdict.as_str(), e.reason.as_deref()),
            ("dropped: no_flow", Some("no_flow"))
        );
        assert_eq!(access(&e, "map_refresh").found, Some(false));
        let nearest = e.nearest.as_ref().unwrap();
        assert_eq!(nearest.verdict, "forward to LAN");
        let conditions: Vec<&str> = nearest
            .differs
            .iter()
            .map(|d| d.condition.as_str())
            .collect();
        let [one] = conditions.as_slice() else {
            panic!("{conditions:?}")
        };
        assert!(
            one.starts_with("flows[") && one.ends_with("] there"),
            "{one}"
        );
        assert!(one.contains("ip.src") && one.contains("udp.dport"), "{one}");
    }
    // What passes lacks nothing.
    let e = explained(built.part(), &mut talk(), &Which::Number(1)).unwrap();
    assert!(e.nearest.is_none());
}

#[test]
fn decisions_have_the_values_that_made_them() {
    let built = Built::named("firewall");
    let e = explained(built.part(), &mut talk(), &Which::Number(0)).unwrap();
    let conditions: Vec<&str> = e
        .steps
        .iter()
        .filter_map(|s| s.condition.as_deref())
        .collect();
    let all = conditions.join(" and ");
    for part in ["eth.type == 0x0800", "ip.protocol == 17", "port == WAN"] {
        assert!(all.contains(part), "{part} in {all}");
    }
    let values: Vec<(&str, &str)> = (e.steps.iter())
        .flat_map(|s| &s.values)
        .map(|v| (v.name.as_str(), v.value.as_str()))
        .collect();
    assert!(
        values.contains(&("port", "WAN")) && values.contains(&("ip.protocol", "17")),
        "{values:?}"
    );
    // No comparison of registers is left.
    let raw = conditions
        .iter()
        .flat_map(|c| c.split(" and "))
        .find(|c| c.starts_with('r') && c.as_bytes()[1].is_ascii_digit());
    assert_eq!(raw, None);
}

#[test]
fn a_rewrite_is_told_field_by_field() {
    let built = Built::named("nat");
    let e = explained(built.part(), &mut talk(), &Which::Number(1)).unwrap();
    assert!(e.agrees, "{:?}", e.notes);
    let of = |field: &str| {
        e.rewrites
            .iter()
            .find(|r| r.field == field)
            .unwrap_or_else(|| panic!("{field}: {:?}", e.rewrites))
    };
    assert_eq!(of("ip.src").from, "10.0.0.1");
    assert_ne!(of("ip.src").to, "10.0.0.1");
    assert_eq!(of("udp.sport").from, "1000");
    assert!(
        of("ip.checksum")
            .of
            .as_deref()
            .unwrap()
            .contains("adjusted"),
        "{:?}",
        of("ip.checksum")
    );
}

#[test]
fn packets_are_found_by_a_filter() {
    let built = Built::named("firewall");
    let filter = |text: &str| Filter::parse(text).unwrap();
    let number =
        |which: Which| explained(built.part(), &mut talk(), &which).map(|e| e.packet.number);
    assert_eq!(number(Which::First(filter("drop no_flow"))).unwrap(), 0);
    assert_eq!(number(Which::Last(filter("drop no_flow"))).unwrap(), 5);
    assert_eq!(
        number(Which::Nth(filter("src 10.0.0.1 and in lan"), 2)).unwrap(),
        3
    );
    assert_eq!(
        number(Which::First(filter("forward wan and not src 10.0.0.1"))).unwrap(),
        2
    );
    for (which, says) in [
        (Which::First(filter("tcp")), "none of the 6 packets fits"),
        (
            Which::Last(filter("drop table_full")),
            "none of the 6 packets fits",
        ),
        (
            Which::Nth(filter("udp"), 7),
            "6 of the 6 packets fit, and number 7 of them was asked for",
        ),
        (Which::Number(6), "there is no packet 6: the trace has 6"),
        (
            Which::Number(u64::MAX),
            "there is no packet 18446744073709551615: the trace has 6",
        ),
    ] {
        let error = number(which).unwrap_err();
        assert!(matches!(error, ExplainError::NoPacket { .. }), "{error:?}");
        assert_eq!(error.to_string(), says);
    }
    let error = explained(built.part(), &mut Given(Vec::new()), &Which::Number(0)).unwrap_err();
    assert_eq!(error.to_string(), "there is no packet 0: the trace has 0");
}

#[test]
fn a_program_without_lines_is_told_by_instructions() {
    let mut built = Built::named("firewall");
    for function in &mut built.program.functions {
        function.lines.fill(None);
    }
    let e = explained(built.part(), &mut talk(), &Which::Number(0)).unwrap();
    assert_eq!(e.verdict, "dropped: no_flow");
    assert!(e.lines.is_empty() && e.steps.iter().all(|s| s.file.is_none() && s.line.is_none()));
    assert!(
        e.notes.iter().any(|n| n.contains("no line information")),
        "{:?}",
        e.notes
    );
    assert_eq!(access(&e, "map_refresh").found, Some(false));
    assert!(text(&e, false).contains("(no line)"));
}

#[test]
fn code_that_does_otherwise_is_noticed() {
    // Code of another function under this one's program.
    let built = Built::named("firewall");
    let source =
        std::fs::read_to_string(crate::common::root().join("nfs/firewall/firewall.c")).unwrap();
    for (right, wrong) in [
        // another fate, and another state
        (
            "return DROP_BECAUSE(no_flow);\n\treturn map_put",
            "return FORWARD(peer(p));\n\treturn map_put",
        ),
        (
            "return map_put(&flows, &f, &(struct session){}) ?",
            "return map_get(&flows, &f) == 0 ?",
        ),
    ] {
        assert!(source.contains(right));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("firewall.c");
        std::fs::write(&file, source.replace(right, wrong)).unwrap();
        let other = Built::of(Path::new(&file), &[], &[]);
        let module: Arc<Module> = other.module.clone();
        let which = if right.contains("map_put(") { 1 } else { 0 };
        let e = explained(built.with(module), &mut talk(), &Which::Number(which)).unwrap();
        assert!(
            !e.agrees && e.notes.iter().any(|n| n.contains("please report it")),
            "{wrong}: {:?}",
            e.notes
        );
    }
}

#[test]
fn a_capture_has_the_lines_as_comments() {
    let built = Built::named("firewall");
    let e = explained(built.part(), &mut talk(), &Which::Number(0)).unwrap();
    let lines = comments(&e);
    assert!(
        lines
            .iter()
            .any(|l| l.starts_with("firewall.c:") && l.contains("map_refresh flows[")),
        "{lines:#?}"
    );
    let packet = talk().0.remove(0);
    let bytes = write_pcapng(&[Comments {
        interface: "WAN",
        time: packet.time,
        wire: packet.wire,
        frame: &packet.frame,
        lines: &lines,
    }]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.pcapng");
    std::fs::write(&path, &bytes).unwrap();
    // Our own reader takes it.
    let mut reader = millrace_traffic::capture::Reader::open(&path).unwrap();
    let record = reader.next().unwrap().unwrap();
    assert_eq!(
        (record.time_ns, record.data),
        (packet.time, packet.frame.as_slice())
    );
    // And so does Wireshark's.
    let shown = std::process::Command::new("tshark")
        .args([
            "-r",
            path.to_str().unwrap(),
            "-T",
            "fields",
            "-e",
            "frame.comment",
            "-E",
            "separator=/t",
        ])
        .output();
    match shown {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                said.contains("map_refresh flows[") && said.contains("dropped: no_flow"),
                "{said}"
            );
        }
        Err(_) => println!("skipped: no tshark to show the comments"),
    }
}
