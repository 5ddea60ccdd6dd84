//! A bundle: a folder with a module and what it was made from, which runs without a compiler.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use millrace_emit::Built;
use millrace_object::Program;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::find::MANIFEST;

const MODULE: &str = "module.so";
const OBJECT: &str = "program.o";
const SOURCE: &str = "module.c";
/// Increases when a bundle of an older version could be misread.
const VERSION: u32 = 1;
/// Bytes of a manifest, at most.
const MOST_MANIFEST: u64 = 1 << 20;

/// Manifest of a bundle.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// of this format
    version: u32,
    /// of the function
    name: String,
    /// what the module's code may use, as the kernel names it: the module runs where all of it is
    cpu: BTreeSet<String>,
}

/// Writes a bundle to a folder, which is made if it is not there.
///
/// # Errors
/// The folder holds something else, or cannot be written.
pub fn write(folder: &Path, built: &Built) -> Result<(), Error> {
    let failed = |e: std::io::Error| {
        Error::wrong(format!("{}: cannot be written: {e}", folder.display()))
            .help("choose another -o")
    };
    let object = built.object.as_deref().ok_or_else(|| {
        Error::wrong(format!(
            "{}: a bundle is of one object, and a linked row has several",
            built.program.name
        ))
        .help("build each function, or run the row from its sources")
    })?;
    // Something of the user's own must not be mixed with it.
    let mut there = std::fs::read_dir(folder).into_iter().flatten().flatten();
    if !folder.join(MANIFEST).exists() && there.next().is_some() {
        return Err(
            Error::wrong(format!("{}: not empty, and not a bundle", folder.display()))
                .help("choose another -o"),
        );
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    let manifest = Manifest {
        version: VERSION,
        name: built.program.name.clone(),
        cpu: cpu_features(),
    };
    let text = serde_json::to_string_pretty(&manifest).map_err(std::io::Error::from);
    std::fs::copy(&built.module, folder.join(MODULE)).map_err(failed)?;
    std::fs::copy(object, folder.join(OBJECT)).map_err(failed)?;
    std::fs::copy(&built.source, folder.join(SOURCE)).map_err(failed)?;
    // Last: a folder with a manifest is complete.
    std::fs::write(folder.join(MANIFEST), text.map_err(failed)?).map_err(failed)
}

/// The BPF object of a bundle.
pub(crate) fn object(folder: &Path) -> PathBuf {
    folder.join(OBJECT)
}

/// The program and the module of a bundle.
pub(crate) fn open(folder: &Path) -> Result<(Program, PathBuf), Error> {
    let path = folder.join(MANIFEST);
    let again = "build it again with `millrace build`";
    let broken =
        |e: &dyn std::fmt::Display| Error::wrong(format!("{}: {e}", path.display())).help(again);
    let text = millrace_object::file::read_text(&path, MOST_MANIFEST).map_err(|e| broken(&e))?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|e| broken(&e))?;
    if manifest.version != VERSION {
        return Err(broken(&format!(
            "version {} of the format, not {VERSION}",
            manifest.version
        )));
    }
    let here = cpu_features();
    let missing: Vec<_> = manifest.cpu.difference(&here).cloned().collect();
    if !missing.is_empty() {
        let what = format!("it was built for a processor with {}", missing.join(" "));
        return Err(broken(&what).help("build it again on this machine or one like it"));
    }
    let mut program = millrace_object::load_file(&object(folder))?;
    program.name = manifest.name;
    Ok((program, folder.join(MODULE)))
}

/// The features of the first processor, as /proc/cpuinfo names them; none where it names none.
fn cpu_features() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text
        .lines()
        .find(|l| l.starts_with("flags") || l.starts_with("Features"));
    let names = line.and_then(|l| l.split_once(':')).map(|(_, names)| names);
    names
        .unwrap_or("")
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}
