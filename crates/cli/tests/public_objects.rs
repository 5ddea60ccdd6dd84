//! docs/measurements/public-objects.md against the objects themselves, which are those in the folder
//! $MILLRACE_OBJECTS; none is part of this repository. MILLRACE_BLESS=1 writes the table. And, whatever is
//! there, what `check` says of a folder.

use crate::common;

use std::fmt::Write as _;
use std::path::Path;

use common::{GENERATED, generated, json, millrace};
use serde_json::Value;

/// One line a rule and one an object that is not admitted.
fn table(found: &Value) -> String {
    let number = |field: &str| found[field].as_u64().unwrap();
    let (admitted, refused) = (number("admitted"), number("refused"));
    let mut text = format!(
        "{GENERATED}\n{admitted} of {} objects with a program for packets are admitted ({} %), {refused} refused; {} other objects have no such program.\n\n",
        admitted + refused,
        100 * admitted / (admitted + refused),
        number("without_packet_program"),
    );
    text.push_str("| objects | rule |\n| --- | --- |\n");
    for rule in found["rules"].as_array().unwrap() {
        writeln!(
            text,
            "| {} | {} |",
            rule["objects"],
            rule["rule"].as_str().unwrap()
        )
        .unwrap();
    }
    text.push_str("\n| object | instructions | |\n| --- | --- | --- |\n");
    for object in found["objects"].as_array().unwrap() {
        let file = object["file"].as_str().unwrap().trim_end_matches(".o");
        if object["packets"] == false {
            continue;
        }
        let answer = match object["admitted"].as_bool().unwrap() {
            true => "admitted".to_owned(),
            false => {
                let reasons = object["refusals"].as_array().unwrap();
                let reason = |r: &Value| r["reason"].as_str().unwrap().replace('|', "\\|");
                reasons.iter().map(reason).collect::<Vec<_>>().join("; ")
            }
        };
        writeln!(text, "| {file} | {} | {answer} |", object["instructions"]).unwrap();
    }
    text
}

#[test]
fn the_document_says_what_is_admitted() {
    let Some(folder) = std::env::var_os("MILLRACE_OBJECTS") else {
        println!("skipped: public objects, MILLRACE_OBJECTS names no folder of them");
        return;
    };
    let (found, _) = json(
        millrace()
            .arg("check")
            .arg(folder)
            .args(["--capacity", "*=64"]),
    );
    let expected = table(&found);
    generated("measurements/public-objects.md", &expected, str::to_owned);
}

#[test]
fn a_folder_is_checked_object_by_object() {
    let folder = tempfile::tempdir().unwrap();
    let object = |name: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../object/tests/programs");
        std::fs::read(root.join(name)).unwrap()
    };
    std::fs::create_dir(folder.path().join("deeper")).unwrap();
    for (file, bytes) in [
        ("gate.o", object("gate.elf")),
        ("deeper/counter.elf", object("counter.elf")),
        ("empty.o", Vec::new()),
        ("notes.txt", b"no object".to_vec()),
    ] {
        std::fs::write(folder.path().join(file), bytes).unwrap();
    }
    let (found, status) = json(millrace().arg("check").arg(folder.path()));
    assert_eq!(status, 1, "{found}");
    let files: Vec<&str> = (found["objects"].as_array().unwrap().iter())
        .map(|o| o["file"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["deeper/counter.elf", "empty.o", "gate.o"]);
    assert_eq!(found["objects"][1]["refusals"][0]["rule"], "not-elf");
    assert_eq!(found["admitted"], 2, "{found}");
    assert_eq!(found["refused"], 1);
    assert_eq!(found["rules"][0]["objects"], 1);
}
