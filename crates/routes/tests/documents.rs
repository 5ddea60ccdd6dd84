//! Documents as users write them: what they mean, and what is wrong in others, with its line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use millrace_routes::{Error, Kind, Table};
use millrace_tables::rows;

const HAND: &str = r#"{
  "ports": [
    { "ifname": "lan", "address": "02:00:00:00:00:01", "addresses": ["10.0.0.1/24", "2001:db8::1/64"] },
    { "ifname": "wan", "address": "02:00:00:00:00:02", "mtu": 1400, "addresses": ["192.0.2.1/30"] }
  ],
  "routes": [
    { "dst": "default", "gateway": "192.0.2.2", "dev": "wan" },
    { "dst": "10.9.0.0/16", "type": "blackhole" },
    { "dst": "10.8.0.0/16", "nexthops": [
        { "gateway": "10.0.0.2", "dev": "lan", "weight": 3 },
        { "gateway": "192.0.2.2", "dev": 1 }
    ] },
    { "dst": "10.7.0.0/16", "dev": "lan", "metric": 20 },
    { "dst": "10.7.0.0/16", "dev": "wan", "metric": 10, "metrics": [{ "mtu": 1300, "lock": true }] }
  ],
  "routes6": [
    { "dst": "default", "gateway": "2001:db8::2", "dev": "lan", "flags": [] }
  ],
  "neighbours": [
    { "dst": "192.0.2.2", "lladdr": "02:00:00:00:00:99", "dev": "wan", "state": ["PERMANENT"] },
    { "dst": "10.0.0.2", "lladdr": "02:00:00:00:00:98", "dev": "lan", "state": ["FAILED"] }
  ]
}"#;

fn find<'t>(table: &'t Table, to: &str) -> &'t millrace_routes::Route {
    let found = table.routes.iter().find(|r| r.to.to_string() == to);
    found.unwrap_or_else(|| panic!("no route to {to}: {table:#?}"))
}

#[test]
fn a_table_written_by_hand() {
    let table = Table::parse(HAND).unwrap();
    let ports: Vec<_> = table
        .ports
        .iter()
        .map(|p| (&*p.name, p.number, p.mtu, p.forwarding6))
        .collect();
    assert_eq!(ports, [("lan", 0, 1500, true), ("wan", 1, 1400, true)]);

    let default = find(&table, "0.0.0.0/0");
    assert_eq!((default.kind, default.hops[0].port), (Kind::Unicast, 1));
    assert_eq!(default.hops[0].source, Some("192.0.2.1".parse().unwrap()));
    assert_eq!(
        find(&table, "::/0").hops[0].source,
        Some("2001:db8::1".parse().unwrap())
    );
    assert_eq!(find(&table, "10.0.0.1/32").kind, Kind::Local);
    assert_eq!(find(&table, "10.0.0.0/24").hops[0].port, 0);
    assert_eq!(find(&table, "10.9.0.0/16").kind, Kind::Blackhole);
    let shared = find(&table, "10.8.0.0/16");
    assert_eq!(
        shared
            .hops
            .iter()
            .map(|h| (h.port, h.weight))
            .collect::<Vec<_>>(),
        [(0, 3), (1, 1)]
    );
    let best = find(&table, "10.7.0.0/16");
    assert_eq!((best.metric, best.mtu, best.others.len()), (10, 1300, 1));

    assert_eq!(table.neighbours.len(), 1, "a failed neighbour is none");
    assert_eq!(table.notes, Vec::<String>::new());
    // 2 ports, 3 local and 3 subnet routes, 5 routes of 7 hops with the other one, 1 neighbour
    assert_eq!(table.entries().len(), 2 + 6 + 7 + 1);
    for (key, value) in table.entries() {
        assert_eq!((key.len(), value.len()), (24, 64));
    }
}

#[test]
fn what_ip_prints_is_taken_and_the_rest_is_told() {
    let text = r#"{"forwarding": false, "ports": [{"ifindex":2,"ifname":"v0","flags":["UP"],"mtu":1500,"qdisc":"noqueue",
        "address":"c2:44:eb:de:09:01","addr_info":[{"family":"inet","local":"10.0.0.1","prefixlen":24,"scope":"global"}]}],
        "routes": [{"dst":"10.0.0.0/24","dev":"v0","protocol":"kernel","scope":"link","prefsrc":"10.0.0.1","flags":[]},
        {"type":"local","dst":"10.0.0.1","dev":"v0","table":"local","protocol":"kernel","scope":"host","flags":[]},
        {"dst":"10.4.0.0/16","via":{"family":"inet6","host":"fe80::1"},"dev":"v0","flags":[]},
        {"dst":"10.5.0.0/16","dev":"v0","tos":"0x10"},
        {"dst":"10.6.0.0/16","dev":"v0","flags":["dead","linkdown"]},
        {"dst":"10.7.0.0/16","dev":"v0","gatewya":"10.0.0.9"}]}"#;
    let table = Table::parse(text).unwrap();
    assert!(!table.ports[0].forwarding);
    assert_eq!(
        find(&table, "10.4.0.0/16").hops[0].via,
        Some("fe80::1".parse().unwrap())
    );
    let notes = table.notes.join("\n");
    for told in [
        "\"gatewya\" is ignored",
        "10.5.0.0/16, which depends on the type of service",
        "10.6.0.0/16, whose link",
    ] {
        assert!(notes.contains(told), "{told}: {notes}");
    }
    assert_eq!(table.notes.len(), 3, "{notes}");
}

/// A document, or the only route of one; the line that is told; and a part of what is said.
const WRONG: &str = r#"
                                                    | 1 | EOF
