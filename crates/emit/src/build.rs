//! From an NF's source or object to a module that can be loaded, through the cache.
//!
//! Three shelves, each entry named by what it was made from:
//!
//! - `sources`: for a source, flags and compiler: the files it includes with their hashes, and the
//!   object that came of it. If every file still has its hash, clang is not asked again.
//! - `objects`: BPF objects.
//! - `modules`: for an object, its constants, the emitter, compiler, flags and CPU: the emitted C and
//!   the shared object. What is there has passed the check, so a warm start does neither check nor emit.
//!
//! Parameters (`.rodata.params`) are handed in when an instance is made; their values are not in the
//! key, and one module serves all settings. Other constants are compiled in.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millrace_check::{Budget, Checked};
use millrace_object::Program;
use millrace_object::options::OPTIONS;
use millrace_object::program::StateObject;
use millrace_place::{Held, Place, Placement};

use crate::cache::{Cache, key};
use crate::error::Error;
use crate::sync::{Sharing, Test};
use crate::toolchain::{self, ModuleOptions, Toolchain};
use crate::{codegen, headers};

/// What building is at; for showing progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// clang turns the source into a BPF object
    Compile,
    /// the object is read
    Load,
    /// the program is proved safe
    Check,
    /// C is emitted
    Emit,
    /// clang turns the C into a shared object
    Module,
}

/// How to build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// how the module is compiled
    pub module: ModuleOptions,
    /// the checker's limits
    pub check: millrace_check::Options,
    /// state objects by name, and the capacity that each instance's is to have instead of the declared one
    pub capacities: Vec<(String, u64)>,
    /// only this program for packets, of an object that holds several (`Program::narrow`)
    pub program: Option<String>,
    /// how the objects live on several workers, found there by their names; none: on one
    pub placement: Option<Arc<Placement>>,
    /// how a test has the lock behave; nothing else sets it
    pub test: Option<Test>,
    /// for a profile: what packets of one worker met of another's is counted
    pub profile: bool,
}

/// How long each stage took; zero for what the cache spared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// source to object
    pub compile: Duration,
    /// object to program
    pub load: Duration,
    /// program to facts
    pub check: Duration,
    /// facts to C
    pub emit: Duration,
    /// C to shared object
    pub module: Duration,
    /// everything, cache look-ups included
    pub total: Duration,
}

/// A module, and what it was made from.
#[derive(Clone, Debug)]
pub struct Built {
    /// the shared object, with the interface of fastpath/abi.h
    pub module: PathBuf,
    /// the emitted C
    pub source: PathBuf,
    /// the BPF object; none of a program that was linked
    pub object: Option<PathBuf>,
    /// the program, settings applied: `initial` of each global is what `create` is to be given
    pub program: Program,
    /// the facts, if the check had to be made
    pub checked: Option<Checked>,
    /// clang's warnings about the NF, if it had to be compiled
    pub warnings: String,
    /// how long it took
    pub timings: Timings,
    /// whether the module was there already
    pub from_cache: bool,
}

/// Builds an NF. `input` is C source if its name ends in `.c`, else a BPF object; `settings` are the
/// names and values of `--set`.
///
/// # Errors
/// Whatever a stage finds: see [`Error`].
pub fn build(
    cache: &Cache,
    input: &Path,
    settings: &[(String, String)],
    options: &Options,
    progress: &mut dyn FnMut(Stage),
) -> Result<Built, Error> {
    let begin = Instant::now();
    let mut timings = Timings::default();
    let budget = options.check.budget.unwrap_or_default();
    let toolchain = toolchain::find(cache)?;

    let mut warnings = String::new();
    let object = if input.extension().is_some_and(|e| e == "c") {
        let (object, said) = compiled(cache, &toolchain, input, &budget, &mut timings, progress)?;
        warnings = said;
        object
    } else {
        input.to_owned()
    };

    progress(Stage::Load);
    let at = Instant::now();
    let bytes = millrace_object::file::read(&object, millrace_object::MOST_BYTES)
        .map_err(Error::io(&object))?;
    let name = input
        .file_stem()
        .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let loaded = millrace_object::load_with(&bytes, &name, &options.capacities);
    let mut program = loaded.map_err(|e| Error::Object {
        file: input.to_owned(),
        reason: e.to_string(),
    })?;
    for (name, value) in settings {
        let fault = |e: millrace_object::ParamError| Error::Setting {
            setting: format!("{name}={value}"),
            reason: e.to_string(),
        };
        program.set_param(name, value).map_err(fault)?;
    }
    for (name, capacity) in &options.capacities {
        let fault = |e: millrace_object::CapacityError| Error::Capacity {
            setting: format!("{name}={capacity}"),
            reason: e.to_string(),
        };
        program.set_capacity(name, *capacity).map_err(fault)?;
    }
    // Which program it is, if there is none of this name, is for the caller to say.
    if let Some(name) = &options.program {
        program.narrow(name);
    }
    timings.load = at.elapsed();

    let made = Made {
        program,
        identity: &bytes,
        input,
        name: &name,
    };
    let front = Front {
        begin,
        timings,
        warnings,
        object: Some(object),
    };
    finish(cache, &toolchain, made, options, front, progress)
}

