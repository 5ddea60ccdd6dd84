//! Programs by hand that relate two places: what is admitted has BPF's own numbers, what would tell where the host put
//! something is refused by the rule that its name says.

use std::path::Path;
use std::process::Command;

use millrace_check::{Options, check};
use millrace_object::load_file;
use millrace_object::program::Program;
use millrace_tests::command::root;
use millrace_tests::soundness::batch::Bench;
use millrace_turns::of_today;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Packets for each program.
const PACKETS: usize = 40;

fn compiled(folder: &Path, name: &str, flags: &[&str]) -> Program {
    let source = root().join("tests/programs").join(name);
    let object = folder.join("program.o");
    let output = Command::new("clang-19")
        .args(["-target", "bpf", "-g", "-I/usr/include/x86_64-linux-gnu"])
        .args(flags)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    load_file(&object).unwrap()
}

#[test]
fn places_have_the_distances_of_bpf() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let ways = [
        ["-O1", "-mcpu=v4"],
        ["-O2", "-mcpu=v4"],
        ["-Os", "-mcpu=v3"],
        ["-O2", "-mcpu=v2"],
    ];
    for flags in of_today("ways to compile programs with places", ways, 2) {
        let program = compiled(folder.path(), "places.c", &flags);
        if let Err(refusals) = check(&program, &Options::default()) {
            let text: Vec<_> = refusals
                .iter()
                .map(|r| {
                    format!(
                        "{}, {:?}: {}",
                        r.function,
                        r.line.as_ref().map(|l| l.line),
                        r.reason
                    )
                })
                .collect();
            panic!("{flags:?}:\n{}", text.join("\n"));
        }
        for sanitize in [true, false] {
            let trial = bench
                .compare(
                    &program,
                    &Options::default(),
                    sanitize,
                    &mut random,
                    PACKETS,
                )
                .unwrap();
            assert!(trial.clean(), "{flags:?}: {:#?}", trial.findings());
            println!(
                "{flags:?}, sanitized {sanitize}: {} programs, {} executions agree",
                program.entries.len(),
                trial.compared
            );
        }
    }
}

#[test]
fn what_tells_where_things_are_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [["-O1", "-mcpu=v4"], ["-O2", "-mcpu=v4"]] {
        let program = compiled(folder.path(), "leaks.c", &flags);
        let refusals = check(&program, &Options::default())
            .err()
            .unwrap_or_default();
        let mut wrong = Vec::new();
        for entry in &program.entries {
            let name = &program.functions[entry.function.0].name;
            let alone = Program {
                entries: vec![entry.clone()],
                ..program.clone()
            };
            let rule = match check(&alone, &Options::default()) {
                Ok(_) => "admitted".to_owned(),
                Err(refusals) => refusals[0].rule.replace('-', "_"),
            };
            if name.split_once("__").map(|n| n.0) != Some(&rule) {
                wrong.push(format!("{name}: {rule}"));
            }
        }
        assert!(wrong.is_empty(), "{flags:?}:\n{}", wrong.join("\n"));
        println!("{flags:?}: {} programs refused", refusals.len());
    }
}
