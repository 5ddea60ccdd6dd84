//! Lists the C headers that every generated module includes, so that the binary carries them.

use std::fmt::Write;
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
        collect(&base, &mut headers);
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
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("headers.rs");
    if let Err(error) = std::fs::write(&out, list) {
        println!("cargo::error={}: {error}", out.display());
    }
}

fn collect(folder: &Path, headers: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() {
            if path
                .file_name()
                .is_some_and(|n| n != "tests" && n != "bench")
            {
                collect(&path, headers);
            }
        } else if path.extension().is_some_and(|e| e == "h") {
            headers.push(path);
        }
    }
}
