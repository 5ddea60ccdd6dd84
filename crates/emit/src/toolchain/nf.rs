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
    let warnings = match run(&command, source, budget) {
        // <linux/icmp.h> has headers of the C library in it, which take a target that is not the host's for one of 32 bits
        // and miss its part of the library. The host's part has the sizes of BPF.
        Err(Error::Compile { diagnostics, .. })
            if diagnostics.contains(MISSED) && !has_a_dialect(source) =>
        {
            command.arg(format!("-D__{}__", std::env::consts::ARCH));
            run(&command, source, budget)
        }
        other => other,
    };
    let warnings = warnings.map_err(|e| explained(e, source))?;
    let text = std::fs::read_to_string(&list).map_err(Error::io(&list))?;
    // Only a leftover if it stays.
    let _ = std::fs::remove_file(&list);
    Ok(CompiledNf {
        warnings,
        dependencies: dependencies(&text),
    })
}

/// What clang says of a header of the C library, where no other part of it than the host's is installed.
const MISSED: &str = "gnu/stubs-32.h' file not found";

/// Whether a source is of handlers, for which `millrace/` has all that they may use; else it is XDP as the kernel takes it.
fn has_a_dialect(source: &Path) -> bool {
    let text = std::fs::read_to_string(source).unwrap_or_default();
    text.contains("<millrace/")
}

/// A header of the host's C library does not compile for BPF, and clang names a file far inside of it: the author's
/// line, and what there is instead, come first.
fn explained(error: Error, source: &Path) -> Error {
    match error {
        Error::Compile { file, diagnostics } => {
            let text = std::fs::read_to_string(source).unwrap_or_default();
            let first = hosted(&diagnostics, &source.display().to_string(), &text);
            Error::Compile {
                file,
                diagnostics: first.map_or(diagnostics.clone(), |f| format!("{f}\n{diagnostics}")),
            }
        }
        other => other,
    }
}

/// What a network function has instead of a header of the C library.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &["time.h", "sys/time.h"],
        "`p->time` is the packet's time in ns",
    ),
    (
        &["pthread.h", "threads.h", "stdatomic.h", "semaphore.h"],
        "a function sees one packet at a time and needs no locks, atomics or threads: the plan spreads it over cores",
    ),
    (
        &["stdio.h"],
        "name drops with `DROP_BECAUSE(reason)` and count in a state object: both can be read while it runs",
    ),
    (
        &["stdlib.h"],
        "memory is declared as state: MAP, VECTOR, ALLOCATOR, SKETCH, LPM; `random32()` draws a number",
    ),
    (
        &["string.h"],
        "use `__builtin_memcpy`, `__builtin_memset` or an assignment of structs",
    ),
];

/// The message for a header that needs the host's C library, from clang's diagnostics; none if it is about another thing.
fn hosted(diagnostics: &str, source: &str, text: &str) -> Option<String> {
    if !diagnostics.contains(MISSED) {
        return None;
    }
    let place = diagnostics.lines().find_map(|l| {
        let rest = l
            .strip_prefix("In file included from ")?
            .strip_prefix(source)?;
        rest.strip_prefix(':')?
            .strip_suffix(':')?
            .parse::<usize>()
            .ok()
    })?;
    let line = text.lines().nth(place.checked_sub(1)?)?;
    let header = line.split(['<', '>', '"']).nth(1).unwrap_or("this header");
    let instead = INSTEAD.iter().find(|(names, _)| names.contains(&header));
    let instead = instead.map_or(
        "`#include <millrace/nf.h>` has all that a function may use",
        |(_, what)| what,
    );
    Some(format!(
        "{source}:{place}: error: `{header}` belongs to the host's C library, which a network function does not have\n  help: {instead}"
    ))
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
    use super::{dependencies, hosted};
    use std::path::PathBuf;

    #[test]
    fn a_header_of_the_host_is_named_at_the_authors_line() {
        let said = "In file included from f.c:2:\nIn file included from /usr/include/x.h:25:\n/usr/include/gnu/stubs.h:7:11: fatal error: 'gnu/stubs-32.h' file not found\n";
        for (header, help) in [
            ("time.h", "p->time"),
            ("pthread.h", "no locks, atomics or threads"),
            ("stdio.h", "DROP_BECAUSE"),
            ("stdlib.h", "MAP, VECTOR"),
            ("string.h", "__builtin_memcpy"),
            ("signal.h", "nf.h"),
        ] {
            let text = format!("#include <millrace/nf.h>\n#include <{header}>\n");
            let first = hosted(said, "f.c", &text).unwrap_or_default();
            assert!(
                first.starts_with(&format!("f.c:2: error: `{header}`")),
                "{first}"
            );
            assert!(first.contains(help), "{first}");
        }
        assert!(hosted("f.c:3: error: expected ';'", "f.c", "").is_none());
    }

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
