//! The two suites: the kernel's, whose expectations are notes in the type information, and PREVAIL's, whose
//! expectations are an inventory beside the objects.

use std::path::{Path, PathBuf};

use millrace_check::Options;
use millrace_check::facts::written;
use millrace_object::insn::{AluOp, Insn, Operand, REGISTERS, Reg, Size, Width};
use millrace_object::{LoadError, Program, load_functions, tags};
use serde_json::Value;

use super::{Answer, Case};
use crate::public::CAPACITY;

/// Section names of programs whose context is a `struct __sk_buff`.
const BUFFERS: &[&str] = &[
    "tc",
    "tcx/",
    "classifier",
    "action",
    "socket",
    "cgroup/skb",
    "cgroup_skb/",
    "lwt_",
    "sk_skb",
];

/// Fields of a `struct __sk_buff` and where XDP has the like: `data`, `data_end` and `data_meta`; and for `len`,
/// `pkt_type` and `mark`, which tests take for any number, the receive queue's.
const FIELDS: &[(i16, i16)] = &[(76, 0), (80, 4), (140, 8), (0, 16), (4, 16), (8, 16)];

/// Objects of a folder, by name.
///
/// # Errors
/// The folder cannot be read.
pub fn objects(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "o"));
    files.sort();
    Ok(files)
}

/// The programs of an object of the kernel's self-tests (`tools/testing/selftests/bpf/test_loader.c`
/// reads the same notes). What is for another processor is left out.
///
/// # Errors
/// The object cannot be read.
pub fn kernel(name: &str, file: &[u8]) -> Result<Vec<Case>, LoadError> {
    let mut cases = Vec::new();
    for tagged in tags::tagged(file)? {
        let notes: Vec<&str> = tagged.tags.iter().filter_map(|t| note(t)).collect();
        let has = |wanted: &str| notes.contains(&wanted);
        let value = |key: &str| notes.iter().find_map(|n| n.strip_prefix(key));
        let verdict = |suffix: &str| {
            let is = |what: &str| has(&format!("test_expect_{what}{suffix}"));
            match (is("success"), is("failure")) {
                (_, true) => Some(false),
                (true, _) => Some(true),
                _ => None,
            }
        };
        let processors = notes.iter().filter_map(|n| n.strip_prefix("test_arch="));
        let mut processors = processors.peekable();
        if processors.peek().is_some() && !processors.any(|p| p == "X86_64") {
            continue;
        }
        let unprivileged = verdict("_unpriv");
        let Some(admits) = verdict("").or(unprivileged) else {
            continue;
        };
        cases.push(Case {
            file: name.to_owned(),
            result: value("test_retval=").and_then(number).filter(|_| admits),
            function: tagged.function,
            section: tagged.section,
            admits,
            unprivileged,
        });
    }
    Ok(cases)
}

/// A note without its marks: `comment:test_…`, or with a number, which keeps equal notes apart, since 6.17.
fn note(tag: &str) -> Option<&str> {
    let rest = tag.strip_prefix("comment:")?;
    match rest.split_once(':') {
        Some((number, note)) if number.bytes().all(|b| b.is_ascii_digit()) => Some(note),
        _ => Some(rest),
    }
}

/// A result as the notes have it; none for one that is an address.
fn number(text: &str) -> Option<u32> {
    let text = text.trim().trim_matches(['(', ')']);
    let (minus, digits) = text.strip_prefix('-').map_or((false, text), |d| (true, d));
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    let value = match (digits, digits.strip_prefix("0x")) {
        ("INT_MIN", _) => i64::from(i32::MIN),
        ("TEST_DATA_LEN", _) => super::run::FRAME as i64,
        (_, Some(hex)) => i64::from_str_radix(hex, 16).ok()?,
        _ => digits.parse().ok()?,
    };
    Some(if minus { -value } else { value } as u32)
}

