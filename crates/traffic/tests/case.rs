//! Packet-test cases.

use millrace_traffic::language::{Action, Case, Fate, Port, Step, packet};

fn steps(text: &str) -> Vec<Step> {
    let case = Case::parse("x.pkt", text).unwrap_or_else(|error| panic!("{error}"));
    case.steps().map(|step| step.unwrap()).collect()
}

#[test]
fn the_example_of_the_docs() {
    let text = "\
# A WAN packet that answers a LAN flow passes; a stranger's does not.
set timeout=60
LAN: eth / ip 10.0.0.1 > 192.0.2.1 / tcp 1234 > 80 syn
  -> WAN
after 100ms
WAN: eth / ip 192.0.2.1 > 10.0.0.1 / tcp 80 > 1234 syn ack
  -> LAN
WAN: eth / ip 192.0.2.9 > 10.0.0.1 / tcp 80 > 1234 syn ack
  -> drop no_flow
state flows = 1
";
    let case = Case::parse("x.pkt", text).unwrap();
    assert_eq!(
        case.title(),
        "A WAN packet that answers a LAN flow passes; a stranger's does not."
    );
    let setting = &case.settings()[0];
    assert_eq!(
        (setting.line, &*setting.name, &*setting.value),
        (2, "timeout", "60")
    );
    let steps = steps(text);
    assert_eq!(steps.len(), 4);
    let times: Vec<_> = steps.iter().map(|step| (step.line, step.time_ns)).collect();
    assert_eq!(
        times,
        [
            (3, 0),
            (6, 100_000_000),
            (8, 100_000_000),
            (10, 100_000_000)
        ]
    );
    let Action::Packet {
        port,
        bytes,
        expectation,
    } = &steps[0].action
    else {
        panic!()
    };
    assert_eq!(*port, Port::Name("LAN".into()));
    assert_eq!(
        *bytes,
        packet("eth / ip 10.0.0.1 > 192.0.2.1 / tcp 1234 > 80 syn").unwrap()
    );
    let expectation = expectation.as_ref().unwrap();
    assert_eq!(expectation.line, 4);
    assert_eq!(
        expectation.fate,
        Fate::Forward(Port::Name("WAN".into()), None)
    );
    let Action::Packet { expectation, .. } = &steps[2].action else {
        panic!()
    };
    assert_eq!(
        expectation.as_ref().unwrap().fate,
        Fate::Drop(Some("no_flow".into()))
    );
    assert_eq!(
        steps[3].action,
        Action::State {
            object: "flows".into(),
            count: 1
        }
    );
}

#[test]
fn every_fate() {
    let text = "\
0: eth
-> 1: eth / payload 01 # a comment
0: eth
-> drop
0: eth
-> flood
0: eth
-> pass
0: eth

# between a packet and its arrow
-> consume
0: eth
-> abort
0: eth
records events=0x10
";
    let fates: Vec<_> = steps(text)
        .into_iter()
        .filter_map(|step| match step.action {
            Action::Packet { expectation, .. } => Some(expectation.map(|e| e.fate)),
            _ => None,
        })
        .collect();
    let changed = packet("eth / payload 01").unwrap();
    assert_eq!(
        fates,
        [
            Some(Fate::Forward(Port::Number(1), Some(changed))),
            Some(Fate::Drop(None)),
            Some(Fate::Flood),
            Some(Fate::Pass),
            Some(Fate::Consume),
            Some(Fate::Abort),
            None,
        ]
    );
}

#[test]
fn the_clock() {
    let times = |text: &str| {
        steps(text)
            .iter()
            .map(|step| step.time_ns)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        times(
            "0: eth\nafter 1\n0: eth\nat 2.5s\nstate x=0\nafter 1501ms\nat 2501ms\n0: eth\nafter 1ns\n0: eth\nafter 20us\n0: eth"
        ),
        [
            0,
            1_000_000_000,
            2_500_000_000,
            2_501_000_000,
            2_501_000_001,
            2_501_020_001
        ]
    );
    assert_eq!(times("at 0.000000001\n0: eth\nat 1.5us\n0: eth"), [1, 1500]);
}

#[test]
fn rounds_and_sums() {
    let text = "\
repeat 300
  LAN: eth / ip 10.0.$(i/256).$(i % 256) > 192.0.2.1 / udp $(1000 + i*2) > $i
    -> WAN
  after 1ms
end
state flows = 300
";
    let steps = steps(text);
    assert_eq!(steps.len(), 301);
    let Action::Packet { bytes, .. } = &steps[299].action else {
        panic!()
    };
    let expected = packet("eth / ip 10.0.1.43 > 192.0.2.1 / udp 1598 > 299").unwrap();
    assert_eq!(*bytes, expected);
    assert_eq!(steps[299].round, Some(299));
    assert_eq!(steps[299].time_ns, 299_000_000);
    assert_eq!(steps[300].time_ns, 300_000_000);
    assert_eq!(steps[300].round, None);
}

