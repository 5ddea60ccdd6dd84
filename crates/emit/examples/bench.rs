//! Emitted code against the same function written by hand (bench/NAME.c), on the same table:
//! `cargo run --release -p millrace-emit --example bench -- portknock [FLOWS [ROUNDS]]`.

use std::path::{Path, PathBuf};
use std::process::Command;

use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{ModuleOptions, compile_module, compile_nf, find};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments
        .next()
        .ok_or("give an NF that bench/ has a hand-written form of")?;
    let flows: u64 = arguments.next().map_or(Ok(1 << 20), |a| a.parse())?;
    let rounds = arguments.next().unwrap_or_else(|| "11".into());
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let work = tempfile::tempdir()?;
    let at = |file: &str| -> PathBuf { work.path().join(file) };

    let cache = Cache::at(&at("cache"))?;
    let toolchain = find(&cache)?;
    let headers = cache.headers()?;
    let fastpath = headers.join("fastpath");

    let object = at("nf.o");
    let source = here.join(format!("../../nfs/{name}/{name}.c"));
    compile_nf(&toolchain, &source, &headers.join("include"), &object)?;
    let mut program = millrace_object::load(&std::fs::read(&object)?, &name)?;
    let capacity = (flows * 5 / 4).max(65536);
    for table in program.objects.iter_mut().filter(|o| o.kind.c == "hash") {
        table.capacity = capacity;
    }
    let checked = millrace_check::check(&program, &millrace_check::Options::default())
        .map_err(|refusals| format!("{refusals:?}"))?;
    std::fs::write(
        at("emitted.c"),
        millrace_emit::alone::emit(&program, &checked, "emitted.c")?,
    )?;
    let by_hand = std::fs::read_to_string(here.join(format!("bench/{name}.c")))?;
    std::fs::write(
        at("by-hand.c"),
        format!("#define CAPACITY {capacity}\n{by_hand}"),
    )?;

    let mut harness = Command::new(at("harness"));
    harness.arg(flows.to_string()).arg(rounds);
    for subject in ["by-hand", "emitted"] {
        let module = at(&format!("{subject}.so"));
        compile_module(
            &toolchain,
            &at(&format!("{subject}.c")),
            &fastpath,
            &module,
            ModuleOptions::default(),
        )?;
        harness.arg(format!("{subject}={}", module.display()));
    }
    let built = Command::new(&toolchain.clang)
        .args(["-O2", "-Wall", "-Wextra", "-I"])
        .arg(&fastpath)
        .arg("-o")
        .arg(at("harness"))
        .arg(here.join("bench/harness.c"))
        .arg("-ldl")
        .status()?;
    if !built.success() {
        return Err("the harness does not compile".into());
    }
    if std::env::var_os("KEEP").is_some() {
        println!("{}", work.path().display());
        let _ = work.keep();
    }
    if !harness.status()?.success() {
        return Err("the harness failed".into());
    }
    Ok(())
}
