//! `--map` for queues, filters and maps of maps, and the same under sanitizers.

use crate::common;

use std::path::Path;

use common::{capture, millrace, named, refused, success};
use millrace_tables::rows;
use serde_json::Value;

const NESTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/programs/nested.c");
const SEQUENCES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/programs/sequences.c"
);

/// Frames of colour 1 and key 3, of tenant 1 and index 2.
fn frames(count: usize) -> Vec<(u64, Vec<u8>)> {
    let mut frame = vec![0; 60];
    frame[14..19].copy_from_slice(&[1, 3, 0, 1, 2]);
    vec![(1_000_000_000, frame); count]
}

fn run(program: &str, input: &Path, arguments: &[String]) -> Value {
    let mut command = millrace();
    command.args(["run", program, "--out", "null:", "--in"]);
    success(command.arg(input).args(arguments))
}

#[test]
fn maps_of_maps_are_filled_by_name_and_with_entries() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    capture(&input, &frames(10));
    let map = |name: &str, file: &str, text: &str| {
        let path = dir.path().join(file);
        std::fs::write(&path, text).unwrap();
        format!("--map={name}={}", path.display())
    };
    // Seven packets are let through by the limit of tenant 1 at index 2, however that is said.
    let json = r#"[{"key": 1, "value": [{"key": 2, "value": 7}]}, {"key": 3, "value": []}]"#;
    for (say, entries) in [
        (vec![map("tenants", "a.json", json)], 8),
        (vec![map("tenants.maps", "a.csv", "u16:1 u32:2,7\n")], 4),
        (
            vec![
                map("tenants", "b.csv", "1,new\n2,new\n"),
                map("tenants.maps", "c.csv", "u16:1 u32:2,7\n"),
            ],
            8,
        ),
    ] {
        let account = run(NESTED, &input, &say);
        assert_eq!(account["forwarded"], 7, "{say:?}: {account}");
        assert_eq!(account["passed"], 3, "{say:?}");
        assert_eq!(
            named(&account["objects"], "tenants.maps")["entries"],
            entries,
            "{say:?}"
        );
        // Colour 1 has no map.
        assert_eq!(named(&account["objects"], "blue")["entries"], 0);
    }
    let blue = run(NESTED, &input, &[map("colours", "d.csv", "1,blue\n")]);
    assert_eq!(named(&blue["objects"], "blue")["entries"], 1, "{blue}");
    let own = run(NESTED, &input, &[map("colours", "e.csv", "1,new\n")]);
    assert_eq!(named(&own["objects"], "blue")["entries"], 0, "{own}");
    assert_eq!(
        named(&own["objects"], "colours.maps")["entries"],
        1,
        "{own}"
    );
}

#[test]
fn queues_and_filters_are_filled_without_keys() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    // Operation 4 takes from the queue, 6 asks the filter for 0.
    let frame = |operation: u8| {
        let mut frame = vec![0; 60];
        frame[14] = operation;
        (1_000_000_000, frame)
    };
    capture(&input, &[4, 4, 4, 6].map(frame));
    let path = dir.path().join("entries");
    for text in [
        r#"[{"value": "zeros:11"}, {"value": "u32:5 zeros:7"}]"#,
        ",zeros:11\n,u32:5 zeros:7\n",
    ] {
        std::fs::write(&path, text).unwrap();
        let say = ["queue", "seen"].map(|name| format!("--map={name}={}", path.display()));
        let account = run(SEQUENCES, &input, &say);
        assert_eq!(
            account["forwarded"], 3,
            "two values and the filter: {account}"
        );
        assert_eq!(account["dropped"], 1);
    }
}

/// A program, its object, what is to be in it, and a part of why not.
const WRONG: &str = r#"
nested    | colours | 1,tenants\n                                     | `tenants` is not like
nested    | colours | 1,nothing\n                                     | there are red, green, blue
nested    | tenants | 1,red\n                                         | there is none
nested    | tenants | 1,2\n                                           | `2` is no map
nested    | tenants | [{"key": 1, "value": [1, 2]}]                   | tenants holds maps
nested    | tenants | [{"key": 1, "value": [{"key": 1}]}]             | entry 1: there is no "value"
nested    | tenants | [{"key": 1, "value": [{"value": 1}]}]           | entry 1: there is no "key"
nested    | tenants | [{"key": 1, "value": [{"key": "10.0.0.1 u8:1", "value": 1}]}] | entry 1: key
nested    | tenants | [{"key": 1, "value": [{"key": 4, "value": 1}]}] | tenants.maps
nested    | tenants | 1,new\n2,new\n3,new\n4,new\n5,new\n             | 4 entries and no more
nested    | colours | 6,new\n                                         | 6 entries and no more
nested    | red     | [{"key": 1, "value": [{"key": 4, "value": 1}]}] | only a map of maps
sequences | queue   | 1,zeros:11\n                                    | key
sequences | stack   | ,zeros:11\n,zeros:11\n,zeros:11\n,zeros:11\n,zeros:11\n | 4 entries and no more
"#;

#[test]
fn what_is_no_such_map_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    capture(&input, &frames(1));
    let path = dir.path().join("entries");
    for [program, name, text, what] in rows(WRONG) {
        let program = format!("tests/programs/{program}.c");
        std::fs::write(&path, &text).unwrap();
        let mut command = millrace();
        command.args(["run", &program, "--out", "null:", "--in"]);
        command.arg(&input);
        command.arg(format!("--map={name}={}", path.display()));
        let error = refused(&mut command, 2);
        assert!(error.contains(&what), "{name} {text}: {error}");
    }
}

#[test]
fn sanitizers_see_nothing_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.pcap");
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut byte = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 20) as u8
    };
    let packets: Vec<(u64, Vec<u8>)> = (0..2000)
        .map(|_| (1_000_000_000, (0..60).map(|_| byte()).collect()))
        .collect();
    capture(&input, &packets);
    let path = dir.path().join("tenants.json");
    let json = r#"[{"key": 1, "value": [{"key": 2, "value": 900}]}, {"key": 1, "value": "new"}, {"key": 2, "value": []}]"#;
    std::fs::write(&path, json).unwrap();
    let map = format!("--map=tenants={}", path.display());
    for (program, arguments) in [(NESTED, vec![map]), (SEQUENCES, Vec::new())] {
        let plain = run(program, &input, &arguments);
        let arguments = [arguments, vec!["--sanitize".to_owned()]].concat();
        let watched = run(program, &input, &arguments);
        for what in ["read", "forwarded", "dropped", "passed", "aborted"] {
            assert_eq!(plain[what], watched[what], "{program}: {what}");
        }
        assert_eq!(watched["read"], 2000);
    }
}