#[test]
fn entries_and_ports() {
    let case = Case::parse(
        "x.pkt",
        "ports 8\nrepeat 2\nmap flows 10.0.0.$i be16:80 = u8:1 zeros:3\nend",
    )
    .unwrap();
    assert_eq!(case.ports().map(|p| (p.line, p.count)), Some((1, 8)));
    let last = case.steps().last().unwrap().unwrap();
    assert_eq!(
        last.action,
        Action::Map {
            object: "flows".into(),
            key: "10.0.0.1 be16:80".into(),
            value: "u8:1 zeros:3".into(),
        }
    );
    assert_eq!(Case::parse("x.pkt", "0: eth").unwrap().ports(), None);
}

#[test]
fn errors_say_where_and_what() {
    for (text, line, column, part) in [
        ("LAN: eth / ipx", 1, 12, "a layer: vlan, ip"),
        ("LAN eth", 1, 1, "a statement"),
        ("LAN:eth", 1, 1, "a statement"),
        ("# t\n\n-> WAN", 3, 1, "without a packet"),
        ("0: eth\n-> WAN\n-> LAN", 3, 1, "without a packet"),
        ("0: eth\n-> drop a b", 2, 11, "the end of the line"),
        ("0: eth\n->", 2, 3, "a port"),
        ("0: eth\n-> WAN eth", 2, 8, "the end of the line"),
        ("0: eth\n-> WAN: eth / x", 2, 15, "a layer"),
        ("0: eth\nset a=1", 2, 1, "before the first packet"),
        ("set a", 1, 5, "NAME=VALUE"),
        ("set a = b c", 1, 5, "NAME=VALUE"),
        ("state flows 1", 1, 7, "OBJECT = N"),
        ("map stations 1", 1, 5, "OBJECT KEY = VALUE"),
        ("map stations = 1", 1, 5, "OBJECT KEY = VALUE"),
        ("map stations 1 =", 1, 5, "OBJECT KEY = VALUE"),
        ("map a 1 = 2 = 3", 1, 5, "OBJECT KEY = VALUE"),
        ("map", 1, 4, "OBJECT KEY = VALUE"),
        ("ports 1", 1, 7, "2 to 256"),
        ("ports 257", 1, 7, "2 to 256"),
        ("ports 2 3", 1, 9, "the end of the line"),
        ("ports 2\nports 2", 2, 1, "once"),
        ("0: eth\nports 2", 2, 1, "before the first packet"),
        ("state flows = -1", 1, 7, "OBJECT = N"),
        ("at 5 minutes", 1, 6, "the end of the line"),
        ("at 5m", 1, 4, "a time"),
        ("at 0.0000000001", 1, 4, "a time"),
        ("at 99999999999999", 1, 4, "a time"),
        ("at 5\nat 4", 2, 4, "cannot go back"),
        ("repeat 3\n0: eth", 1, 1, "without its `end`"),
        ("end", 1, 1, "without its `repeat`"),
        ("repeat 2\nrepeat 2\nend\nend", 2, 1, "inside a `repeat`"),
        ("repeat 0\nend", 1, 8, "1 to"),
        ("repeat 99999999999\nend", 1, 8, "1 to"),
        ("0: eth / payload $i", 1, 18, "between `repeat`"),
        (
            "repeat 257\n0: eth / ip 10.0.0.$i > 1.1.1.1\nend",
            2,
            13,
            "an IPv4 address",
        ),
        ("repeat 2\nat $(1/i)\nend", 2, 7, "divides by zero"),
        ("repeat 2\nat $(i\nend", 2, 7, "an operator"),
        ("repeat 2\nat $(i-1)\nend", 2, 4, "may not be negative"),
        ("repeat 2\nat $x\nend", 2, 5, "after `$`"),
    ] {
        let error = Case::parse("x.pkt", text).unwrap_err();
        let at = (error.file.as_str(), error.line, error.column);
        assert_eq!(at, ("x.pkt", line, column), "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
    let error =
        Case::parse("x.pkt", "repeat 257\n0: eth / ip 10.0.0.$i > 1.1.1.1\nend").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("x.pkt:2:13: here stands `10.0.0.256`"),
        "{error}"
    );
    assert!(error.to_string().ends_with("(in round 256)"), "{error}");
}

#[test]
fn a_round_in_the_middle_is_reported_when_it_comes() {
    // 10 rounds: the fourth divides by zero, the first and the last do not.
    let text = "repeat 10\n0: eth / vlan $(1/((i-3)*(i-3)))\nend";
    let case = Case::parse("x.pkt", text).unwrap();
    let steps: Vec<_> = case.steps().collect();
    assert_eq!(steps.len(), 4);
    assert_eq!(steps[3].as_ref().unwrap_err().round, Some(3));
}
