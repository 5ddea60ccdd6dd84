//! Errors of the stages as failures of the command.

use std::path::Path;

use millrace_check::Refusal;
use millrace_emit::Error;
use millrace_object::LoadError;

use crate::failure::{Failure, NO};
use crate::refusal;

/// A program that may not run: exit status 1. Its sources are shown if they are below the folder.
pub fn refused(name: &str, folder: &Path, refusals: &[Refusal]) -> Failure {
    let text: Vec<_> = refusals.iter().map(|r| refusal::text(r, folder)).collect();
    let what = match refusals.len() {
        1 => format!("{name} is refused"),
        n => format!("{name} is refused for {n} reasons"),
    };
    Failure {
        code: NO,
        detail: Some(text.join("\n\n")),
        ..Failure::wrong(what).help("mend what is shown above; nothing was run")
    }
}

/// A file that is not a program.
pub fn load(error: &LoadError) -> Failure {
    let line = error
        .line
        .as_ref()
        .map_or(String::new(), |l| format!("{}:{}: ", l.file, l.line));
    let symbol = error
        .symbol
        .as_ref()
        .map_or(String::new(), |s| format!(" (`{s}`)"));
    let what = format!("{line}{}: {}{symbol}", error.file, error.problem);
    Failure::wrong(what).help(&error.remedy)
}

/// Something that building found.
pub fn emit(error: Error) -> Failure {
    match error {
        Error::Refused { file, refusals } => {
            let folder = file.parent().unwrap_or(Path::new(""));
            refused(&file.display().to_string(), folder, &refusals)
        }
        Error::Toolchain { reason, package } => {
            Failure::wrong(reason).help(format!("apt-get install {package}"))
        }
        Error::Compile { file, diagnostics } => Failure {
            detail: Some(diagnostics),
            ..Failure::wrong(format!("{}: clang does not compile it", file.display()))
                .help("mend what clang shows above")
        },
        Error::Spent {
            stage,
            ref file,
            spent,
        } => Failure::wrong(format!(
            "{stage}: {spent} is used up, compiling {}",
            file.display()
        ))
        .help(format!("{}; or make the program smaller", spent.raise())),
        Error::Setting { setting, reason } => Failure::wrong(format!("--set {setting}: {reason}"))
            .help("`millrace check` lists the parameters with their types and values"),
        Error::Cache { path, reason } => {
            Failure::wrong(format!("the cache {}: {reason}", path.display()))
                .help("set MILLRACE_CACHE to a folder of your own, which others may not enter")
        }
        Error::Object { file, reason } => Failure::wrong(format!("{}: {reason}", file.display()))
            .help("give a BPF object as clang -target bpf -g makes it, or the source"),
        Error::Unsupported { place, what } => Failure::wrong(format!(
            "{place}: {what} is not supported"
        ))
        .help("write it without; `millrace emit` and `run` support what docs/dialect.md lists"),
        Error::Io { path, source } => Failure::wrong(format!("{}: {source}", path.display()))
            .help("make it readable, or make room"),
        Error::Capacity { .. } => Failure::wrong(error)
            .help("declare a smaller capacity; `millrace check` shows what each object takes"),
        Error::Shared { .. } => {
            Failure::wrong(error).help("`millrace check` lists the state objects with their names")
        }
        Error::Facts { .. } => {
            Failure::wrong(error).help("nothing was run; please report it with the source")
        }
    }
}
