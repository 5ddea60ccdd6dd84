//! Emitted C to a shared object.

use std::path::Path;
use std::process::Command;

use millrace_check::Budget;

use super::bounded::{self, Ended};
use super::{Toolchain, judged, run};
use crate::error::Error;

/// How a module is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleOptions {
    /// with AddressSanitizer and UndefinedBehaviorSanitizer; the process must have their runtime
    pub sanitize: bool,
    /// warnings are errors: for the tests of what is emitted
    pub strict: bool,
    /// compiled in a sixth of the time, several times slower and without lines: for tests of what is neither the code's
    /// speed nor where it came from
    pub unoptimised: bool,
}

/// The flags of every module.
const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-march=native",
    "-fPIC",
    "-fvisibility=hidden",
    // BPF's memory has no types, its sums and addresses wrap.
    "-fno-strict-aliasing",
    "-fno-strict-overflow",
    // perf, gdb and llvm-symbolizer show the author's lines.
    "-gline-tables-only",
    // As of an NF: what ends at a limit leaves nothing behind.
    "-fno-crash-diagnostics",
];
const PLAIN: &[&str] = &["-O3"];
/// Not optimised: clang takes a third of the time, and undefined behaviour is reported by the sanitizers, not shown by what
/// an optimiser makes of it.
const SANITIZED: &[&str] = &[
    "-O0",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
];
/// What takes time and memory in proportion to the program.
const UNOPTIMISED: &[&str] = &["-O0"];
/// The same without what takes a quarter of the time that is left.
const QUICK: &[&str] = &["-O0", "-g0"];
/// The part of the time that is left for the optimised module.
const OPTIMISED: f64 = 0.5;
/// The exception is about clang 19 and its own -march=native on CPUs with AVX10.
const STRICT: &[&str] = &[
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unknown-warning-option",
    "-Wno-invalid-feature-combination",
];
/// A user cannot fix a warning in emitted code; the tests compile it strictly.
const LAX: &[&str] = &["-w"];

/// Libraries that helpers call, by their headers. By the name of the file that is loaded, so that its development package need not be
/// there: the header declares what it calls.
const LIBRARIES: &[(&str, &str)] = &[("#include \"helpers/aead_", "-l:libsodium.so.23")];

/// Those that a module is linked with.
fn libraries(source: &Path) -> impl Iterator<Item = &'static str> {
    let text = std::fs::read_to_string(source).unwrap_or_default();
    let called =
        move |(header, library): &(&str, &'static str)| text.contains(*header).then_some(*library);
    LIBRARIES.iter().filter_map(called)
}

impl ModuleOptions {
    /// As users have them; in builds with debug assertions alone, unoptimised where `MILLRACE_UNOPTIMISED` is set. Two thirds
    /// of the time of tests that run the command went into clang's optimiser.
    #[must_use]
    pub fn of_command() -> Self {
        Self {
            unoptimised: cfg!(debug_assertions)
                && std::env::var_os("MILLRACE_UNOPTIMISED").is_some(),
            ..Self::default()
        }
    }

    /// The flags; they go into the cache key.
    pub fn flags(self) -> impl Iterator<Item = &'static str> {
        let optimise = match self {
            Self { sanitize: true, .. } => SANITIZED,
            Self {
                unoptimised: true, ..
            } => QUICK,
            _ => PLAIN,
        };
        let warn = if self.strict { STRICT } else { LAX };
        FLAGS.iter().chain(optimise).chain(warn).copied()
    }
}

/// Compiles emitted C to `module`. `fastpath` is the folder that holds the fast path's headers.
///
/// # Errors
/// [`Error::Compile`] with clang's diagnostics; [`Error::Io`].
pub fn compile_module(
    toolchain: &Toolchain,
    source: &Path,
    fastpath: &Path,
    module: &Path,
    options: ModuleOptions,
) -> Result<(), Error> {
    compile_module_within(
        toolchain,
        source,
        fastpath,
        module,
        options,
        &Budget::default(),
    )
    .map(|_| ())
}

/// The same within a budget. Half of the time that is left is for an optimised module; where that does not do it is
/// compiled without optimisation, and the answer says so.
///
/// # Errors
/// As [`compile_module`], and [`Error::Spent`].
pub fn compile_module_within(
    toolchain: &Toolchain,
    source: &Path,
    fastpath: &Path,
    module: &Path,
    options: ModuleOptions,
    budget: &Budget,
) -> Result<Option<String>, Error> {
    // The sanitizers' own parts are the driver's.
    let Some(link) = toolchain.link.as_ref().filter(|_| !options.sanitize) else {
        let last: Vec<&str> = ["-shared"].into_iter().chain(libraries(source)).collect();
        return compiled(toolchain, source, fastpath, module, options, budget, &last);
    };
    let object = module.with_extension("o");
    let slow = compiled(
        toolchain,
        source,
        fastpath,
        &object,
        options,
        budget,
        &["-c"],
    );
    let linked = slow.and_then(|slow| {
        let command = link.command(&object, libraries(source), module);
        run(&command, source, budget).map(|_| slow)
    });
    // Where clang was killed it may be there all the same.
    let _ = std::fs::remove_file(&object);
    linked
}

/// Has clang make `output`, with these last arguments. The answer is as that of [`compile_module_within`].
fn compiled(
    toolchain: &Toolchain,
    source: &Path,
    fastpath: &Path,
    output: &Path,
    options: ModuleOptions,
    budget: &Budget,
    last: &[&str],
) -> Result<Option<String>, Error> {
    let command = |own: &[&str]| {
        let mut command = Command::new(&toolchain.clang);
        command
            .args(options.flags())
            .args(own)
            .arg("-I")
            .arg(fastpath)
            .arg("-o")
            .arg(output)
            .arg(source)
            .args(last);
        command
    };
    if options.sanitize || options.strict || options.unoptimised {
        return run(&command(&[]), source, budget).map(|_| None);
    }
    match bounded::run(&command(&[]), budget, OPTIMISED)? {
        Ended::Itself(status, said) => judged(status, said, source).map(|_| None),
        Ended::Spent(spent) => {
            run(&command(UNOPTIMISED), source, budget)?;
            Ok(Some(format!(
                "clang: {spent} does not suffice to optimise {}: it is compiled with {}, and runs several times slower; {}",
                source.file_name().unwrap_or_default().display(),
                UNOPTIMISED.join(" "),
                spent.raise()
            )))
        }
    }
}
