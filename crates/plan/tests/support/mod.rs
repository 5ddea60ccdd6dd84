//! Programs as plans.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use millrace_check::{Options, check};
use millrace_model::{Limits, model};
use millrace_object::program::Program;
use millrace_plan::plan::{KindPlan, ObjectPlan, PortPlan};
use millrace_plan::{Plan, Wanted, plan};

/// A program of the bundled functions' folder.
pub fn function(name: &str) -> Option<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nfs");
    planned(
        &folder.join(name).join(name).with_extension("c"),
        "generic",
        16,
    )
}

/// A program of tests/programs.
pub fn program(name: &str) -> Option<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    planned(&folder.join(name).with_extension("c"), "generic", 16)
}

/// A program of tests/programs with these settings.
pub fn planned_with(name: &str, settings: &[(&str, &str)]) -> Option<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut program = compile(&folder.join(name).with_extension("c"))?;
    for (name, value) in settings {
        program.set_param(name, value).unwrap();
    }
    Some(of(&program, "generic", 16))
}

/// Compiles, proves, models and plans; none, and a line that says why, if clang or Z3 is not here.
pub fn planned(source: &Path, nic: &str, cores: u32) -> Option<Plan> {
    Some(of(&compile(source)?, nic, cores))
}

/// Proves, models and plans.
fn of(program: &Program, nic: &str, cores: u32) -> Plan {
    let checked = check(program, &Options::default()).unwrap();
    let limits = Limits {
        time: Duration::from_secs(120),
        ..Limits::default()
    };
    let mut model = model(program, &checked, &limits);
    let wanted = Wanted {
        cores,
        nic: nic.to_owned(),
        strategy: None,
    };
    plan(&mut model, program, &wanted).unwrap()
}

fn compile(source: &Path) -> Option<Program> {
    let runs = |c: &str| Command::new(c).arg("--version").output().is_ok();
    if !runs("z3") {
        println!("skipped: there is no z3 (Debian: apt-get install z3)");
        return None;
    }
    let Some(clang) = ["clang-19", "clang"].into_iter().find(|c| runs(c)) else {
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
        .args(["-target", "bpf", "-mcpu=v4", "-O2", "-g", "-w", "-c", "-I"])
        .arg(include)
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(millrace_object::load_file(&object).unwrap())
}

/// What is planned for an object.
pub fn object<'a>(plan: &'a Plan, name: &str) -> &'a ObjectPlan {
    let found = plan.objects.iter().find(|o| o.name == name);
    found.unwrap_or_else(|| panic!("no object {name}"))
}

/// What is planned for a port.
pub fn port<'a>(plan: &'a Plan, name: &str) -> &'a PortPlan {
    let found = plan.ports.iter().find(|p| p.name == name);
    found.unwrap_or_else(|| panic!("no port {name}"))
}

/// What is planned for a kind of packet.
pub fn kind<'a>(port: &'a PortPlan, name: &str) -> &'a KindPlan {
    let found = port.kinds.iter().find(|k| k.kind == name);
    found.unwrap_or_else(|| panic!("no kind {name}"))
}
