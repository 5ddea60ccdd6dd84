//! Lists the C headers that every generated module includes, so that the binary carries them, and
//! names this version of what makes modules.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use sources::collect;

#[path = "../object/sources.rs"]
mod sources;

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let top = root.join("../..");
    let mut list = String::from("&[\n");
    for (folder, under) in [
        ("fastpath", "fastpath"),
        ("include/millrace", "include/millrace"),
        ("crates/emit/c", "fastpath"),
    ] {
        let base = top.join(folder);
        println!("cargo::rerun-if-changed={}", base.display());
        let mut headers = Vec::new();
        collect(&base, "h", &mut headers);
        headers.sort();
        for header in headers {
            let Ok(inside) = header.strip_prefix(&base) else {
                continue;
            };
            println!("cargo::rerun-if-changed={}", header.display());
            let _ = writeln!(
                list,
                "    ({:?}, include_str!({:?})),",
                Path::new(under).join(inside).display().to_string(),
                header.display().to_string()
            );
        }
    }
    list.push_str("]\n");
    // What turns an object into C: a module in the cache is good for exactly this version of it.
    let version = sources::version(&top, &["object", "check", "history", "place", "emit"]);
    println!("cargo::rustc-env=MILLRACE_EMITTER={version:016x}");

    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("headers.rs");
    if let Err(error) = std::fs::write(&out, list) {
        println!("cargo::error={}: {error}", out.display());
    }
}
