// Of build scripts: what a crate is made from, so that what it makes may be kept under a name that says which version made it.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// A number for the sources of these crates.
#[allow(dead_code)]
pub fn version(top: &Path, crates: &[&str]) -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
    for name in crates {
        let mut sources = Vec::new();
        let folder = top.join("crates").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, "rs", &mut sources);
        sources.sort();
        for source in sources {
            println!("cargo::rerun-if-changed={}", source.display());
            std::fs::read(&source).unwrap_or_default().hash(&mut hash);
        }
    }
    hash.finish()
}

/// The files of this kind below a folder, but for tests.
pub fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
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
