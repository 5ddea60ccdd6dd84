//! Lists the C headers that every generated module includes, so that the binary carries them, and
//! names this version of what makes modules.

use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

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
    let mut hash = std::hash::DefaultHasher::new();
    for crate_name in ["object", "check", "history", "place", "emit"] {
        let mut sources = Vec::new();
        let folder = top.join("crates").join(crate_name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, "rs", &mut sources);
        sources.sort();
        for source in sources {
            println!("cargo::rerun-if-changed={}", source.display());
            std::fs::read(&source).unwrap_or_default().hash(&mut hash);
        }
    }
    println!("cargo::rustc-env=MILLRACE_EMITTER={:016x}", hash.finish());

    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("headers.rs");
    if let Err(error) = std::fs::write(&out, list) {
        println!("cargo::error={}: {error}", out.display());
    }
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            if path
                .file_name()
                .is_some_and(|n| n != "tests" && n != "bench")
            {
                collect(&path, extension, found);
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}
