//! Many programs in one module, executed twice: by the reference interpreter, and as emitted code
//! under AddressSanitizer and UndefinedBehaviorSanitizer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use millrace_check::{Budget, Options, budget, check};
use millrace_emit::alone;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{ModuleOptions, Toolchain, compile_module_within, find};
use millrace_object::insn::Insn;
use millrace_object::program::{Nesting, Program};
use millrace_object::state::lpm;
use rand::Rng;

use super::interpreted::{BEGIN, Entries, Outcome, Packet, STEP, gather, interpret, packet, trace};

/// What a batch showed.
#[derive(Debug, Default)]
pub struct Trial {
    /// what the interpreter saw a program do that no admitted program may
    pub interpreter: Option<String>,
    /// why there is no code to run
    pub emitter: Option<String>,
    /// what a sanitizer said
    pub sanitizer: Option<String>,
    /// where interpreter and emitted code do not agree
    pub difference: Option<String>,
    /// packets that both executed alike
    pub compared: u64,
    /// timers that fired between them
    pub fired: u64,
    /// claims of the proof that the interpreter looked at
    pub claims: u64,
    /// and that the emitted code looks at, each time that it comes to them
    pub in_code: u64,
}

impl Trial {
    /// Whether everything was as it should be.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.findings().is_empty()
    }

    /// Who noticed what.
    #[must_use]
    pub fn findings(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("interpreter", &self.interpreter),
            ("emitter", &self.emitter),
            ("sanitizer", &self.sanitizer),
            ("difference", &self.difference),
        ];
        all.into_iter()
            .filter_map(|(by, what)| Some((by, what.as_deref()?)))
            .collect()
    }
}

/// The time that clang has for a module.
const MODULE: Duration = Duration::from_secs(3600);

/// Where modules are built and run.
pub struct Bench {
    cache: Cache,
    toolchain: Toolchain,
    driver: PathBuf,
    folder: tempfile::TempDir,
    /// the time of the first packet that modules and interpreter are told, ns
    pub begin: u64,
}

impl Bench {
    /// Makes the folder and compiles the driver.
    ///
    /// # Errors
    /// No folder, no clang, or no sanitizer runtime.
    pub fn new() -> Result<Bench, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let cache = Cache::at(&folder.path().join("cache")).map_err(|e| e.to_string())?;
        let toolchain = find(&cache).map_err(|e| e.to_string())?;
        let driver = folder.path().join("driver");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/soundness/driver.c");
        let headers = cache.headers().map_err(|e| e.to_string())?;
        let compiled = Command::new(&toolchain.clang)
            .args([
                "-O1",
                "-gline-tables-only",
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
            ])
            .args(["-rdynamic", "-fsanitize=address,undefined", "-I"])
            .arg(headers.join("fastpath"))
            .arg("-o")
            .args([&driver, &source])
            .arg("-ldl")
            .output()
            .map_err(|e| e.to_string())?;
        if !compiled.status.success() {
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
        Ok(Bench {
            cache,
            toolchain,
            driver,
            folder,
            begin: BEGIN,
        })
    }

    /// Runs programs that the checker, so set, admits each by itself, on this many packets each: as
    /// emitted under sanitizers, or, without `sanitize`, as users run it.
    ///
    /// # Errors
    /// The checker refuses them together, or there is no compiler.
    pub fn trial(
        &self,
        bodies: &[Vec<Insn>],
        checker: &Options,
        sanitize: bool,
        random: &mut impl Rng,
        each: usize,
    ) -> Result<Trial, String> {
        self.compare(&super::program(bodies), checker, sanitize, random, each)
    }