/// Builds a program that was made of several objects, whose bytes are its `identity` in the cache; `input` names it in messages.
/// Parameters and capacities are set already.
///
/// # Errors
/// As [`build`].
pub fn build_program(
    cache: &Cache,
    (program, identity): (Program, &[u8]),
    input: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Stage),
) -> Result<Built, Error> {
    let front = Front {
        begin: Instant::now(),
        timings: Timings::default(),
        warnings: String::new(),
        object: None,
    };
    let toolchain = toolchain::find(cache)?;
    let name = program.name.clone();
    let made = Made {
        program,
        identity,
        input,
        name: &name,
    };
    finish(cache, &toolchain, made, options, front, progress)
}

/// A program to build.
struct Made<'a> {
    program: Program,
    /// bytes that it was made of, for the cache
    identity: &'a [u8],
    /// its name in messages
    input: &'a Path,
    /// its name in the emitted code
    name: &'a str,
}

/// What was done before there was a program.
struct Front {
    begin: Instant,
    timings: Timings,
    warnings: String,
    object: Option<PathBuf>,
}

/// Builds a module of a program.
fn finish(
    cache: &Cache,
    toolchain: &Toolchain,
    made: Made<'_>,
    options: &Options,
    front: Front,
    progress: &mut dyn FnMut(Stage),
) -> Result<Built, Error> {
    let Made {
        program,
        identity,
        input,
        name,
    } = made;
    let Front {
        begin,
        mut timings,
        mut warnings,
        object,
    } = front;
    let budget = options.check.budget.unwrap_or_default();
    let key = module_key(toolchain, &program, identity, options);
    let module = cache.entry("modules", &key, "so");
    let source = cache.entry("modules", &key, "c");
    let note = cache.entry("modules", &key, "txt");
    let slow = slow(cache, &note);
    let mut checked = None;
    // With more time than there was it may be optimised.
    let enough = slow.as_ref().is_none_or(|(had, _)| *had >= budget.time());
    let from_cache = cache.has(&module) && cache.has(&source) && enough;
    if let (true, Some((_, said))) = (from_cache, &slow) {
        warn(&mut warnings, said);
    }
    if !from_cache {
        progress(Stage::Check);
        let at = Instant::now();
        let limits = millrace_check::Options {
            budget: Some(budget),
            // Who wants to see the code watched wants to see it do what was proved, too.
            claims: options.module.sanitize,
            ..options.check.clone()
        };
        let facts =
            millrace_check::check(&program, &limits).map_err(|refusals| Error::Refused {
                file: input.to_owned(),
                refusals,
            })?;
        timings.check = at.elapsed();

        progress(Stage::Emit);
        let at = Instant::now();
        let sharing = sharing(&program, options)?;
        let mut text = codegen::emit(&program, &facts, &sharing, &source.display().to_string())?;
        if options.profile {
            text.insert_str(0, "#define MR_SAMPLED 1\n");
        }
        timings.emit = at.elapsed();

        progress(Stage::Module);
        let at = Instant::now();
        let work = cache.workplace(&module)?;
        let (c, so) = (
            work.path().join(format!("{}.c", codegen::identifier(name))),
            work.path().join("module.so"),
        );
        std::fs::write(&c, text).map_err(Error::io(&c))?;
        let fastpath = cache.headers()?.join("fastpath");
        let slow = toolchain::compile_module_within(
            toolchain,
            &c,
            &fastpath,
            &so,
            options.module,
            &budget,
        )?;
        if let Some(said) = &slow {
            warn(&mut warnings, said);
            let text = format!("{}\n{said}", budget.time().as_millis());
            cache.write(&note, text.as_bytes())?;
        } else if cache.has(&note) {
            let _ = std::fs::remove_file(&note);
        }
        cache.place(&c, &source)?;
        cache.place(&so, &module)?;
        timings.module = at.elapsed();
        checked = Some(facts);
        cache.trim();
    }
    timings.total = begin.elapsed();
    Ok(Built {
        module,
        source,
        object,
        program,
        checked,
        warnings,
        timings,
        from_cache,
    })
}

