//! Chain files: what they mean, and what is wrong with them.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::path::Path;

use millrace_chain::connect::{Named, connect};
use millrace_chain::file::{parse, read};
use millrace_chain::{ChainError, Description, What};
use millrace_tables::rows;
use millrace_topology::Topology;

const WHOLE: &str = r#"
name = "edge"
connect = [["fw.WAN", "tap.0"], ["tap.1", "nat.LAN"]]
entry = ["fw.lan", "nat.1"]

[[element]]
name = "fw"
nf = "firewall"
set = { idle = 30, mode = "strict", loud = true }
capacity = { flows = 100_000 }
map = { blocked = "blocked.csv" }

[[element]]
name = "nat"
nf = "nfs/nat.o"
program = "xdp_nat"

[[element]]
name = "tap"
guest = ["tcpdump", "-n", "-i", "@"]
environment = { TZ = "UTC0" }
dir = "."
read = ["/srv", "/opt"]
limit = 0.5
jit = true
"#;

fn named(ports: &[&str]) -> Named {
    Named {
        ports: ports.iter().map(|p| (*p).to_owned()).collect(),
        guest: false,
    }
}

fn guest() -> Named {
    Named {
        guest: true,
        ..Named::default()
    }
}

#[test]
fn a_file_says_what_there_is_and_how_it_is_connected() {
    let chain = parse(WHOLE, None).unwrap();
    assert_eq!(chain.name.as_deref(), Some("edge"));
    let names: Vec<_> = chain
        .elements
        .iter()
        .map(|e| (e.name.as_str(), e.line))
        .collect();
    assert_eq!(
        names,
        [("fw", Some(7)), ("nat", Some(14)), ("tap", Some(19))]
    );
    let What::Function(fw) = &chain.elements[0].what else {
        panic!("a guest")
    };
    let mut set = fw.set.clone();
    set.sort();
    assert_eq!(set, ["idle=30", "loud=true", "mode=strict"]);
    assert_eq!(
        (&fw.capacity, &fw.maps),
        (
            &vec!["flows=100000".into()],
            &vec!["blocked=blocked.csv".into()]
        )
    );
    let What::Guest(tap) = &chain.elements[2].what else {
        panic!("a function")
    };
    assert_eq!(tap.arguments, ["tcpdump", "-n", "-i", "@"]);
    assert_eq!(tap.environment.get("TZ").map(String::as_str), Some("UTC0"));
    let mut options: Vec<_> = tap
        .options
        .iter()
        .map(|(n, v, _)| format!("{n}={v}"))
        .collect();
    options.sort();
    assert_eq!(
        options,
        ["dir=.", "jit=", "limit=0.5", "read=/opt", "read=/srv"]
    );

    let ports = [named(&["LAN", "WAN"]), named(&["LAN", "WAN"]), guest()];
    let connected = connect(&chain, &ports).unwrap().unwrap();
    assert_eq!(connected.order, [0, 2, 1]);
    assert_eq!(connected.topology, Topology::line(3));
    assert_eq!(connected.ports, ["LAN", "WAN"]);
}

#[test]
fn without_connections_elements_stand_in_a_row() {
    let chain = parse("[[element]]\nnf='a'\n[[element]]\nguest='b -x'\n", None).unwrap();
    let connected = connect(&chain, &[Named::default(), guest()])
        .unwrap()
        .unwrap();
    assert_eq!(connected.topology, Topology::line(2));
    assert_eq!(connected.ports, ["0", "1"]);
    let names: Vec<_> = chain.elements.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let alone = parse("[[element]]\nnf='a'\n", None).unwrap();
    assert_eq!(connect(&alone, &[named(&["A", "B", "C"])]), Ok(None));
}

/// A file, the line that is told, and parts of the message and of the help.
const WRONG: &str = r"
name =\s                                     | 1 |                                                    |
[[element]]\nnf='a'\nspeed=1                 | 3 | there is no `speed` here                           | capacity
name='x'\n                                   | 0 | no elements                                        | [[element]]
[[element]]\nnf='a'\n[[element]]\nnf='x/a.o' | 4 | two elements `a`                                   | name
[[element]]\nname='q'                        | 2 | neither `nf` nor `click` nor `guest` nor `restore` | what
[[element]]\nnf='a'\nguest='b'               | 2 | both `nf` and `guest`                              | one of
[[element]]\nnf=3                            | 2 | `nf` is a text                                     | docs/chains.md
[[element]]\nname='a b'\nnf='a'              | 2 | `a b` is no name                                   | letters
[[element]]\nguest=''                        | 2 | no program                                         | @
[[element]]\nnf='a'\nset=[1]                 | 3 | `set` is a table                                   |
entry=['a']\n[[element]]\nnf='a'             | 1 | `a` names no port                                  | ELEMENT.PORT
connect=[['a.0']]\n[[element]]\nnf='a'       | 1 | a list of pairs                                    |
connect=[['a.0','b.0']]\n[[element]]\nnf='a'\n[[element]]\nnf='b' | 1 | no entry                                           | entry =
element=1                                    | 1 | `element` is a list                                |
[element]\nnf='a'                            | 1 | `element` is a list                                |
";

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_to_do() {
    for [text, line, what, help] in rows(WRONG) {
        let error = parse(&text, Some(Path::new("c.toml"))).unwrap_err();
        assert_eq!(
            error.line().unwrap_or(0).to_string(),
            line,
            "{text}: {error}"
        );
        assert!(
            error.what.contains(&what) && error.help.contains(&help),
            "{text}: {error:?}"
        );
        let shown = match line.as_str() {
            "0" => "c.toml: ".into(),
            line => format!("c.toml:{line}: "),
        };
        assert!(error.to_string().starts_with(&shown), "{error}");
    }
}

