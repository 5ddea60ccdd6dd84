//! Programs of this folder as models.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use millrace_check::{Checked, Options, check};
use millrace_model::model::Entry;
use millrace_model::{Limits, Model, model};
use millrace_object::program::Program;

/// A program, and what its proof knows.
pub struct Loaded {
    pub program: Program,
    pub checked: Checked,
}

/// Compiles and proves `programs/NAME.c`; none, and a line that says why, if clang or Z3 is not here.
pub fn load(name: &str) -> Option<Loaded> {
    let runs = |c: &str| Command::new(c).arg("--version").output().is_ok();
    if !runs("z3") {
        println!("skipped: there is no z3 (Debian: apt-get install z3)");
        return None;
    }
    let Some(clang) = ["clang-19", "clang"].into_iter().find(|c| runs(c)) else {
        println!("skipped: no clang that compiles for BPF");
        return None;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let scratch = tempfile::tempdir().unwrap();
    let object = scratch.path().join("program.o");
    let output = Command::new(clang)
        .args(["-target", "bpf", "-mcpu=v4", "-O2", "-g", "-w", "-c"])
        .arg(folder.join(name).with_extension("c"))
        .arg("-o")
        .arg(&object)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let program = millrace_object::load_file(&object).unwrap();
    let checked = check(&program, &Options::default()).unwrap();
    Some(Loaded { program, checked })
}

impl Loaded {
    pub fn model(&self) -> Model {
        self.within(Duration::from_secs(100))
    }

    pub fn within(&self, time: Duration) -> Model {
        let limits = Limits {
            time,
            ..Limits::default()
        };
        model(&self.program, &self.checked, &limits)
    }
}

/// The entry of this name.
pub fn entry<'m>(model: &'m Model, name: &str) -> &'m Entry {
    model.entries.iter().find(|e| e.function == name).unwrap()
}