/// Adds a line to what is shown.
fn warn(warnings: &mut String, line: &str) {
    if !warnings.is_empty() && !warnings.ends_with('\n') {
        warnings.push('\n');
    }
    let _ = writeln!(warnings, "warning: {line}");
}

/// Within which time a module could not be optimised, if so, and what was said of that.
fn slow(cache: &Cache, note: &Path) -> Option<(Duration, String)> {
    if !cache.has(note) {
        return None;
    }
    let text = std::fs::read_to_string(note).ok()?;
    let (time, said) = text.split_once('\n')?;
    Some((Duration::from_millis(time.parse().ok()?), said.to_owned()))
}

/// The objects of which a placement makes other code than one worker has.
fn named(placement: &Placement) -> impl Iterator<Item = &str> {
    let held = placement.names(|held| {
        let shared = matches!(held, Held::Locked | Held::Transacted | Held::Replicated);
        shared || held.staleness().is_some()
    });
    held.chain(placement.coming_home())
}

/// The placement in the program's order.
fn sharing(program: &Program, options: &Options) -> Result<Sharing, Error> {
    let Some(placement) = &options.placement else {
        return Ok(Sharing {
            test: options.test,
            profile: options.profile,
            ..Sharing::default()
        });
    };
    let missing = named(placement).find(|name| !program.objects.iter().any(|o| o.name == *name));
    if let Some(missing) = missing {
        let known: Vec<&str> = program.objects.iter().map(|o| o.name.as_str()).collect();
        return Err(Error::Shared {
            object: missing.to_owned(),
            known: known.join(", "),
        });
    }
    let place = |object: &StateObject| match placement.of(&object.name) {
        Some(place) => place.clone(),
        None => Place::new(object, Held::Copied),
    };
    Ok(Sharing {
        placement: Placement {
            objects: program.objects.iter().map(place).collect(),
            indexes: placement.indexes,
            noted: placement.noted,
            ..Placement::default()
        },
        test: options.test,
        profile: options.profile,
    })
}

/// The BPF object of a C source, from the cache if no file that it includes has changed, and clang's warnings.
///
/// # Errors
/// There is no such source, or clang refuses it.
pub fn object(cache: &Cache, source: &Path, budget: &Budget) -> Result<(PathBuf, String), Error> {
    let toolchain = toolchain::find(cache)?;
    compiled(
        cache,
        &toolchain,
        source,
        budget,
        &mut Timings::default(),
        &mut |_| {},
    )
}

/// The same, with the time that it took.
fn compiled(
    cache: &Cache,
    toolchain: &Toolchain,
    source: &Path,
    budget: &Budget,
    timings: &mut Timings,
    progress: &mut dyn FnMut(Stage),
) -> Result<(PathBuf, String), Error> {
    let begin = Instant::now();
    let place = std::path::absolute(source).map_err(Error::io(source))?;
    // The name as given is in the diagnostics and the line records, the place says which file it is.
    let flags = toolchain::NF_FLAGS.join(" ");
    let identity = [
        toolchain.version.as_bytes(),
        flags.as_bytes(),
        headers::digest().as_bytes(),
        place.as_os_str().as_encoded_bytes(),
        source.as_os_str().as_encoded_bytes(),
    ];
    let list = cache.entry("sources", &key(&identity), "txt");
    if let Some(object) = known(cache, &list) {
        timings.compile = begin.elapsed();
        return Ok((object, String::new()));
    }

    progress(Stage::Compile);
    if !source.is_file() {
        let missing = std::io::Error::new(std::io::ErrorKind::NotFound, "no such file");
        return Err(Error::Io {
            path: source.to_owned(),
            source: missing,
        });
    }
    let include = cache.headers()?.join("include");
    let work = cache.workplace(&list)?;
    let made = work.path().join("nf.o");
    let compiled = toolchain::compile_nf_within(toolchain, source, &include, &made, budget)?;
    let bytes = std::fs::read(&made).map_err(Error::io(&made))?;
    let name = key(&[&bytes]);
    let object = cache.entry("objects", &name, "o");
    cache.write(&object, &bytes)?;
    let mut text = format!("{name}\n");
    for file in &compiled.dependencies {
        // A file that changes while it is compiled makes the list differ from what clang saw; the
        // window is the length of one compilation.
        let file = std::path::absolute(file).map_err(Error::io(file))?;
        let content = std::fs::read(&file).map_err(Error::io(&file))?;
        if let Some(shown) = file.to_str().filter(|f| !f.contains('\n')) {
            let _ = writeln!(text, "{} {shown}", key(&[&content]));
        }
    }
    // With warnings it is compiled again each time, so that they are seen each time.
    if compiled.warnings.is_empty() {
        cache.write(&list, text.as_bytes())?;
    }
    timings.compile = begin.elapsed();
    Ok((object, compiled.warnings))
}