fn connected(head: &str) -> Result<Description, ChainError> {
    let text = format!("{head}\n[[element]]\nnf='a'\n[[element]]\nnf='b'\n[[element]]\nnf='c'\n");
    let chain = parse(&text, None)?;
    let three = named(&["X", "Y", "Z"]);
    connect(&chain, &[three, named(&["X", "Y"]), named(&["X", "Y"])]).map(|_| chain)
}

/// What stands above three elements of three, two and two ports, the line that is told, and a part of the message.
const UNCONNECTED: &str = r"
connect=[['a.Y','b.0'],['b.1','c.0'],\n['c.0','a.Z']]\nentry=['a.x','c.1'] | 2 | c.X is connected twice
connect=[['a.Y','b.0'],['a.Z','b.0']]\nentry=['a.x','b.1',\n'b.0'] | 3 | b.X is connected twice
connect=[['a.Y','b.0']]\nentry=['a.x','b.1','c.1','c.0'] | 4 | a.Z is not connected
connect=[['a.Y','b.0'],\n['a.Y','c.0']]\nentry=['a.x'] | 2 | a.Y is connected twice
connect=[['a.Y','b.0'],\n['a.z','d.0']]\nentry=['a.x'] | 2 | no element `d`
connect=[['a.Y','b.7']]\nentry=['a.x'] | 1 | b has no port `7`
connect=[['a.Y','b.0'],['b.1','c.0'],['c.1','a.Z']]\nentry=['a.x'] | 8 | is part of a cycle
connect=[['b.0','c.0'],['b.1','c.1']]\nentry=['a.x','a.y','a.z'] | 6 | no packet can reach b
                                       | 3 | a has 3 ports (X, Y, Z); functions in a row have two each
";

#[test]
fn connections_that_make_no_sense_are_told_with_their_line() {
    connected("connect=[['a.Y','b.0'],\n['a.z','c.0']]\nentry=['a.x','b.1','c.1']").unwrap();
    // A path of two elements and one of none, which join.
    connected("connect=[['a.Y','b.0'],['b.1','c.0'],['a.Z','c.0']]\nentry=['a.x','c.1']").unwrap();
    for [head, line, what] in rows(UNCONNECTED) {
        let error = connected(&head).unwrap_err();
        assert!(error.what.contains(&what), "{head}: {error:?}");
        // A cycle is told at one of its elements.
        assert!(
            what.contains("cycle") || error.line() == line.parse().ok(),
            "{head}: {error:?}"
        );
        assert!(!error.help.is_empty());
    }
}

/// Whatever is in a file, reading it gives a chain or says what is wrong; nothing grows without bound.
#[test]
fn damaged_files_are_errors() {
    let seed = WHOLE.as_bytes();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below.max(1)
    };
    let syntax = b"[]{}=\"'.,#\n 01xe-_\\";
    let (mut whole, mut refused) = (0, 0);
    for _ in 0..4000 {
        let mut text = seed.to_vec();
        for _ in 0..=draw(6) {
            let at = draw(text.len());
            match draw(4) {
                0 => text[at] = syntax[draw(syntax.len())],
                1 => drop(text.remove(at)),
                2 => text.insert(at, syntax[draw(syntax.len())]),
                _ => {
                    let end = (at + draw(40)).min(text.len());
                    text.drain(at..end);
                }
            }
        }
        let Ok(text) = String::from_utf8(text) else {
            continue;
        };
        let sound = parse(&text, None).is_ok();
        whole += u32::from(sound);
        refused += u32::from(!sound);
    }
    assert!(whole > 100 && refused > 100, "{whole} {refused}");
    assert!(parse(&"[".repeat(100_000), None).is_err());
    let many = "[[element]]\nnf='a'\n".repeat(65);
    assert!(parse(&many, None).unwrap_err().what.contains("65 elements"));
}

#[test]
fn files_that_cannot_be_read_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    assert!(read(&file).is_err());
    std::fs::write(&file, b"\xff\xfe").unwrap();
    assert!(read(&file).unwrap_err().what.contains("UTF-8"));
    std::fs::write(&file, vec![b' '; (1 << 20) + 1]).unwrap();
    assert!(read(&file).unwrap_err().what.contains("longer"));
}
