//! An NF's source to a BPF object.

use std::path::{Path, PathBuf};
use std::process::Command;

use millrace_check::Budget;

use super::{Toolchain, run};
use crate::error::Error;

/// A compiled NF.
#[derive(Clone, Debug)]
pub struct CompiledNf {
    /// clang's warnings, empty if there are none
    pub warnings: String,
    /// every file that the source includes, itself first
    pub dependencies: Vec<PathBuf>,
}

/// The flags of every NF; they go into the cache key.
pub const FLAGS: &[&str] = &[
    "-target",
    "bpf",
    "-mcpu=v4",
    "-O2",
    "-g",
    "-std=gnu11",
    "-Wall",
    // A key or value of the wrong type is the commonest mistake there is; it must not compile.
    "-Werror=incompatible-pointer-types",
    "-Werror=implicit-function-declaration",
    // A clang that runs out of its memory limit is an answer; it need not leave its input in the temporary folder.
    "-fno-crash-diagnostics",
];

/// Compiles an NF to `object`. `include` is the folder that holds `millrace/`.
///
/// The source is named to clang as the user named it, so diagnostics and line records say that name.
///
/// # Errors
/// [`Error::Compile`] with clang's diagnostics; [`Error::Io`].
pub fn compile_nf(
    toolchain: &Toolchain,
    source: &Path,
    include: &Path,
    object: &Path,
) -> Result<CompiledNf, Error> {
    compile_nf_within(toolchain, source, include, object, &Budget::default())
}

/// The same within a budget.
///
/// # Errors
/// As [`compile_nf`], and [`Error::Spent`].
pub fn compile_nf_within(
    toolchain: &Toolchain,
    source: &Path,
    include: &Path,
    object: &Path,
    budget: &Budget,
) -> Result<CompiledNf, Error> {
    let list = object.with_extension("d");
    let mut command = Command::new(&toolchain.clang);
    command.args(FLAGS).arg("-I").arg(include);
    // Line records and messages say <millrace/packet.h>, not where the cache keeps it.
    let mut prefix = std::ffi::OsString::from("-ffile-prefix-map=");
    prefix.push(include.join(""));
    prefix.push("=");
    command.arg(prefix);
    // The BPF target has no system headers of its own; <linux/types.h> needs the host's <asm/types.h>.
    for folder in multiarch() {
        command.arg("-idirafter").arg(folder);
    }
    command
        .arg("-MD")
        .arg("-MF")
        .arg(&list)
        .arg("-c")
        .arg("-o")
        .arg(object)
        .arg(source);
    let warnings = run(&command, source, budget)?;
    let text = std::fs::read_to_string(&list).map_err(Error::io(&list))?;
    // Only a leftover if it stays.
    let _ = std::fs::remove_file(&list);
    Ok(CompiledNf {
        warnings,
        dependencies: dependencies(&text),
    })
}

/// The host's own include folders, as Debian lays them out.
fn multiarch() -> Vec<PathBuf> {
    let folder = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    [PathBuf::from(folder)]
        .into_iter()
        .filter(|f| f.is_dir())
        .collect()
}

/// The prerequisites of the make rule that `-MD` writes: spaces escaped by a backslash, lines
/// continued by one, `$` doubled.
fn dependencies(rule: &str) -> Vec<PathBuf> {
    let Some((_, list)) = rule.split_once(": ") else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut name = String::new();
    let mut characters = list.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.peek() == Some(&'\n') => {}
            '\\' if matches!(characters.peek(), Some(' ' | '#' | '\\')) => {
                name.extend(characters.next());
            }
            '$' if characters.peek() == Some(&'$') => name.extend(characters.next()),
            c if c.is_whitespace() => {
                if !name.is_empty() {
                    files.push(PathBuf::from(std::mem::take(&mut name)));
                }
            }
            c => name.push(c),
        }
    }
    if !name.is_empty() {
        files.push(PathBuf::from(name));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::dependencies;
    use std::path::PathBuf;

    #[test]
    fn reads_make_rules() {
        let rule = "x.o: a.c \\\n  /usr/include/b.h with\\ space.h \\\n  d$$.h\n";
        let expected: Vec<PathBuf> = ["a.c", "/usr/include/b.h", "with space.h", "d$.h"]
            .iter()
            .map(PathBuf::from)
            .collect();
        assert_eq!(dependencies(rule), expected);
        assert!(dependencies("").is_empty());
    }
}