/// The programs of PREVAIL's inventory (`elf_inventory.json`): the object's path below the folder of the
/// samples, and what is expected of each of its programs. Left out are those of which it says neither that it
/// admits them nor that they are wrong (`expected_failure`), and programs of other types than XDP's that it
/// admits: `.text` is where samples for no type in particular are.
///
/// # Errors
/// The inventory is of another form.
pub fn prevail(inventory: &str) -> Result<Vec<Case>, String> {
    let root: Value = serde_json::from_str(inventory).map_err(|e| e.to_string())?;
    let members = |value: &Value| -> Vec<(String, Value)> {
        let members = value.as_object().into_iter().flatten();
        members.map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    let mut cases = Vec::new();
    for (project, content) in members(&root["projects"]) {
        for (object, content) in members(&content["objects"]) {
            for (section, programs) in members(&content["sections"]) {
                let programs = programs.as_array().cloned().unwrap_or_default();
                for program in &programs {
                    let function = program["function"].as_str().unwrap_or_default();
                    let expected = &content["test_overrides"];
                    let one = &expected["programs"][&section][function]["status"];
                    let status = one
                        .as_str()
                        .or(expected["sections"][&section]["status"].as_str());
                    let admits = match status {
                        None if section.starts_with("xdp") || section == ".text" => true,
                        Some("reject" | "reject_load") => false,
                        _ => continue,
                    };
                    cases.push(Case {
                        file: format!("{project}/{object}"),
                        function: function.to_owned(),
                        section: section.clone(),
                        admits,
                        unprivileged: None,
                        result: None,
                    });
                }
            }
        }
    }
    if cases.is_empty() {
        return Err("an inventory without `projects`".into());
    }
    Ok(cases)
}

/// These programs of an object, as programs for packets.
///
/// # Errors
/// See [`load_functions`].
pub fn load(name: &str, file: &[u8], cases: &[&Case]) -> Result<Program, LoadError> {
    let functions: Vec<&str> = cases.iter().map(|c| c.function.as_str()).collect();
    let capacities = [("*".to_owned(), u64::from(CAPACITY))];
    let mut program = load_functions(file, name, &functions, &capacities)?;
    for entry in &program.entries {
        let Some(function) = program.functions.get_mut(entry.function.0) else {
            continue;
        };
        let section = function.section.trim_start_matches('?');
        if BUFFERS.iter().any(|b| section.starts_with(b)) {
            rename(&mut function.insns);
        }
    }
    let insns = program.functions.iter_mut().flat_map(|f| &mut f.insns);
    insns.for_each(trap);
    Ok(program)
}

/// Loads from a `struct __sk_buff` become the ones that XDP has: what is behind its pointers is the same, and
/// most tests of accesses to packets are programs of that type. Copies of the context are followed from one
/// instruction to the next, which is enough for tests.
fn rename(insns: &mut [Insn]) {
    let mut contexts = [false; REGISTERS];
    let mut hold = |reg: Reg, is: bool| {
        if let Some(place) = contexts.get_mut(usize::from(reg.0)) {
            *place = is;
        }
        contexts
    };
    let mut now = hold(Reg(1), true);
    let is = |now: [bool; REGISTERS], reg: Reg| now.get(usize::from(reg.0)) == Some(&true);
    for insn in insns {
        if let Insn::Load {
            size: Size::B4,
            signed: false,
            base,
            offset,
            ..
        } = insn
            && is(now, *base)
            && let Some((_, here)) = FIELDS.iter().find(|(there, _)| there == offset)
        {
            *offset = *here;
        }
        match *insn {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Operand::Reg(src),
            } => now = hold(dst, is(now, src)),
            Insn::Call { .. } | Insn::CallLocal { .. } => {
                for argument in 1..=5 {
                    now = hold(Reg(argument), false);
                }
            }
            _ => {
                if let Some(dst) = written(insn) {
                    now = hold(dst, false);
                }
            }
        }
    }
}

/// A division by the constant 0, which the kernel refuses if it can be reached and tests therefore put where
/// nothing may come, becomes what is refused here as well: it is defined here, the result is 0 (RFC 9669).
fn trap(insn: &mut Insn) {
    if let Insn::Alu {
        op: AluOp::Div | AluOp::Mod | AluOp::SignedDiv | AluOp::SignedMod,
        src: Operand::Imm(0),
        dst,
        ..
    } = *insn
    {
        *insn = Insn::CallRegister { target: dst };
    }
}

/// What the checker says of a program of an object.
#[must_use]
pub fn ask(case: &Case, file: &[u8]) -> Answer {
    let refused = match load(&case.file, file, &[case]) {
        Err(error) => Some((error.rule.to_owned(), error.to_string())),
        Ok(mut program) => {
            // Without the programs that it may tail-call, which are cases of their own.
            program.entries.truncate(1);
            let refusals = millrace_check::check(&program, &Options::default()).err();
            let first = refusals.and_then(|refusals| refusals.into_iter().next());
            first.map(|r| (r.rule.to_owned(), format!("{}: {}", r.text, r.reason)))
        }
    };
    Answer {
        case: case.clone(),
        refused,
    }
}
