//! Files of rules: `data/*.rules`, each with what reading it gives.

use std::fmt::Write as _;
use std::path::Path;

use millrace_classify::{Key, Rules};

/// A file says in comments what it holds: `# => rules N classes a b c`, or `# => line N: …` for an error.
#[test]
fn files_read_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 20, "{} files", files.len());
    let mut wrong = String::new();
    for file in files {
        let text = std::fs::read(&file).unwrap();
        let wanted = String::from_utf8_lossy(&text);
        let wanted = wanted
            .lines()
            .find_map(|l| l.strip_prefix("# => "))
            .expect("what it gives");
        let got = match Rules::read(text.as_slice(), &Key::flow4(), 4, 64) {
            Ok(read) => {
                let classes: Vec<_> = read.rules.iter().map(|r| r.class.to_string()).collect();
                let mut said = format!("rules {} classes {}", read.rules.len(), classes.join(" "));
                if read.flags_ignored > 0 {
                    let _ = write!(said, ", flags ignored {}", read.flags_ignored);
                }
                said
            }
            Err(e) => e.to_string(),
        };
        if got != wanted {
            let _ = writeln!(
                wrong,
                "{}\n   wanted {wanted}\n   got    {got}",
                file.display()
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn both_forms_say_the_same() {
    let read = |text: &str| {
        Rules::read(text.as_bytes(), &Key::flow4(), 4, 64)
            .unwrap()
            .rules
    };
    let a = read(
        "@10.1.2.3/8\t192.168.0.1/32\t0 : 65535\t80 : 443\t0x06/0xFF\t0x0000/0x0000\tclass 2\n",
    );
    let b = read("protocol 6 dport 80-443 dst 192.168.0.1 src 10.0.0.0/8 class 2\n");
    assert_eq!(a, b);
}
