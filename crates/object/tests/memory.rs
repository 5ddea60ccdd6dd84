//! `bytes` of every kind equals `KIND_bytes` of its header under fastpath/state.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use millrace_object::helper::TIMER_INIT;
use millrace_object::program::StateObject;
use millrace_object::state::{KINDS, StateKind, lpm_trie, ringbuf};

/// Sane declarations of a kind, small, around every boundary of the formulas, and large.
fn declarations(kind: &'static StateKind) -> Vec<StateObject> {
    let mut all = Vec::new();
    let ring = *kind == ringbuf::KIND;
    let capacities: Vec<u64> = if ring {
        (12..=26).map(|bit| 1 << bit).collect()
    } else {
        vec![
            1,
            3,
            4,
            5,
            8,
            9,
            63,
            64,
            65,
            256,
            257,
            1000,
            65_536,
            65_537,
            1 << 20,
        ]
    };
    for capacity in capacities {
        for key_bytes in [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 20, 37, 64, 512] {
            for value_bytes in [0, 1, 4, 8, 16, 24, 56, 57, 200, 4097, 1 << 20] {
                for (expire_after, window, rows) in [(0, 0, 0), (1, 0, 0), (0, 0, 3), (0, 9, 8)] {
                    let flags = u32::from(*kind == lpm_trie::KIND);
                    let object = |timer| StateObject {
                        flags,
                        expire_after,
                        rows,
                        window,
                        timer,
                        ..StateObject::new("object", kind, key_bytes, value_bytes, capacity)
                    };
                    let timers = kind.does(&TIMER_INIT).is_some();
                    for timer in [None, Some(0)].into_iter().take(1 + usize::from(timers)) {
                        let object = object(timer);
                        if (kind.validate)(&object).is_ok() {
                            all.push(object);
                        }
                    }
                }
            }
        }
    }
    all
}

#[test]
fn every_kind_has_sane_declarations() {
    for kind in KINDS {
        assert!(declarations(kind).len() >= 10, "{}", kind.name);
    }
}

#[test]
fn bytes_equal_what_the_c_side_maps() {
    let fastpath = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fastpath");
    let compiler = ["clang-19", "clang", "cc"]
        .into_iter()
        .find(|cc| Command::new(cc).arg("--version").output().is_ok());
    let Some(compiler) = compiler else {
        eprintln!("skipped: no C compiler");
        return;
    };
    let mut source = String::from("#include <stdio.h>\n");
    let mut body = String::new();
    let mut expected = Vec::new();
    let mut included = std::collections::BTreeSet::new();
    for kind in KINDS {
        included.insert(kind.c);
        writeln!(
            body,
            "static const struct shape {}_shapes[] = {{",
            kind.name
        )
        .unwrap();
        for o in declarations(kind) {
            writeln!(
                body,
                "{{.key_bytes={},.value_bytes={},.capacity={},.expire_after={},.window={},.rows={},.flags={},.timer={}}},",
                o.key_bytes, o.value_bytes, o.capacity, o.expire_after, o.window, o.rows, o.flags,
                o.timer.map_or(0, |at| at + 1)
            )
            .unwrap();
            expected.push(o);
        }
        writeln!(body, "}};\nstatic void {0}_print(void) {{ for (size_t i = 0; i < sizeof {0}_shapes / sizeof *{0}_shapes; i++) printf(\"%llu\\n\", (unsigned long long){1}_bytes(&{0}_shapes[i])); }}", kind.name, kind.c).unwrap();
    }
    for c in included {
        writeln!(source, "#include \"state/{c}.h\"").unwrap();
    }
    source.push_str(&body);
    source.push_str("int main(void) {\n");
    let mut last = "";
    for o in &expected {
        if o.kind.name != last {
            last = o.kind.name;
            writeln!(source, "{last}_print();").unwrap();
        }
    }
    source.push_str("return 0; }\n");
    let directory = tempfile::tempdir().unwrap();
    let (file, binary) = (
        directory.path().join("bytes.c"),
        directory.path().join("bytes"),
    );
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler)
        .args(["-O0", "-w", "-I"])
        .arg(&fastpath)
        .arg("-o")
        .arg(&binary)
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = Command::new(&binary).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<u64> = text.lines().map(|l| l.parse().unwrap()).collect();
    assert_eq!(printed.len(), expected.len());
    for (object, printed) in expected.iter().zip(printed) {
        assert_eq!((object.kind.bytes)(object), printed, "{object}");
    }
    eprintln!("{} declarations compared", expected.len());
}
