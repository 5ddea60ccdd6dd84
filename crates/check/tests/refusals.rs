//! Refusals of typical mistakes: rule, line, reason and remedy, as recorded.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use millrace_check::{Options, check};

/// Compiles a source; none if there is no compiler for it here.
pub fn compile(source: &Path, to: &Path) -> Option<PathBuf> {
    let object = to.join(source.with_extension("o").file_name().unwrap());
    static CLANG: LazyLock<Option<&str>> = LazyLock::new(|| {
        let runs = |c: &&str| Command::new(c).arg("--version").output().is_ok();
        ["clang-19", "clang"].into_iter().find(runs)
    });
    let clang = (*CLANG)?;
    let output = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v4", "-O2", "-g", "-w", "-c"])
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include"))
        .arg(format!(
            "-idirafter/usr/include/{}-linux-gnu",
            std::env::consts::ARCH
        ))
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
    Some(object)
}

/// The C files of a folder, by their names.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();
    sources
}

/// Ordinary programs: clang once kept half of an address of theirs where registers were short.
#[test]
fn ordinary_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/admitted");
    let scratch = tempfile::tempdir().unwrap();
    let sources = sources(&folder);
    assert!(!sources.is_empty());
    for source in sources {
        let Some(object) = compile(&source, scratch.path()) else {
            println!("skipped: no clang that compiles for BPF");
            return;
        };
        let program = millrace_object::load_file(&object).unwrap();
        let checked = check(&program, &Options::default());
        assert!(checked.is_ok(), "{}: {:?}", source.display(), checked.err());
    }
}

#[test]
fn typical_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let scratch = tempfile::tempdir().unwrap();
    let sources = sources(&folder);
    assert!(sources.len() >= 40);
    for source in sources {
        let Some(object) = compile(&source, scratch.path()) else {
            println!("skipped: no clang that compiles for BPF");
            return;
        };
        let name = source.file_stem().unwrap().to_str().unwrap();
        let program = match millrace_object::load_file(&object) {
            Ok(program) => program,
            Err(e) => {
                let line = e.line.as_ref().expect("compiled with -g");
                let text = format!(
                    "{}: {}: {}\n  {}\n  {}\n",
                    e.rule, line.line, line.text, e.problem, e.remedy
                );
                insta::assert_snapshot!(name, text);
                continue;
            }
        };
        let refusals = check(&program, &Options::default())
            .expect_err(&format!("{} is admitted", source.display()));
        let mut text = String::new();
        for r in refusals {
            let line = r.line.expect("compiled with -g");
            writeln!(text, "{}: {}: {}", r.rule, line.line, line.text).unwrap();
            let here = format!("{}/", folder.display());
            writeln!(text, "  {}", r.reason.replace(&here, "")).unwrap();
            writeln!(text, "  {}", r.remedy).unwrap();
        }
        insta::assert_snapshot!(name, text);
    }
}