[]                                                  | 1 | invalid
{}                                                  | 1 | missing field `ports`
{"ports": [],\n "rutes": []}                        | 2 | unknown field `rutes`
{"ports": [\n{"ifname": "a",\n "address": "x"}]}    | 3 | is not a MAC address
{"ports": [\n{"ifname": "a", "mtu": -1}]}           | 2 | invalid value
{"ports": [{"ifname": "a"},\n{"ifname": "a"}]}      | 2 | there twice
{"ports": [{"ifname": "a", "port": 3},\n{"ifname": "b", "port": 3}]} | 2 | port 3 is there twice
{"ports": [{"ifname": "a", "port": 1024}]}          | 1 | ports are 0 to 1023
ROUTE {"dst": "10.0.0.0/33", "dev": "a"}            | 3 | is not an address or prefix
ROUTE {"dst": "10.0.0.1/8", "dev": "a"}             | 3 | bits beyond its length
ROUTE {"dst": "10.0.0.0/8", "dev": "b"}             | 3 | there is no port "b"
ROUTE {"dst": "10.0.0.0/8", "dev": 7}               | 3 | there is no port 7
ROUTE {"dst": "10.0.0.0/8"}                         | 3 | has no "dev"
ROUTE {"dst": "10.0.0.0/8", "dev": "a", "type": "nat"} | 3 | a route of type "nat"
ROUTE {"dst": "10.0.0.0/8", "dev": "a", "table": 0} | 3 | "table" is
ROUTE {"dst": "10.0.0.0/8", "dev": "a", "table": 4294967296} | 3 | "table" is
ROUTE {"dst": "10.0.0.0/8",\n "gateway": "10.0.0", "dev": "a"} | 4 | invalid
ROUTE {"dst": "2001:db8::/32", "gateway": "10.0.0.1", "dev": "a"} | 3 | the IPv4 gateway
ROUTE {"dst": "10.0.0.0/8", "prefsrc": "::1", "dev": "a"} | 3 | of the other family
ROUTE {"dst": "10.0.0.0/8", "nexthops": [{"dev": "a", "weight": 0}]} | 3 | a weight of 0
ROUTE {"dst": "10.0.0.0/8", "nexthops": [{"dev": "a", "weight": 257}]} | 3 | 1 to 256
ROUTE {"dst": {"a": [[[[                            | 4 | expected
"#;

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let port = "{\"ports\": [{\"ifname\": \"a\"}],\n \"routes\": [\n";
    let route = |text: &str| format!("{port}{text}\n]}}");
    let hops = [r#"{"dev":"a"}"#; 256].join(",");
    let many = format!(r#"ROUTE {{"dst": "10.0.0.0/8", "nexthops": [{hops}]}}"#);
    let many = [many, "3".into(), "at most 255".into()];
    for [text, line, what] in rows(WRONG).chain([many]) {
        let text = text.strip_prefix("ROUTE ").map_or(text.clone(), route);
        let Err(error) = Table::parse(&text) else {
            panic!("{text} is taken")
        };
        let told = error.to_string();
        assert!(told.contains(&what), "{text}: {told}");
        let Error::At { line: found, .. } = error else {
            panic!("{text}: {told} has no line")
        };
        assert_eq!(found.to_string(), line, "{text}: {told}");
    }
}

#[test]
fn deep_and_large_documents_are_refused_or_bounded() {
    let deep = format!("{{\"ports\": {}", "[".repeat(1_000_000));
    assert!(
        Table::parse(&deep)
            .unwrap_err()
            .to_string()
            .contains("line 1")
    );
    let ports: Vec<String> = (0..1025)
        .map(|i| format!("{{\"ifname\": \"p{i}\"}}"))
        .collect();
    let many = format!("{{\"ports\": [{}]}}", ports.join(",\n"));
    assert_eq!(
        Table::parse(&many).unwrap_err().to_string(),
        "line 1025: more than 1024 ports"
    );
    // A hundred thousand routes, and for one prefix more hops than an entry can name.
    let routes: Vec<String> = (0..100_000_u32)
        .map(|i| {
            format!(
                "{{\"dst\":\"10.{}.{}.0/24\",\"dev\":0,\"metric\":{i}}}",
                i / 256 % 256,
                i % 256
            )
        })
        .collect();
    let text = format!(
        "{{\"ports\":[{{\"ifname\":\"a\"}}],\"routes\":[{}]}}",
        routes.join(",")
    );
    let table = Table::parse(&text).unwrap();
    assert_eq!(table.routes.len(), 65_536);
    let same: Vec<&str> = (0..1000)
        .map(|_| "{\"dst\":\"10.0.0.0/8\",\"dev\":0}")
        .collect();
    let text = format!(
        "{{\"ports\":[{{\"ifname\":\"a\"}}],\"routes\":[{}]}}",
        same.join(",")
    );
    assert_eq!(Table::parse(&text).unwrap().entries().len(), 1 + 255);
}

#[test]
fn no_document_makes_it_panic() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below
    };
    let (mut read, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut text = HAND.as_bytes().to_vec();
        for _ in 0..=draw(3) {
            let at = draw(text.len());
            match draw(3) {
                0 => text[at] = b"\0 ,:\"[]{}/9a\xc3-e"[draw(15)],
                1 => drop(text.drain(at..(at + draw(40)).min(text.len()))),
                _ => {
                    let piece: Vec<u8> = text[at..(at + draw(40)).min(text.len())].to_vec();
                    let to = draw(text.len());
                    text.splice(to..to, piece);
                }
            }
        }
        match Table::parse(&String::from_utf8_lossy(&text)) {
            Ok(table) => {
                read += 1;
                assert!(
                    table
                        .entries()
                        .iter()
                        .all(|(k, v)| k.len() == 24 && v.len() == 64)
                );
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}
