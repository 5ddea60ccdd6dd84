//! The instruction set: our own vectors, and the public conformance suite where it is at hand.
//! Each vector is executed by emitted code and by the reference interpreter.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use millrace_tests::command::{millrace, root};
use millrace_tests::vector::Vector;

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    bytes.join(" ")
}

/// What the plugin prints, or what it says on standard error.
fn conform(options: &[&str], input: &[u8], memory: &[u8]) -> Result<u64, String> {
    let mut child = millrace()
        .arg("conform")
        .args(options)
        .arg(hex(memory))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(hex(input).as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!(
            "{}: {text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    u64::from_str_radix(text.trim(), 16).map_err(|e| format!("`{text}`: {e}"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "data"));
    files.sort();
    files
}

/// Fails of a vector, by emitted code and by the interpreter.
fn failures(vector: &Vector) -> Vec<String> {
    let ways: [(&str, &[&str]); 2] = [("emitted", &[]), ("interpreter", &["--interpreter"])];
    let wrong = |(way, options): (&str, &[&str])| {
        let got = conform(options, &vector.code, &vector.memory);
        let right = got.as_ref() == Ok(&vector.result);
        (!right).then(|| format!("{way}: {got:x?}, not {:#x}", vector.result))
    };
    ways.into_iter().filter_map(wrong).collect()
}

#[test]
fn our_vectors_pass() {
    let files = files(&root().join("tests/conform"));
    assert!(files.len() >= 8, "{} vectors", files.len());
    for file in files {
        let vector = Vector::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(failures(&vector), [""; 0], "{}", file.display());
    }
}

#[test]
fn the_public_suite_passes() {
    let Some(folder) = std::env::var_os("MILLRACE_CONFORMANCE") else {
        println!(
            "skipped: MILLRACE_CONFORMANCE names no folder (`tests` of github.com/Alan-Jowett/bpf_conformance)"
        );
        return;
    };
    let mut counts: BTreeMap<(u32, &str), (u32, u32)> = BTreeMap::new();
    let (mut passed, mut total, mut refused, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for file in files(Path::new(&folder)) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let vector = Vector::read(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        // Calls through registers (group callx) are refused by name, which is all we promise of them.
        if text.contains("call %r") {
            let said = conform(&[], &vector.code, &vector.memory).unwrap_err();
            assert!(said.contains("call-register"), "{name}: {said}");
            refused.push(name);
            continue;
        }
        let failures = failures(&vector);
        total += 1;
        passed += u32::from(failures.is_empty());
        for version in vector.version..=4 {
            for group in &vector.groups {
                let count = counts.entry((version, group)).or_default();
                count.0 += u32::from(failures.is_empty());
                count.1 += 1;
            }
        }
        wrong.extend(failures.into_iter().map(|f| format!("{name}: {f}")));
    }
    // A test counts for each group that one of its instructions is of.
    for ((version, group), (passed, total)) in &counts {
        println!("v{version} {group}: {passed} of {total}");
    }
    println!(
        "all: {passed} of {total}; refused by name: {}",
        refused.join(", ")
    );
    assert!(total > 0, "no tests in {}", Path::new(&folder).display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_elf_file_is_taken_too() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("sum.o");
    let source = root().join("tests/conform/sum.s");
    let assembled = std::process::Command::new("clang-19")
        .args(["-target", "bpf", "-c", "-o"])
        .args([&object, &source])
        .status()
        .unwrap();
    assert!(assembled.success());
    let object = std::fs::read(object).unwrap();
    for options in [&["--elf"][..], &["--elf", "--interpreter"]] {
        assert_eq!(conform(options, &object, &[1, 2, 3]), Ok(6));
    }
}

#[test]
fn what_cannot_be_run_is_said() {
    let refused = |code: &[u8], memory: &[u8], what: &str| {
        let said = conform(&[], code, memory).unwrap_err();
        assert!(said.contains(what) && !said.contains("panicked"), "{said}");
    };
    // r0 = *(u8 *)(r1 + 2); exit
    let beyond = [0x71, 0x10, 2, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
    refused(&beyond, &[1, 2], "value-bounds");
    let said = conform(&["--interpreter"], &beyond, &[1, 2]).unwrap_err();
    assert!(said.contains("in no region"), "{said}");
    refused(&[], &[], "0 bytes of instructions");
    refused(&[0x95, 0, 0], &[], "3 bytes of instructions");
    refused(&[0xff; 8], &[], "instruction");
    // a call beyond the end; a jump into the middle of a 64-bit load; a 64-bit load cut off
    refused(
        &[0x85, 0x10, 0, 0, 9, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0],
        &[],
        "is called",
    );
    let mut middle = vec![0x05, 0, 1, 0, 0, 0, 0, 0, 0x18, 0, 0, 0, 1, 0, 0, 0];
    middle.extend([0; 8]);
    middle.extend([0x95, 0, 0, 0, 0, 0, 0, 0]);
    refused(&middle, &[], "middle");
    refused(&[0x18, 0, 0, 0, 1, 0, 0, 0], &[], "cut off");
}