/// The object that a list names, if everything in it is as it was.
fn known(cache: &Cache, list: &Path) -> Option<PathBuf> {
    if !cache.has(list) {
        return None;
    }
    let text = std::fs::read_to_string(list).ok()?;
    let mut lines = text.lines();
    let object = cache.entry("objects", lines.next()?, "o");
    for line in lines {
        let (hash, file) = line.split_once(' ')?;
        if key(&[&std::fs::read(file).ok()?]) != hash {
            return None;
        }
    }
    cache.has(&object).then_some(object)
}

/// Everything that decides what the module is.
fn module_key(
    toolchain: &Toolchain,
    program: &Program,
    object: &[u8],
    options: &Options,
) -> String {
    let mut constants = Vec::new();
    for object in program
        .objects
        .iter()
        .filter(|o| o.read_only && !o.settable)
    {
        constants.extend(object.initial.as_deref().unwrap_or_default());
    }
    let flags: Vec<&str> = options.module.flags().collect();
    // As they were set, or declared.
    let declared = |o: &StateObject| OPTIONS.iter().map(|option| (option.get)(o)).collect();
    let declared: Vec<Vec<u64>> = program.objects.iter().map(declared).collect();
    let placement = options.placement.as_deref();
    let held = |wanted: Held| placement.map(|p| p.names(|h| *h == wanted).collect::<Vec<_>>());
    let (locked, replicated) = (held(Held::Locked), held(Held::Replicated));
    let transacted = held(Held::Transacted);
    let parted = placement.map(|p| p.names(|h| h.staleness().is_some()).collect::<Vec<_>>());
    let noted = placement.filter(|p| p.noted);
    let noted = noted.map(|p| p.names(|h| *h == Held::Divided).collect::<Vec<_>>());
    let home = placement.map(|p| (p.coming_home().collect::<Vec<_>>(), p.indexes));
    let limits = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {declared:?}",
        options.check.max_steps,
        options.check.max_visits,
        options.check.disabled,
        options.capacities,
        options.program,
        locked,
        transacted,
        replicated,
        parted,
        home,
        noted,
        options.test,
        options.profile
    );
    key(&[
        env!("MILLRACE_EMITTER").as_bytes(),
        program.name.as_bytes(),
        object,
        &constants,
        toolchain.version.as_bytes(),
        flags.join(" ").as_bytes(),
        headers::digest().as_bytes(),
        limits.as_bytes(),
        cpu().as_bytes(),
    ])
}

/// The CPU that `-march=native` means: the first processor's model and flags.
fn cpu() -> String {
    use std::io::Read;
    let mut text = String::new();
    if let Ok(file) = std::fs::File::open("/proc/cpuinfo") {
        // One processor's part; the kernel computes the text as it is read, for every processor there is.
        let mut bytes = Vec::new();
        if file.take(8192).read_to_end(&mut bytes).is_ok() {
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    let of = |name: &str| {
        text.lines()
            .find(|l| l.starts_with(name))
            .unwrap_or_default()
            .to_owned()
    };
    let names = [
        "vendor_id",
        "cpu family",
        "model",
        "stepping",
        "flags",
        "CPU implementer",
        "CPU part",
        "Features",
    ];
    names.map(of).join("\n")
}
