//! Random admitted programs: state after `process` is state after `replay` of `extract`, under sanitizers.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `MILLRACE_REPLICAS_PROGRAMS` | programs to try (24) |
//! | `MILLRACE_REPLICAS_SEED` | the first one's seed (0) |
//! | `MILLRACE_REPLICAS_THREADS` | programs at a time (2) |
//! | `MILLRACE_REPLICAS_REFUSED` | 1: why each is refused that is |
//! | `MILLRACE_REPLICAS_KEEP` | a folder in which what was made of a program that fails is left |

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use millrace_tests::stateful::case::Case;
use millrace_tests::stateful::replicas::{Came, Kit, case};
use millrace_tests::stateful::{render, shrink};

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => otherwise,
    }
}

/// One of so many programs also has replicas that do not see one field of their rows.
const BLINDED: u64 = 4;

#[derive(Default)]
struct Counts {
    programs: u64,
    compared: u64,
    stateless: u64,
    rows: u64,
    fields: (u32, u32),
    refused: BTreeMap<String, u64>,
    dialects: BTreeMap<String, u64>,
    kinds: BTreeMap<String, u64>,
    findings: Vec<String>,
}

impl Counts {
    fn add(&mut self, case: &Case, came: Came) {
        match came {
            // Reasons without the names that they are about.
            Came::Refused(why) => {
                let why: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
                *self.refused.entry(why).or_default() += 1;
            }
            Came::Stateless => self.stateless += 1,
            Came::Compared { rows, fields, .. } => {
                self.compared += 1;
                self.rows += u64::from(rows);
                self.fields.0 += fields.0;
                self.fields.1 += fields.1;
                let dialect = format!("{:?}", case.program.dialect);
                *self.dialects.entry(dialect).or_default() += 1;
                for kind in render::kinds(&case.program) {
                    *self.kinds.entry(kind).or_default() += 1;
                }
            }
        }
    }

    fn print(&self) {
        println!(
            "{} programs: {} compared over {} rows, {} touch no replicated state, {} refused, {} findings; {} of {} fields that \
             replicas did not see were missed",
            self.programs,
            self.compared,
            self.rows,
            self.stateless,
            self.refused.values().sum::<u64>(),
            self.findings.len(),
            self.fields.1,
            self.fields.0,
        );
        println!("compared: {:?}, with {:?}", self.dialects, self.kinds);
        for (why, n) in &self.refused {
            println!("  {n:5} refused: {why}");
        }
    }
}

/// What is wrong with a case, if something is.
fn wrong(kit: &Kit, case: &Case) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    match kit.held(case, folder.path(), 0) {
        Ok(Came::Compared { differs, .. }) => differs,
        Ok(_) => None,
        Err(said) => Some(said),
    }
}

fn told(kit: &Kit, case: &Case, what: &str) -> String {
    // A program that does not compile is made no smaller: any program may stop compiling in another way.
    let small = shrink::shrink(case, 40, |c| {
        wrong(kit, c).is_some_and(|w| w.contains("differs") || w.contains(','))
    });
    let what = wrong(kit, &small).unwrap_or(what.to_owned());
    if let Some(keep) = std::env::var_os("MILLRACE_REPLICAS_KEEP") {
        let folder = PathBuf::from(keep).join(format!("seed{}", case.seed));
        std::fs::create_dir_all(&folder).unwrap();
        let _ = kit.held(&small, &folder, 0);
    }
    format!(
        "seed {}, {} packets: {what}\n{}",
        case.seed,
        small.packets.len(),
        render::source(&small.program)
    )
}

#[test]
fn replicas_of_generated_programs_are_alike() {
    let (first, programs) = (
        number("MILLRACE_REPLICAS_SEED", 0),
        number("MILLRACE_REPLICAS_PROGRAMS", 24),
    );
    let folder = tempfile::tempdir().unwrap();
    let kit = Kit::new(folder.path()).unwrap();
    let counts = Mutex::new(Counts::default());
    let shows = number("MILLRACE_REPLICAS_REFUSED", 0) > 0;
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..number("MILLRACE_REPLICAS_THREADS", 2) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + programs {
                        break;
                    }
                    let case = case(seed);
                    let folder = tempfile::tempdir().unwrap();
                    let fields = if seed.is_multiple_of(BLINDED) { 4 } else { 0 };
                    let came = kit.held(&case, folder.path(), fields);
                    let finding = match &came {
                        Err(said) => Some(told(&kit, &case, said)),
                        Ok(Came::Compared {
                            differs: Some(what),
                            ..
                        }) => Some(told(&kit, &case, what)),
                        Ok(_) => None,
                    };
                    if let (Ok(Came::Refused(why)), true) = (&came, shows) {
                        println!("seed {seed} is refused: {why}");
                        if let Some(keep) = std::env::var_os("MILLRACE_REPLICAS_KEEP") {
                            let source = render::source(&case.program);
                            let to = PathBuf::from(keep).join(format!("refused{seed}.c"));
                            std::fs::write(to, source).unwrap();
                        }
                    }
                    let mut counts = counts.lock().unwrap();
                    counts.programs += 1;
                    if let Ok(came) = came {
                        counts.add(&case, came);
                    }
                    if let Some(finding) = finding {
                        eprintln!("{finding}");
                        counts.findings.push(finding);
                    }
                    if counts.programs.is_multiple_of(100) {
                        eprintln!("{} programs, {} compared", counts.programs, counts.compared);
                    }
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    counts.print();
    assert!(counts.findings.is_empty(), "{}", counts.findings.join("\n"));
    // Of few programs all may be refused.
    if programs < 20 {
        return;
    }
    // Neither refusals nor rows that say nothing make it pass.
    assert!(
        counts.compared * 4 > programs * 3,
        "{} of {programs} programs were compared",
        counts.compared
    );
    assert!(counts.rows > 50 * counts.compared);
    assert!(
        2 * counts.fields.1 > counts.fields.0,
        "replicas that do not see a field of their rows are told from others: {:?}",
        counts.fields
    );
}