    /// The same for the entries of any program. It has a global of eight bytes that it may write: the last one shows
    /// after each packet what it holds.
    ///
    /// # Errors
    /// The checker refuses it, there is no such global, or no compiler.
    pub fn compare(
        &self,
        program: &Program,
        checker: &Options,
        sanitize: bool,
        random: &mut impl Rng,
        each: usize,
    ) -> Result<Trial, String> {
        let entries = program.entries.len().max(1) as u64;
        let checker = Options {
            // Where sanitizers watch, what the proof claims is watched, too.
            claims: checker.claims || sanitize,
            // What each may take alone, all of them may take together.
            max_visits: checker.max_visits.saturating_mul(entries),
            ..checker.clone()
        };
        let checked = millrace_check::check(program, &checker)
            .map_err(|r| format!("admitted alone and refused together: {r:?}"))?;
        let count = program.entries.len();
        let packets: Vec<Packet> = (0..each * count)
            .map(|i| packet(random, i % count))
            .collect();
        let mut trial = Trial::default();
        let with_text = |what: String, entry: usize| {
            let function = program.entries.get(entry).map(|e| e.function);
            let function = function.and_then(|f| program.functions.get(f.0));
            let text = function.map(|f| format!("{}\n{}", f.name, super::text(&f.insns)));
            Some(format!("{what}\n{}", text.unwrap_or_default()))
        };
        let mut expected = None;
        match interpret(program, &checked, &packets, self.begin) {
            Ok(all) => {
                trial.fired = all.fired;
                trial.claims = all.claims;
                expected = Some((all.outcomes, all.entries));
            }
            Err((program, what)) => trial.interpreter = with_text(what, program),
        }
        let text = match alone::emit(program, &checked, "batch.c") {
            Ok(text) => text,
            Err(what) => {
                trial.emitter = Some(what.to_string());
                return Ok(trial);
            }
        };
        trial.in_code = text.matches("MR_CLAIM(").count() as u64;
        let module = self.compile(&text, sanitize)?;
        let (found, entries) = match self.run(program, &module, &packets) {
            Ok(both) => both,
            Err((at, said)) => {
                trial.sanitizer = with_text(said, packets.get(at).map_or(0, |p| p.program));
                return Ok(trial);
            }
        };
        let Some((expected, machine_entries)) = expected else {
            return Ok(trial);
        };
        for ((packet, expected), found) in packets.iter().zip(&expected).zip(&found) {
            // A redirect goes to a port that no helper has named here.
            let fate = expected.fate == 4 || expected.fate == found.fate;
            if fate
                && (&expected.bytes, expected.trace, &expected.records)
                    == (&found.bytes, found.trace, &found.records)
            {
                trial.compared += 1;
                continue;
            }
            let what =
                format!("packet {packet:x?}\ninterpreter {expected:x?}\nemitted     {found:x?}");
            trial.difference = with_text(what, packet.program);
            return Ok(trial);
        }
        let both = machine_entries.iter().zip(&entries);
        for (object, (expected, found)) in program.objects.iter().zip(both) {
            if expected != found {
                trial.difference = Some(format!(
                    "`{}` at the end\ninterpreter {expected:x?}\nemitted     {found:x?}",
                    object.name
                ));
            }
        }
        Ok(trial)
    }

    /// Runs `work` while a header of the fast path says `before` where it says `now`.
    ///
    /// # Errors
    /// The header cannot be read or written, or does not say `now`.
    pub fn with_header<T>(
        &self,
        header: &str,
        now: &str,
        before: &str,
        work: impl FnOnce() -> T,
    ) -> Result<T, String> {
        let headers = self.cache.headers().map_err(|e| e.to_string())?;
        let path = headers.join("fastpath").join(header);
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        if !text.contains(now) {
            return Err(format!("{header} does not say `{now}`"));
        }
        std::fs::write(&path, text.replace(now, before)).map_err(|e| e.to_string())?;
        let result = work();
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
        Ok(result)
    }

    /// A program as users run it.
    ///
    /// # Errors
    /// The checker refuses it, or there is no compiler.
    pub fn build(&self, program: &Program) -> Result<PathBuf, String> {
        let checked = check(program, &Options::default()).map_err(|r| format!("{r:?}"))?;
        let text = alone::emit(program, &checked, "batch.c").map_err(|e| e.to_string())?;
        self.compile(&text, false)
    }

