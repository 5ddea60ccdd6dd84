//! Programs of this folder as models.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use millrace_check::{Checked, Options, check};
use millrace_model::expr::Bin;
use millrace_model::model::Entry;
use millrace_model::{Limits, Model, model};
use millrace_object::program::Program;
use millrace_object::types::{EntryTypes, entry_types};

/// Every operation.
pub const OPS: [Bin; 13] = [
    Bin::Add,
    Bin::Mul,
    Bin::Div,
    Bin::Rem,
    Bin::SignedDiv,
    Bin::SignedRem,
    Bin::And,
    Bin::Or,
    Bin::Xor,
    Bin::Shl,
    Bin::Shr,
    Bin::Sar,
    Bin::MulHigh,
];

/// A program, and what its proof knows.
pub struct Loaded {
    pub program: Program,
    pub checked: Checked,
    /// what the author's keys and values are made of
    pub types: BTreeMap<String, EntryTypes>,
}

/// Compiles and proves `programs/NAME.c`; none, and a line that says why, if clang or Z3 is not here.
pub fn load(name: &str) -> Option<Loaded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    compile(&folder.join(name).with_extension("c"))
}

/// The same of a source anywhere.
pub fn compile(source: &Path) -> Option<Loaded> {
    /// Z3, and the compiler.
    static FOUND: LazyLock<[Option<&str>; 2]> = LazyLock::new(|| {
        let runs = |c: &&str| Command::new(c).arg("--version").output().is_ok();
        [&["z3"][..], &["clang-19", "clang"]].map(|all| all.iter().copied().find(runs))
    });
    let [z3, clang] = *FOUND;
    if z3.is_none() {
        println!("skipped: there is no z3 (Debian: apt-get install z3)");
        return None;
    }
    let Some(clang) = clang else {
        println!("skipped: no clang that compiles for BPF");
        return None;
    };
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let scratch = tempfile::tempdir().unwrap();
    let object = scratch.path().join("program.o");
    let mut command = Command::new(clang);
    // The BPF target has no system headers of its own; <linux/types.h> needs the host's <asm/types.h>.
    for folder in std::fs::read_dir("/usr/include").unwrap() {
        let folder = folder.unwrap().path();
        if folder.to_string_lossy().ends_with("-linux-gnu") {
            command.arg("-idirafter").arg(folder);
        }
    }
    let output = command
        .args(["-target", "bpf", "-mcpu=v4", "-O2", "-g", "-w", "-c"])
        .arg("-I")
        .arg(include)
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let program = millrace_object::load_file(&object).unwrap();
    let checked = check(&program, &Options::default()).unwrap();
    let types = entry_types(&std::fs::read(&object).unwrap());
    Some(Loaded {
        program,
        checked,
        types,
    })
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