    fn compile(&self, text: &str, sanitize: bool) -> Result<PathBuf, String> {
        let folder = self.folder.path();
        let (source, module) = (folder.join("batch.c"), folder.join("batch.so"));
        std::fs::write(&source, text).map_err(|e| e.to_string())?;
        let fastpath = self.cache.headers().map_err(|e| e.to_string())?;
        let fastpath = fastpath.join("fastpath");
        let options = ModuleOptions {
            sanitize,
            ..ModuleOptions::of_command()
        };
        // A module of many programs, on a machine that may have other work, is no object of somebody's.
        let budget = Budget::begin(MODULE, budget::MEMORY);
        compile_module_within(
            &self.toolchain,
            &source,
            &fastpath,
            &module,
            options,
            &budget,
        )
        .map_err(|e| e.to_string())?;
        Ok(module)
    }

    /// The module in a process of its own. The error says how many packets it came through.
    fn run(
        &self,
        program: &Program,
        module: &Path,
        packets: &[Packet],
    ) -> Result<(Vec<Outcome>, Vec<Entries>), (usize, String)> {
        let none = |e: std::io::Error| (0, e.to_string());
        let mut input = Vec::new();
        let word = |n: usize| (n as u32).to_le_bytes();
        let Some(trace) = trace(program) else {
            return Err((0, "no global of eight bytes".into()));
        };
        input.extend([trace.0, packets.len()].map(word).concat());
        input.extend([self.begin, STEP].map(u64::to_le_bytes).concat());
        for object in &program.objects {
            let initial = object.initial.as_deref().unwrap_or_default();
            input.extend(word(initial.len()));
            input.extend(initial);
        }
        for p in packets {
            let head = [p.program, p.port as usize, p.headroom, p.bytes.len()];
            input.extend(head.map(word).concat());
            input.extend(&p.bytes);
        }
        let mut child = Command::new(&self.driver)
            .arg(module)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(none)?;
        let stdin = child.stdin.take();
        let writer = std::thread::spawn(move || {
            // A driver that ended early says itself why.
            stdin.map(|mut s| s.write_all(&input))
        });
        let output = child.wait_with_output().map_err(none)?;
        let _ = writer.join();
        let mut reader = Reader(&output.stdout);
        let outcomes: Vec<Outcome> = (0..packets.len()).map_while(|_| reader.outcome()).collect();
        if !output.status.success() || outcomes.len() < packets.len() {
            let said: String = String::from_utf8_lossy(&output.stderr)
                .lines()
                .take(30)
                .collect::<Vec<_>>()
                .join("\n");
            return Err((outcomes.len(), format!("{}\n{said}", output.status)));
        }
        let entries = program.objects.iter().map(|o| {
            let count = reader.word().unwrap_or(0);
            // The entries of the maps in a map come with both keys.
            let before = match o.nesting {
                Some(Nesting::Shape(holder)) => {
                    program.objects.get(holder.0).map_or(0, |h| h.key_bytes)
                }
                // The length of a handler's prefix stands before it.
                _ if *o.kind == lpm::KIND => 4,
                _ => 0,
            };
            let pair = |_| {
                let key = reader.take((before + o.key_bytes) as usize)?.to_vec();
                Some((key, reader.take(o.value_bytes as usize)?.to_vec()))
            };
            gather((0..count).map_while(pair))
        });
        let entries = entries.collect();
        Ok((outcomes, entries))
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let (fate, _out, length) = (self.word()?, self.word()?, self.word()?);
        let bytes = self.take(length as usize)?.to_vec();
        let trace = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        let mut records = Vec::new();
        for _ in 0..self.word()? {
            let (object, length) = (self.word()?, self.word()?);
            records.push((object, self.take(length as usize)?.to_vec()));
        }
        Some(Outcome {
            fate,
            bytes,
            trace,
            records,
        })
    }
}
